package collector

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// nvGPU is a GPU that NVML reports.
func nvGPU(id, pci string) Device {
	d := Device{ID: id, Class: GPU, Vendor: "nvidia", PCI: pci, Sampled: time.Now()}
	d.Set(PowerWatts, 100)
	return d
}

// onBus is a PCI function of a GPU that the PCI core reports.
func onBus(pci, driver string) Device {
	d := Device{ID: pci, PCI: pci, Class: GPU, Vendor: "nvidia", Witness: true, Driver: driver, Sampled: time.Now()}
	d.Set(PCIeGeneration, 5)
	d.SetBool(PCIeDriverBound, driver != "", pci, driver)
	d.Set(DeviceInfo, 1, "gpu", "nvidia", "", "", "", pci, "", "", "", "")
	return d
}

// driverAndBus runs a Sampler of NVIDIA's driver and the PCI core, which begins with
// the devices of an earlier process.
func driverAndBus(t *testing.T, nvml, bus *fakeSource, recall ...Device) *Sampler {
	s := NewSampler(DefaultSettings())
	s.Add(nvml, Cover{Class: GPU, Vendor: "nvidia"})
	s.Add(bus, Cover{Class: GPU, Bus: true}, Cover{Class: FPGA, Bus: true})
	s.Recall(recall...)
	run(t, s)
	tick()
	return s
}

// TestWitness: readings of a witness are added to the device at the same PCI
// address. accel_device_seen is 1 for each source that sees the device, else 0.
func TestWitness(t *testing.T) {
	const a, b = "0000:1b:00.0", "0000:2c:00.0"
	for name, c := range map[string]struct {
		nvml, bus []Device
		nvmlErr   error
		want      []string
	}{
		"both see it": {
			nvml: []Device{nvGPU("GPU-a", a)}, bus: []Device{onBus(a, "nvidia")},
			want: []string{"power_watts{GPU-a} 100", "device_up{GPU-a,} 1", "pcie_link_generation{GPU-a} 5", "device_seen{GPU-a,nvidia} 1", "device_seen{GPU-a,pcie} 1"},
		},
		"on the bus and not in NVML": {
			nvml: []Device{nvGPU("GPU-a", a)}, bus: []Device{onBus(a, "nvidia"), onBus(b, "nvidia")},
			want: []string{
				"pcie_link_generation{" + b + "} 5", "device_info{" + b + ",gpu,nvidia,,,," + b + ",,,,} 1", "device_seen{" + b + ",nvidia} 0", "device_seen{" + b + ",pcie} 1",
				"power_watts{GPU-a} 100", "device_up{GPU-a,} 1", "pcie_link_generation{GPU-a} 5", "device_seen{GPU-a,nvidia} 1", "device_seen{GPU-a,pcie} 1",
			},
		},
		"lost by its driver": {
			nvml: []Device{{ID: "GPU-a", Class: GPU, Vendor: "nvidia", PCI: a, Down: ReasonLost}}, bus: []Device{onBus(a, "nvidia")},
			want: []string{"device_up{GPU-a,lost} 0", "device_info{GPU-a,gpu,nvidia,,,," + a + ",,,,} 1", "pcie_link_generation{GPU-a} 5", "device_seen{GPU-a,nvidia} 0", "device_seen{GPU-a,pcie} 1"},
		},
		"handed to a virtual machine": {
			nvml: []Device{nvGPU("GPU-a", a)}, bus: []Device{onBus(a, "nvidia"), onBus(b, "vfio-pci")},
			want: []string{
				"pcie_link_generation{" + b + "} 5", "device_info{" + b + ",gpu,nvidia,,,," + b + ",,,,} 1", "device_seen{" + b + ",pcie} 1",
				"power_watts{GPU-a} 100", "device_up{GPU-a,} 1", "pcie_link_generation{GPU-a} 5", "device_seen{GPU-a,nvidia} 1", "device_seen{GPU-a,pcie} 1",
			},
		},
		"no driver": {
			nvmlErr: ErrAbsent, bus: []Device{onBus(a, "")},
			want: []string{"pcie_link_generation{" + a + "} 5", "device_info{" + a + ",gpu,nvidia,,,," + a + ",,,,} 1", "device_seen{" + a + ",pcie} 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nvml, bus := newFake("nvidia", c.nvml...), newFake("pcie", c.bus...)
				nvml.answer(Round{Devices: c.nvml}, c.nvmlErr)
				s := driverAndBus(t, nvml, bus)
				expect(t, s, []*Metric{PowerWatts, DeviceUp, PCIeGeneration, DeviceInfo, DeviceSeen}, c.want...)
			})
		})
	}
}

