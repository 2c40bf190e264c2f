package main

import "fmt"

// What a node has beside the exporter's page.
const (
	pools       = 10
	otherPods   = 10 // without devices: logging, networking, monitoring
	sharedEvery = 100
	sickEvery   = 100
)

// holder is a pod with devices.
type holder struct {
	namespace, pod string
	devices        []map[string]string // labels device and parent
}

// holders gives the node's devices away: every other node to one job, the rest
// device by device, the last device of each node is free. On every hundredth
// node two pods share the first one.
func holders(node int, devices []map[string]string) []holder {
	var all []holder
	namespace := fmt.Sprintf("team-%d", node%50)
	used := devices[:len(devices)-1]
	if node%2 == 0 {
		all = append(all, holder{namespace, fmt.Sprintf("job-%d", node), used})
	} else {
		for i, d := range used {
			all = append(all, holder{namespace, fmt.Sprintf("pod-%d-%d", node, i), []map[string]string{d}})
		}
	}
	if node%sharedEvery == 0 {
		all = append(all, holder{namespace, fmt.Sprintf("guest-%d", node), used[:1]})
	}
	return all
}

// allocations are the allocation series. One pod in twenty is idle.
func (c class) allocations(node int, devices []map[string]string) []sample {
	var page []sample
	count := map[string]float64{}
	for i, h := range holders(node, devices) {
		idle := 0.0
		if (node+i)%20 == 1 {
			idle = 3000
		}
		pod := map[string]string{"namespace": h.namespace, "pod": h.pod}
		page = append(
			page,
			sample{"accel_pod_devices", pod, float64(len(h.devices))},
			sample{"accel_pod_power_watts", pod, 512 * float64(len(h.devices))},
		)
		if c.memory {
			page = append(
				page,
				sample{"accel_pod_utilization_ratio", pod, 0.8},
				sample{"accel_pod_memory_used_bytes", pod, 6e10 * float64(len(h.devices))},
				sample{"accel_pod_memory_used_ratio", pod, 0.7},
				sample{"accel_pod_sm_activity_ratio", pod, 0.4},
			)
		}
		for _, d := range h.devices {
			count[d["device"]]++
			l := with(d, "namespace", h.namespace, "pod", h.pod, "container", "main", "resource", c.resource)
			page = append(
				page,
				sample{"accel_allocation_info", l, 1},
				sample{"accel_allocation_seconds_total", l, 86400},
				sample{"accel_allocation_power_watts", l, 512},
				sample{"accel_allocation_idle_seconds", l, idle},
				sample{"accel_allocation_idle_seconds_total", l, 1000 + idle},
				sample{"accel_allocation_idle_cost_total", with(l, "currency", "EUR"), 2},
				sample{"accel_allocation_last_activity_timestamp_seconds", l, now - idle},
			)
			if c.memory {
				page = append(
					page,
					sample{"accel_allocation_utilization_ratio", l, 0.8},
					sample{"accel_allocation_memory_used_bytes", l, 6e10},
				)
			}
		}
	}
	for _, d := range devices {
		page = append(
			page,
			sample{"accel_device_holders", d, count[d["device"]]},
			sample{"accel_device_allocatable", with(d, "resource", c.resource), 1},
		)
		for _, reason := range []string{"other_pod", "host_process", "unknown_pod", "hidden"} {
			page = append(page, sample{"accel_unattributed_processes", with(d, "reason", reason), 0})
		}
	}
	for _, le := range []string{"1", "5", "10", "30", "60", "120", "300", "600", "1800", "3600", "14400", "86400", "+Inf"} {
		page = append(page, sample{"accel_allocation_first_activity_seconds_bucket", map[string]string{"resource": c.resource, "le": le}, 3})
	}
	for _, state := range []string{"starting", "absent", "fresh", "unconfirmed", "stale", "unreachable"} {
		value := 0.0
		if state == "fresh" {
			value = 1
		}
		page = append(page, sample{"accel_podmap_state", map[string]string{"state": state}, value})
	}
	return page
}

// drift is the baseline series of a node's whole devices,
// as approved.
func (c class) drift(page []sample, devices []map[string]string) []sample {
	var out []sample
	for _, d := range devices {
		if d["parent"] != "" {
			continue
		}
		for _, component := range c.components(page, d["device"]) {
			out = append(out, sample{"accel_drift", with(d, "component", component, "actual", "1", "expected", "1"), 0})
		}
	}
	return out
}

// faults are the series of a node that has some.
func faults(node int, devices []map[string]string) []sample {
	if node%sickEvery != 0 {
		return nil
	}
	return []sample{
		{"accel_device_health_reason", with(devices[1], "reason", "row_remap_pending", "severity", "degraded"), 1},
		{"accel_device_incident_timestamp_seconds", with(devices[1], "kind", "reset_due", "state", "degraded", "summary", "GPU 1 needs a reset (row remap pending). Reset it when its work has ended.", "reasons", "row_remap_pending", "action", "reset", "pods", "", "since", "2026-03-01T12:00Z"), now},
		{"accel_device_health_reason", with(devices[2], "reason", "xid_79", "severity", "failed"), 1},
		{"accel_device_incident_timestamp_seconds", with(devices[2], "kind", "failed", "state", "failed", "summary", "GPU 2 failed (Xid 79). Cordon, save the kernel log, power cycle.", "reasons", "xid_79", "action", "reboot", "pods", "", "since", "2026-03-01T12:00Z"), now},
		{"accel_drift", with(devices[2], "component", "vbios", "actual", "1", "expected", "2"), 1},
	}
}

// cluster are the series of kube-state-metrics and node_exporter about a node and its
// pods.
func cluster(node int, devices []map[string]string) []sample {
	name := fmt.Sprintf("node-%d", node)
	var page []sample
	pods := holders(node, devices)
	for i := range otherPods {
		pods = append(pods, holder{namespace: "system", pod: fmt.Sprintf("agent-%d-%d", i, node)})
	}
	for _, h := range pods {
		l := map[string]string{"namespace": h.namespace, "pod": h.pod}
		page = append(
			page,
			sample{"kube_pod_owner", with(l, "owner_kind", "Job", "owner_name", fmt.Sprintf("job-%d", node/4), "owner_is_controller", "true"), 1},
			sample{"kube_pod_status_phase", with(l, "phase", "Running"), 1},
			sample{"kube_pod_status_phase", with(l, "phase", "Succeeded"), 0},
			sample{"kube_pod_status_phase", with(l, "phase", "Failed"), 0},
		)
	}
	for _, h := range pods {
		page = append(page, sample{"kube_pod_info", map[string]string{"namespace": h.namespace, "pod": h.pod, "node": name}, 1})
	}
	for _, resource := range []string{"cpu", "memory", "pods", "ephemeral_storage", "hugepages_1Gi", "hugepages_2Mi", "nvidia_com_gpu"} {
		l := map[string]string{"node": name, "resource": resource}
		page = append(page, sample{"kube_node_status_capacity", l, 8}, sample{"kube_node_status_allocatable", l, 8})
	}
	return append(
		page,
		sample{"kube_node_info", map[string]string{"node": name}, 1},
		sample{"kube_node_spec_unschedulable", map[string]string{"node": name}, 0},
		sample{"node_memory_SUnreclaim_bytes", map[string]string{"node": name}, 1e9},
		sample{"node_context_switches_total", map[string]string{"node": name}, 1e9},
	)
}

// with returns the labels and further ones.
func with(l map[string]string, pairs ...string) map[string]string {
	out := make(map[string]string, len(l)+len(pairs)/2)
	for k, v := range l {
		out[k] = v
	}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}
