package collector

import "slices"

// holderLabels name the pod that a device is allocated to. A pod that has one
// device through several containers or resources has one series, with their
// names separated by commas.
var holderLabels = []string{"namespace", "pod", "container", "resource"}

// podLabels name a pod that has devices.
var podLabels = []string{"namespace", "pod"}

func holderLabelsAnd(label string) []string {
	return append(slices.Clip(holderLabels), label)
}

// Families of allocations: which pod has a device, and what the device did for
// that pod.
var (
	AllocationInfo = define(Metric{
		Name:   "accel_allocation_info",
		Help:   "A pod that the device is allocated to; value 1. One series per pod and device. The labels container and resource list several names separated by commas.",
		Kind:   Info,
		Labels: holderLabels,
		From:   []string{"kubelet PodResources List"},
	})
	AllocationSeconds = define(Metric{
		Name:   "accel_allocation_seconds_total",
		Help:   "Time for which the device has been allocated to the pod, since the exporter first saw the allocation. It continues while the kubelet does not answer, for as long as the allocation is considered valid.",
		Kind:   Counter,
		Labels: holderLabels,
		From:   []string{"kubelet PodResources List"},
	})
	AllocationUtilization = define(Metric{
		Name:   "accel_allocation_utilization_ratio",
		Help:   "Share of time in which the pod had a kernel running on the device, 0 to 1. For an exclusive device it is the utilization of the device, for a shared device the sum over the processes of the pod. Absent where that cannot be measured.",
		Kind:   Gauge,
		Labels: holderLabels,
		Range:  ratio,
		From:   []string{"accel_utilization_ratio{engine=\"compute\"}; on MIG devices accel_activity_ratio{unit=\"graphics\"}, else {unit=\"sm\"}; by process nvmlDeviceGetProcessUtilization"},
	})
	AllocationMemory = define(Metric{
		Name:   "accel_allocation_memory_used_bytes",
		Help:   "Device memory that the pod uses. For an exclusive device it is the used memory of the device, for a shared device the sum over the processes of the pod. Absent where that cannot be measured.",
		Kind:   Gauge,
		Labels: holderLabels,
		From:   []string{"accel_memory_used_bytes; by process nvmlDeviceGetComputeRunningProcesses_v3"},
	})
	AllocationPower = define(Metric{
		Name:   "accel_allocation_power_watts",
		Help:   "Power drawn by a whole device that is allocated to this pod alone. Absent for partitions and shared devices, whose power is not measured.",
		Kind:   Gauge,
		Labels: holderLabels,
		Range:  watts,
		From:   []string{"accel_power_watts"},
	})
	AllocationEnergy = define(Metric{
		Name:   "accel_allocation_energy_joules_total",
		Help:   "Energy that a whole device used while it was allocated to this pod alone. Absent for partitions and shared devices, whose energy is not measured. The series stays for an hour after the pod ends.",
		Kind:   Counter,
		Labels: holderLabels,
		From:   []string{"accel_energy_joules_total"},
	})
	PodDevices = define(Metric{
		Name:   "accel_pod_devices",
		Help:   "Devices of this node, including partitions, that are allocated to the pod.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: podLabels,
		From:   []string{"accel_allocation_info"},
	})
	PodUtilization = define(Metric{
		Name:   "accel_pod_utilization_ratio",
		Help:   "Mean of accel_allocation_utilization_ratio over the devices of the pod for which it is known, 0 to 1. Meant for autoscaling.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: podLabels,
		Range:  ratio,
		From:   []string{"accel_allocation_utilization_ratio"},
	})
	PodSMActivity = define(Metric{
		Name:   "accel_pod_sm_activity_ratio",
		Help:   "Mean of accel_activity_ratio{unit=\"sm\"} over the devices of the pod for which it is known, 0 to 1. For autoscaling: it rises with the size of batches, while accel_pod_utilization_ratio is 1 as long as any kernel runs. Absent for shared devices, whose activity by pod is not measured.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: podLabels,
		Range:  ratio,
		From:   []string{"accel_activity_ratio{unit=\"sm\"}"},
	})
	PodMemory = define(Metric{
		Name:   "accel_pod_memory_used_bytes",
		Help:   "Device memory that the pod uses on all of its devices. Absent if it is unknown for one of them.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: podLabels,
		From:   []string{"accel_allocation_memory_used_bytes"},
	})
	PodMemoryRatio = define(Metric{
		Name:   "accel_pod_memory_used_ratio",
		Help:   "accel_pod_memory_used_bytes, divided by the memory of all devices of the pod, 0 to 1. For a shared device it is the pod's share of the whole memory. Absent if either is unknown for one device.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: podLabels,
		Range:  ratio,
		From:   []string{"accel_allocation_memory_used_bytes, accel_memory_total_bytes"},
	})
	PodPower = define(Metric{
		Name:   "accel_pod_power_watts",
		Help:   "Power drawn by all devices of the pod. Absent if it is unknown for one of them.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: podLabels,
		From:   []string{"accel_allocation_power_watts"},
	})
	AllocationIdle = define(Metric{
		Name:   "accel_allocation_idle_seconds",
		Help:   "How long no engine of the device has been active for the pod; 0 while one is active, or was within the configured grace period. Absent where activity is unknown: unknown is never idle.",
		Kind:   Gauge,
		Labels: holderLabels,
		From:   []string{"exporter, from every measure of use that the device has"},
	})
	AllocationIdleTotal = define(Metric{
		Name:   "accel_allocation_idle_seconds_total",
		Help:   "Time for which the device was idle while allocated to the pod. A pause longer than the configured grace period counts from its beginning, a shorter one does not count.",
		Kind:   Counter,
		Labels: holderLabels,
		From:   []string{"exporter, from every measure of use that the device has"},
	})
	AllocationIdleCost = define(Metric{
		Name:   "accel_allocation_idle_cost_total",
		Help:   "Cost of the idle time, by the prices in the configuration. Pods that share a device share its price. Absent without a price.",
		Kind:   Counter,
		Labels: holderLabelsAnd("currency"),
		Values: []string{"currency: that of the configuration"},
		From:   []string{"exporter"},
	})
	AllocationLastActivity = define(Metric{
		Name:   "accel_allocation_last_activity_timestamp_seconds",
		Help:   "Time of the last observed activity of the device for the pod, seconds since the epoch. Absent before the first activity.",
		Kind:   Mark,
		Labels: holderLabels,
		Range:  timestamp,
		From:   []string{"exporter, from every measure of use that the device has"},
	})
	AllocationFault = define(Metric{
		Name:   "accel_allocation_fault_timestamp_seconds",
		Help:   "Time of the last fault of the kind on the device while it was allocated to the pod, seconds since the epoch. The series stays for an hour after the pod ends.",
		Kind:   Mark,
		Labels: holderLabelsAnd("fault"),
		Range:  timestamp,
		Values: []string{"fault: xid_N, bus_loss, gpu_unavailable, poison, poison_fatal, ecc_double_bit, dram_retirement_failure, hang, hang_recovered, reset, reset_failed, wedged, ecc_uncorrected, thermal_shutdown; other once there are too many"},
		From:   []string{"accel_gpu_xid_errors_total, accel_device_events_total"},
	})
	AllocationFaultAge = define(Metric{
		Name:   "accel_allocation_fault_age_seconds",
		Help:   "Time since the last fault of the kind on the device while it was allocated to the pod, by the exporter's own clock: compare it, not the timestamp, where clocks may differ. It stays as long as the timestamp.",
		Kind:   Gauge,
		Labels: holderLabelsAnd("fault"),
		Values: AllocationFault.Values,
		From:   []string{"accel_gpu_xid_errors_total, accel_device_events_total"},
	})
	DeviceHolders = define(Metric{
		Name: "accel_device_holders",
		Help: "Pods that the device is allocated to; 0 only if it is known to be free. Absent for a device that is divided into partitions.",
		Kind: Gauge,
		From: []string{"kubelet PodResources List"},
	})
	DeviceAllocatable = define(Metric{
		Name:   "accel_device_allocatable",
		Help:   "1 if the kubelet lists the device as allocatable, in use or not; 0 if it does not, although it lists others of its kind or has listed this one: its device plugin reports it as unhealthy, or has not registered.",
		Kind:   Gauge,
		Labels: []string{"resource"},
		Range:  boolean,
		From:   []string{"kubelet PodResources GetAllocatableResources"},
	})
	UnattributedProcesses = define(Metric{
		Name:   "accel_unattributed_processes",
		Help:   "Processes that use the device although it is not allocated to their pod. Absent where processes cannot be listed or cannot be attributed to pods.",
		Kind:   Gauge,
		Labels: []string{"reason"},
		Values: []string{"reason: other_pod (the device is not allocated to its pod), host_process (of no pod), unknown_pod (of a pod whose name is not found), hidden (the process is not visible; this is not a violation)"},
		From:   []string{"/proc/PID/cgroup of the processes that NVML lists; names below /var/log/pods"},
		Level:  inForce,
	})
)

