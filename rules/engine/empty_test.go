package engine_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// TestNothing: where the engine finds nothing, so does the query engine,
// whatever is missing on the page.
func TestNothing(t *testing.T) {
	const extra = `
groups:
- name: extra
  rules:
  - {record: a1, expr: 'absent(accel_none)'}
  - {record: a2, expr: 'absent_over_time(accel_none[5m]) or accel_none'}
  - {record: a3, expr: 'vector(1) and on () vector(1)'}
  - {record: a4, expr: 'scalar(accel_none) + 1'}
  - {record: a5, expr: 'accel_device_up + scalar(accel_none)'}
  - {record: a6, expr: '1 - accel_none'}
  - {record: a7, expr: 'accel_device_up unless accel_none'}
  - {record: a8, expr: 'accel_none unless accel_device_up'}
  - {record: a9, expr: 'count(accel_none) or vector(0)'}
  - {record: b1, expr: 'max_over_time(accel_none[5m:1m]) or -accel_device_up'}
  - {record: b2, expr: 'hour()'}
  - {record: b3, expr: 'minute(accel_none)'}
  - {record: b4, expr: 'label_replace(vector(1), "a", "b", "", "")'}
  - {record: b5, expr: 'sum(accel_device_up) / sum(accel_none)'}
  - {record: b6, expr: 'clamp_min(accel_none, scalar(accel_device_up))'}
  - {record: b7, expr: 'timestamp(accel_none) or vector(time())'}
  - {record: b8, expr: '{__name__=~"accel_device_.*"} and on () {__name__="accel_none"}'}
  - {record: c1, expr: 'accel_none and on (device) (accel_device_up + on () accel_device_up)'}
  - {record: c2, expr: 'accel_none unless label_replace(accel_device_up, "device", "", "", "")'}
  - {record: c3, expr: 'accel_none * on (device) abs({__name__=~"accel_device_(up|info)"})'}
`
	random := rand.New(rand.NewPCG(1, 2))
	set := engine.Builtin().With(parse(t, extra))
	for _, name := range []string{"h100-8", "mixed-node", "one-lost", "no-driver"} {
		full := golden(t, name)
		page := new(pages)
		e, err := engine.New(engine.Options{Gather: page, Rules: set, Labels: map[string]string{"job": "accel-exporter", "instance": "n"}})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1_700_000_000, 0)
		for round := range 6 {
			*page = nil
			for _, f := range full {
				if random.IntN(6) >= round {
					*page = append(*page, f)
				}
			}
			now = now.Add(15 * time.Second)
			e.Eval(t.Context(), now, true)
			for _, g := range e.Groups() {
				for _, r := range g.Rules {
					if r.Skipped != "" || r.Series > 0 || r.Health != engine.HealthOK || len(r.Alerts) > 0 {
						continue
					}
					if v, err := e.Query(t.Context(), r.Query, now); err != nil || len(v) > 0 {
						t.Errorf("%s, %d: %s yields %d series, %v; the engine found none", name, round, r.Query, len(v), err)
					}
				}
			}
		}
	}
}
