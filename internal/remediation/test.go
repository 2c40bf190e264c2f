package remediation

import (
	"context"
	"fmt"
	"maps"
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
	job := in.Jobs[n.key()]
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

// test makes the Job of a test.
func (c *Controller) test(ctx context.Context, p *Policy, s *Step) {
	hook := p.Hooks[s.Test]
	c.result(s, "test", c.o.Cluster.MakeJob(ctx, hook.Job, testCall(&s.Node, s.Node.record(), hook.Class)))
}
