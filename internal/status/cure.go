package status

import (
	"cmp"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// Docs is where the documents are that the page refers to.
const Docs = "https://github.com/accel-exporter/accel-exporter/blob/main/docs/"

// Trouble explains why a source is not up: what that means, what to do, and the page
// below Docs with the details.
type Trouble struct{ Meaning, Cure, Doc string }

// Sources of Explain besides the sources of the Snapshot.
const (
	Kubelet   = "kubelet"
	APIServer = "API server"
)

const kernelLog = "Xids come from the driver only. To read them from the kernel too: systemd: the drop-in kernel-log.conf. Kubernetes: kernelLog.mode of the chart, or the component kernel-log. A syslog file: --kernel-log.path."

// troubles are by source and reason, by source, or by reason.
var troubles = map[[2]string]Trouble{
	{"", collector.SourceAbsent}:   {"This machine has no hardware or driver for it.", "", ""},
	{"", collector.SourceStarting}: {"The first round has not finished yet.", "", ""},
	{"", collector.SourceReleased}: {
		"On request, every handle to its hardware is closed, and its devices are not monitored.",
		"When the work is done, remove the file SOURCE in the release directory.", "runbooks/AccelSourceReleased.md",
	},
	{"", collector.SourceCrashed}: {
		"The library ended its worker process. The exporter starts it again, with a pause of up to a minute.",
		"If this repeats, read the exporter's log and install another driver version. signal_segv or exit_127 under systemd: remove MemoryDenyWriteExecute= from the unit.", "runbooks/AccelSourceUnstable.md",
	},
	{"", collector.SourceGarbage}: {
		"The worker process returned invalid data and was replaced.",
		"If this repeats, read the exporter's log.", "runbooks/AccelSourceUnstable.md",
	},
	{"", collector.SourceTimeout}: {
		"A call has not returned.",
		"If it hangs in the kernel, only a reboot ends it: drain the node, then reboot it.", "runbooks/AccelSourceBlind.md",
	},
	{"", collector.SourceMismatch}: {
		"The loaded kernel module and the library have different versions, as after an upgrade of the driver.",
		"Drain the node and reboot it, or stop all programs on the GPUs and load the new module. In a container: restart the pod after the upgrade.", "runbooks/AccelSourceBlind.md",
	},
	{"", collector.SourceDriver}: {
		"The driver is installed, and it is not loaded or does not answer.",
		"Load it (modprobe nvidia). journalctl -k | grep -E 'NVRM|nvidia' shows why it does not load or answer. In a container, check that it gets the device files.", "runbooks/AccelSourceBlind.md",
	},
	{"", collector.SourceLibrary}: {
		"The driver is loaded, and its library cannot be opened.",
		"Install the library of the loaded driver's version, or, in a container, mount its folder (nvidia.access of the chart), and name another place in --nvml.library.", "runbooks/AccelSourceBlind.md",
	},
	{"", collector.SourceReloaded}: {"The driver was loaded again. The exporter loads its library again.", "", ""},
	{"", collector.SourceEngine}: {
		"The host engine of DCGM does not answer.",
		"Start nv-hostengine at the address of --dcgm.address, and permit this user to connect.", "dcgm.md",
	},
	{"", collector.SourceError}: {"", "The error has the cause; the document lists what each source needs.", "privileges.md"},

	{"nvidia", collector.SourceAbsent}: {
		"No NVIDIA driver was found on this machine.",
		"If it has NVIDIA GPUs: install the driver. In a container: NVIDIA's runtime with NVIDIA_VISIBLE_DEVICES=all and NVIDIA_DRIVER_CAPABILITIES=utility, or nvidia.access of the chart.", "privileges.md",
	},
	{"fpga", collector.SourceAbsent}: {
		"No driver of an FPGA card was found on this machine.",
		"If it has such cards: bind their driver; lspci -k shows it.", "privileges.md",
	},
	{"dcgm", collector.SourceAbsent}: {
		"The library of DCGM was not found.",
		"Install DCGM 4 (libdcgm.so.4), in a container by dcgm.libraryImage of the chart.", "dcgm.md",
	},
	{"dcgm", collector.SourceMismatch}:    {"The library and the host engine of DCGM have different versions.", "Install libdcgm of the version of the host engine.", "dcgm.md"},
	{"kernellog", collector.SourceAbsent}: {"There is no kernel log to read.", kernelLog, "privileges.md"},
	{"kernellog", collector.SourceError}:  {"The kernel log cannot be read.", kernelLog, "privileges.md"},

	{Kubelet, string(podmap.StateAbsent)}: {
		"No kubelet, or its socket is not mounted: devices have no pods.",
		"On a node outside Kubernetes: --podresources.socket= turns this off.", "runbooks/AccelPodsUnknown.md",
	},
	{Kubelet, string(podmap.OutcomeDenied)}: {
		"Connecting to its socket takes root.",
		"systemd: the drop-in kubelet.conf. Kubernetes: podResources.enabled of the chart, which runs as user 0 without capabilities.", "privileges.md",
	},
	{Kubelet, ""}:   {"", "Allocations may be out of date. Check the kubelet and the permissions of its socket.", "runbooks/AccelPodsUnknown.md"},
	{APIServer, ""}: {"", "Check its address and the permission to list and watch pods: podMetadata.enabled of the chart, or the component pod-metadata. From Kubernetes 1.37 on the kubelet has them without a permission: podMetadata.kubelet.", "kubernetes-api.md"},
}

// Explain explains why a source is not up.
func Explain(source, reason string) Trouble {
	for _, key := range [][2]string{{source, reason}, {source, ""}, {"", reason}} {
		if t, ok := troubles[key]; ok {
			t.Meaning = cmp.Or(t.Meaning, "It does not answer.")
			t.Cure = strings.ReplaceAll(t.Cure, "SOURCE", source)
			return t
		}
	}
	return Trouble{Meaning: "It does not answer.", Doc: "runbooks/AccelSourceBlind.md"}
}

// ExplainKubelet explains why the kubelet's list is not fresh.
func ExplainKubelet(s *podmap.Status) Trouble {
	if s.Last == podmap.OutcomeDenied {
		return Explain(Kubelet, string(s.Last))
	}
	return Explain(Kubelet, string(s.State))
}

// Action returns a recommended action in words, "" for none.
func Action(action string) string {
	if action == "" || action == "none" {
		return ""
	}
	return cmp.Or(actions[action], strings.ReplaceAll(action, "_", " "))
}

// Down returns in words why a device does not answer.
func Down(reason string) string { return cmp.Or(downs[reason], "It is down: "+reason) }

// Runbook returns the page below Docs for a device, "" for a healthy device.
func Runbook(health, down, action string) string {
	switch {
	case health == "failed" || health != "degraded" && down != "":
		return "runbooks/AcceleratorFailed.md"
	case health != "degraded":
		return ""
	}
	switch action {
	case "drain_p2p", "recover_imex_domain", "drain_and_reset", "reset", "restart_vm", "reboot":
		return "runbooks/AcceleratorResetDue.md"
	case "replace":
		return "runbooks/AcceleratorReplaceSoon.md"
	}
	return "runbooks/AcceleratorDegraded.md"
}

// actions are the recommended actions in words.
var actions = map[string]string{
	"inspect":             "Inspect: run the vendor's diagnostic; check the board, its power, cooling and cables",
	"update_software":     "Update the software: driver, firmware or guest are incompatible",
	"restart_app":         "Restart the programs on the device",
	"drain_p2p":           "Stop the traffic between GPUs, then look again",
	"recover_imex_domain": "Recover the IMEX domain",
	"reprogram":           "Load the design of the FPGA again",
	"drain_and_reset":     "Let running work finish, then reset the device",
	"reset":               "Reset the device now",
	"restart_vm":          "Restart the virtual machine",
	"reboot":              "Restart the node, with a power cycle if possible",
	"replace":             "Replace the board",
}

// downs are the reasons of accel_device_up in words.
var downs = map[string]string{
	collector.ReasonLost:          "The driver reports it as lost",
	collector.ReasonResetRequired: "The driver requires a reset of it",
	collector.ReasonStuck:         "A call to it has not returned",
	collector.ReasonMissing:       "It was there earlier and is not listed now",
	collector.ReasonUnbound:       "It has been taken from its kernel driver",
	collector.ReasonError:         "None of its vital values can be read",
	collector.ReasonUnavailable:   "It is listed and cannot be opened",
}
