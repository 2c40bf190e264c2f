package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/status"
	"github.com/accel-exporter/accel-exporter/internal/status/history"
)

const (
	gpu0, gpu1 = "GPU-0", "GPU-1"
	serial     = "1650000000003"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// machine is a node with two GPUs whose Snapshots a Recorder judges.
type machine struct {
	t       *testing.T
	o       Options
	latest  atomic.Pointer[collector.Snapshot]
	r       *Recorder
	seconds int
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t}
	m.o = Options{
		Node: "node1", Directory: t.TempDir(), Keep: 3, History: &history.Ring{}, Latest: m.latest.Load, Log: slog.New(slog.DiscardHandler),
		Software: []Fact{{"kernel", "6.8"}},
		Allocations: func() *allocation.Report {
			return &allocation.Report{Devices: []allocation.Device{{
				ID: gpu0, Holders: []allocation.Allocation{{Holder: allocation.Holder{Namespace: "training", Pod: "llm-0", Containers: []string{"worker"}}, Since: start}},
				ProcessList: []allocation.Process{{PID: 7, Command: "secret-command"}},
			}}}
		},
		KernelLog: func() ([]string, bool) { return []string{"NVRM: Xid (PCI:0000:75:00): 79, serial " + serial}, true },
		After:     time.Nanosecond,
	}
	return m
}

// run runs the Recorder until the test, or the returned function, ends it.
func (m *machine) run() (stop func()) {
	m.r = New(m.o)
	ctx, cancel := context.WithCancel(m.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); m.r.Run(ctx) }()
	stop = func() { cancel(); <-done }
	m.t.Cleanup(stop)
	return stop
}

// second judges the Snapshot of the next second, in which some GPUs have failed.
func (m *machine) second(failed ...string) *collector.Snapshot {
	m.seconds++
	s := &collector.Snapshot{Time: start.Add(time.Duration(m.seconds) * time.Second)}
	for _, id := range []string{gpu0, gpu1} {
		d := collector.Device{ID: id, Class: collector.GPU, Model: "H100", PCI: "0000:75:00.0", Verdict: &collector.Verdict{State: "healthy", Action: "none"}}
		labels := make([]string, len(collector.DeviceInfo.Labels))
		for i, name := range collector.DeviceInfo.Labels {
			if name == "serial" {
				labels[i] = serial
			}
		}
		d.Set(collector.DeviceInfo, 1, labels...)
		d.Set(collector.FirmwareInfo, 1, "vbios", "96.00")
		d.Set(collector.EnergyJoules, float64(m.seconds))
		if !strings.Contains(strings.Join(failed, " "), id) {
			d.Set(collector.PowerWatts, 612.5+float64(m.seconds))
		} else {
			d.Verdict = &collector.Verdict{State: "failed", Action: "reboot", Since: s.Time, Reasons: []collector.Reason{{Code: "xid_79", Text: "Xid 79: the GPU no longer answers", Severity: "failed", Since: s.Time}}}
			s.News = []collector.Event{{Time: s.Time, Source: "nvidia", Device: id, Kind: collector.EventXid, Code: 79, Detail: "fallen off the bus"}}
			s.News = append(s.News, collector.Event{Time: s.Time, Source: "nvidia", Device: gpu0, Kind: collector.EventErrorRecord, Record: []byte("CPER " + serial)})
		}
		s.Devices = append(s.Devices, d)
	}
	s.Events = s.News
	m.r.Judge(s)
	m.latest.Store(s)
	return s
}

// until judges Snapshots until the bundle of a device is in a state, and returns the labels.
func (m *machine) until(id, state string, failed ...string) (location, sum string) {
	m.t.Helper()
	guard := time.Now().Add(time.Minute)
	for time.Now().Before(guard) {
		s := m.second(failed...)
		for i := range s.Devices {
			for _, r := range s.Devices[i].Readings {
				if s.Devices[i].ID == id && r.Metric == collector.DeviceBundle && r.Label("state") == state {
					return r.Label("location"), r.Label("sha256")
				}
			}
		}
		time.Sleep(time.Millisecond)
	}
	m.t.Fatalf("the bundle of %s is never %s", id, state)
	return "", ""
}

