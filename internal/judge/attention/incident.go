package attention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// Kinds of incidents: the label kind of accel_device_incident_timestamp_seconds, the
// gravest first. The alerts on devices differ by it.
const (
	failed        = "failed"         // work has ended, or its results cannot be trusted
	limitCritical = "limit_critical" // a sensor is beyond a limit at which the device shuts down
	resetDue      = "reset_due"      // the device works and needs a reset
	replaceSoon   = "replace_soon"   // it works and must be replaced
	degraded      = "degraded"       // it works, possibly slower
	throttled     = "throttled"      // heat or power slow it down
)

const (
	// maxSummary bounds the summary in bytes, so that with the name of a node it fits
	// into 140 characters.
	maxSummary = 118
	// minPod is what remains of the name of a pod before the reason is shortened too, and
	// of the ID of a device without an address.
	minPod = 16
	// maxPods bounds the pods of one incident, and so how often its labels change.
	maxPods = 8
	// maxReasons bounds the reasons of one incident.
	maxReasons = 6
	// faultLead is how long before the verdict a fault may have hit a pod.
	faultLead = time.Minute
)

// incident is what a person must know about a device that needs attention.
type incident struct {
	since   time.Time          // it has been unhealthy since, apart from pauses shorter than stay
	until   time.Time          // it is remembered
	pods    []string           // that held the device
	reasons []collector.Reason // of the failure, as long as the device is failed
	labels  []string
	changed time.Time // of labels
}

// kind returns the kind of incident of a verdict, "" for a device that needs none.
func kind(v *collector.Verdict) string {
	has := func(want string) func(collector.Reason) bool {
		return func(r collector.Reason) bool { return r.Kind == want }
	}
	switch {
	case v == nil || v.State != "failed" && v.State != "degraded":
		return ""
	case v.State == "failed":
		return failed
	case slices.ContainsFunc(v.Reasons, has(collector.ReasonLimit)):
		return limitCritical
	case v.Action == "replace":
		return replaceSoon
	case slices.Contains([]string{"drain_p2p", "recover_imex_domain", "drain_and_reset", "reset", "restart_vm", "reboot"}, v.Action):
		return resetDue
	case !slices.ContainsFunc(v.Reasons, has("")):
		return throttled
	}
	return degraded
}

// publish adds the incident of d to its readings. partitions are the devices whose
// parent is d.
func (st *device) publish(now time.Time, d *collector.Device, partitions []*collector.Device) {
	k := kind(d.Verdict)
	i := &st.incident
	if k == "" {
		switch {
		case d.Verdict == nil || unobserved(d.Verdict): // is no recovery
			i.until = now.Add(stay)
		case now.After(i.until):
			*i = incident{}
		}
		return
	}
	if i.since.IsZero() {
		i.since = d.Verdict.Since
	}
	i.until = now.Add(stay)
	from := collector.OnClock(i.since, now).Add(-faultLead)
	i.hurt(d, from)
	for _, p := range partitions {
		i.hurt(p, from)
	}
	if labels := i.describe(k, i.recall(k, d.Verdict), d); !slices.Equal(labels, i.labels) {
		i.labels, i.changed = labels, now
	}
	d.Readings = append(d.Readings, collector.Reading{
		Metric: collector.DeviceIncident, Labels: i.labels,
		Value: float64(collector.OnClock(i.changed, now).UnixMilli()) / 1000,
	})
}

// unobserved reports whether a device is unknown because it does not answer. A device that
// has never had a source of faults recovers when the bus or its driver reports it sound.
func unobserved(v *collector.Verdict) bool {
	return v.State == "unknown" && slices.ContainsFunc(v.Reasons, func(r collector.Reason) bool { return r.Code != health.NoFaultSource })
}

// hurt adds the pods that hold d, or held it when it had a fault since from.
func (i *incident) hurt(d *collector.Device, from time.Time) {
	for n := range d.Readings {
		r := &d.Readings[n]
		switch r.Metric {
		case collector.AllocationInfo:
		case collector.AllocationFault:
			if r.Value < float64(from.Unix()) {
				continue
			}
		default:
			continue
		}
		if pod := r.Labels[0] + "/" + r.Labels[1]; len(i.pods) < maxPods && !slices.Contains(i.pods, pod) {
			i.pods = append(i.pods, pod)
		}
	}
}

// recall returns the verdict with the reasons of the failure that have ended, each in its
// former place: a repair ends the cause before it ends what followed from it, and until
// then the message must name the cause.
func (i *incident) recall(k string, v *collector.Verdict) *collector.Verdict {
	if k != failed {
		i.reasons = nil
		return v
	}
	all := slices.Clone(v.Reasons)
	for n, r := range i.reasons {
		if !slices.ContainsFunc(all, func(now collector.Reason) bool { return now.Code == r.Code }) {
			all = slices.Insert(all, min(n, len(all)), r)
		}
	}
	i.reasons = nil
	for _, r := range all {
		if r.Severity == failed && len(i.reasons) < maxReasons {
			i.reasons = append(i.reasons, r)
		}
	}
	recalled := *v
	recalled.Reasons = all
	return &recalled
}

