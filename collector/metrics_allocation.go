package collector

// holderLabels name who holds a device. A pod that holds one device by several
// containers or resources has one series, with their names by commas.
var holderLabels = []string{"namespace", "pod", "container", "resource"}

// podLabels name a pod that holds devices.
var podLabels = []string{"namespace", "pod"}

func holderLabelsAnd(label string) []string {
	return append(holderLabels[:len(holderLabels):len(holderLabels)], label)
}

// Families of who holds a device, and of what the device did for the holder.
var (
	AllocationInfo = define(Metric{
		Name:   "accel_allocation_info",
		Help:   "A pod that holds the device; value 1. One series per pod and device, with the names of its containers, and of the resources by which it holds the device, by commas.",
		Kind:   Info,
		Labels: holderLabels,
		From:   []string{"kubelet PodResources List"},
	})
	AllocationSeconds = define(Metric{
		Name:   "accel_allocation_seconds_total",
		Help:   "Time that the pod has held the device, since the exporter first saw it do so. It goes on while the kubelet does not answer, for as long as the hold is believed.",
		Kind:   Counter,
		Labels: holderLabels,
		From:   []string{"kubelet PodResources List"},
	})
	AllocationUtilization = define(Metric{
		Name:   "accel_allocation_utilization_ratio",
		Help:   "Share of time in which the holder had a kernel running on the device, 0 to 1. Of a device that one pod holds alone it is the device's own, of a shared one the sum over the pod's processes; absent where that cannot be measured.",
		Kind:   Gauge,
		Labels: holderLabels,
		Range:  ratio,
		From:   []string{"accel_utilization_ratio{engine=\"compute\"}; on MIG devices accel_activity_ratio{unit=\"graphics\"}, else {unit=\"sm\"}; by process nvmlDeviceGetProcessUtilization"},
	})
	AllocationMemory = define(Metric{
		Name:   "accel_allocation_memory_used_bytes",
		Help:   "Device memory that the holder has allocated. Of a device that one pod holds alone it is the device's own, of a shared one the sum over the pod's processes; absent where that cannot be measured.",
		Kind:   Gauge,
		Labels: holderLabels,
		From:   []string{"accel_memory_used_bytes; by process nvmlDeviceGetComputeRunningProcesses_v3"},
	})
	AllocationPower = define(Metric{
		Name:   "accel_allocation_power_watts",
		Help:   "Power drawn by a whole device that one pod holds alone. Absent for partitions and shared devices, whose power nobody measures.",
		Kind:   Gauge,
		Labels: holderLabels,
		Range:  watts,
		From:   []string{"accel_power_watts"},
	})
	AllocationEnergy = define(Metric{
		Name:   "accel_allocation_energy_joules_total",
		Help:   "Energy that a whole device has used while the pod held it alone. Absent for partitions and shared devices, whose energy nobody measures. It outlives the pod by an hour.",
		Kind:   Counter,
		Labels: holderLabels,
		From:   []string{"accel_energy_joules_total"},
	})
	PodDevices = define(Metric{
		Name:   "accel_pod_devices",
		Help:   "Devices of this node, partitions among them, that the pod holds.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: podLabels,
		From:   []string{"accel_allocation_info"},
	})
	PodUtilization = define(Metric{
		Name:   "accel_pod_utilization_ratio",
		Help:   "Mean of accel_allocation_utilization_ratio over the devices that the pod holds and that it is known of, 0 to 1. What an autoscaler wants to know.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: podLabels,
		Range:  ratio,
		From:   []string{"accel_allocation_utilization_ratio"},
	})
	PodMemory = define(Metric{
		Name:   "accel_pod_memory_used_bytes",
		Help:   "Device memory that the pod has allocated on all devices that it holds. Absent where it is not known of one of them.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: podLabels,
		From:   []string{"accel_allocation_memory_used_bytes"},
	})
	PodPower = define(Metric{
		Name:   "accel_pod_power_watts",
		Help:   "Power drawn by all devices that the pod holds. Absent where it is not known of one of them.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: podLabels,
		From:   []string{"accel_allocation_power_watts"},
	})
	AllocationIdle = define(Metric{
		Name:   "accel_allocation_idle_seconds",
		Help:   "How long no engine of the device has done anything for the holder, up to now; 0 while one does, or did within the configured grace. Absent where activity is not known: unknown is never idle.",
		Kind:   Gauge,
		Labels: holderLabels,
		From:   []string{"exporter, from every measure of use that the device has"},
	})
	AllocationIdleSince = define(Metric{
		Name:   "accel_allocation_idle_since_timestamp_seconds",
		Help:   "When the present stretch of idleness began, seconds since the epoch. Absent while the allocation is not idle.",
		Kind:   Gauge,
		Labels: holderLabels,
		Range:  timestamp,
		From:   []string{"exporter, from every measure of use that the device has"},
	})
	AllocationIdleTotal = define(Metric{
		Name:   "accel_allocation_idle_seconds_total",
		Help:   "Time that the device was idle while the pod held it. A pause longer than the configured grace counts from its beginning, a shorter one does not count.",
		Kind:   Counter,
		Labels: holderLabels,
		From:   []string{"exporter, from every measure of use that the device has"},
	})
	AllocationIdleCost = define(Metric{
		Name:   "accel_allocation_idle_cost_total",
		Help:   "Price of the idle time, by the prices in the configuration. Sharers of a device bear their part of its price. Absent without a price.",
		Kind:   Counter,
		Labels: holderLabelsAnd("currency"),
		Values: []string{"currency: that of the configuration"},
		From:   []string{"exporter"},
	})
	AllocationLastActivity = define(Metric{
		Name:   "accel_allocation_last_activity_timestamp_seconds",
		Help:   "When the device was last seen to do something for the holder, seconds since the epoch. Absent until it has.",
		Kind:   Mark,
		Labels: holderLabels,
		Range:  timestamp,
		From:   []string{"exporter, from every measure of use that the device has"},
	})
	AllocationFirstActivity = define(Metric{
		Name:    "accel_allocation_first_activity_seconds",
		Help:    "How long it took from the allocation of a device to its first activity for the pod, image pulls and model loading included. Only allocations whose beginning and first activity were both seen.",
		Kind:    Histogram,
		Scope:   PerNode,
		Labels:  []string{"resource"},
		Buckets: []float64{1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600},
		From:    []string{"exporter"},
	})
	AllocationFault = define(Metric{
		Name:   "accel_allocation_fault_timestamp_seconds",
		Help:   "When the device last had the fault while the pod held it, seconds since the epoch. It outlives the pod by an hour.",
		Kind:   Mark,
		Labels: holderLabelsAnd("fault"),
		Range:  timestamp,
		Values: []string{"fault: xid_N, bus_loss, gpu_unavailable, poison, poison_fatal, ecc_double_bit, dram_retirement_failure; other once there are too many"},
		From:   []string{"accel_gpu_xid_errors_total, accel_device_events_total"},
	})
	DeviceHolders = define(Metric{
		Name: "accel_device_holders",
		Help: "Pods that hold the device; 0 only where it is known that none does. Absent for a device that is cut into partitions.",
		Kind: Gauge,
		From: []string{"kubelet PodResources List"},
	})
	DeviceAllocatable = define(Metric{
		Name:   "accel_device_allocatable",
		Help:   "1 if the kubelet would give out the device, held or not; 0 if it would not although it gives out others of its kind or has given out this one: its device plugin calls it unhealthy, or has not registered.",
		Kind:   Gauge,
		Labels: []string{"resource"},
		Range:  boolean,
		From:   []string{"kubelet PodResources GetAllocatableResources"},
	})
	UnattributedProcesses = define(Metric{
		Name:   "accel_unattributed_processes",
		Help:   "Processes that use the device without their pod holding it. Absent where processes cannot be listed, or not told apart by their pods.",
		Kind:   Gauge,
		Labels: []string{"reason"},
		Values: []string{"reason: other_pod (its pod does not hold the device), host_process (of no pod), unknown_pod (of a pod whose name is not found), hidden (it cannot be seen: no accusation)"},
		From:   []string{"/proc/PID/cgroup of the processes that NVML lists; names below /var/log/pods"},
	})
)