// TestLeftItsDriver: a device that has left its driver and answers on the bus is not
// missing. It returns with its counters.
func TestLeftItsDriver(t *testing.T) {
	const a, part = "0000:1b:00.0", "MIG-a"
	silent := onBus(a, "")
	silent.SetBool(PCIeResponding, false, a)
	reserved := []string{"device_seen{GPU-a,pcie} 1"}
	unbound := []string{"device_up{GPU-a,unbound} 0", "device_seen{GPU-a,pcie} 1", "device_up{MIG-a,unbound} 0"}
	missing := []string{"device_up{GPU-a,missing} 0", "device_seen{GPU-a,nvidia} 0", "device_seen{GPU-a,pcie} 1", "device_up{MIG-a,missing} 0"}
	for name, c := range map[string]struct {
		bus  Device
		want []string
	}{
		"still bound":           {onBus(a, "nvidia"), missing},
		"unbound":               {onBus(a, ""), unbound},
		"unbound and silent":    {silent, missing},
		"vfio-pci":              {onBus(a, "vfio-pci"), reserved},
		"vfio of Grace":         {onBus(a, "nvgrace_gpu_vfio_pci"), reserved},
		"vfio of Intel":         {onBus(a, "xe-vfio-pci"), reserved},
		"Xen":                   {onBus(a, "pciback"), reserved},
		"a program":             {onBus(a, "uio_pci_generic"), reserved},
		"a driver of its maker": {onBus(a, "nouveau"), missing},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gpu := nvGPU("GPU-a", a)
				gpu.Driver = "nvidia" // as sources of sysfs have it
				mig := Device{ID: part, Parent: "GPU-a", Class: GPU, Vendor: "nvidia", PCI: a, Sampled: time.Now()}
				nvml, bus := newFake("nvidia", gpu, mig), newFake("pcie", onBus(a, "nvidia"))
				s := driverAndBus(t, nvml, bus)
				nvml.answer(Round{}, nil)
				bus.answer(Round{Devices: []Device{c.bus}}, nil)
				tick()
				expect(t, s, []*Metric{DeviceUp, DeviceSeen}, c.want...)
			})
		})
	}
}

// TestWitnessOfTwoFunctions: a card with two PCI functions is one device.
func TestWitnessOfTwoFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := Device{ID: "0000:5e:00.1", PCI: "0000:5e:00.1", Functions: []string{"0000:5e:00.0"}, Class: FPGA, Vendor: "amd", Sampled: time.Now()}
		user, mgmt := onBus("0000:5e:00.1", "xocl"), onBus("0000:5e:00.0", "xclmgmt")
		mgmt.Readings = nil
		s := start(t, DefaultSettings(), newFake("fpga", card), newFake("pcie", user, mgmt))
		tick()
		if n := len(s.Latest().Devices); n != 1 {
			t.Errorf("%d devices, want one", n)
		}
		expect(t, s, []*Metric{PCIeGeneration, DeviceInfo}, "pcie_link_generation{0000:5e:00.1} 5")
	})
}

// TestWitnessesOfAnEvent: the Snapshot has one event with both witnesses and the
// details of both. Judges receive both reports.
func TestWitnessesOfAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSampler(DefaultSettings())
		s.Add(newFake("nvidia", nvGPU("GPU-a", "0000:1b:00.0")))
		s.Add(newFake("kernellog"))
		var news []Event
		s.AddJudge(judgeFunc(func(snap *Snapshot) { news = append(news, snap.News...) }))
		run(t, s)
		tick()
		s.Emit(Event{Source: "nvidia", Device: "GPU-a", Kind: EventXid, Code: 79})
		s.Emit(Event{Source: "kernellog", PCI: "0000:1b:00.0", Kind: EventXid, Code: 79, Detail: "fallen off\nthe bus"})
		tick()
		events := s.Latest().Events
		if len(events) != 1 || len(events[0].Witnesses) != 2 || events[0].Detail != "fallen off the bus" || events[0].Device != "GPU-a" {
			t.Errorf("Events: %+v", events)
		}
		if len(news) != 2 || news[0].Witnesses != nil || len(news[1].Witnesses) != 2 || news[1].Device != "GPU-a" {
			t.Errorf("News: %+v", news)
		}
	})
}

// TestFaultBeforeTheDevice: an event at a PCI address counts for the device that
// is found there later, and is reported to judges again.
func TestFaultBeforeTheDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nvml := newFake("nvidia")
		s := NewSampler(DefaultSettings())
		s.Add(nvml)
		s.Add(newFake("kernellog"))
		var news []string
		s.AddJudge(judgeFunc(func(snap *Snapshot) {
			for _, e := range snap.News {
				news = append(news, e.Device)
			}
		}))
		run(t, s)
		tick()
		s.Emit(Event{Source: "kernellog", PCI: "0000:1b:00.0", Kind: EventXid, Code: 79})
		tick()
		expect(t, s, []*Metric{XidErrors}, "gpu_xid_errors_total{0000:1b:00.0,79} 1")
		d := nvGPU("GPU-a", "0000:1b:00.0")
		d.Vendor = "acme"
		nvml.answer(Round{Devices: []Device{d}}, nil)
		tick()
		tick()
		expect(t, s, []*Metric{XidErrors}, "gpu_xid_errors_total{GPU-a,79} 1")
		if want := []string{"0000:1b:00.0", "GPU-a"}; !slices.Equal(news, want) {
			t.Errorf("News of %q, want %q", news, want)
		}
	})
}

type judgeFunc func(*Snapshot)

func (f judgeFunc) Judge(s *Snapshot) { f(s) }

// TestPanic: a judge that panics costs its conclusions. The others judge.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSampler(Settings{})
		s.AddJudge(judgeFunc(func(*Snapshot) { panic("a bug") }))
		judged := 0
		s.AddJudge(judgeFunc(func(*Snapshot) { judged++ }))
		s.publish(time.Now())
		s.publish(time.Now())
		snap := s.Latest()
		if judged != 2 || len(snap.Panics) != 1 || !strings.Contains(snap.Panics[0], "a bug") {
			t.Errorf("judged %d times, panics %q", judged, snap.Panics)
		}
	})
}
