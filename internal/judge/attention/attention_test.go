package attention_test

import (
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/attention"
)

func TestAttention(t *testing.T) {
	start := time.Now()
	type look struct {
		after      time.Duration
		state      string
		down       bool
		silent     bool // only a witness knows it
		errors     float64
		wanted     bool
		c2c, other float64
	}
	for name, looks := range map[string][]look{
		"a healthy device needs none":            {{state: "healthy"}, {after: time.Second, state: "healthy"}},
		"an unknown state is no cause":           {{state: "unknown"}},
		"a failed device, and an hour after":     {{state: "failed", wanted: true}, {after: 59 * time.Minute, state: "healthy", wanted: true}, {after: time.Hour, state: "healthy"}},
		"a degraded device, as long as it is so": {{state: "degraded", wanted: true}, {after: 5 * time.Hour, state: "degraded", wanted: true}, {after: 7 * time.Hour, state: "healthy"}},
		"a link that is down":                    {{state: "healthy", down: true, wanted: true}},
		"errors from before the start":           {{state: "healthy", errors: 7}, {after: time.Second, state: "healthy", errors: 7}},
		"errors from before the first answer":    {{state: "unknown", silent: true}, {after: time.Second, state: "healthy", errors: 7}},
		"errors that grow":                       {{state: "healthy", errors: 7}, {after: time.Second, state: "healthy", errors: 8, wanted: true}},
		"errors of C2C":                          {{state: "healthy"}, {after: time.Second, state: "healthy", c2c: 1, wanted: true}},
		"corrected errors of memory":             {{state: "healthy"}, {after: time.Second, state: "healthy", other: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			j := attention.New()
			for i, l := range looks {
				d := collector.Device{ID: "GPU-1", Verdict: &collector.Verdict{State: l.state}}
				if !l.silent {
					d.SetBool(collector.NVLinkUp, !l.down, "0")
					d.Set(collector.GPUNVLinkErrors, l.errors, "crc")
					d.Set(collector.C2CErrors, l.c2c, "crc")
					d.Set(collector.ECCErrors, l.other, "corrected", "dram")
				}
				s := &collector.Snapshot{Time: start.Add(l.after), Devices: []collector.Device{d}}
				j.Judge(s)
				if got := s.Devices[0].Attention; got != l.wanted {
					t.Errorf("look %d: attention %v, wanted %v", i, got, l.wanted)
				}
			}
		})
	}
}
