package incidents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim"
	"github.com/accel-exporter/accel-exporter/test/stack"
)

// Latencies are measured on this scenario, which has so many GPUs. The engine
// bounds how much it does for events, so that one just after another waits;
// injections are further apart than that.
const (
	latencyScenario = "h100-8"
	latencyGPUs     = 8
	latencyPause    = 3 * time.Second
	// latencyXid is one that the driver does not overrule half a minute later, which
	// is an event again.
	latencyXid = "46"
	// latencyAim is what a page may take; those that took longer are named.
	latencyAim = 250 * time.Millisecond
)

// Latency injects Xids one after the other, each of which raises an alert that
// was not there, and returns how long each took from the injection to the
// webhook behind Alertmanager. Between two the node starts again when all of
// its GPUs have their alert.
func (s *Settings) Latency(ctx context.Context, count int, w io.Writer) (Distribution, error) {
	var times []time.Duration
	for len(times) < count {
		some, err := s.latencies(ctx, min(latencyGPUs, count-len(times)), w)
		if err != nil {
			return Distribution{}, err
		}
		times = append(times, some...)
		fmt.Fprintf(w, "%d of %d: %s\n", len(times), count, Spread(times))
	}
	return Spread(times), nil
}

// latencies measures up to one alert on each GPU of a node.
func (s *Settings) latencies(ctx context.Context, count int, w io.Writer) (times []time.Duration, err error) {
	n, err := s.newNode(ctx, &Incident{Name: "latency", Scenario: latencyScenario})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	state, err := sim.Read(n.state)
	if err != nil {
		return nil, err
	}
	for k := range count {
		gpu := strconv.Itoa(k)
		want := Pattern{"AcceleratorFailed", map[string]string{"device": state.Get("gpu." + gpu + ".uuid")}}
		// Phases of the exporter's own tick must not always be the same.
		if err := sleep(ctx, latencyPause+rand.N(time.Second)); err != nil {
			return nil, err
		}
		begin := time.Now()
		if err := sim.Update(n.state, func(s *sim.State) error { return s.Inject([]string{"xid", latencyXid, gpu}) }); err != nil {
			return nil, err
		}
		took, err := n.receiver.await(ctx, want, begin)
		if err != nil {
			return nil, fmt.Errorf("after Xid %s on gpu %s: %w", latencyXid, gpu, err)
		}
		times = append(times, took)
		if took > latencyAim {
			fmt.Fprintf(w, "%s after Xid %s on gpu %s at %s\n", round(took), latencyXid, gpu, begin.Format("15:04:05.000"))
		}
	}
	return times, nil
}

// await waits for an alert and returns how long after begin it arrived.
func (r *receiver) await(ctx context.Context, want Pattern, begin time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, stack.Patience)
	defer cancel()
	for {
		for _, a := range r.since(begin) {
			if !a.Resolved && want.Matches(a.Labels) {
				if a.At < 0 {
					return 0, fmt.Errorf("%s arrived before its cause", want)
				}
				return a.At, nil
			}
		}
		select {
		case <-r.arrived:
		case <-ctx.Done():
			return 0, fmt.Errorf("%s did not arrive: %w", want, ctx.Err())
		}
	}
}
