package attention_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/attention"
)

var began = time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)

const gpu2 = "GPU-2"

// fault returns a verdict with an action and with reasons, each a code and its words.
func fault(state, action string, reasons ...string) *collector.Verdict {
	v := &collector.Verdict{State: state, Action: action, Since: began}
	for _, r := range reasons {
		code, brief, _ := strings.Cut(r, "|")
		v.Reasons = append(v.Reasons, collector.Reason{Code: code, Brief: brief, Severity: state, Action: action})
	}
	return v
}

// as sets the kind of all reasons.
func as(kind string, v *collector.Verdict) *collector.Verdict {
	for i := range v.Reasons {
		v.Reasons[i].Kind = kind
	}
	return v
}

// card returns the GPU with the index 2.
func card(v *collector.Verdict, pods ...string) collector.Device {
	d := collector.Device{ID: gpu2, Class: collector.GPU, Verdict: v}
	d.Set(collector.DeviceInfo, 1, "gpu", "nvidia", "NVIDIA H100", "", "2", "0000:1b:00.0", "0", "165", "", "")
	hold(&d, pods...)
	return d
}

func hold(d *collector.Device, pods ...string) {
	for _, p := range pods {
		namespace, pod, _ := strings.Cut(p, "/")
		d.Set(collector.AllocationInfo, 1, namespace, pod, "main", "nvidia.com/gpu")
	}
}

// ended adds the fault of a pod whose allocation has ended.
func ended(d *collector.Device, pod string, at time.Time) {
	d.Set(collector.AllocationFault, float64(at.Unix()), "jobs", pod, "main", "nvidia.com/gpu", "xid_79")
}

type series struct {
	device string
	labels map[string]string
	value  time.Time
}

// incidents judges the devices and returns their incidents.
func incidents(j *attention.Judge, now time.Time, devices ...collector.Device) (found []series) {
	s := &collector.Snapshot{Time: now, Devices: devices}
	j.Judge(s)
	for _, d := range s.Devices {
		for _, r := range d.Readings {
			if r.Metric != collector.DeviceIncident {
				continue
			}
			labels := map[string]string{}
			for i, name := range r.Metric.Labels {
				labels[name] = r.Labels[i]
			}
			found = append(found, series{d.ID, labels, time.UnixMilli(int64(r.Value * 1000)).UTC()})
		}
	}
	return found
}

// incident is that of one device.
func incident(t *testing.T, j *attention.Judge, now time.Time, devices ...collector.Device) series {
	t.Helper()
	found := incidents(j, now, devices...)
	if len(found) != 1 {
		t.Fatalf("want one incident: %+v", found)
	}
	return found[0]
}

// TestIncidents: what a message says about verdicts that no incident of
// fixtures/incidents has.
func TestIncidents(t *testing.T) {
	for _, c := range []struct {
		name    string
		verdict *collector.Verdict
		pods    []string
		kind    string
		summary string
	}{
		{
			"two reasons of three", fault("failed", "reboot", "xid_79|Xid 79", "device_lost|device lost", "not_on_bus|not on bus"), nil,
			"failed", "GPU 2 failed (Xid 79, device lost). Cordon, save the kernel log, reboot.",
		},
		{
			"one fault by two sources", fault("failed", "reset", "xid_48|Xid 48", "xid_48|Xid 48"), nil,
			"failed", "GPU 2 failed (Xid 48). Stop its pods, reset it.",
		},
		{
			"the recommendation of the driver", fault("failed", "reset", "recovery_action_reset|recovery action reset", "xid_119|Xid 119"), nil,
			"failed", "GPU 2 failed (Xid 119). Stop its pods, reset it.",
		},
		{
			"the recommendation alone", fault("degraded", "drain_p2p", "recovery_action_drain_p2p|recovery action drain p2p"), nil,
			"reset_due", "GPU 2 needs a reset (recovery action drain p2p). Stop traffic between GPUs, then look again.",
		},
		{
			"traffic between GPUs is in the way", fault("failed", "drain_p2p", "xid_48|Xid 48"), nil,
			"failed", "GPU 2 failed (Xid 48). Stop its pods, then look again.",
		},
		{
			"failed and hot", as(collector.ReasonLimit, fault("failed", "inspect", "x|thermal shutdown")), nil,
			"failed", "GPU 2 failed (thermal shutdown). Cordon, run the vendor's diagnostic.",
		},
		{
			"a reason without words", fault("degraded", "none", "my_reason"), nil,
			"degraded", "GPU 2 is degraded (my_reason). Read the reasons.",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := incidents(attention.New(), began.Add(time.Minute), card(c.verdict, c.pods...))
			if len(found) != 1 {
				t.Fatalf("want one incident: %+v", found)
			}
			if got := found[0].labels; got["kind"] != c.kind || got["summary"] != c.summary {
				t.Errorf("%s: %s\nwant %s: %s", got["kind"], got["summary"], c.kind, c.summary)
			}
		})
	}
}