// Families of what is known from the kubelet.
var (
	PodmapState = define(Metric{
		Name:   "accel_podmap_state",
		Help:   "What the list of holders is worth: 1 for the state it is in, 0 for the others.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"state"},
		Range:  boolean,
		Values: []string{"state: starting, absent (no kubelet on this machine), fresh, unconfirmed (it may lack pods), stale (the kubelet does not answer), unreachable (and nothing is left from before)"},
		From:   []string{"exporter"},
	})
	PodmapAge = define(Metric{
		Name:  "accel_podmap_age_seconds",
		Help:  "Time since the kubelet last listed the holders. Absent until it has.",
		Kind:  Gauge,
		Scope: PerNode,
		From:  []string{"kubelet PodResources List"},
	})
	PodmapUnconfirmed = define(Metric{
		Name:  "accel_podmap_unconfirmed_seconds",
		Help:  "Time since the last list of the kubelet that is known to be complete. Absent until there has been one.",
		Kind:  Gauge,
		Scope: PerNode,
		From:  []string{"kubelet PodResources List"},
	})
	PodmapCalls = define(Metric{
		Name:   "accel_podmap_calls_total",
		Help:   "Calls of the kubelet, by how they ended.",
		Kind:   Counter,
		Scope:  PerNode,
		Labels: []string{"call", "outcome"},
		Values: []string{"call: list, allocatable", "outcome: ok, no_socket, denied, refused, unavailable, timeout, rate_limited, too_large, unimplemented, garbage, error"},
		From:   []string{"kubelet PodResources List, GetAllocatableResources"},
	})
	PodmapDuration = define(Metric{
		Name:  "accel_podmap_list_duration_seconds",
		Help:  "How long the latest list took, answered or not.",
		Kind:  Gauge,
		Scope: PerNode,
		From:  []string{"kubelet PodResources List"},
	})
	PodmapPods = define(Metric{
		Name:  "accel_podmap_pods",
		Help:  "Pods in the latest list of the kubelet, with devices or without.",
		Kind:  Gauge,
		Scope: PerNode,
		From:  []string{"kubelet PodResources List"},
	})
	PodmapHolds = define(Metric{
		Name:   "accel_podmap_holds",
		Help:   "Holds of a pod on a device id, by what is known of them. The kinds overlap: read one, do not add them up.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"kind"},
		Values: []string{"kind: told, kept (not listed any more and not contradicted), contested (several pods on one unshared device), superseded (listed although another pod got the device later), unresolved (of a device that is not found), omitted (beyond the limit on holders)"},
		From:   []string{"kubelet PodResources List"},
	})
	PodmapReleased = define(Metric{
		Name:   "accel_podmap_released_total",
		Help:   "Holds that are no longer told, by what ended them.",
		Kind:   Counter,
		Scope:  PerNode,
		Labels: []string{"reason"},
		Values: []string{"reason: unlisted, contradicted, device_gone, expired"},
		From:   []string{"exporter, by the rule in docs/podmap.md"},
	})
	PodmapIDs = define(Metric{
		Name:   "accel_podmap_ids",
		Help:   "Device ids of the kubelet, held or allocatable, by how their device was found, or why it was not.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"how"},
		Values: []string{"how: alias, id, instance, profile, minor, pci, function, name, index, hash, sole; not found: none (no such device), ambiguous (several), unknown (a form that nobody knows), ignored (by configuration)"},
		From:   []string{"exporter, by the table in docs/podmap.md"},
	})
	PodmapRejected = define(Metric{
		Name:   "accel_podmap_rejected_entries_total",
		Help:   "Entries of the kubelet's lists that were left out.",
		Kind:   Counter,
		Scope:  PerNode,
		Labels: []string{"reason"},
		Values: []string{"reason: malformed (without a name or an id), overflow (beyond a limit)"},
		From:   []string{"kubelet PodResources List"},
	})
	PodmapConnections = define(Metric{
		Name:  "accel_podmap_connections_total",
		Help:  "Connections made to the kubelet. Each may be to one that has restarted.",
		Kind:  Counter,
		Scope: PerNode,
		From:  []string{"exporter"},
	})
	PodmapMessageLimit = define(Metric{
		Name:  "accel_podmap_message_limit_bytes",
		Help:  "Largest answer of the kubelet that is taken at present.",
		Kind:  Gauge,
		Scope: PerNode,
		From:  []string{"exporter"},
	})

	ResourceAllocatable = define(Metric{
		Name:   "accel_resource_allocatable",
		Help:   "Device ids of a resource that the kubelet would give out, held or not. A shared device has several. Absent until the kubelet has said so.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"resource"},
		From:   []string{"kubelet PodResources GetAllocatableResources"},
	})
	ResourceHeld = define(Metric{
		Name:   "accel_resource_held",
		Help:   "Device ids of a resource that pods hold. Devices of a claim stand under the name of their driver.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"resource"},
		From:   []string{"kubelet PodResources List"},
	})
	ResourceDevices = define(Metric{
		Name:   "accel_resource_devices",
		Help:   "Devices on this node that the kubelet gives out, or has given out since the exporter started, under the resource. More than are allocatable means that some are not.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"resource"},
		From:   []string{"exporter"},
	})
)