// describe returns the labels of the incident, in the order of the metric.
func (i *incident) describe(k string, v *collector.Verdict, d *collector.Device) []string {
	var info collector.Reading
	if n := slices.IndexFunc(d.Readings, func(r collector.Reading) bool { return r.Metric == collector.DeviceInfo }); n >= 0 {
		info = d.Readings[n]
	}
	label := func(name string) string {
		if info.Metric == nil {
			return ""
		}
		return info.Label(name)
	}
	pci := cmp.Or(label("pci_address"), d.PCI)
	var codes []string
	for n := range v.Reasons[:min(len(v.Reasons), maxReasons)] {
		codes = append(codes, v.Reasons[n].Code)
	}
	steps := advice(k, v.Action)
	return []string{
		k, v.State, summary(subject(d.Class, label("index"), cmp.Or(pci, shorten(d.ID, minPod))), k, brief(v), steps, i.pods),
		strings.Join(codes, " "), v.Action, strings.Join(i.pods, " "), i.since.UTC().Format("2006-01-02T15:04Z"),
		label("index"), cmp.Or(label("model"), d.Model), label("serial"), pci,
	}
}

// subject names the device as a person on the node does: by its index, or as lspci does.
// A device that only the kernel log names has no other name than its ID.
func subject(class collector.Class, index, pci string) string {
	name := map[collector.Class]string{collector.Switch: "NVSwitch"}[class]
	if name == "" {
		name = strings.ToUpper(cmp.Or(string(class), "device"))
	}
	return strings.TrimSpace(name + " " + cmp.Or(index, strings.TrimPrefix(pci, "0000:")))
}

// phrases are the kinds in words.
var phrases = map[string]string{
	failed: "failed", limitCritical: "is beyond a limit", resetDue: "needs a reset", replaceSoon: "should be replaced",
	degraded: "is degraded", throttled: "is throttled",
}

// brief names up to two of the gravest reasons. The driver's recommendation is named
// only where it is the only one: what has happened explains more.
func brief(v *collector.Verdict) string {
	var list []string
	for n := range v.Reasons {
		r := &v.Reasons[n]
		if r.Severity != v.Reasons[0].Severity || len(v.Reasons) > 1 && strings.HasPrefix(r.Code, "recovery_action_") {
			continue
		}
		// One fault that several sources report.
		if b := cmp.Or(r.Brief, r.Code); !slices.Contains(list, b) {
			list = append(list, b)
		}
	}
	if len(list) == 0 && len(v.Reasons) > 0 {
		list = []string{v.Reasons[0].Brief}
	}
	return strings.Join(list[:min(len(list), 2)], ", ")
}

// summary is one line for a telephone: what failed and why, whose work is hurt, what
// to do. If it is too long, the name of the pod is shortened first, then the reason.
func summary(subject, kind, brief, steps string, pods []string) string {
	text := func(reason, who string) string {
		return fmt.Sprintf("%s %s (%s)%s. %s", subject, phrases[kind], reason, who, steps)
	}
	room := maxSummary - len(text("", ""))
	who := ""
	if len(pods) > 0 {
		more := ""
		if n := len(pods) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		who = ": " + shorten(pods[0], max(room-len(brief)-len(": ")-len(more), minPod)) + more
	}
	return shorten(text(shorten(brief, max(room-len(who), minPod/2)), who), maxSummary)
}

// shorten keeps the beginning and the end of a text of more than n bytes: the end of
// the name of a pod distinguishes it.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := n / 3
	return strings.ToValidUTF8(s[:n-end-len("…")], "") + "…" + strings.ToValidUTF8(s[len(s)-end:], "")
}

// now and later are the recommended actions in the imperative: for a device on which
// work has ended, and for a device that still works.
var (
	nowSteps = map[string]string{
		"inspect": "Cordon, run the vendor's diagnostic.", "update_software": "Stop its pods, update its software.",
		"restart_app": "Restart its pods.", "drain_p2p": "Stop its pods, then look again.",
		"recover_imex_domain": "Recover the IMEX domain.", "reprogram": "Stop its pods, load the design again.",
		"drain_and_reset": "Stop its pods, reset it.", "reset": "Stop its pods, reset it.",
		"restart_vm": "Restart the virtual machine.", "reboot": "Cordon, save the kernel log, reboot.",
		"replace": "Cordon, replace the board.",
	}
	laterSteps = map[string]string{
		"inspect": "Plan an inspection.", "update_software": "Plan an update of its software.",
		"restart_app": "Restart its pods.", "drain_p2p": "Stop traffic between GPUs, then look again.",
		"recover_imex_domain": "Recover the IMEX domain.", "reprogram": "Load its design again.",
		"drain_and_reset": "Reset it when its work has ended.", "reset": "Reset it when its work has ended.",
		"restart_vm": "Restart the VM when its work has ended.", "reboot": "Reboot the node when its work has ended.",
		"replace": "Plan its replacement.",
	}
)

func advice(kind, action string) string {
	switch kind {
	case limitCritical:
		return "Check cooling and power now."
	case throttled:
		return "Check cooling and power."
	case failed:
		return cmp.Or(nowSteps[action], "Cordon, read the reasons.")
	}
	return cmp.Or(laterSteps[action], "Read the reasons.")
}
