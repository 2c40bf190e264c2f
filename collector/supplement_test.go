package collector

import (
	"testing"
	"testing/synctest"
	"time"
)

// fromDCGM is a GPU that a second source reports: families that only DCGM has, and
// a family that NVML has too.
func fromDCGM(id string) Device {
	d := Device{ID: id, Class: GPU, Vendor: "nvidia", Sampled: time.Now(), KubeIDs: []string{id}}
	d.Set(PowerWatts, 55)
	d.Set(ActivityRatio, 0.5, "tensor")
	d.Set(DCGMFieldTotal, 7, "DCGM_FI_DEV_X", "", "")
	d.Set(DeviceInfo, 1, "gpu", "nvidia", "", "", "", "", "", "", "", "")
	return d
}

var supplemented = []*Metric{PowerWatts, ActivityRatio, DCGMFieldTotal, EnergyJoules, DeviceUp}

// TestTwoSourcesOfOneDevice: the first registered source wins, per family. The
// failure of one source removes only the gauges that it provides.
func TestTwoSourcesOfOneDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := nvGPU("GPU-a", "0000:1b:00.0")
		full.Set(EnergyJoules, 1000)
		nvml, dcgm := newFake("nvidia", full), newFake("dcgm", fromDCGM("GPU-a"))
		s := start(t, DefaultSettings(), nvml, dcgm)
		tick()
		both := []string{"power_watts{GPU-a} 100", "energy_joules_total{GPU-a} 1000", "device_up{GPU-a,} 1", "activity_ratio{GPU-a,tensor} 0.5", "dcgm_field_total{GPU-a,DCGM_FI_DEV_X,,} 7"}
		expect(t, s, supplemented, both...)
		if n := len(s.Latest().Devices); n != 1 {
			t.Errorf("%d devices, want one", n)
		}

		nvml.answer(Round{}, ErrDriver)
		tick()
		expect(t, s, supplemented, "energy_joules_total{GPU-a} 1000", "power_watts{GPU-a} 55", "activity_ratio{GPU-a,tensor} 0.5", "dcgm_field_total{GPU-a,DCGM_FI_DEV_X,,} 7", "device_up{GPU-a,} 1")

		nvml.answer(Round{Devices: []Device{full}}, nil)
		tick()
		expect(t, s, supplemented, both...)

		dcgm.answer(Round{}, ErrEngine)
		tick()
		expect(t, s, supplemented, "power_watts{GPU-a} 100", "energy_joules_total{GPU-a} 1000", "device_up{GPU-a,} 1", "dcgm_field_total{GPU-a,DCGM_FI_DEV_X,,} 7")
		for _, st := range s.Latest().Sources {
			if st.Source == "dcgm" && st.Reason != SourceEngine {
				t.Errorf("reason %q, want %q", st.Reason, SourceEngine)
			}
		}
	})
}

// TestCounterOfTwoSources: a counter of both sources always comes from the first
// one, even while that source fails. A change of the origin would make it jump.
func TestCounterOfTwoSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(joules float64) Round {
			d := nvGPU("GPU-a", "0000:1b:00.0")
			d.Set(EnergyJoules, joules)
			return Round{Devices: []Device{d}}
		}
		nvml, dcgm := newFake("nvidia"), newFake("dcgm")
		nvml.answer(of(1000), nil)
		dcgm.answer(of(900), nil)
		s := start(t, DefaultSettings(), nvml, dcgm)
		for i, step := range []struct {
			round Round
			err   error
			want  string
		}{
			{of(1000), nil, "1000"},
			{Round{}, ErrDriver, "1000"},
			{Round{}, ErrReleased, "1000"},
			{of(1010), nil, "1010"},
			{Round{}, nil, "1010"}, // the device is missing
			{of(1020), nil, "1020"},
		} {
			nvml.answer(step.round, step.err)
			dcgm.answer(of(900+float64(i)), nil)
			tick()
			tick()
			expect(t, s, []*Metric{EnergyJoules}, "energy_joules_total{GPU-a} "+step.want)
		}
	})
}

