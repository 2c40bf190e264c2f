package nvidia

import "strings"

// Explanation describes calls that a driver may refuse.
type Explanation struct {
	// Calls are the beginnings of their names.
	Calls []string
	// Lost is what is missing without them, Remedy what permits them.
	Lost, Remedy string
}

const (
	migMonitor = "On a GPU in MIG mode: the capability to monitor MIG, or CAP_SYS_ADMIN. Chart: nvidia.migMonitor; kustomize: component mig-monitor"
	sysAdmin   = "CAP_SYS_ADMIN"
)

// Explanations are the calls whose refusal was seen or is documented in nvml.h.
// docs/privileges.md has the same table.
var Explanations = []Explanation{
	{[]string{"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetBAR1MemoryInfo"}, "Memory of the whole GPU. Its MIG devices report theirs", migMonitor},
	{[]string{"nvmlDeviceGetMemoryErrorCounter", "nvmlDeviceGetTotalEccErrors"}, "ECC errors since the driver was loaded, and the verdict ecc_uncorrected. The totals of the board's life remain", migMonitor},
	{
		[]string{"nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses"},
		"Processes of the whole GPU. Its MIG devices report theirs", migMonitor,
	},
	{[]string{"field_258", "field_263"}, "Remaining lifetime of the power smoothing circuit, and the verdict power_smoothing_worn", sysAdmin},
	{[]string{"nvmlDeviceGetHandleByIndex"}, "The GPU: it is not assigned to this container, or its device file has no read and write permission", "NVIDIA_VISIBLE_DEVICES=all; the group of the device files"},
}

// Explain returns what is missing where the driver refuses a call, and what
// permits it.
func Explain(call string) (lost, remedy string) {
	for _, e := range Explanations {
		for _, prefix := range e.Calls {
			if strings.HasPrefix(call, prefix) {
				return e.Lost, e.Remedy
			}
		}
	}
	return "The values of this call", "docs/privileges.md"
}
