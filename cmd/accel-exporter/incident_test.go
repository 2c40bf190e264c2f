package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const scenario = "h100-8"

// device returns the UUID of the GPU with an NVML index.
func device(t testing.TB, page, index string) string {
	t.Helper()
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "accel_device_info{") && strings.Contains(line, `index="`+index+`"`) {
			if _, id, isGPU := strings.Cut(line, `device="GPU-`); isGPU {
				id, _, _ = strings.Cut(id, `"`)
				return "GPU-" + id
			}
		}
	}
	t.Fatalf("no GPU has index %s", index)
	return ""
}

// value returns the value of the first series that matches.
func value(t testing.TB, page, series string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + series + ` (\S+)$`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no series matches %s", series)
	}
	v, err := strconv.ParseFloat(m[len(m)-1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestWorkerEnds ends the worker in every way a library can end a process, and
// checks that counters are kept and that the next worker restores the gauges.
func TestWorkerEnds(t *testing.T) {
	t.Parallel()
	n := start(t, scenario, nil)
	page := n.until(`^accel_device_up\{.*\} 1`, kernelLogRead)
	gpu := device(t, page, "0")
	n.sim("inject", "xid", "79", "0")
	xid := `^accel_gpu_xid_errors_total\{device="` + gpu + `",xid="79"\} 1$`
	n.until(xid)

	for _, tc := range []struct {
		how string
		end func()
	}{
		{"signal_segv", func() { n.sim("inject", "crash") }},
		{"exit_127", func() { n.sim("inject", "exit", "--code=127") }},
		{"signal_kill", func() { n.sim("inject", "kill") }},
		{"signal_term", func() { syscall.Kill(n.worker(), syscall.SIGTERM) }},
	} {
		t.Run(tc.how, func(t *testing.T) {
			n.t = t
			before := n.worker()
			tc.end()
			page := n.until(`^accel_source_worker_exits_total\{how="`+tc.how+`",source="nvidia"\} 1$`, xid,
				`^accel_source_up\{reason="",source="nvidia"\} 1$`, `^accel_power_watts\{device="`+gpu)
			n.poll(func() bool { return n.worker() != before }, func() string { return "another worker" })
			value(t, page, `accel_energy_joules_total\{device="`+gpu+`"\}`)
		})
	}
	n.t = t
}

// worker returns the process id of the running worker.
func (n *node) worker() int {
	n.t.Helper()
	pid := 0
	n.poll(func() bool {
		var s struct {
			Sources []struct {
				PID int `json:"worker_pid"`
			}
		}
		_, body := n.get("/debug/state")
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			n.t.Fatal(err)
		}
		pid = s.Sources[0].PID
		return pid != 0
	}, func() string { return "a worker" })
	return pid
}

// TestFaults plays faults one after the other. $2 is the UUID of the GPU with the index 2
// at the start.
func TestFaults(t *testing.T) {
	t.Parallel()
	type step struct {
		fault string // as for accel-sim
		shows []string
	}
	for name, c := range map[string]struct {
		scenario string
		args     []string
		steps    []step
	}{
		"a lost GPU keeps its counters, and others are not affected": {scenario, nil, []step{
			{"inject lost 2", []string{
				`^accel_device_up\{device="$2",reason="lost"\} 0$`, `!^accel_temperature_celsius\{device="$2`, `^accel_energy_joules_total\{device="$2"\}`, `^accel_device_info\{.*device="$2`,
				`^accel_temperature_celsius\{device="$3`, `^accel_native_call_errors_total\{.*code="gpu_is_lost"`,
			}},
			{"clear 2", []string{`^accel_device_up\{device="$2",reason=""\} 1$`, `^accel_temperature_celsius\{device="$2`}},
		}},
		"every call to a GPU hangs, and others are sampled by the same worker": {scenario, []string{configured(t, "sources: {nvidia: {timeout: 1s}}")}, []step{
			{"inject hang 5", []string{
				`^accel_device_up\{device="$5",reason="stuck"\} 0$`, `!^accel_power_watts\{device="$5`, `^accel_power_watts\{device="$6`, `^accel_energy_joules_total\{device="$5"\}`,
			}},
			{"clear 5", []string{`^accel_device_up\{device="$5",reason=""\} 1$`, `^accel_power_watts\{device="$5`, `!^accel_source_worker_exits_total\{.*source="nvidia"\} [1-9]`}},
		}},
		"a GPU is not enumerated, and the driver numbers those behind it again": {scenario, nil, []step{
			{"inject gone 1", []string{
				`^accel_device_up\{device="$1",reason="missing"\} 0$`, `!^accel_power_watts\{device="$1`,
				`!^accel_device_info\{.*device="$1",index="1",`, `^accel_device_info\{.*device="$2",index="1",`, `^accel_device_info\{.*device="$7",index="6",`,
			}},
			{"inject return 1", []string{`^accel_device_up\{device="$1",reason=""\} 1$`, `^accel_power_watts\{device="$1`, `^accel_device_info\{.*device="$1",index="1",`}},
		}},
		"a GPU is partitioned": {scenario, []string{configured(t, "sources:", "  nvidia: {slow_interval: 1s}")}, []step{
			{"", []string{`!^accel_memory_total_bytes\{.*parent="$0"\}`}},
			{"inject mig 0 3g.40gb,3g.40gb", []string{
				`^accel_mig_mode_enabled\{device="$0",when="current"\} 1$`, `^accel_memory_total_bytes\{.*parent="$0"\}`,
				`^accel_device_info\{.*index="0:1:0",.*parent="$0",`, `^accel_device_info\{.*index="0:2:0",.*parent="$0",`, `!^accel_device_info\{.*index="0:[^12]:0",.*parent="$0",`,
			}},
			{"inject mig 0 off", []string{`!parent="$0"`, `^accel_mig_mode_enabled\{device="$0",when="current"\} 0$`}},
		}},
		"the driver is replaced by another version": {scenario, nil, []step{
			{"inject driver-reload --driver=999.9.9", []string{
				`^accel_driver_info\{.*,version="999\.9\.9"\} 1$`, `^accel_power_watts\{device="$0`, `^accel_source_up\{reason="",source="nvidia"\} 1$`,
			}},
			{"inject driver-mismatch", []string{
				`^accel_source_up\{reason="version_mismatch",source="nvidia"\} 0$`, `!^accel_power_watts`, `!^accel_device_up`, `^accel_energy_joules_total\{device="$0`,
			}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t, c.scenario, nil, c.args...)
			page := n.until(`^accel_device_up\{device="GPU-.*\} 1`)
			for _, s := range c.steps {
				if s.fault != "" {
					n.sim(strings.Fields(s.fault)...)
				}
				var shows []string
				for _, p := range s.shows {
					shows = append(shows, regexp.MustCompile(`\$\d`).ReplaceAllStringFunc(p, func(index string) string { return device(t, page, index[1:]) }))
				}
				n.until(shows...)
			}
		})
	}
}

// TestOperationalEvents: an Operational Event counts by its severity and is judged by it,
// unless it is a test, follows from another event, or has an Xid. Xids arrive as before.
func TestOperationalEvents(t *testing.T) {
	t.Parallel()
	n := start(t, scenario, nil, "--nvml.operational-events")
	page := n.until(`^accel_device_up\{device="GPU-.*\} 1`)
	n.watchEvents()
	shows := func(index, counted, state string) {
		t.Helper()
		gpu := device(t, page, index)
		n.until(`^accel_device_events_total\{device="`+gpu+`",event="operational_`+counted+`"\} 1$`, `^accel_device_health\{device="`+gpu+`",state="`+state+`"\} 1$`)
	}
	for index, fault := range []string{"fatal 0 --is=simulated", "fatal 1 --is=propagated", "fatal 2 --xid=43", "recoverable 3", "fatal 4 --is=overflow", "50 5", "corrected 6"} {
		n.sim(append([]string{"inject", "operational-event"}, strings.Fields(fault)...)...)
		shows(strconv.Itoa(index), strings.Fields("simulated propagated fatal recoverable fatal other corrected")[index],
			strings.Fields("healthy healthy healthy degraded failed degraded healthy")[index])
	}
	n.until(`^accel_source_events_lost_total\{source="nvidia"\} 1$`, `^accel_device_health_reason\{device="`+device(t, page, "4")+`",reason="event_operational_fatal",severity="failed"\} 1$`)
}

// TestErrorRecords: the records of a GPU are in its bundle, also beside a GPU without
// records. A driver that does not permit to read them is no driver without records, and a
// call that hangs costs nothing but records.
func TestErrorRecords(t *testing.T) {
	t.Parallel()
	n := start(t, scenario, nil, "--bundle.directory="+t.TempDir())
	gpu := device(t, n.until(`^accel_device_up\{device="GPU-.*\} 1`), "0")
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	// shows waits for a line of the bundle of a GPU.
	shows := func(index, line string) {
		t.Helper()
		var page strings.Builder
		n.poll(func() bool {
			page.Reset()
			if err := bundleCommand(t.Context(), []string{index, "--url=" + n.url, "--output=" + file}, &page, io.Discard); err != nil {
				t.Fatal(err)
			}
			return regexp.MustCompile(line).MatchString(page.String())
		}, func() string { return line + " in\n" + page.String() })
	}
	n.sim("inject", "error", "nvmlSystemGetCPER_v1", "NOT_SUPPORTED", "1")
	shows("1", `error records \(CPER\) +not read: not_supported\n`)
	n.sim("inject", "operational-event", "fatal", "0")
	shows("0", `error records \(CPER\) +1 in cper/\n`)
	out, err := exec.Command("tar", "-xzOf", file, "cper/"+gpu+"-1.bin").Output()
	if err != nil || len(out) != 128 || string(out[:4]) != "CPER" {
		t.Errorf("%v, %q", err, out)
	}
	// Within so many rounds each GPU's records are requested.
	n.sim("inject", "hang", "all", "--call=nvmlSystemGetCPER_v1")
	rounds := func(page string) float64 {
		return value(t, page, `accel_source_rounds_total\{outcome="ok",source="nvidia"\}`)
	}
	hung := rounds(n.until())
	n.poll(func() bool { return rounds(n.until()) > hung+30 }, func() string { return "30 rounds" })
	n.until(`^accel_device_up\{device="`+gpu+`",reason=""\} 1$`, `!^accel_source_worker_exits_total.*source="nvidia"\} [1-9]`)
	n.sim("clear")
	n.sim("inject", "error", "nvmlSystemGetCPER_v1", "NO_PERMISSION")
	shows("2", `error records \(CPER\) +not permitted: `)
}

// TestBoundLater runs in a container without privileges, where a GPU is unbound
// from the driver and bound again. Refusals make no round partial. The worker
// restarts, because its library does not list that GPU, and counters continue.
func TestBoundLater(t *testing.T) {
	t.Parallel()
	n := start(t, "h100-unprivileged", nil)
	page := n.until(`^accel_device_call_refused\{call="nvmlDeviceGetMemoryInfo_v2",code="no_permission",device="GPU-`)
	n.watchEvents()
	gpu := device(t, page, "1")
	if !strings.Contains(page, `accel_source_rounds_total{outcome="partial",source="nvidia"} 0`+"\n") {
		t.Error("a round was partial")
	}
	if _, body := n.get("/debug/status"); !strings.Contains(body, "nvmlDeviceGetMemoryInfo_v2 (no_permission)") || !strings.Contains(body, "nvidia.migMonitor") {
		t.Error("the status has no refused call with what permits it")
	}
	n.sim("inject", "xid", "31", "1")
	n.until(`^accel_gpu_xid_errors_total\{device="` + gpu + `",xid="31"\} 1$`)
	n.sim("inject", "gone", "--driver=none", "1")
	n.until(`^accel_device_up\{device="` + gpu + `",reason="lost"\} 0$`)
	n.sim("inject", "return", "1")
	n.log.await(regexp.MustCompile(`Source fails.*driver_reloaded.*was bound to the driver later`))
	n.until(`^accel_device_up\{device="`+gpu+`",reason=""\} 1$`, `^accel_gpu_xid_errors_total\{device="`+gpu+`",xid="31"\} 1$`, `^accel_source_up\{reason="",source="nvidia"\} 1$`)
}

// TestRelease releases and attaches a source by a file.
func TestRelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, scenario, nil, "--release.directory="+dir)
	gpu := device(t, n.until(`^accel_device_up\{.*\} 1`), "0")
	attached := []string{`^accel_source_released\{source="nvidia"\} 0$`, `^accel_power_watts\{device="` + gpu}
	pid, file := n.worker(), filepath.Join(dir, "nvidia")

	writeFile(t, file, "")
	n.log.await(regexp.MustCompile("Source released by file"))
	if err := syscall.Kill(pid, 0); err == nil {
		t.Errorf("worker %d is alive after the release", pid)
	}
	n.until(`^accel_source_released\{source="nvidia"\} 1$`, `^accel_source_up\{reason="released",source="nvidia"\} 0$`,
		`!^accel_power_watts`, `^accel_energy_joules_total\{device="`+gpu)
	n.log.await(regexp.MustCompile(`"Source is released" collector=nvidia$`))
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	n.until(attached...)

	writeFile(t, file, "1s")
	n.log.await(regexp.MustCompile(`Source released by file.* for=[1-9]`))
	n.until(attached...) // while the file exists
}