// TestIncidentLabels: all that a message needs is in the labels.
func TestIncidentLabels(t *testing.T) {
	v := fault("failed", "reboot", "a", "b", "c", "d", "e", "f", "g")
	got := incident(t, attention.New(), began.Add(time.Minute), card(v, "inference/chat-0", "jobs/train-1"))
	want := map[string]string{
		"kind": "failed", "state": "failed", "summary": "GPU 2 failed (a, b): inference/chat-0 and 1 more. Cordon, save the kernel log, reboot.",
		"reasons": "a b c d e f", "action": "reboot", "pods": "inference/chat-0 jobs/train-1", "since": "2026-03-01T12:00Z",
		"index": "2", "model": "NVIDIA H100", "serial": "165", "pci_address": "0000:1b:00.0",
	}
	if diff := cmp.Diff(want, got.labels); diff != "" {
		t.Error(diff)
	}
}

// TestSubjects: a device without an index is named by its PCI address, without the
// domain 0, or by its ID.
func TestSubjects(t *testing.T) {
	for pci, want := range map[string]string{"0000:1b:00.0": "FPGA 1b:00.0 failed", "0009:01:00.0": "FPGA 0009:01:00.0 failed", "": "FPGA firmware…:pcap failed"} {
		d := collector.Device{ID: "firmware:zynqmp:pcap", Class: collector.FPGA, PCI: pci, Model: "U250", Verdict: fault("failed", "reset", "x|x")}
		got := incident(t, attention.New(), began, d)
		if !strings.HasPrefix(got.labels["summary"], want+" (") || got.labels["pci_address"] != pci || got.labels["model"] != "U250" {
			t.Errorf("%q: %v", pci, got.labels)
		}
	}
	unknown := collector.Device{ID: "0000:ff:00.0", Verdict: fault("failed", "reboot", "xid_79|Xid 79")}
	if got := incident(t, attention.New(), began, unknown).labels["summary"]; got != "DEVICE ff:00.0 failed (Xid 79). Cordon, save the kernel log, reboot." {
		t.Error(got)
	}
	d := collector.Device{ID: "switch", Class: collector.Switch, PCI: "0000:07:00.0", Verdict: fault("failed", "reset", "sxid_1|SXid 1")}
	if got := incident(t, attention.New(), began, d).labels["summary"]; got != "NVSwitch 07:00.0 failed (SXid 1). Stop its pods, reset it." {
		t.Error(got)
	}
}

