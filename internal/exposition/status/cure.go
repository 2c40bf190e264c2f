package status

import (
	"cmp"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Docs is where the documents are that the page refers to.
const Docs = "https://github.com/accel-exporter/accel-exporter/blob/main/docs/"

// trouble explains a reason of accel_source_up: what it means, what to do, and the
// document with the details.
type trouble struct{ meaning, cure, doc string }

// troubles are by source and reason, or by reason alone.
var troubles = map[[2]string]trouble{
	{"", collector.SourceAbsent}:   {"This machine has no hardware or driver for it.", "", ""},
	{"", collector.SourceStarting}: {"The first round has not finished yet.", "", ""},
	{"", collector.SourceReleased}: {
		"Released on request: every handle to its hardware is closed, and its devices are not monitored.",
		"When the work is done, remove its file in the release directory, or send POST /-/attach.", "runbooks/AccelSourceReleased.md",
	},
	{"", collector.SourceCrashed}: {
		"The library ended its worker process. The exporter starts it again, with a pause of up to a minute.",
		"If this repeats, read the exporter's log and install another driver version.", "runbooks/AccelWorkerCrashing.md",
	},
	{"", collector.SourceGarbage}: {
		"The worker process returned invalid data and was replaced.",
		"If this repeats, read the exporter's log.", "runbooks/AccelWorkerCrashing.md",
	},
	{"", collector.SourceTimeout}: {
		"A call has not returned.",
		"If it hangs in the kernel, only a reboot ends it: drain the node, then reboot it.", "runbooks/AccelSourceStale.md",
	},
	{"", collector.SourceMismatch}: {
		"The loaded kernel module and the library have different versions, as after an upgrade of the driver.",
		"Drain the node and reboot it, or stop all programs on the GPUs and load the new module.", "runbooks/AccelSourceBlind.md",
	},
	{"", collector.SourceDriver}: {
		"The driver is installed, and it is not loaded or does not answer.",
		"Load it (modprobe nvidia) and read the kernel log. In a container, check that it gets the device files.", "runbooks/AccelSourceBlind.md",
	},
	{"", collector.SourceReloaded}: {"The driver was loaded again. The exporter loads its library again.", "", ""},
	{"", collector.SourceEngine}: {
		"The host engine of DCGM does not answer.",
		"Start nv-hostengine, and check --dcgm.address.", "dcgm.md",
	},
	{"", collector.SourceError}: {"", "The error has the cause; the document lists what each source needs.", "privileges.md"},

	{"nvidia", collector.SourceAbsent}: {
		"No NVIDIA driver was found on this machine.",
		"If it has NVIDIA GPUs: install the driver, or let the container have its library and devices.", "privileges.md",
	},
	{"kernellog", collector.SourceAbsent}: {
		"There is no kernel log to read.",
		"Xids come from the driver only. To read them from the kernel too, let the exporter open /dev/kmsg.", "privileges.md",
	},
	{"kernellog", collector.SourceError}: {
		"The kernel log cannot be read.",
		"Let the exporter open /dev/kmsg, or name a syslog file with --kernel-log.fallback.", "privileges.md",
	},
}

// explain returns the explanation of a source that is not up.
func explain(s *collector.Status) trouble {
	if t, ok := troubles[[2]string{s.Source, s.Reason}]; ok {
		return t
	}
	t := troubles[[2]string{"", s.Reason}]
	t.meaning = cmp.Or(t.meaning, "It does not answer.")
	return t
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
	collector.ReasonError:         "None of its vital values can be read",
	collector.ReasonUnavailable:   "It is listed and cannot be opened",
}
