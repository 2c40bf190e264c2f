package exposition

import (
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Reasons why a series is not on the page, as positions in reasons.
const (
	duplicate = iota
	invalid
	limited
	panicked
)

// reasons are the values of the label reason, sorted.
var reasons = [...]string{duplicate: "duplicate", invalid: "invalid", limited: "limit", panicked: "panic"}

var ownMetric = &collector.Metric{
	Name:   "accel_exporter_series_dropped_total",
	Help:   "Series left off the page, counted once per snapshot served.",
	Kind:   collector.Counter,
	Scope:  collector.PerNode,
	Labels: []string{"reason"},
	Range:  collector.Range{Min: 0, Max: 1 << 53},
	From:   []string{"exporter"},
	Values: []string{"reason: duplicate (the first measured stays), invalid (labels that do not fit the family), limit (more series than allowed), panic (an error of the exporter while it drew conclusions, whose series are all missing: counted once)"},
}

// Metrics returns the families that this package adds to a page, for the
// documentation. No Snapshot has them.
func Metrics() []*collector.Metric { return []*collector.Metric{ownMetric} }

// rank orders series by importance: the highest are dropped first.
type rank uint8

const (
	rankHealth rank = iota
	rankPartitionHealth
	rankDevice
	rankDetail
	rankPartition
	rankView // repeats what others report
)

// healthFamilies report whether a device works and its identity. Every other
// family needs them.
var healthFamilies = map[*collector.Metric]bool{
	collector.DeviceInfo:          true,
	collector.DeviceUp:            true,
	collector.DeviceSampleTime:    true,
	collector.DeviceEvents:        true,
	collector.XidErrors:           true,
	collector.XidTimestamp:        true,
	collector.RecoveryAction:      true,
	collector.RepairPending:       true,
	collector.ECCErrors:           true,
	collector.SRAMThreshold:       true,
	collector.RowRemapPending:     true,
	collector.RowRemapFailed:      true,
	collector.BankRemapPending:    true,
	collector.RetiredPagesPending: true,
	collector.FabricState:         true,
	collector.FabricStatus:        true,
	collector.FabricHealth:        true,
	collector.FabricFault:         true,
	collector.AllocationInfo:      true,
	collector.DeviceIncident:      true,
	collector.DeviceHolders:       true,
}

// detailLabels distinguish the many parts of one device.
var detailLabels = []string{"link", "lane", "port", "unit", "location"}

// rankOf returns the rank of the series of m, of partitions or of whole devices and the
// node.
func rankOf(m *collector.Metric, partition bool) rank {
	switch {
	case m.Scope == collector.PerNode:
		return rankHealth
	case healthFamilies[m] && partition:
		return rankPartitionHealth
	case healthFamilies[m]:
		return rankHealth
	case partition:
		return rankPartition
	case slices.ContainsFunc(m.Labels, func(l string) bool { return slices.Contains(detailLabels, l) }):
		return rankDetail
	}
	return rankDevice
}

// limit drops the series of the highest ranks, the last on the page first, until
// at most n remain. It returns the number of dropped series.
func limit(families []*family, n int) uint64 {
	excess := -n
	for _, f := range families {
		excess += len(f.series)
	}
	if n <= 0 || excess <= 0 {
		return 0
	}
	dropped := uint64(excess)
	for r := rankView; excess > 0; r-- {
		for _, f := range slices.Backward(families) {
			slices.Reverse(f.series)
			f.series = slices.DeleteFunc(f.series, func(s series) bool {
				if s.rank != r || excess == 0 {
					return false
				}
				excess--
				return true
			})
			slices.Reverse(f.series)
		}
	}
	return dropped
}
