//go:build linux && cgo

package nvidia

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// An unprivileged caller may not read what the instances of a GPU in MIG mode
// add up to. The calls are made once, the rounds are complete without them, and
// the device shows which they are.
func TestUnprivileged(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"quirk", "unprivileged"}}, func(s *sampling) {
		r := s.Round()
		parent, free := gpus(r)[4], gpus(r)[7]
		for _, name := range []string{"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetBAR1MemoryInfo", "nvmlDeviceGetMemoryErrorCounter", "nvmlDeviceGetComputeRunningProcesses_v3"} {
			want(s, parent, 1, collector.CallRefused, name, "no_permission")
			if !slices.ContainsFunc(r.Calls, func(c collector.CallError) bool { return c.Call == name && c.Code == "no_permission" }) {
				s.Errorf("%s is not counted: %v", name, r.Calls)
			}
		}
		absent(s, free, collector.CallRefused)
		absent(s, parent, collector.MemoryUsed)
		absent(s, parent, collector.ECCErrors)
		want(s, parent, 0, collector.ECCAggregateErrors, "uncorrected", "sram")
		part := partsOf(r, parent.ID)[0]
		want(s, part, 30720<<20, collector.MemoryUsed)
		want(s, part, 1, collector.Processes, "compute")
		if parent.Down != "" || parent.Clients != nil {
			s.Errorf("down %q, processes %v", parent.Down, parent.Clients)
		}
		s.Round()
		for range 3 {
			notRepeated(s, s.Round(), "no_permission")
		}
		// What a reset permits is read again.
		s.Inject("quirk", "unprivileged", "off")
		s.Inject("lost", "4")
		s.Until("GPU 4 is lost", func(r collector.Round, _ error) bool { return gpus(r)[4].Down != "" })
		s.Clear("4")
		r = s.Until("GPU 4 is back", func(r collector.Round, err error) bool { return err == nil && gpus(r)[4].Down == "" })
		absent(s, gpus(r)[4], collector.CallRefused)
		want(s, gpus(r)[4], 41984<<20, collector.MemoryUsed)
	})
}

// A call or field that returns UNKNOWN makes two rounds incomplete. After that
// the refusal is a state.
func TestLastingUnknown(t *testing.T) {
	inChild(t, "h100-8", [][]string{
		{"error", "nvmlDeviceGetTemperature", "UNKNOWN", "0"}, {"field", "76", "error:UNKNOWN", "1"}, {"field", "94", "error:NO_PERMISSION", "2"},
	}, func(s *sampling) {
		for range passing {
			if r, err := s.Sample(simtest.Patience); err == nil {
				s.Errorf("a round without an error: %v", r.Calls)
			} else {
				absent(s, gpus(r)[0], collector.CallRefused)
			}
		}
		r := s.Round()
		want(s, gpus(r)[0], 1, collector.CallRefused, "nvmlDeviceGetTemperature", "unknown")
		want(s, gpus(r)[1], 1, collector.CallRefused, "field_76", "unknown")
		want(s, gpus(r)[2], 1, collector.CallRefused, "field_94", "no_permission")
		for range 3 {
			notRepeated(s, s.Round(), "unknown", "no_permission")
		}
	})
}

// fieldsOf is a device with nvmlDeviceGetFieldValues only.
type fieldsOf struct {
	nvml.Device
	get func([]nvml.FieldValue)
}

func (f fieldsOf) GetFieldValues(values []nvml.FieldValue) nvml.Return {
	f.get(values)
	return nvml.SUCCESS
}

