//go:build linux && cgo

package nvidia

import (
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// maxLinks bounds the number of NVLinks that a GPU may report. The header of R615 has
// 36, and ids of GPM for 72.
const maxLinks = 72

var (
	callLinkState    = variants(maxLinks, "nvmlDeviceGetNvLinkState")
	callLinkRemote   = variants(maxLinks, "nvmlDeviceGetNvLinkRemoteDeviceType")
	callLinkCRC      = variants(maxLinks, "nvmlDeviceGetNvLinkErrorCounter")
	callLinkReplay   = variants(maxLinks, "nvmlDeviceGetNvLinkErrorCounter")
	callLinkRecovery = variants(maxLinks, "nvmlDeviceGetNvLinkErrorCounter")
)

// linkFields are the fields of one link. GPUs up to Hopper support the first
// three, GPUs from Blackwell on the others.
var linkFields = []field{
	plain(nvml.FI_DEV_NVLINK_ERROR_DL_CRC, collector.NVLinkErrors, one, "crc"),
	plain(nvml.FI_DEV_NVLINK_ERROR_DL_REPLAY, collector.NVLinkErrors, one, "replay"),
	plain(nvml.FI_DEV_NVLINK_ERROR_DL_RECOVERY, collector.NVLinkErrors, one, "recovery"),

	plain(nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, collector.NVLinkTransmit, one),
	plain(nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, collector.NVLinkReceive, one),
	plain(nvml.FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS, collector.NVLinkErrors, one, "malformed_packet"),
	plain(nvml.FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS, collector.NVLinkErrors, one, "buffer_overrun"),
	plain(nvml.FI_DEV_NVLINK_COUNT_RCV_ERRORS, collector.NVLinkErrors, one, "receive"),
	plain(nvml.FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS, collector.NVLinkErrors, one, "receive_remote"),
	plain(nvml.FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS, collector.NVLinkErrors, one, "receive_general"),
	plain(nvml.FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS, collector.NVLinkErrors, one, "local_integrity"),
	plain(nvml.FI_DEV_NVLINK_COUNT_XMIT_DISCARDS, collector.NVLinkErrors, one, "transmit_discard"),
	plain(nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS, collector.NVLinkErrors, one, "recovery_successful"),
	plain(nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, collector.NVLinkErrors, one, "recovery_failed"),
	plain(nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, collector.NVLinkErrors, one, "recovery"),
	plain(nvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS, collector.NVLinkErrors, one, "effective"),
	plain(nvml.FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, collector.NVLinkErrors, one, "symbol"),
}

// olderFields replace a link's field that the GPU does not have.
var olderFields = map[uint32]field{
	nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES: plain(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, collector.NVLinkTransmit, kibibyte),
	nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES:  plain(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, collector.NVLinkReceive, kibibyte),
}

// ofLink returns the field for one link; the link is its first label.
func (f field) ofLink(link int) field {
	f.scope = uint32(link)
	f.labels = append([]string{strconv.Itoa(link)}, f.labels...)
	return f
}

// unknownState is not a state of a link.
const unknownState = -1

// links are the NVLinks of one GPU.
type links struct {
	// count is field 91, the number of links.
	count int
	// asked is the number of links in the batches.
	asked         int
	fields, older *batch
	labels        [][]string
	counters      [][3][]string
	// states are the answers of field 165 in this round, unknownState without one.
	states []float64
	// fabric: the GPU has an NVLink fabric. switched: a link of it leads to a
	// switch; traced: that is known. direct: a link is down, and neither is true.
	fabric, switched, traced, direct bool
}

func (l *links) prepare() {
	l.asked = l.count
	var fields []field
	l.labels, l.counters, l.states = nil, nil, make([]float64, l.count)
	for link := range l.count {
		name := strconv.Itoa(link)
		l.labels = append(l.labels, []string{name})
		l.counters = append(l.counters, [3][]string{{name, "crc"}, {name, "replay"}, {name, "recovery"}})
		for _, f := range linkFields {
			fields = append(fields, f.ofLink(link))
		}
		state := plain(nvml.FI_DEV_NVLINK_GET_STATE, collector.NVLinkUp, one).ofLink(link)
		state.use = func(g *gpu, _ *collector.Device, v float64) { g.links.states[link] = v }
		fields = append(fields, state)
	}
	l.fields, l.older = newBatch(fields), newBatch(nil)
}

func (l *links) read(g *gpu, d *collector.Device) {
	if l.count != l.asked || l.fields == nil {
		l.prepare()
	}
	for i := range l.states {
		l.states[i] = unknownState
	}
	var missing []field
	l.fields.read(g, d, func(f field) {
		if older, ok := olderFields[f.id]; ok {
			missing = append(missing, older.ofLink(int(f.scope)))
		}
	})
	l.direct = false
	for link, labels := range l.labels {
		if l.states[link] == nvml.NVLINK_STATE_ACTIVE {
			d.Set(collector.NVLinkUp, 1, labels...)
			continue
		}
		state, ok := ask(&g.asker, callLinkState[link], func() (nvml.EnableState, nvml.Return) { return g.handle.GetNvLinkState(link) })
		barred := l.states[link] == nvml.NVLINK_STATE_ACTIVE_TRAFFIC_DISABLED
		if ok {
			d.SetBool(collector.NVLinkUp, state == nvml.FEATURE_ENABLED && !barred, labels...)
			l.direct = l.direct || state != nvml.FEATURE_ENABLED && !l.fabric && !l.leadsToSwitch(g)
		}
		if barred {
			d.Set(collector.NVLinkTrafficDisabled, 1, labels...)
		}
	}
	l.older.add(missing...)
	l.older.read(g, d, nil)
	if !l.fields.has(nvml.FI_DEV_NVLINK_ERROR_DL_CRC) && !l.fields.has(nvml.FI_DEV_NVLINK_COUNT_RCV_ERRORS) {
		l.readCounters(g, d)
	}
}

// leadsToSwitch reports whether a link of the GPU is known to lead to a switch. All
// links of a board do, or none.
func (l *links) leadsToSwitch(g *gpu) bool {
	for link := 0; link < len(l.labels) && !l.switched && !l.traced; link++ {
		kind, ok := ask(&g.asker, callLinkRemote[link], func() (nvml.IntNvLinkDeviceType, nvml.Return) { return g.handle.GetNvLinkRemoteDeviceType(link) })
		l.switched = ok && kind == nvml.NVLINK_DEVICE_TYPE_SWITCH
	}
	l.traced = true
	return l.switched
}

// readCounters reads the error counters of drivers that have no field for them.
func (l *links) readCounters(g *gpu, d *collector.Device) {
	for link, labels := range l.counters {
		for i, c := range []struct {
			call    *call
			counter nvml.NvLinkErrorCounter
		}{
			{callLinkCRC[link], nvml.NVLINK_ERROR_DL_CRC_FLIT},
			{callLinkReplay[link], nvml.NVLINK_ERROR_DL_REPLAY},
			{callLinkRecovery[link], nvml.NVLINK_ERROR_DL_RECOVERY},
		} {
			n, ok := ask(&g.asker, c.call, func() (uint64, nvml.Return) { return g.handle.GetNvLinkErrorCounter(link, c.counter) })
			if ok {
				set64(d, collector.NVLinkErrors, n, one, labels[i]...)
			}
		}
	}
}
