package incidents_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/strict"
	"github.com/accel-exporter/accel-exporter/test/incidents"
)

const whole = `what: A GPU falls off the bus.
scenario: h100-8
flags: [--collect.interval=1s]
lasts: 30s
timeline:
  - {at: 3s, inject: lost 2}
  - {at: 20s, clear: "2"}
expect:
  - {alert: AcceleratorFailed, labels: {device: gpu 2}, annotations: {summary: chat-0}, since: 3s, by: 8s, resolves: never}
  - {alert: AcceleratorResetDue, by: 8s, resolves: 29s}
never:
  - {alert: AccelSourceBlind}
allow:
  - {alert: AllocationIdle, labels: {workload: jupyter}}
tickets: 1
`

func TestParse(t *testing.T) {
	got, err := incidents.Parse("dir/gpu-lost.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := &incidents.Incident{
		Name: "gpu-lost", What: "A GPU falls off the bus.", Scenario: "h100-8",
		Flags: []string{"--collect.interval=1s"}, Lasts: 30 * time.Second,
		Timeline: []incidents.Step{{At: 3 * time.Second, Inject: "lost 2"}, {At: 20 * time.Second, Clear: "2"}},
		Expect: []incidents.Expectation{
			{
				Alert: "AcceleratorFailed", Labels: map[string]string{"device": "gpu 2"}, Annotations: map[string]string{"summary": "chat-0"},
				Since: 3 * time.Second, By: 8 * time.Second, Resolves: incidents.Resolution{Never: true},
			},
			{Alert: "AcceleratorResetDue", By: 8 * time.Second, Resolves: incidents.Resolution{By: 29 * time.Second}},
		},
		Never:   []incidents.Pattern{{Alert: "AccelSourceBlind"}},
		Allow:   []incidents.Pattern{{Alert: "AllocationIdle", Labels: map[string]string{"workload": "jupyter"}}},
		Tickets: 1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
	if got.Healthy() {
		t.Error("an incident that expects alerts is called healthy")
	}
}

// Every mistake is reported with its line.
func TestMistakes(t *testing.T) {
	const head = "what: It breaks.\nscenario: h100-8\nlasts: 30s\n"
	for _, tc := range []struct{ name, file, want string }{
		{"empty", "", "i.yaml:1: found no what"},
		{"no sentence", "scenario: h100-8\nlasts: 30s\n", "i.yaml:1: found no what"},
		{"no scenario", "what: It breaks.\nlasts: 30s\n", "i.yaml:1: found no scenario"},
		{"no end", "what: It breaks.\nscenario: h100-8\n", "i.yaml:1: found no lasts"},
		{"series that nobody scrapes", head + "prometheus: alone\nkube_state_metrics: a 1\n", "i.yaml:5: kube_state_metrics: found series that no Prometheus scrapes"},
		{"unknown key", head + "alerts: []\n", "i.yaml:4: alerts: unknown key"},
		{"key twice", head + "lasts: 40s\n", "i.yaml:4: lasts: found a second time, first on line 3"},
		{"too long", "what: It breaks.\nscenario: h100-8\nlasts: 11m\n", `i.yaml:3: lasts: found "11m"`},
		{"no action", head + "timeline:\n  - at: 3s\n", "i.yaml:5: timeline[0]: found 0 actions"},
		{"two actions", head + "timeline:\n  - {at: 3s, inject: lost 2, clear: all}\n", "i.yaml:5: timeline[0]: found 2 actions"},
		{"unknown action of the exporter", head + "timeline:\n  - {at: 3s, exporter: reload}\n", `i.yaml:5: timeline[0].exporter: found "reload"; accepted is one of stop, start`},
		{"step after the end", head + "timeline:\n  - {at: 3s, clear: all}\n  - {at: 30s, clear: all}\n", "i.yaml:6: timeline[1].at: found 30s; accepted is a time from 3s"},
		{"steps out of order", head + "timeline:\n  - {at: 3s, clear: all}\n  - {at: 2s, clear: all}\n", "i.yaml:6: timeline[1].at: found 2s"},
		{"alert without a name", head + "expect:\n  - {by: 3s}\n", "i.yaml:5: expect[0]: found no alert"},
		{"alert after the end", head + "expect:\n  - {alert: A, by: 31s}\n", "i.yaml:5: expect[0].by: found 31s; accepted is a time up to 30s"},
		{"alert before its cause", head + "expect:\n  - {alert: A, since: 9s, by: 8s}\n", "i.yaml:5: expect[0].by: found 8s; accepted is a time after 9s"},
		{"no time", head + "expect:\n  - {alert: A}\n", "i.yaml:5: expect[0].by: found 0s"},
		{"resolves some day", head + "expect:\n  - {alert: A, by: 8s, resolves: later}\n", `i.yaml:5: expect[0].resolves: found "later"; accepted is never, or a duration`},
		{"resolves after the end", head + "expect:\n  - {alert: A, by: 8s, resolves: 40s}\n", "i.yaml:5: expect[0].resolves: found 40s"},
		{"nothing that is never", head + "never:\n  - {labels: {pod: a}}\n", "i.yaml:5: never[0]: found no alert"},
		{"number for text", head + "allow:\n  - {alert: 7}\n", "i.yaml:5: allow[0].alert: found the number 7"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := incidents.Parse("i.yaml", []byte(tc.file))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("found %v; want %s", err, tc.want)
			}
		})
	}
}

// Any file is either refused with lines or an incident that
// can be played to its end.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("what: a\nscenario: b\nlasts: 1s\nexpect: [{alert: a, by: 1s}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := incidents.Parse("i.yaml", data)
		if err != nil {
			if m, ok := errors.AsType[strict.Mistakes](err); !ok || len(m) == 0 || m[0].Line < 1 {
				t.Fatalf("%T without a line: %v", err, err)
			}
			return
		}
		if i.What == "" || i.Scenario == "" || i.Lasts < time.Second {
			t.Fatalf("taken: %+v", i)
		}
		for _, s := range i.Timeline {
			if s.At >= i.Lasts {
				t.Fatalf("%s happens after the end", &s)
			}
		}
		for _, e := range i.Expect {
			if e.Alert == "" || e.By <= e.Since || e.By > i.Lasts {
				t.Fatalf("cannot be met: %+v", e)
			}
		}
	})
}
