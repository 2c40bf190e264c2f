package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/golden"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// exampleReport is a node with a device in every state.
func exampleReport() *allocation.Report {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := func(v float64) *float64 { return &v }
	pod := func(ns, name string, age time.Duration) allocation.Allocation {
		return allocation.Allocation{
			Holder: allocation.Holder{Namespace: ns, Pod: name, Containers: []string{"main"}, Resources: []string{"nvidia.com/gpu"}},
			Since:  now.Add(-age),
		}
	}
	const gib = 1 << 30
	gpu := func(id, index string) allocation.Device {
		return allocation.Device{
			ID: "GPU-" + id + "-0000-0000-0000-000000000000", Index: index, Class: "gpu", Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3",
			PCI: "0000:" + index + "1:00.0", Health: "healthy", Action: "none", MemoryTotal: f(80 * gib),
		}
	}
	busy := gpu("aaaaaaaa", "0")
	holder := pod("training", "llm-0", 3*time.Hour+2*time.Minute)
	holder.Utilization, holder.MemoryUsed, holder.Idle = f(0.9), f(70*gib), f(0)
	busy.Availability, busy.Holders = allocation.Allocated, []allocation.Allocation{holder}

	failed := gpu("bbbbbbbb", "1")
	failed.Health, failed.Action, failed.Reasons, failed.Down = "failed", "reset", []string{"Xid 79: the GPU has fallen off the bus"}, "lost"
	holder = pod("training", "llm-1", 50*time.Hour)
	holder.SinceAtLeast = true
	holder.Faults = []allocation.Fault{{Name: "xid_79", Time: now.Add(-time.Minute)}}
	failed.Availability, failed.Holders, failed.NotAllocatable = allocation.Allocated, []allocation.Allocation{holder}, []string{"nvidia.com/gpu"}

	shared := gpu("cccccccc", "2")
	a, b := pod("lab", "a", 90*time.Second), pod("lab", "b", 20*time.Second)
	a.Shared, a.Utilization, a.MemoryUsed, a.Idle = true, f(0.2), f(4*gib), f(0)
	b.Shared, b.Kept, b.Idle, b.IdleCost, b.Currency = true, true, f(1800), f(1.25), "EUR"
	shared.Availability, shared.Holders, shared.Utilization = allocation.Allocated, []allocation.Allocation{a, b}, f(0.2)

	cut := gpu("dddddddd", "3")
	cut.Availability, cut.Why = allocation.Partitioned, "split into 1 partition, which is allocated instead"
	part := allocation.Device{
		ID: "MIG-eeeeeeee-0000-0000-0000-000000000000", Parent: cut.ID, Class: "gpu", Vendor: "nvidia", Model: cut.Model, Profile: "1g.10gb",
		Index: "0", Health: "healthy", Availability: allocation.Free, Why: "not allocated",
	}
	occupied := gpu("ffffffff", "10")
	occupied.Availability, occupied.Why = allocation.Occupied, "not allocated, and used by 1 process (python)"
	card := allocation.Device{
		ID: "0000:5e:00.1", Class: "fpga", Vendor: "xilinx", Model: "Alveo U250", PCI: "0000:5e:00.1",
		Availability: allocation.NotAllocatable, Why: "not allocatable as amd.com/u250: its device plugin reports it as unhealthy, or has not registered",
	}
	return &allocation.Report{
		Time: now, State: podmap.StateUnconfirmed, Reason: "3 of 9 pods are listed",
		Devices: []allocation.Device{card, part, occupied, cut, shared, failed, busy},
		Unresolved: []allocation.Unresolved{{
			Resource: "example.com/widget", ID: "left", How: podmap.HowUnknown, Namespace: "lab", Pod: "c",
		}},
		Unattributed: []allocation.Process{
			{Device: busy.ID, PID: 4711, Command: "python", Reason: "other_pod", Namespace: "lab", Pod: "thief"},
			{Device: occupied.ID, PID: 4712, Command: "python", Reason: "host_process"},
		},
	}
}

// who runs the command against a report.
func who(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return whoOf(t, exampleReport(), args...)
}

func whoOf(t *testing.T, reported any, args ...string) (string, error) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); r.URL.Path != "/debug/allocations" || ok && user+password != "opsecret" {
			http.Error(w, "wrong path or password", http.StatusUnauthorized)
			return
		}
		body, err := json.Marshal(reported)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body) // the client may have left
	}))
	defer srv.Close()
	out, _, err := outcome(t.Context(), append([]string{"who", "--url=" + srv.URL}, args...)...)
	return out, err
}