// A driver that refuses one field may write no answer for others, and return success.
// Unanswered fields are read in the same round. A field that it never writes is
// refused.
func TestUnwrittenFields(t *testing.T) {
	const refusing, shy, never = nvml.FI_DEV_C2C_LINK_COUNT, nvml.FI_DEV_POWER_CURRENT_LIMIT, nvml.FI_DEV_MEMORY_TEMP
	made := 0
	g := &gpu{asker: asker{has: make([]bool, len(calls)), refused: make([]bool, len(calls)), refusals: map[asked]*refusal{}, round: &round{}}}
	g.has[callFieldValues.index] = true
	g.handle = fieldsOf{get: func(values []nvml.FieldValue) {
		made++
		refuses := slices.ContainsFunc(values, func(v nvml.FieldValue) bool { return v.FieldId == refusing })
		for i := range values {
			switch v := &values[i]; {
			case v.FieldId == refusing:
				v.NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
			case v.FieldId == shy && !refuses:
				v.NvmlReturn, v.ValueType, v.Value = uint32(nvml.SUCCESS), uint32(nvml.VALUE_TYPE_UNSIGNED_INT), [8]byte{100}
			}
		}
	}}
	b := newBatch([]field{plain(shy, collector.PowerLimit, one, "enforced"), plain(never, collector.TemperatureCelsius, one, "memory"), {id: refusing}})
	for round := range 4 {
		g.now = time.Unix(int64(round), 0)
		d := collector.Device{}
		b.read(g, &d, nil)
		if v, err := value(d, collector.PowerLimit, "enforced"); err != nil || v != 100 || len(d.Readings) != 1 {
			t.Errorf("round %d: %+v", round, d.Readings)
		}
		_, err := g.take()
		if incomplete := round < passing; (err != nil) != incomplete {
			t.Errorf("round %d: error %v", round, err)
		}
	}
	if _, refused := g.refusals[asked{callFieldValues, never, 0}]; !refused || made != 2+2+2+1 {
		t.Errorf("refused %v after %d calls", refused, made)
	}
}

// notRepeated fails where the round counts a call with one of the codes. Other calls
// may be new in any round: performance counters need two samples.
func notRepeated(s *sampling, r collector.Round, codes ...string) {
	s.Helper()
	if slices.ContainsFunc(r.Calls, func(c collector.CallError) bool { return slices.Contains(codes, c.Code) }) {
		s.Errorf("repeated at once: %v", r.Calls)
	}
}

// docs/privileges.md explains each refused call, with the words of the log.
func TestRefusalsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/privileges.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range Explanations {
		row := "| `" + strings.Join(e.Calls, "`, `") + "` | " + e.Lost + " |"
		if !strings.Contains(string(page), row) {
			t.Errorf("no row begins with %s", row)
		}
		for _, name := range e.Calls {
			if !strings.HasPrefix(name, "field_") && !slices.ContainsFunc(calls, func(c *call) bool { return strings.HasPrefix(c.name, name) }) {
				t.Errorf("no call is named %s", name)
			}
			if lost, _ := Explain(name + "_v3"); lost != e.Lost {
				t.Errorf("%s: %s", name, lost)
			}
		}
		remedy, _, _ := strings.Cut(e.Remedy, ". ")
		if !strings.Contains(string(page), remedy) {
			t.Errorf("the page lacks %q", remedy)
		}
	}
}

// A refused call is repeated after 1, 2, 4, 8, 16 and then every 30 minutes.
func TestBackOff(t *testing.T) {
	c := &call{name: "nvmlFoo"}
	a := asker{has: []bool{true}, refused: []bool{false}, refusals: map[asked]*refusal{}, round: &round{now: time.Unix(0, 0)}}
	ret, begun := nvml.ERROR_NO_PERMISSION, a.now
	var minutes []int
	ask := func() {
		if do(&a, c, func() nvml.Return { minutes = append(minutes, int(a.now.Sub(begun).Minutes())); return ret }) {
			minutes = append(minutes, -1)
		}
	}
	for range 100 {
		ask()
		a.now = a.now.Add(time.Minute)
	}
	ret = nvml.SUCCESS
	for range 100 {
		ask()
		if len(a.refusals) == 0 {
			break
		}
		a.now = a.now.Add(time.Minute)
	}
	if want := []int{0, 1, 3, 7, 15, 31, 61, 91, 121, -1}; !slices.Equal(minutes, want) {
		t.Errorf("called in minutes %v, want %v", minutes, want)
	}
	if calls, err := a.take(); err != nil || calls[0].Count != 8 {
		t.Errorf("%v, %v", calls, err)
	}
}

