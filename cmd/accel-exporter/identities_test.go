package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/identity"
	"github.com/accel-exporter/accel-exporter/internal/sim"
)

// TestRestartWithLostGPU starts the exporter again while a GPU is lost. The GPU is
// one device with the UUID and the pod of before, from each origin of identities.
func TestRestartWithLostGPU(t *testing.T) {
	t.Parallel()
	scenario, err := filepath.Abs("../../fixtures/incidents/nodes/h100-busy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, fault string
		state       bool
		reason      string
		info        string // labels of accel_device_info, before and after class and device
	}{
		{"procfs", "lost 2", false, "lost", `architecture="",board_part_number="",class="gpu",device="%",index="2",model="NVIDIA H100 80GB HBM3",numa_node="0",pci_address="0000:75:00.0",profile="",serial="",vendor="nvidia"`},
		{"file", "lost 2 --no-uuid", true, "lost", ""},
		{"file, not enumerated", "gone 2", true, "missing", ""},
		{"file, off the bus", "bus-loss 2", true, "lost", ""},
		{"file, hangs", "hang 2", true, "stuck", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			state, flags := compile(t, scenario)
			serveKubelet(t, state)
			flags = append(flags, often)
			if c.state {
				flags = append(flags, "--path.state="+t.TempDir())
			}
			if c.reason == "stuck" {
				flags = append(flags, configured(t, "sources: {nvidia: {timeout: 2s}}"))
			}
			before := startOn(t, state, flags...)
			page := before.until(`^accel_allocation_info\{.*pod="chat-0"`, `^accel_device_info\{.*index="3"`, `^accel_source_up\{reason="",source="pcie"\} 1$`)
			gpu := device(t, page, "2")
			whole := strings.TrimSuffix(regexp.MustCompile(`(?m)^accel_device_info\{.*`+gpu+`.*$`).FindString(page), " 1")
			if c.info != "" {
				whole = "accel_device_info{" + strings.Replace(c.info, "%", gpu, 1) + "}"
			}
			if c.reason == "missing" { // the driver gives its index to the next GPU
				whole = strings.Replace(whole, `index="2"`, `index=""`, 1)
			}
			before.stop()
			before.sim(append([]string{"inject"}, strings.Fields(c.fault)...)...)
			after := startOn(t, state, flags...)
			after.until(
				`^accel_device_up\{device="`+gpu+`",reason="`+c.reason+`"\} 0$`,
				`^`+regexp.QuoteMeta(whole)+` 1$`,
				`^accel_allocation_info\{.*device="`+gpu+`",namespace="inference",.*pod="chat-0"`,
				`^accel_podmap_allocations\{kind="unresolved"\} 0$`,
				`!^accel_device_info\{.*device="(0000:75:00\.0|nvidia2)"`,
				`!^accel_device_up\{device="(0000:75:00\.0|nvidia2)"`,
			)
			after.sim("clear", "2")
			after.until(`^accel_device_up\{device="`+gpu+`",reason=""\} 1$`, `^accel_power_watts\{device="`+gpu+`"\}`)
		})
	}
}

// TestRestartRemembersXid kills the exporter after an Xid that no reading shows. The next
// exporter knows it by the file, until the node is booted.
func TestRestartRemembersXid(t *testing.T) {
	t.Parallel()
	state, flags := compile(t, scenario)
	flags = append(flags, often, "--no-collector.kernellog", "--path.state="+t.TempDir())
	before, process := startProcess(t, state, nil, flags...)
	gpu := device(t, before.until(`^accel_device_health\{.*state="healthy"\} 1$`, `^accel_device_info\{.*index="7"`), "2")
	before.sim("inject", "xid", "95", "2")
	before.until(`^accel_device_health\{device="` + gpu + `",state="failed"\} 1$`)
	file := flags[len(flags)-1][len("--path.state="):] + "/" + identity.File
	for data := ""; !strings.Contains(data, `"code": 95`); {
		content, _ := os.ReadFile(file)
		data = string(content)
	}
	process.Kill()
	after := startOn(t, state, flags...)
	after.until(`^accel_device_health\{device="`+gpu+`",state="failed"\} 1$`, `^accel_device_health_reason\{device="`+gpu+`",reason="xid_95"`, `!^accel_device_faults_unknown_before_timestamp_seconds`)
	after.stop()
	writeFile(t, filepath.Join(sim.Root(state), "proc/sys/kernel/random/boot_id"), "7d2f1a30-0000-4000-8000-000000000002\n")
	startOn(t, state, flags...).until(`^accel_device_health\{device="` + gpu + `",state="healthy"\} 1$`)
}