func TestWho(t *testing.T) {
	for name, args := range map[string][]string{
		"all":  nil,
		"wide": {"--wide", "2", "3"},
		"gpu":  {"GPU-bbbb"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := who(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", "who", name+".txt"), out)
		})
	}
}

// TestWhoSelects: each way to name a device finds the named ones.
func TestWhoSelects(t *testing.T) {
	for what, want := range map[string]string{
		"0":                  "GPU-a",
		"10":                 "GPU-f",
		"gpu-dddd":           "GPU-d MIG-e",
		"MIG-eeee":           "MIG-e",
		"5e:00.1":            "0000:",
		"0000:21:00.0":       "GPU-c",
		"pod/llm-0":          "GPU-a",
		"pod/lab/b":          "GPU-c",
		"namespace/training": "GPU-b GPU-a",
		"free":               "MIG-e",
		"(free)":             "MIG-e",
		"lab/b":              "GPU-c",
		"(not allocatable)":  "0000:",
		"bbbbbbbb":           "GPU-b",
		"failed":             "GPU-b",
		"idle":               "GPU-c",
		"reset":              "GPU-b",
		"failed: reset":      "GPU-b",
		"Alveo U250":         "0000:",
		"1g.10gb":            "MIG-e",
		"lab":                "GPU-c",
	} {
		out, err := who(t, "--json", what)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		var report allocation.Report
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		order(report.Devices)
		var got []string
		for _, d := range report.Devices {
			got = append(got, d.ID[:5])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s finds %s, want %s", what, got, want)
		}
	}
	for _, what := range []string{"7", "pod/nobody", "pod/training/a", "GPU-12", "namespace/none", "0000:99:00.0"} {
		if out, err := who(t, what); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s finds\n%s%v", what, out, err)
		}
	}
}

// TestWhoAsks: the client sends the password of the file, and errors name
// their cause.
func TestWhoAsks(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "http.yml")
	for name, text := range map[string]string{"http.yml": "basic_auth: {username: op, password_file: password}\n", "password": "secret\n"} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	if out, err := who(t, "--http.config.file="+file); err != nil || !strings.Contains(out, "llm-0") {
		t.Errorf("with a password: %v\n%s", err, out)
	}
	for args, want := range map[string]string{
		"--url=localhost":             "http://HOST:PORT",
		"--url=http://127.0.0.1:1":    "no exporter answers there",
		"--url=127.0.0.1:1":           "no exporter answers there",
		"--http.config.file=/none/at": "/none/at",
	} {
		if _, _, err := outcome(t.Context(), "who", args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestWhoProcesses: without a kubelet a line is of a process, with its user and its
// Slurm job, below the sources that are not well. No text reaches the terminal as a
// command.
func TestWhoProcesses(t *testing.T) {
	r := exampleReport()
	f := func(v float64) *float64 { return &v }
	r.State, r.Unresolved, r.Devices = podmap.StateAbsent, nil, r.Devices[len(r.Devices)-2:]
	for i := range r.Devices {
		r.Devices[i].Holders, r.Devices[i].Availability = nil, allocation.Unmanaged
	}
	r.Devices[1].Processes = new(2)
	r.Devices[1].ProcessList = []allocation.Process{
		{PID: 4711, Command: "python3", UID: "4000001", Job: "812", MemoryUsed: f(40 << 30), Utilization: f(0.9)},
		{PID: 4712, Command: "a\x1b[2Jb\u202ec", UID: "4000002"},
	}
	report := &whoReport{Report: *r, Sources: []sourceJSON{
		{Status: collector.Status{Source: "nvidia", Reason: collector.SourceMismatch, Err: "driver 580.65, library 580.82"}},
		{Status: collector.Status{Source: "fpga", Reason: collector.SourceAbsent}},
		{Status: collector.Status{Source: "pcie", Up: true}},
	}}
	out, err := whoOf(t, report)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "who", "processes.txt"), out)
	for _, what := range []string{"job/812", "812", "user/4000001", "4000001", "pid/4712", "4712", "python3", "command/python3"} {
		if out, err := whoOf(t, report, what); err != nil || !strings.Contains(out, "GPU-aaaa") || strings.Contains(out, "GPU-bbbb") {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
}

// TestWhoWidth: no line is wider than the screen, and a reason is below its device.
func TestWhoWidth(t *testing.T) {
	for _, width := range []int{80, 200} {
		var out strings.Builder
		if err := printWho(&screen{Writer: &out, width: width}, &whoReport{Report: *exampleReport()}, false); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, filepath.Join("testdata", "who", fmt.Sprintf("width-%d.txt", width)), out.String())
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d columns on a screen with %d: %s", n, width, line)
			}
		}
	}
}