// TestReload checks reloads of valid, invalid, removed and mounted configuration
// files.
func TestReload(t *testing.T) {
	file := tempFile(t, "accel.yaml", "metrics: {detail: standard}\n")
	n := start(t, scenario, nil, "--config.file="+file)
	n.until(`!^accel_nvlink_up`, `^accel_config_last_reload_successful 1$`)

	writeFile(t, file, "metrics:\n  detail: full\ncolect:\n  interval: 1s\n")
	if n.log.await(regexp.MustCompile(`Configuration rejected.*accel\.yaml:3.*colect`)) == nil {
		t.Error("the log has no mistake with file, line and key")
	}
	n.until(`!^accel_nvlink_up`, `^accel_config_last_reload_successful 0$`)

	writeFile(t, file, "metrics: {detail: full}\n")
	syscall.Kill(os.Getpid(), syscall.SIGHUP)
	n.until(`^accel_nvlink_up`, `^accel_config_last_reload_successful 1$`)

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	n.until(`^accel_nvlink_up`, `^accel_config_last_reload_successful 0$`)

	// mount replaces the file as Kubernetes does with a mounted ConfigMap.
	mount := func(version, content string) {
		t.Helper()
		dir := filepath.Join(filepath.Dir(file), version)
		tmp := filepath.Join(filepath.Dir(file), "..data_tmp")
		for _, err := range []error{
			os.Mkdir(dir, 0o755),
			os.WriteFile(filepath.Join(dir, "accel.yaml"), []byte(content), 0o644),
			os.Symlink(version, tmp),
			os.Rename(tmp, filepath.Join(filepath.Dir(file), "..data")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	mount("v1", "metrics: {detail: standard}\n")
	if err := os.Symlink("..data/accel.yaml", file); err != nil {
		t.Fatal(err)
	}
	n.until(`!^accel_nvlink_up`, `^accel_config_last_reload_successful 1$`)
	mount("v2", "metrics: {detail: full}\n")
	n.until(`^accel_nvlink_up`)
}

// TestNoDriver starts the exporter on a machine without a driver.
func TestNoDriver(t *testing.T) {
	t.Parallel()
	n := startExporter(t)
	page := n.until(`^accel_source_up\{.*source="nvidia"\} `, `!reason="starting"`)
	if !strings.Contains(page, `accel_source_up{reason="absent",source="nvidia"} 0`) {
		t.Skip("this machine has an NVIDIA driver")
	}
	if m := n.log.await(regexp.MustCompile(`Source has nothing to read.*libnvidia-ml\.so\.1`)); m == nil {
		t.Error("the log does not name the library")
	}
	if code, _ := n.get("/-/ready"); code != 200 {
		t.Errorf("/-/ready is %d", code)
	}
}

// TestMissingLibrary checks that a missing library that a flag names is an
// error, and not reported as missing hardware.
func TestMissingLibrary(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	n := startExporter(t, "--nvml.library="+path)
	n.until(`^accel_source_up\{reason="library",source="nvidia"\} 0$`, `^go_goroutines `)
	if m := n.log.await(regexp.MustCompile(`Source fails.*` + regexp.QuoteMeta(path))); m == nil {
		t.Error("the log does not name the library")
	}
}

// TestPages checks the status and content of every page.
func TestPages(t *testing.T) {
	t.Parallel()
	n := start(t, scenario, nil)
	n.until(`^accel_device_up\{.*\} 1`)
	for _, tc := range []struct {
		path string
		code int
		has  string
	}{
		{"/", 200, "Sources"},
		{"/-/healthy", 200, "alive"},
		{"/-/ready", 200, "ready"},
		{"/debug/state", 200, `"accel_power_watts"`},
		{"/metrics", 200, "accel_exporter_build_info"},
		{"/debug/rules", 404, "--rules.file"},
		{"/nothing", 404, ""},
	} {
		if code, body := n.get(tc.path); code != tc.code || !strings.Contains(body, tc.has) {
			t.Errorf("GET %s: %d, has %q: %v", tc.path, code, tc.has, strings.Contains(body, tc.has))
		}
	}
	for _, path := range []string{"/metrics", "/", "/-/ready", "/debug/status"} {
		if code, _ := n.post(path); code != 405 {
			t.Errorf("POST %s: %d, want 405", path, code)
		}
	}
}

// TestWebConfig checks the password of --web.config.file.
func TestWebConfig(t *testing.T) {
	t.Parallel()
	// The hash is bcrypt's of "secret".
	file := tempFile(t, "web.yml", "basic_auth_users:\n  prometheus: $2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n")
	n := startExporter(t, "--no-collector.nvidia", "--web.config.file="+file)
	if code, _ := n.get("/metrics"); code != 401 {
		t.Errorf("GET without a password: %d, want 401", code)
	}
	n.url = strings.Replace(n.url, "http://", "http://prometheus:secret@", 1)
	if code, _ := n.get("/metrics"); code != 200 {
		t.Errorf("GET with the password: %d, want 200", code)
	}
	n.url = strings.Replace(n.url, "secret", "wrong", 1)
	if code, _ := n.get("/metrics"); code != 401 {
		t.Errorf("GET with a wrong password: %d, want 401", code)
	}
}