// Families of what is known from the API server, where it is asked.
var (
	PodInfo = define(Metric{
		Name:   "accel_pod_info",
		Help:   "What the API server knows of a pod that holds a device: its UID, what controls it, and the workload that a person made. Labels that it has none for are empty.",
		Kind:   Info,
		Scope:  PerNode,
		Labels: []string{"namespace", "pod", "uid", "controller_kind", "controller", "workload_kind", "workload"},
		From:   []string{"Kubernetes API pods: metadata.uid, metadata.ownerReferences"},
	})
	PodLabelInfo = define(Metric{
		Name:   "accel_pod_label_info",
		Help:   "A label of a pod that holds a device, of those that --kubernetes.pod-label allows.",
		Kind:   Info,
		Scope:  PerNode,
		Labels: []string{"namespace", "pod", "label", "value"},
		From:   []string{"Kubernetes API pods: metadata.labels"},
	})
	PodmetaState = define(Metric{
		Name:   "accel_podmeta_state",
		Help:   "What the knowledge from the API server is worth: 1 for the state it is in, 0 for the others.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"objects", "state"},
		Range:  boolean,
		Values: []string{"objects: pods, slices (of DRA drivers)", "state: starting, fresh, stale (the server does not answer), denied, absent (it has no such objects), unreachable (and nothing is left from before)"},
		From:   []string{"exporter"},
	})
	PodmetaAge = define(Metric{
		Name:   "accel_podmeta_age_seconds",
		Help:   "Time since the API server last said something, be it that nothing has changed. About a minute is normal. Absent until it has.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"objects"},
		From:   []string{"Kubernetes API list and watch"},
	})
	PodmetaRequests = define(Metric{
		Name:   "accel_podmeta_requests_total",
		Help:   "Requests to the API server that have ended, by how.",
		Kind:   Counter,
		Scope:  PerNode,
		Labels: []string{"objects", "call", "outcome"},
		Values: []string{"objects: pods, slices", "call: list, watch", "outcome: ok, credentials, connect, certificate, timeout, unauthorized, forbidden, not_found, throttled, expired, unavailable, too_large, garbage, error"},
		From:   []string{"Kubernetes API list and watch"},
	})
)