// Where nvmlDeviceGetFieldValues does not exist for a GPU, the functions that
// return one value are used.
func TestNoFieldValues(t *testing.T) {
	for _, code := range []string{"NOT_SUPPORTED", "NO_PERMISSION"} {
		t.Run(code, func(t *testing.T) {
			inChild(t, "h100-8", [][]string{{"error", "nvmlDeviceGetFieldValues", code, "0"}, {"set", "threshold.slowdown", "89", "0"}}, func(s *sampling) {
				d := gpus(s.Round())[0]
				for _, m := range []*collector.Metric{collector.PowerWatts, collector.EnergyJoules, collector.RowRemapPending, collector.RowRemapFailed, collector.PCIeReplays} {
					if _, err := value(d, m); err != nil {
						s.Errorf("%s: %v", m.Name, err)
					}
				}
				for _, limit := range []string{"enforced", "requested", "default", "min", "max"} {
					if _, err := value(d, collector.PowerLimit, limit); err != nil {
						s.Errorf("power limit %s: %v", limit, err)
					}
				}
				now, err := value(d, collector.TemperatureCelsius, "gpu")
				if err != nil {
					s.Error(err)
				}
				want(s, d, 89-now, collector.TemperatureMargin, "slowdown")
			})
		})
	}
}

// A GPU that is bound to the driver later is not in the list of a running NVML.
func TestBoundLater(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"quirk", "fixed-list"}, {"gone", "--driver=none", "2"}}, func(s *sampling) {
		for range 2 {
			if r := s.Round(); len(gpus(r)) != 7 {
				s.Fatalf("%d GPUs", len(gpus(r)))
			}
		}
		s.Inject("return", "2")
		s.Until("a new process is requested", func(r collector.Round, err error) bool {
			return errors.Is(err, collector.ErrRestart) && strings.Contains(err.Error(), ":") && len(r.Devices) == 0
		})
		if err := s.source.Close(); err != nil {
			s.Fatal(err)
		}
		s.open(Options{})
		if r := s.Round(); len(gpus(r)) != 8 {
			s.Errorf("%d GPUs", len(gpus(r)))
		}
		// A GPU that leaves the bus is down, and no reason to restart.
		s.Inject("gone", "3")
		r := s.Until("GPU 3 is lost", func(r collector.Round, _ error) bool {
			return len(gpus(r)) == 8 && gpus(r)[3].Down == collector.ReasonLost
		})
		if gpus(r)[4].Down != "" {
			s.Errorf("GPU 4 is down: %s", gpus(r)[4].Down)
		}
	})
}

// Counts of processes that differ from the list that follows.
func TestProcessCounts(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"quirk", "capacity-counts"}}, func(s *sampling) {
		s.Until("use by process", func(r collector.Round, err error) bool {
			_, _, _, measured := client(gpus(r)[0], 21001)
			return err == nil && measured
		})
		s.Inject("quirk", "capacity-counts", "off")
		s.Inject("quirk", "growing-counts")
		s.Until("a count grows", func(r collector.Round, err error) bool {
			return err != nil && slices.ContainsFunc(r.Calls, func(c collector.CallError) bool {
				return c.Call == "nvmlDeviceGetProcessUtilization" && c.Code == "insufficient_size"
			})
		})
		s.Inject("quirk", "growing-counts", "off")
		r := s.Until("the counts are right", func(r collector.Round, err error) bool {
			_, _, _, measured := client(gpus(r)[0], 21001)
			return err == nil && measured
		})
		if len(gpus(r)[0].Clients) != 1 {
			s.Errorf("%+v", gpus(r)[0].Clients)
		}
	})
}

// Outside the host's PID namespace every list is empty. It is unknown who uses a
// device that is in use, and no process uses a device that is not.
func TestForeignPIDs(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"quirk", "other-pids"}}, func(s *sampling) {
		r := s.Round()
		for i, d := range gpus(r) {
			if i == 7 {
				want(s, d, 0, collector.Processes, "compute")
			} else {
				absent(s, d, collector.Processes)
			}
			if (d.Clients == nil) != (i != 7) {
				s.Errorf("GPU %d: %+v", i, d.Clients)
			}
		}
		parts := partsOf(r, gpus(r)[4].ID)
		if parts[0].Clients != nil || parts[2].Clients == nil {
			s.Errorf("MIG devices: %+v, %+v", parts[0].Clients, parts[2].Clients)
		}
	})
}
