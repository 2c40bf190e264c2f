package main

import (
	"testing"
)

// known returns the patterns of a node with all allocations of the scenario and
// a state of the pod mapping.
func known(of map[string]podDevice, state string) []string {
	return []string{
		`^accel_podmap_state\{state="` + state + `"\} 1$`,
		of["whole"].has("info", "1"), of["mig"].has("info", "1"), of["claim"].has("info", "1"), of["shared"].has("info", "1"),
		of["whole"].has("utilization_ratio", share), of["shared"].has("utilization_ratio", share),
		`^accel_podmap_allocations\{kind="listed"\} 11$`, `^accel_podmap_released_total\{reason="(unlisted|contradicted|device_gone|expired)"\} 0$`,
		`!^accel_podmap_released_total\{.*\} [1-9]`,
	}
}

// TestKubeletFails checks that the allocations are kept and their state is
// exported while the kubelet fails. After a restart the kubelet returns a valid
// list without pods.
func TestKubeletFails(t *testing.T) {
	t.Parallel()
	n := startPods(t, scenario, nil, often)
	of := allocationsOf(t, n.until(`^accel_podmap_state\{state="fresh"\} 1$`, `^accel_device_up\{.*\} 1$`))
	free := `^accel_device_holders\{device="` + of["free"].device + `"\} 0$`
	n.until(append(known(of, "fresh"), free)...)
	for _, tc := range []struct {
		name  string
		begin [][]string
		end   []string
		state string
		shows []string
	}{
		{
			"restarts",
			[][]string{{"kubelet-restart", "--for=0s"}},
			[]string{"kubelet-up"},
			"unconfirmed",
			[]string{`^accel_podmap_pods 0$`, `^accel_podmap_allocations\{kind="kept"\} 11$`, "!" + free},
		},
		{
			"restarts_without_API_server",
			[][]string{{"api-server-down"}, {"kubelet-restart"}},
			[]string{"api-server-up"},
			"unconfirmed",
			[]string{`^accel_podmap_pods 1$`, `^accel_podmap_allocations\{kind="kept"\} 11$`, "!" + free},
		},
		{"killed", [][]string{{"kubelet-down"}}, []string{"kubelet-up"}, "stale", []string{`^accel_podmap_calls_total\{call="list",outcome="refused"\} [1-9]`}},
		{"socket_gone", [][]string{{"kubelet-remove"}}, []string{"kubelet-up"}, "stale", []string{`^accel_podmap_calls_total\{call="list",outcome="no_socket"\} [1-9]`}},
		{"invalid_response", [][]string{{"kubelet-garbage"}}, []string{"kubelet-up"}, "stale", []string{`^accel_podmap_calls_total\{call="list",outcome="garbage"\} [1-9]`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n.t = t
			for _, words := range tc.begin {
				n.sim(append([]string{"inject"}, words...)...)
			}
			n.until(append(known(of, tc.state), tc.shows...)...)
			n.sim("inject", tc.end[0])
			n.until(append(known(of, "fresh"), free)...)
		})
	}
	n.t = t
}

// TestSocketAppearsLater starts the kubelet after the exporter.
func TestSocketAppearsLater(t *testing.T) {
	t.Parallel()
	n := start(t, scenario, nil, often)
	of := allocationsOf(t, n.until(`^accel_podmap_state\{state="absent"\} 1$`, `^accel_device_up\{.*\} 1$`, `!^accel_allocation`, `!^accel_device_holders`))
	serveKubelet(t, n.state)
	n.until(known(of, "fresh")...)
}

// TestPodEnds checks that the allocation of a pod ends with the pod, and that the
// device's next pod has its own allocation.
func TestPodEnds(t *testing.T) {
	t.Parallel()
	n := startPods(t, scenario, nil, often)
	of := allocationsOf(t, n.until(`^accel_podmap_state\{state="fresh"\} 1$`, `^accel_device_up\{.*\} 1$`))
	holders := func(v string) string { return `^accel_device_holders\{device="` + of["free"].device + `"\} ` + v + `$` }
	first, second := podDevice{of["free"].device, "ml/first-0"}, podDevice{of["free"].device, "ml/second-0"}
	n.until(holders("0"))
	n.sim("inject", "pod-start", "ml/first-0", "gpu:7", "--pid=81001", "--memory=2048", "--load=0.6")
	n.until(holders("1"), first.has("info", "1"), first.has("utilization_ratio", share), first.has("memory_used_bytes", `2\.147483648e\+09`),
		`^accel_allocation_first_activity_seconds_count\{resource="nvidia\.com/gpu"\} 1$`)
	// A kubelet before 1.34 lists an ended pod until another pod has its device.
	n.sim("inject", "pod-finish", "first-0")
	n.sim("inject", "pod-start", "ml/second-0", "gpu:7", "--pid=82001", "--memory=1024")
	n.until(holders("1"), second.has("info", "1"), second.has("memory_used_bytes", `1\.073741824e\+09`), "!"+first.has("info", ".*"), `^accel_podmap_allocations\{kind="superseded"\} 1$`)
	n.sim("inject", "pod-end", "second-0")
	n.sim("inject", "pod-end", "first-0")
	n.until(holders("0"), "!"+second.has("info", ".*"), "!"+first.has("info", ".*"), of["idle"].has("info", "1"), `^accel_podmap_released_total\{reason="unlisted"\} [1-9]`)
}