func (m *machine) names() (names []string) {
	entries, err := os.ReadDir(m.o.Directory)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// content returns the files of a bundle.
func content(t *testing.T, data []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for from := tar.NewReader(zip); ; {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

// TestFault: two GPUs that fail within a minute are in one bundle. A copy arrives at a server
// at once. The whole takes its name once the server does not refuse it any more, with all that
// a person needs and nothing secret.
func TestFault(t *testing.T) {
	m := newMachine(t)
	m.o.Directory = filepath.Join(m.o.Directory, "made")
	var refuses atomic.Bool
	received := make(chan []byte, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		if refuses.Load() || r.Header.Get("Authorization") != "secret" || r.Method != http.MethodPut || !strings.HasPrefix(r.URL.Path, "/evidence/accel-node1-") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		received <- data
	}))
	t.Cleanup(server.Close)
	target, err := NewTarget(server.URL+"/evidence/?signature=secret", func() (map[string]string, error) { return map[string]string{"Authorization": "secret"}, nil })
	if err != nil {
		t.Fatal(err)
	}
	m.o.Target, m.o.After = target, time.Hour
	stop := m.run()
	for range 5 {
		m.second()
	}
	m.until(gpu0, recording, gpu0)
	// The copies of a node that does not live for another minute have both.
	guard := time.Now().Add(time.Minute)
	for both := false; !both; time.Sleep(time.Millisecond) {
		m.second(gpu0, gpu1)
		for _, f := range m.r.List() {
			both = len(f.Devices) == 2
		}
		if time.Now().After(guard) {
			t.Fatalf("no copy has both GPUs: %+v", m.r.List())
		}
	}
	select {
	case data := <-received:
		if b, err := Parse(data); err != nil || b.Incident.Complete {
			t.Errorf("the first copy is %+v, %v", b, err)
		}
	case <-time.After(time.Minute):
		t.Fatal("no copy is sent before the whole")
	}
	refuses.Store(true)
	stop() // writes the whole, which cannot be sent
	m.until(gpu1, unsent, gpu0, gpu1)
	refuses.Store(false)
	m.run() // another exporter sends it, and begins no other bundle
	location, sum := m.until(gpu1, sent, gpu0, gpu1)
	var data []byte
	for len(received) > 0 {
		data = <-received
	}
	b, err := Parse(data)
	if err != nil || len(b.Problems) > 0 || b.SHA256 != sum || len(b.Incident.Devices) != 2 || b.Incident.Complete {
		t.Fatalf("%v: %+v", err, b)
	}
	if want := server.URL + "/evidence/" + filepath.Base(location); location != want {
		t.Errorf("%s; wanted is %s", location, want)
	}
	files := content(t, data)
	for _, text := range []string{
		"serial number            " + serial, "firmware vbios           96.00", "kernel                   6.8", "errors                   Xid 79", "first message            fallen off the bus",
		"error records (CPER)     1 in cper/",
		"Xid 79: the GPU no longer answers", "Restart the node", "pod training/llm-0, worker", "NVRM: Xid (PCI:0000:75:00): 79",
		"accel_power_watts 617.5 (at 2026-03-01 12:00:05Z, not measured since)",
	} {
		if !strings.Contains(files[readmeName], text) {
			t.Errorf("README.txt has no %q:\n%s", text, files[readmeName])
		}
	}
	for name, text := range files {
		if strings.Contains(text, "secret-command") {
			t.Errorf("%s has the command of a process", name)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(files["readings/GPU-0.csv"])).ReadAll()
	if err != nil || len(rows) < 7 || strings.Join(rows[5], " ") != "2026-03-01T12:00:05.000Z 5 617.5" || rows[6][2] != "" {
		t.Errorf("%v: %q", err, rows)
	}
}

// TestLogUnread: a bundle does not state that the kernel log has no line where the log is
// not read.
func TestLogUnread(t *testing.T) {
	for want, known := range map[string]bool{"PCI core: none": true, "PCI core: the log is not read": false} {
		m := newMachine(t)
		m.o.KernelLog = func() ([]string, bool) { return nil, known }
		m.r = New(m.o)
		m.second()
		if _, data := m.r.Make(gpu0); !strings.Contains(content(t, data)[readmeName], want+"\n") {
			t.Errorf("README.txt has no %q", want)
		}
	}
}

// TestErrorRecords: old records of one GPU, which its driver returns later, do not push out
// the record of the fault of another one.
func TestErrorRecords(t *testing.T) {
	m := newMachine(t)
	m.r = New(m.o)
	judge := func(id, record string) {
		s := &collector.Snapshot{Time: start, News: []collector.Event{{Device: id, Kind: collector.EventErrorRecord, Record: []byte(record)}}}
		m.r.Judge(s)
	}
	judge(gpu0, "fault")
	for i := range 2 * maxRecords {
		judge(gpu1, fmt.Sprint(i))
	}
	judge(gpu1, strings.Repeat("x", maxRecordBytes/2))
	m.second()
	_, data := m.r.Make(gpu0)
	if files := content(t, data); files["cper/GPU-0-1.bin"] != "fault" {
		t.Errorf("no record of %s:\n%s", gpu0, files[readmeName])
	}
	_, data = m.r.Make(gpu1)
	files := content(t, data)
	if last := fmt.Sprintf("cper/GPU-1-%d.bin", maxRecords/2); len(files[last]) != maxRecordBytes/2 || files["cper/GPU-1-1.bin"] != fmt.Sprint(2*maxRecords-maxRecords/2+1) {
		t.Errorf("%s has %d bytes, the first record is %s", last, len(files[last]), files["cper/GPU-1-1.bin"])
	}
}

// TestDirectory: the directory has at most so many bundles, never a part of one, and a
// device that fails again at once pushes nothing out.
func TestDirectory(t *testing.T) {
	m := newMachine(t)
	if err := os.WriteFile(filepath.Join(m.o.Directory, tempPrefix+"node1~1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.run()
	m.until(gpu0, saved, gpu0)
	for range 3 {
		m.second()
		m.until(gpu0, saved, gpu0)
	}
	if names := m.names(); len(names) != 1 || strings.HasPrefix(names[0], tempPrefix) {
		t.Errorf("found %q", names)
	}
	var last string
	for range 4 {
		m.second()
		m.seconds += 700
		m.until(gpu0, recording, gpu0)
		last, _ = m.until(gpu0, saved, gpu0)
	}
	if names := m.names(); len(names) != m.o.Keep || names[len(names)-1] != filepath.Base(last) {
		t.Errorf("found %q; %s is the latest", names, last)
	}
	if err := os.WriteFile(filepath.Join(m.o.Directory, "other.tar.gz"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := m.r.Read("other.tar.gz"); err == nil {
		t.Errorf("%q is served, which is no bundle", data)
	}
}

// TestNoRoom: where nothing can be written, it is known from the start, the devices have
// the state failed, and the bundle is written once there is room.
func TestNoRoom(t *testing.T) {
	m := newMachine(t)
	m.o.Directory = filepath.Join(m.o.Directory, "absent", "bundles")
	m.run()
	if m.r.Problem() == nil {
		t.Error("no problem at the start")
	}
	m.until(gpu0, failed, gpu0)
	if err := os.MkdirAll(m.o.Directory, 0o700); err != nil {
		t.Fatal(err)
	}
	m.until(gpu0, saved, gpu0)
	if err := m.r.Problem(); err != nil {
		t.Error(err)
	}
}

// TestRemoved: a bundle that a person removes before it is sent does not wait any more, and
// its place is not named.
func TestRemoved(t *testing.T) {
	m := newMachine(t)
	target, err := NewTarget("http://127.0.0.1:1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	m.o.Target, m.o.Look = target, time.Millisecond
	m.run()
	location, _ := m.until(gpu0, unsent, gpu0)
	if err := os.Remove(location); err != nil {
		t.Fatal(err)
	}
	guard := time.Now().Add(time.Minute)
	for len(m.r.List()) > 0 || status.Label(&m.second(gpu0).Devices[0], collector.DeviceBundle, "state") != "" {
		if time.Now().After(guard) {
			t.Fatalf("%+v waits to be sent", m.r.List())
		}
		time.Sleep(time.Millisecond)
	}
}

// TestDirectoryGone: a bundle whose directory vanishes with its first copy, as with a volume,
// is written once the directory is there again.
func TestDirectoryGone(t *testing.T) {
	m := newMachine(t)
	m.r = New(m.o)
	m.second(gpu0)
	m.r.write(false)
	if err := os.RemoveAll(m.o.Directory); err != nil {
		t.Fatal(err)
	}
	state := func() string { return status.Label(&m.second(gpu0).Devices[0], collector.DeviceBundle, "state") }
	for range 2 {
		m.r.write(true)
		m.r.look()
		if got := state(); got != failed || len(m.r.List()) > 0 {
			t.Errorf("%q, %+v", got, m.r.List())
		}
	}
	if err := os.MkdirAll(m.o.Directory, 0o700); err != nil {
		t.Fatal(err)
	}
	m.r.write(true)
	if got := state(); got != saved {
		t.Error(got)
	}
}

// TestSize: a bundle has no more than its size, whatever is in it, and names the files that it lacks.
func TestSize(t *testing.T) {
	a := &archive{}
	a.add(incidentName, []byte("{}"))
	random := rand.NewChaCha8([32]byte{})
	for n := range 4 {
		noise := make([]byte, MaxSize*2/5)
		_, _ = random.Read(noise) // never fails
		a.add(fmt.Sprint("noise", n), noise)
	}
	a.add("small", []byte("fits"))
	data := a.bytes()
	b, err := Parse(data)
	if err != nil || len(data) > MaxSize || len(b.Problems) > 0 {
		t.Errorf("%d bytes, %v, %+v", len(data), err, b)
	}
	if files := content(t, data); files["small"] != "fits" || len(b.Manifest.LeftOut) != 2 {
		t.Errorf("%+v", b.Manifest)
	}
}

// FuzzParse: data from anywhere is a bundle or an error, and a file that differs from the
// manifest is named.
func FuzzParse(f *testing.F) {
	a := &archive{}
	a.add(incidentName, []byte(`{"node":"node1"}`))
	a.add(readmeName, []byte("text"))
	f.Add(a.bytes())
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if b, err := Parse(data); (b == nil) == (err == nil) {
			t.Errorf("%v, %v", b, err)
		}
	})
}

// TestChanged: a changed file is found.
func TestChanged(t *testing.T) {
	a := &archive{}
	a.add(incidentName, []byte(`{}`))
	a.add("kernel.log", []byte("one"))
	a.manifest.Files[1].SHA256 = a.manifest.Files[0].SHA256
	a.data.Write(a.compress("another", []byte("x")))
	b, err := Parse(a.bytes())
	if err != nil || len(b.Problems) != 2 || !strings.Contains(b.Problems[0], `"kernel.log" was changed`) {
		t.Errorf("%v %+v", err, b)
	}
}
