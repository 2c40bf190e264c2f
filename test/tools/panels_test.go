package tools

import (
	"cmp"
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
		pool, namespace            string              // that are chosen; all without
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
  accel_pod_label_info{instance="n1",namespace="a",pod="api-0",label="example.com/team",value="blue"} 1x120
  accel_pod_label_info{instance="n1",namespace="a",pod="api-0",label="app",value="no-owner"} 1x120
  namespace_pod:accel_workload:info{namespace="a",pod="api-0",workload="api"} 1x120
  namespace_pod:accel_workload:info{namespace="a",pod="ksm-0",workload="ksm"} 1x120
`,
			want: map[string][]string{"A": {"a api-0 n1 GPU 0 api blue", "a ksm-0 n1 GPU 0 ksm", "a none-0 n1 GPU 0"}},
		},
		{
			name: "a baseline that differs since the alert began", board: "accel-drift", panel: "Nodes that are left",
			series: `
  accel_drift{node="n1",instance="i",device="G",component="vbios",actual="1",expected="2"} 1x120
  accel_drift{node="n2",instance="j",device="H",component="vbios",actual="2",expected="2"} 0x120
  ALERTS_FOR_STATE{alertname="AcceleratorDrift",node="n1",component="vbios",severity="warning"} 7200x120
`,
			want: map[string][]string{"A": {"n1 vbios 1 2"}, "B": {"n1 vbios 1 2 2h0m0s"}},
		},
		{
			name: "alerts of a pool, and on nodes whose pool is not known", board: "accel-fleet", panel: "Firing alerts", pool: "a",
			series: `
  accel_source_up{node="n1",pool="a"} 1x120
  accel_source_up{node="n2",pool="b"} 1x120
  accel_device_info{node="n1",pool="a",device="G",class="gpu",index="2"} 1x120
  ALERTS{alertname="AcceleratorFailed",alertstate="firing",severity="critical",node="n1",device="G"} 1x120
  ALERTS_FOR_STATE{alertname="AcceleratorFailed",severity="critical",node="n1",device="G"} 7200x120
  ALERTS{alertname="AcceleratorFailed",alertstate="firing",severity="critical",node="n2",device="G"} 1x120
  ALERTS_FOR_STATE{alertname="AcceleratorFailed",severity="critical",node="n2",device="G"} 7200x120
  ALERTS{alertname="AcceleratorFailed",alertstate="firing",severity="critical",node="gone",device="G"} 1x120
  ALERTS_FOR_STATE{alertname="AcceleratorFailed",severity="critical",node="gone",device="G"} 7200x120
  ALERTS{alertname="PowerFeedBraking",alertstate="firing",severity="critical",pool="a",rack="r"} 1x120
  ALERTS_FOR_STATE{alertname="PowerFeedBraking",severity="critical",pool="a",rack="r"} 7200x120
  ALERTS{alertname="PowerFeedBraking",alertstate="firing",severity="critical",pool="b",rack="r"} 1x120
  ALERTS_FOR_STATE{alertname="PowerFeedBraking",severity="critical",pool="b",rack="r"} 7200x120
  ALERTS{alertname="AllocationIdle",alertstate="firing",severity="warning",namespace="team",workload="w"} 1x120
  ALERTS_FOR_STATE{alertname="AllocationIdle",severity="warning",namespace="team",workload="w"} 7200x120
`,
			want: map[string][]string{"A": {"AcceleratorFailed gone", "AcceleratorFailed n1 GPU 2", "AllocationIdle team w", "PowerFeedBraking"}},
		},
		{
			name: "alerts on a pod, its workload and its device", board: "accel-workload", panel: "Firing alerts",
			series: `
  accel_device_incident_timestamp_seconds{node="n1",device="G",kind="failed",pods="x/other team/w-0"} 1x120
  accel_device_incident_timestamp_seconds{node="n1",device="H",kind="failed",pods="x/other"} 1x120
  ALERTS{alertname="AcceleratorFailed",alertstate="firing",severity="critical",node="n1",device="G"} 1x120
  ALERTS_FOR_STATE{alertname="AcceleratorFailed",severity="critical",node="n1",device="G"} 7200x120
  ALERTS{alertname="AcceleratorFailed",alertstate="firing",severity="critical",node="n1",device="H"} 1x120
  ALERTS_FOR_STATE{alertname="AcceleratorFailed",severity="critical",node="n1",device="H"} 7200x120
  ALERTS{alertname="GpuSlowerThanNeighbours",alertstate="firing",severity="warning",namespace="team",pod="w-0",node="n1",device="G"} 1x120
  ALERTS_FOR_STATE{alertname="GpuSlowerThanNeighbours",severity="warning",namespace="team",pod="w-0",node="n1",device="G"} 7200x120
  ALERTS{alertname="AllocationIdle",alertstate="firing",severity="warning",namespace="team",workload="w"} 1x120
  ALERTS_FOR_STATE{alertname="AllocationIdle",severity="warning",namespace="team",workload="w"} 7200x120
  ALERTS{alertname="AllocationIdle",alertstate="firing",severity="warning",namespace="x",workload="v"} 1x120
  ALERTS_FOR_STATE{alertname="AllocationIdle",severity="warning",namespace="x",workload="v"} 7200x120
`,
			namespace: "team",
			want:      map[string][]string{"A": {"AcceleratorFailed n1", "AllocationIdle team w", "GpuSlowerThanNeighbours team n1 w-0"}},
		},
		{
			name: "incidents and devices that are not observed", board: "accel-fleet", panel: "Incidents",
			series: `
  accel_device_health{node="n1",device="G",state="failed"} 1x120
  accel_device_health{node="n1",device="H",state="unknown"} 1x120
  accel_device_health{node="n1",device="I",state="healthy"} 1x120
  accel_device_incident_timestamp_seconds{node="n1",device="G",kind="failed",summary="GPU 2 failed.",pods="a/b"} 1x120
`,
			want: map[string][]string{"A": {"n1 failed GPU 2 failed. a/b", "n1 unknown The device is not observed."}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := promqltest.LoadedStorage(t, "load 5m"+test.series)
			for _, q := range loadBoard(t, test.board).panel(t, test.panel).Targets {
				want := test.want[q.RefID]
				if want == nil {
					continue
				}
				expr := expanded(q.Expr, map[string]string{"cluster": ".*", "pool": cmp.Or(test.pool, ".*"), "namespace": cmp.Or(test.namespace, ".*"), "pod": ".*"})
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
		for _, l := range []string{"alertname", "namespace", "pod", "host", "name", "component", "actual", "expected", "workload", "owner", "kind", "summary", "pods"} {
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
