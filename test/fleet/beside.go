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
func allocations(node int, devices []map[string]string) (page []sample) {
	add := func(l map[string]string, values map[string]float64) {
		for name, value := range values {
			page = append(page, sample{"accel_" + name, l, value})
		}
	}
	count := map[string]float64{}
	for i, h := range holders(node, devices) {
		idle, gpus := 0.0, float64(len(h.devices))
		if (node+i)%20 == 1 {
			idle = 3000
		}
		add(map[string]string{"namespace": h.namespace, "pod": h.pod}, map[string]float64{
			"pod_devices": gpus, "pod_power_watts": 512 * gpus, "pod_utilization_ratio": 0.8, "pod_memory_used_bytes": 6e10 * gpus,
			"pod_memory_used_ratio": 0.7, "pod_sm_activity_ratio": 0.4,
		})
		for _, d := range h.devices {
			count[d["device"]]++
			l := with(d, "namespace", h.namespace, "pod", h.pod, "container", "main", "resource", "nvidia.com/gpu")
			add(l, map[string]float64{
				"allocation_info": 1, "allocation_seconds_total": 86400, "allocation_power_watts": 512, "allocation_idle_seconds": idle,
				"allocation_idle_seconds_total": 1000 + idle, "allocation_last_activity_timestamp_seconds": now - idle,
				"allocation_utilization_ratio": 0.8, "allocation_memory_used_bytes": 6e10,
			})
			add(with(l, "currency", "EUR"), map[string]float64{"allocation_idle_cost_total": 2})
		}
	}
	for _, d := range devices {
		add(d, map[string]float64{"device_holders": count[d["device"]]})
		add(with(d, "resource", "nvidia.com/gpu"), map[string]float64{"device_allocatable": 1})
		for _, reason := range []string{"other_pod", "host_process", "unknown_pod", "hidden"} {
			add(with(d, "reason", reason), map[string]float64{"unattributed_processes": 0})
		}
	}
	for state, value := range map[string]float64{"starting": 0, "absent": 0, "fresh": 1, "unconfirmed": 0, "stale": 0, "unreachable": 0} {
		add(map[string]string{"state": state}, map[string]float64{"podmap_state": value})
	}
	return page
}

// drift is the baseline series of a node's whole devices, as approved.
func drift(devices []map[string]string) (out []sample) {
	for _, d := range devices {
		if d["parent"] != "" {
			continue
		}
		for _, component := range []string{"driver", "cuda", "vbios", "gsp", "inforom", "mig"} {
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
		{"accel_device_incident_timestamp_seconds", with(devices[2], "kind", "failed", "state", "failed", "summary", "GPU 2 failed (Xid 79). Cordon, save the kernel log, reboot.", "reasons", "xid_79", "action", "reboot", "pods", "", "since", "2026-03-01T12:00Z"), now},
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