// TestFaultNamesThePod checks that an Xid is attributed to the device's pod, even
// if the pod ends a second later or has not been listed before.
func TestFaultNamesThePod(t *testing.T) {
	t.Parallel()
	fresh := []string{`^accel_podmap_state\{state="fresh"\} 1$`, `^accel_device_up\{.*\} 1$`, kernelLogRead}
	t.Run("gone_a_second_later", func(t *testing.T) {
		t.Parallel()
		n := startPods(t, scenario, nil, often)
		of := allocationsOf(t, n.until(fresh...))
		n.until(of["mig"].has("info", "1"))
		for _, h := range []podDevice{of["mig"], of["whole"]} {
			n.sim("inject", "pod-evict", h.pod, "--xid=79")
			n.until("!"+h.has("info", ".*"), faultOf(h), `^accel_device_allocatable\{device="`+h.device+`",.*\} 0$`)
		}
		n.until(`!`+faultOf(of["shared"]), `!`+faultOf(of["claim"]))
	})
	// A fault triggers a read of the list. The next regular read is ten minutes
	// later.
	t.Run("not_listed_before", func(t *testing.T) {
		t.Parallel()
		n := startPods(t, scenario, nil, "--podresources.interval=10m")
		free := podDevice{allocationsOf(t, n.until(fresh...))["free"].device, "ml/late-0"}
		n.sim("inject", "pod-start", "ml/late-0", "gpu:7", "--pid=81001")
		n.sim("inject", "xid", "79", "7")
		n.until(faultOf(free), free.has("info", "1"))
	})
}

// faultOf matches the series of the Xid.
func faultOf(h podDevice) string {
	return `^` + series(podDevice{h.device + `",fault="xid_79`, h.pod}, "fault_timestamp_seconds") + " " + some + "$"
}

// TestAllocatableAndHealth checks that the health that a device plugin reports
// and the verdict of the exporter are independent.
func TestAllocatableAndHealth(t *testing.T) {
	t.Parallel()
	n := startPods(t, mixed, nil, often, configured(t, "allocation:", "  generic_devices: [{paths: [/dev/dfl-port.*]}]"))
	page := n.until(`^accel_podmap_state\{state="fresh"\} 1$`, `^accel_device_up\{device="GPU-.*\} 1$`, `^accel_device_up\{device="`+n3000+`",.*\} 1$`)
	train, spare := device(t, page, "0"), device(t, page, "1")
	for _, h := range []podDevice{{n3000, "ran/fec-0"}, {`0000:b1:00\.0`, "ran/fec-1"}, {u250, "video/transcode-0"}, {train, "training/resnet-0"}, {spare, "training/eval-0"}} {
		n.until(h.has("info", "1"), `^accel_device_holders\{device="`+h.device+`"\} 1$`, `^accel_device_allocatable\{device="`+h.device+`",.*\} 1$`)
	}
	for _, d := range []string{"gpu:0", "fpga:intel-n3000-dfl", "0000:5e:00.1"} {
		n.sim("inject", "device-unhealthy", d)
	}
	n.sim("inject", "device-healthy", "1")
	n.sim("inject", "lost", "1")
	for d, v := range map[string]string{train: "0", n3000: "0", u250: "0", spare: "1"} {
		state := map[string]string{"0": "healthy", "1": "failed"}[v]
		n.until(`^accel_device_allocatable\{device="`+d+`",.*\} `+v+`$`, `^accel_device_health\{device="`+d+`",state="`+state+`"\} 1$`)
	}
	n.sim("clear")
	n.sim("inject", "plugin-down", "amd.com/*")
	n.until(`^accel_device_allocatable\{device="`+u250+`",.*\} 0$`, `^accel_device_holders\{device="`+u250+`"\} 1$`,
		`^accel_device_allocatable\{device="`+n3000+`",.*\} 1$`, `^accel_device_health\{device="`+spare+`",state="healthy"\} 1$`, `^accel_device_allocatable\{device="`+train+`",.*\} 1$`)
}
