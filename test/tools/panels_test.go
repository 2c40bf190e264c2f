package tools

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// TestPanels: what tables show of series that the simulated nodes do not have.
func TestPanels(t *testing.T) {
	const hour = 12 // steps of the series
	for _, test := range []struct {
		name, board, panel, series string
		want                       map[string][]string // by query, the labels of its series in braces, and their values
	}{
		{
			name: "no version has a majority", board: "accel-drift", panel: "Nodes that are left",
			// n2 changed to 580 after two of ten hours and was last seen before that, and n1 has 575 from the beginning.
			series: fmt.Sprintf(`
  accel_driver_info{instance="n1",vendor="nvidia",version="575",cuda_version="12.9"} 1x%d
  accel_driver_info{instance="n2",vendor="nvidia",version="575",cuda_version="12.9"} 1x%d stale
  accel_driver_info{instance="n2",vendor="nvidia",version="580",cuda_version="12.9"} _x%d 1x%d
`, 10*hour, 2*hour-1, 2*hour, 8*hour),
			want: map[string][]string{
				"A": {"n1 driver 575 unknown: no majority", "n2 driver 580 unknown: no majority"},
				"B": {"n1 driver 575 unknown: no majority 0s", "n2 driver 580 unknown: no majority 1h50m0s"},
			},
		},
		{
			name: "most nodes run another version, of which the node came back", board: "accel-drift", panel: "Nodes that are left",
			series: fmt.Sprintf(`
  accel_driver_info{instance="n1",vendor="nvidia",version="580"} 1x%d
  accel_driver_info{instance="n2",vendor="nvidia",version="580"} 1x%[1]d
  accel_driver_info{instance="n3",vendor="nvidia",version="575"} 1x%d stale _x%d 1x%d
  accel_driver_info{instance="n3",vendor="nvidia",version="580"} _x%d 1x%d stale
`, 10*hour, 2*hour-1, 3*hour-1, 5*hour, 2*hour, 3*hour-1),
			want: map[string][]string{
				"A": {"n3 driver 575 unknown: most run another"},
				"B": {"n3 driver 575 unknown: most run another 4h50m0s"},
			},
		},
		{
			name: "workload and owner", board: "accel-idle", panel: "Idle allocations",
			series: `
  accel_device_info{instance="n1",device="G",class="gpu",index="0",model="H100"} 1x120
  accel_allocation_info{instance="n1",device="G",namespace="a",pod="api-0"} 1x120
  accel_allocation_idle_seconds{instance="n1",device="G",namespace="a",pod="api-0"} 60x120
  accel_allocation_info{instance="n1",device="G",namespace="a",pod="ksm-0"} 1x120
  accel_allocation_idle_seconds{instance="n1",device="G",namespace="a",pod="ksm-0"} 60x120
  accel_allocation_info{instance="n1",device="G",namespace="a",pod="none-0"} 1x120
  accel_allocation_idle_seconds{instance="n1",device="G",namespace="a",pod="none-0"} 60x120
  accel_pod_info{instance="n1",namespace="a",pod="api-0",workload_kind="Job",workload="api"} 1x120
  accel_pod_label_info{instance="n1",namespace="a",pod="api-0",label="example.com/team",value="blue"} 1x120
  accel_pod_label_info{instance="n1",namespace="a",pod="api-0",label="app",value="no-owner"} 1x120
  namespace_pod:accel_allocation_owner:info{namespace="a",pod="api-0",owner_kind="ReplicaSet",owner_name="second"} 1x120
  namespace_pod:accel_allocation_owner:info{namespace="a",pod="ksm-0",owner_kind="StatefulSet",owner_name="ksm"} 1x120
`,
			want: map[string][]string{"A": {"a api-0 n1 Job/api blue", "a ksm-0 n1 StatefulSet/ksm", "a none-0 n1"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := promqltest.LoadedStorage(t, "load 5m"+test.series)
			for _, q := range loadBoard(t, test.board).panel(t, test.panel).Targets {
				want := test.want[q.RefID]
				if want == nil {
					continue
				}
				expr := expanded(q.Expr, map[string]string{"cluster": ".*", "pool": ".*", "namespace": ".*"})
				if got := shownRows(vector(t, store, expr, time.Unix(0, 0).Add(10*time.Hour)), q.RefID != "A"); !slices.Equal(got, want) {
					t.Errorf("%s: %q, want %q: %s", q.RefID, got, want, expr)
				}
				delete(test.want, q.RefID)
			}
			for id := range test.want {
				t.Errorf("there is no query %s of %s: %s", id, test.board, test.panel)
			}
		})
	}
}

// shownRows is the cells of a table that these tests are about, and its times.
func shownRows(found promql.Vector, times bool) []string {
	var all []string
	for _, s := range found {
		var cells []string
		for _, l := range []string{"namespace", "pod", "host", "component", "actual", "expected", "workload", "owner"} {
			if v := s.Metric.Get(l); v != "" {
				cells = append(cells, v)
			}
		}
		if times {
			cells = append(cells, (time.Duration(s.F) * time.Millisecond).String())
		}
		all = append(all, strings.Join(cells, " "))
	}
	slices.Sort(all)
	return all
}