// TestPartitionByItsPlace: DCGM identifies a MIG device only by its place on the
// GPU. Its readings are added to the MIG device with the UUID. The place becomes a
// device only while the source of the UUIDs fails.
func TestPartitionByItsPlace(t *testing.T) {
	const place = "MIG-GPU-a/3/0"
	slice := Device{ID: place, Parent: "GPU-a", Passing: true, Class: GPU, Vendor: "nvidia", Sampled: time.Now()}
	slice.Set(ActivityRatio, 0.25, "sm")
	other := slice
	other.ID = "GPU-a/5"
	mig := Device{ID: "MIG-uuid", Parent: "GPU-a", Class: GPU, Vendor: "nvidia", Sampled: time.Now(), KubeIDs: []string{"MIG-uuid", "0:1", place}}
	mig.Set(MemoryUsed, 1)
	gpu := nvGPU("GPU-a", "0000:1b:00.0")
	for name, c := range map[string]struct {
		nvml Round
		err  error
		want []string
	}{
		"UUID known":     {Round{Devices: []Device{gpu, mig}}, nil, []string{"memory_used_bytes{MIG-uuid} 1", "activity_ratio{MIG-uuid,sm} 0.25"}},
		"UUID not known": {Round{Devices: []Device{gpu}}, nil, nil},
		"NVML fails":     {Round{}, ErrDriver, []string{"activity_ratio{GPU-a/5,sm} 0.25", "activity_ratio{" + place + ",sm} 0.25"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nvml := newFake("nvidia")
				nvml.answer(c.nvml, c.err)
				s := NewSampler(DefaultSettings())
				s.Add(nvml, Cover{Class: GPU, Vendor: "nvidia"})
				s.Add(newFake("dcgm", nvGPU("GPU-a", "0000:1b:00.0"), slice, other))
				run(t, s)
				tick()
				expect(t, s, []*Metric{MemoryUsed, ActivityRatio}, c.want...)
			})
		})
	}
}

// TestThreeWitnesses: a fault that several sources report counts once, in any order,
// also if one source misses a report. A report of a minute later is another fault, and
// one from before the start does not count.
func TestThreeWitnesses(t *testing.T) {
	const pci = "0000:1b:00.0"
	by := map[byte]Event{
		'n': {Source: "nvidia", Device: "GPU-a", Kind: EventXid, Code: 79},
		'k': {Source: "kernellog", PCI: pci, Kind: EventXid, Code: 79},
		'd': {Source: "dcgm", Device: "GPU-a", Kind: EventXid, Code: 79},
		'p': {Source: "kernellog", PCI: pci, Kind: EventXid, Code: 79, Past: true},
	}
	for reports, want := range map[string]string{"nkd": "1", "dkn": "1", "knkdnd": "2", "nnkkdd": "2", "ndn": "2", "dkd": "2", "kkdn": "2", "nkdnkdnkd": "3", "nk": "1", "kn": "1", "kkn": "2", "n-k": "2", "pn": "1"} {
		t.Run(reports, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := nvGPU("GPU-a", pci)
				d.Vendor = "acme" // which has no zeros from the start
				s := start(t, DefaultSettings(), newFake("nvidia", d), newFake("kernellog"), newFake("dcgm"))
				tick()
				for i := range reports {
					if reports[i] == '-' {
						time.Sleep(time.Minute)
						continue
					}
					s.Emit(by[reports[i]])
				}
				tick()
				expect(t, s, []*Metric{XidErrors}, "gpu_xid_errors_total{GPU-a,79} "+want)
			})
		})
	}
}

// TestPlace: an event at a place on a GPU is attributed to the partition at that
// place, and to no partition if there are several.
func TestPlace(t *testing.T) {
	const pci = "0000:1b:00.0"
	mig := func(id, place string) Device {
		return Device{ID: id, Parent: "GPU-a", Class: GPU, Vendor: "nvidia", PCI: pci, KubeIDs: []string{id, "MIG-GPU-a/" + place}, Sampled: time.Now()}
	}
	synctest.Test(t, func(t *testing.T) {
		s := start(t, DefaultSettings(), newFake("nvidia", nvGPU("GPU-a", pci), mig("MIG-x", "5/0"), mig("MIG-y", "50/0"), mig("MIG-z", "50/1")), newFake("kernellog"))
		tick()
		for place, want := range map[string]string{"5/0": "MIG-x", "5": "MIG-x", "50/1": "MIG-z", "50": "", "7/0": "", "": ""} {
			s.Emit(Event{Source: "kernellog", PCI: pci, Kind: EventXid, Code: 94, Place: place})
			tick()
			if e := s.Latest().Events; e[len(e)-1].Partition != want {
				t.Errorf("place %q is partition %q, want %q", place, e[len(e)-1].Partition, want)
			}
		}
	})
}
