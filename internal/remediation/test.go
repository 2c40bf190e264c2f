package remediation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// JobState is the state of the Job of a test.
type JobState struct {
	// Name is its name, empty while it does not exist.
	Name string
	// Passed and Failed: it has ended so. Text has more of a failure, or why the state is
	// not known.
	Passed, Failed bool
	Text           string
	Unknown        bool
}

// testing reports whether a test was begun and has not failed.
func (r *Record) testing() bool { return !r.Tested.IsZero() && r.Failed == "" }

// tested reports whether the test before the return has passed, and begins it.
func (s *Step) tested(n *Node, r *Record, in *Situation) bool {
	job, next := in.Jobs[n.key()], slices.Index(r.Tests, r.Test)+1
	if job.Passed && 0 < next && next < len(r.Tests) {
		r.Test, r.Tested = r.Tests[next], time.Time{}
	}
	switch {
	case !r.testing():
		r.Tested, r.Failed = in.Now.UTC().Truncate(time.Second), ""
		s.setRecord(n, r, "")
		s.Missing = "the test " + r.Test + " begins"
	case job.Unknown:
		s.Missing = job.Text
	case job.Passed:
		return true
	case job.Failed:
		s.failTest(n, r, fmt.Sprintf("Job %s: %s", job.Name, job.Text), in.Now)
	case job.Name == "":
		s.Test, s.Missing = r.Test, "the test "+r.Test+" begins"
	default:
		s.Missing = fmt.Sprintf("Job %s runs", job.Name)
	}
	return false
}

// failTest ends a test that has failed. A person looks at the hardware, or requests
// another test by removing the annotation.
func (s *Step) failTest(n *Node, r *Record, why string, now time.Time) {
	r.Tested, r.Failed = now.UTC().Truncate(time.Second), why
	s.Missing, s.Failed = why, r.Tested
	s.setRecord(n, r, "test failed")
}

// setRecord plans a change of the record alone, and requests an inspection if its reason
// is not empty.
func (s *Step) setRecord(n *Node, r *Record, inspect string) {
	after := *n
	after.Annotations = maps.Clone(n.Annotations)
	put(&after.Annotations, RecordAnnotation, text(r))
	if inspect != "" {
		put(&after.Annotations, InspectAnnotation, inspect)
	}
	if n.Device != nil {
		after.Taints = r.Taints
	}
	s.change(n, &after)
}

// testCall is the call that makes the Job of a test. Another test has another Job.
func testCall(n *Node, r *Record, class string) *Call {
	c := &Call{
		Key:  fmt.Sprintf("%s-%d-%s-test", n.callKey(), r.Tested.Unix(), r.Test),
		Hook: r.Test, Node: n.Name, Since: r.Since, Alerts: r.Alerts, Devices: r.Devices,
	}
	if n.Device != nil {
		c.Claim = &Claim{Class: class, Device: *n.Device, RuleUID: n.UID}
	}
	return c
}

// testJobs returns the Jobs of the tests that were begun, by key.
func (c *Controller) testJobs(ctx context.Context, list []Node) map[string]JobState {
	jobs := map[string]JobState{}
	for i := range list {
		r := list[i].record()
		if !r.testing() {
			continue
		}
		state, err := c.o.Cluster.Job(ctx, testCall(&list[i], r, ""))
		if err != nil {
			state = JobState{Unknown: true, Text: err.Error()}
		}
		jobs[list[i].key()] = state
	}
	return jobs
}

// A device under test is slow if its clock stayed below a share of that of the other busy
// devices of its node for a while, and its power limit does not explain it. The share is that of
// the alert GpuSlowerThanNeighbours.
const (
	slowShare = 0.85
	slowTime  = 30 * time.Second
)

// slow is the comparison of a device under test, from the first to the last pass in which
// it was busy.
type slow struct {
	first, last time.Time
	fast        bool // in one of them
	text        string
}

// compare fails a passed test during which a device was slow.
func (c *Controller) compare(n *Node, p *Proof, job JobState) JobState {
	r := n.record()
	for _, id := range r.Devices {
		key := fmt.Sprintf("%s/%d/%s", n.key(), r.Tested.Unix(), id)
		s := c.slow[key]
		var others []float64
		for other, clock := range p.Clocks {
			if other != id {
				others = append(others, clock.Share)
			}
		}
		if own, busy := p.Clocks[id]; busy && len(others) > 0 && job.Name != "" {
			slices.Sort(others)
			median := others[len(others)/2]
			s.last = c.o.Now()
			s.first = cmp.Or(s.first, s.last)
			s.fast = s.fast || own.Limited || own.Share >= slowShare*median
			s.text = fmt.Sprintf("%s had %.0f %% of its highest SM clock under load, the other busy devices of the node %.0f %%", id, own.Share*100, median*100)
			c.slow[key] = s
		}
		if job.Passed && !s.fast && s.last.Sub(s.first) >= slowTime {
			return JobState{Name: job.Name, Failed: true, Text: s.text}
		}
	}
	return job
}

// test makes the Job of a test.
func (c *Controller) test(ctx context.Context, p *Policy, s *Step) {
	hook := p.Hooks[s.Test]
	c.result(s, "test", c.o.Cluster.MakeJob(ctx, hook.Job, testCall(&s.Node, s.Node.record(), hook.Class)))
}