// Families about the kubelet.
var (
	PodmapState = define(Metric{
		Name:   "accel_podmap_state",
		Help:   "State of the list of allocations from the kubelet: 1 for the current state, 0 for the others.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"state"},
		Range:  boolean,
		Values: []string{"state: starting, absent (no kubelet on this machine), fresh, unconfirmed (pods may be missing), stale (the kubelet does not answer), unreachable (it does not answer and no earlier list is valid)"},
		From:   []string{"exporter"},
	})
	PodmapAllocations = define(Metric{
		Name:   "accel_podmap_allocations",
		Help:   "Allocations of a device id to a pod, by kind. The kinds overlap: read one, do not add them up.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"kind"},
		Values: []string{"kind: listed (exported), kept (no longer listed and not contradicted), contested (several pods on one unshared device), superseded (listed although another pod got the device later), unresolved (the device is not found), unresolved_accelerator (of these, allocations of a resource whose name is of a kind of device that this node has), omitted (beyond the limit of pods per device)"},
		From:   []string{"kubelet PodResources List"},
	})
	ResourceAllocatable = define(Metric{
		Name:   "accel_resource_allocatable",
		Help:   "Device ids of a resource that the kubelet lists as allocatable, in use or not. A shared device has several. Absent before the first response of the kubelet.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"resource"},
		From:   []string{"kubelet PodResources GetAllocatableResources"},
	})
	ResourceHeld = define(Metric{
		Name:   "accel_resource_held",
		Help:   "Device ids of a resource that are allocated to pods. Devices of a resource claim are listed under the name of their driver.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"resource"},
		From:   []string{"kubelet PodResources List"},
	})
	ResourceDevices = define(Metric{
		Name:   "accel_resource_devices",
		Help:   "Devices on this node that the kubelet lists, or has listed since the exporter started, under the resource. If the number is higher than the number of allocatable devices, some devices are not allocatable.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"resource"},
		From:   []string{"exporter"},
	})
)

// Families about the API server, where it is used.
var (
	PodInfo = define(Metric{
		Name:   "accel_pod_info",
		Help:   "Metadata of a pod with a device from the API server: its UID, its controller, and its workload (the topmost owner). Unknown labels are empty.",
		Kind:   Info,
		Scope:  PerNode,
		Labels: []string{"namespace", "pod", "uid", "controller_kind", "controller", "workload_kind", "workload"},
		From:   []string{"Kubernetes API pods: metadata.uid, metadata.ownerReferences"},
	})
	PodLabelInfo = define(Metric{
		Name:   "accel_pod_label_info",
		Help:   "A label of a pod with a device, if --kubernetes.pod-label selects it.",
		Kind:   Info,
		Scope:  PerNode,
		Labels: []string{"namespace", "pod", "label", "value"},
		From:   []string{"Kubernetes API pods: metadata.labels"},
	})
)
