package remediation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Prover asks the exporter of a node.
type Prover interface {
	// Prove returns what the exporter of the node knows now.
	Prove(ctx context.Context, node string) (*Proof, error)
}

// Proof is what the exporter of a node knows of its devices. A node returns only with
// it: an alert is absent also while its exporter is dead, or has forgotten the fault.
type Proof struct {
	// Before has the devices whose faults that only an event reported are unknown from
	// before a time.
	Before map[string]time.Time
	// Sources has the sources that do not answer, each with the reason.
	Sources map[string]string
	// Devices has the state of each device.
	Devices map[string]string
	// Evidence has the bundle of each device that has one.
	Evidence map[string]Evidence
	// Clocks has the SM clock of each busy device of which the power limit is known.
	Clocks map[string]Clock
}

// Clock is the SM clock of a device, as a share of its highest. It may be Limited by the
// power limit of the device.
type Clock struct {
	Share   float64
	Limited bool
}

// Missing is what is missing for the return of a node.
type Missing struct {
	// Reason is one of the withheld reasons, empty if nothing is missing.
	Reason string
	// Text names the exporter's error, the source or the device.
	Text string
}

// missing returns what the proof lacks for the return of a node or device with this
// record. The return of a device does not depend on the others.
func (p *Proof) missing(r *Record, device bool) Missing {
	for _, source := range slices.Sorted(maps.Keys(p.Sources)) {
		return Missing{WithheldSource, fmt.Sprintf("source %s: %s", source, cmp.Or(p.Sources[source], "down"))}
	}
	// Between the alert and the take-out, the exporter may have forgotten the fault.
	for _, id := range slices.Sorted(maps.Keys(p.Before)) {
		if before := p.Before[id]; before.After(cmp.Or(r.Fired, r.Since)) && (!device || slices.Contains(r.Devices, id)) {
			return Missing{WithheldExporter, fmt.Sprintf("device %s: faults from before %s are unknown to the exporter", id, before.UTC().Format(time.RFC3339))}
		}
	}
	for _, id := range r.Devices {
		if state := p.Devices[id]; state != healthy {
			return Missing{WithheldDevice, fmt.Sprintf("device %s: %s", id, cmp.Or(state, "not on the node"))}
		}
	}
	if device {
		return Missing{}
	}
	sound := false
	for _, id := range slices.Sorted(maps.Keys(p.Devices)) {
		if p.Devices[id] == failed {
			return Missing{WithheldDevice, fmt.Sprintf("device %s: failed", id)}
		}
		sound = sound || p.Devices[id] == healthy
	}
	if !sound {
		return Missing{WithheldDevice, "no device of the node is healthy"}
	}
	return Missing{}
}

const (
	healthy = "healthy"
	failed  = "failed"
)

const (
	// proveTime bounds the questions of one pass, so that dead exporters do not delay
	// the nodes that fail.
	proveTime = 10 * time.Second
	// proveAtOnce bounds the questions in flight: a page of an exporter may be megabytes.
	proveAtOnce = 50
)

// answer is what an exporter answered.
type answer struct {
	proof *Proof
	err   error
}

// ask asks the exporters of these nodes.
func (c *Controller) ask(ctx context.Context, nodes map[string]bool) map[string]answer {
	ctx, cancel := context.WithTimeout(ctx, proveTime)
	defer cancel()
	var (
		mu    sync.Mutex
		asked sync.WaitGroup
		all   = map[string]answer{}
		slots = make(chan struct{}, proveAtOnce)
	)
	for name := range nodes {
		asked.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			proof, err := c.o.Prover.Prove(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			all[name] = answer{proof, err}
		})
	}
	asked.Wait()
	return all
}

// prove returns what is missing for the return of each of these nodes and devices, by key.
// It fails a test whose device was slow.
func (c *Controller) prove(ctx context.Context, list []Node, jobs map[string]JobState) map[string]Missing {
	nodes := map[string]bool{}
	for i := range list {
		nodes[list[i].Name] = true
	}
	proofs, all := c.ask(ctx, nodes), map[string]Missing{}
	for i := range list {
		n := &list[i]
		if a := proofs[n.Name]; a.err != nil {
			all[n.key()] = Missing{WithheldExporter, a.err.Error()}
		} else {
			all[n.key()] = a.proof.missing(n.record(), n.Device != nil)
			if job, tests := jobs[n.key()]; tests {
				jobs[n.key()] = c.compare(n, a.proof, job)
			}
		}
	}
	return all
}