// TestSummaryLength: a summary has at most 118 bytes and keeps the device, the beginning
// of the reason, both ends of the name of the pod, and the action.
func TestSummaryLength(t *testing.T) {
	long := strings.Repeat("k8s-namespace-", 4) + "/" + strings.Repeat("deployment-", 22) + "xk7p9"
	wordy := "FPGA sensor critical " + strings.Repeat("Ä sensor with a long name ", 5)
	for _, class := range []collector.Class{collector.GPU, collector.FPGA, collector.Switch} {
		for _, state := range []string{"failed", "degraded"} {
			for _, action := range []string{
				"none", "inspect", "update_software", "restart_app", "drain_p2p", "recover_imex_domain", "reprogram", "drain_and_reset", "reset", "restart_vm", "reboot", "replace",
			} {
				for _, kind := range []string{"", collector.ReasonLimit, collector.ReasonThrottling} {
					for n := range 4 {
						d := collector.Device{ID: "x", Class: class, PCI: "0009:01:00.0", Verdict: as(kind, fault(state, action, "a|"+wordy, "b|"+wordy+"b"))}
						for i := range n * 4 {
							hold(&d, fmt.Sprintf("%s%d", long, i))
						}
						got := incident(t, attention.New(), began, d).labels["summary"]
						if len(got) > 118 || !strings.HasSuffix(got, ".") || strings.ToValidUTF8(got, "") != got || n > 0 && (!strings.Contains(got, ": k8s-") || !strings.Contains(got, "p90")) {
							t.Errorf("%d bytes: %s", len(got), got)
						}
					}
				}
			}
		}
	}
	// The name of the pod is shortened first.
	got := incident(t, attention.New(), began, card(fault("failed", "reboot", "xid_79|Xid 79", "pci_not_responding|PCI not responding"), "inference/"+long, "b/b")).labels["summary"]
	if want := "GPU 2 failed (Xid 79, PCI not responding): inference/k8s-n…nt-xk7p9 and 1 more. Cordon, save the kernel log, reboot."; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestIncidentSince: the start stays over a pause of less than an hour, and over any
// time in which the device is not observed.
func TestIncidentSince(t *testing.T) {
	healthy := &collector.Verdict{State: "healthy"}
	unknown := fault("unknown", "none", "no_answer|no answer")
	for name, c := range map[string]struct {
		pause  *collector.Verdict
		before time.Duration // the incident comes back
		want   time.Time
	}{
		"healthy for less than an hour": {healthy, 59 * time.Minute, began},
		"healthy for longer":            {healthy, 61 * time.Minute, began.Add(2 * time.Hour)},
		"unobserved":                    {unknown, 61 * time.Minute, began},
		"without a source of faults":    {fault("unknown", "none", "no_fault_source|none"), 61 * time.Minute, began.Add(2 * time.Hour)},
	} {
		j := attention.New()
		incident(t, j, began, card(fault("failed", "reset", "xid_95|Xid 95"), "a/first"))
		for at := time.Second; at < c.before; at += time.Minute {
			if found := incidents(j, began.Add(at), card(c.pause)); len(found) != 0 {
				t.Errorf("%s: %+v", name, found)
			}
		}
		back := fault("degraded", "inspect", "nvlink_down|NVLink down link 3")
		back.Since = began.Add(2 * time.Hour)
		got := incident(t, j, began.Add(c.before), card(back, "a/second")).labels
		if got["since"] != c.want.Format("2006-01-02T15:04Z") || strings.Contains(got["pods"], "a/first") != c.want.Equal(began) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestIncidentChanges: the value is the time of the last change of a label, so it is the
// same as long as all labels are.
func TestIncidentChanges(t *testing.T) {
	j := attention.New()
	var last series
	for i, c := range []struct {
		verdict *collector.Verdict
		pods    []string
		changed int // minute of the value
	}{
		{fault("degraded", "inspect", "nvlink_down|NVLink down link 3"), []string{"a/b"}, 0},
		{fault("degraded", "inspect", "nvlink_down|NVLink down link 3"), []string{"a/b"}, 0},
		{&collector.Verdict{State: "healthy"}, []string{"a/b"}, -1},
		{fault("degraded", "inspect", "nvlink_down|NVLink down link 3"), nil, 0}, // the pod has ended
		{fault("degraded", "inspect", "nvlink_down|NVLink down link 3"), []string{"a/b", "a/c"}, 4},
		{fault("failed", "reboot", "xid_79|Xid 79", "nvlink_down|NVLink down link 3"), nil, 5},
		{fault("failed", "reboot", "xid_79|Xid 79", "nvlink_down|NVLink down link 3"), nil, 5},
	} {
		now := began.Add(time.Duration(i) * time.Minute)
		found := incidents(j, now, card(c.verdict, c.pods...))
		if c.changed < 0 {
			if len(found) != 0 {
				t.Errorf("step %d: %+v", i, found)
			}
			continue
		}
		if want := began.Add(time.Duration(c.changed) * time.Minute); len(found) != 1 || !found[0].value.Equal(want) {
			t.Fatalf("step %d: want %v: %+v", i, want, found)
		}
		if same := cmp.Equal(last.labels, found[0].labels); same != (c.changed != i) {
			t.Errorf("step %d: %v", i, cmp.Diff(last.labels, found[0].labels))
		}
		last = found[0]
	}
}

// TestIncidentCause: while a device is repaired, its cause ends before what followed from
// it, and the message goes on to name the cause. A later failure does not have it.
func TestIncidentCause(t *testing.T) {
	j := attention.New()
	for i, c := range []struct {
		verdict *collector.Verdict
		reasons string
	}{
		{fault("failed", "reboot", "xid_79|Xid 79"), "xid_79"},
		{fault("failed", "reboot", "xid_79|Xid 79", "device_lost|device lost"), "xid_79 device_lost"},
		{fault("failed", "reboot", "device_lost|device lost", "no_answer|no answer"), "xid_79 device_lost no_answer"},
		{fault("degraded", "inspect", "nvlink_down|NVLink down"), "nvlink_down"},
		{fault("failed", "reboot", "device_lost|device lost"), "device_lost"},
	} {
		got := incident(t, j, began.Add(time.Duration(i)*time.Minute), card(c.verdict)).labels
		if got["reasons"] != c.reasons || strings.Contains(c.reasons, "xid_79") != strings.Contains(got["summary"], "Xid 79") {
			t.Errorf("step %d: %q, want %q; %s", i, got["reasons"], c.reasons, got["summary"])
		}
	}
}

// TestIncidentPods: the pods of partitions, and the pods that the fault has ended,
// are named once each and at most eight of them; a partition has no incident.
func TestIncidentPods(t *testing.T) {
	v := fault("failed", "reset", "xid_95|Xid 95")
	gpu := card(v, "a/whole")
	ended(&gpu, "killed", began)
	ended(&gpu, "killed", began)
	ended(&gpu, "hit-before", began.Add(-time.Hour))
	part := collector.Device{ID: "MIG-1", Parent: gpu2, Class: collector.GPU, Verdict: v}
	hold(&part, "a/whole", "a/part")
	other := collector.Device{ID: "MIG-2", Parent: "GPU-3", Class: collector.GPU, Verdict: v}
	hold(&other, "a/other")
	got := incident(t, attention.New(), began, gpu, part, other)
	if want := "a/whole jobs/killed a/part"; got.device != gpu2 || got.labels["pods"] != want {
		t.Errorf("%q, want %q", got.labels["pods"], want)
	}

	j := attention.New()
	var want []string
	for i := range 20 {
		pod := fmt.Sprintf("jobs/retry-%d", i)
		if i < 8 {
			want = append(want, pod)
		}
		now := began.Add(time.Duration(i) * time.Minute)
		got := incident(t, j, now, card(v, pod))
		if got.labels["pods"] != strings.Join(want, " ") || i > 7 && got.value.Equal(now) {
			t.Fatalf("after %d pods, changed at %v: %q, want %q", i+1, got.value, got.labels["pods"], want)
		}
	}
}
