package collector

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestRecall: a device that does not answer has the identity that an earlier
// process knew, and is one device with what the bus shows.
func TestRecall(t *testing.T) {
	const a, b = "0000:1b:00.0", "0000:2c:00.0"
	gpu := Device{ID: "GPU-a", Class: GPU, Vendor: "nvidia", Model: "H100", PCI: a, KubeIDs: []string{"GPU-a", "nvidia1"}}
	gpu.Set(DeviceInfo, 1, "gpu", "nvidia", "H100", "hopper", "1", a, "0", "165", "692", "")
	part := Device{ID: "MIG-a", Parent: "GPU-a", Class: GPU, Vendor: "nvidia"}
	unread := Device{ID: a, Passing: true, Class: GPU, Vendor: "nvidia", PCI: a, KubeIDs: []string{"1"}, Down: ReasonLost}
	unread.Set(DeviceInfo, 1, "gpu", "nvidia", "", "", "1", a, "", "", "", "")
	named := onBus(a, "nvidia")
	named.ID, named.Model, named.KubeIDs = "GPU-a", "H100", []string{"GPU-a", "nvidia1"}
	const (
		whole = "device_info{GPU-a,gpu,nvidia,H100,hopper,1," + a + ",0,165,692,} 1"
		other = "device_info{" + a + ",gpu,nvidia,,,1," + a + ",,,,} 1"
	)
	for name, c := range map[string]struct {
		recall  []Device
		nvml    []Device
		nvmlErr error
		bus     []Device
		want    []string
	}{
		"not known from before": {nil, []Device{unread}, nil, []Device{onBus(a, "nvidia")}, []string{other, "device_up{" + a + ",lost} 0"}},
		"known to its driver":   {nil, []Device{unread}, nil, []Device{named}, []string{"device_info{GPU-a,gpu,nvidia,,,1," + a + ",,,,} 1", "device_up{GPU-a,lost} 0"}},
		"in NVML":               {[]Device{gpu}, []Device{unread}, nil, []Device{onBus(a, "nvidia")}, []string{whole, "device_up{GPU-a,lost} 0"}},
		"not in NVML":           {[]Device{gpu}, nil, nil, []Device{onBus(a, "nvidia")}, []string{whole, "device_up{GPU-a,missing} 0"}},
		"in a virtual machine":  {[]Device{gpu, part}, nil, nil, []Device{onBus(a, "vfio-pci")}, []string{whole}},
		"nowhere":               {[]Device{gpu}, nil, nil, nil, []string{whole, "device_up{GPU-a,missing} 0"}},
		"NVML fails":            {[]Device{gpu}, nil, ErrDriver, []Device{onBus(a, "nvidia")}, []string{whole}},
		"no driver":             {[]Device{gpu}, nil, ErrAbsent, nil, nil},
		"partition":             {[]Device{gpu, part}, []Device{unread}, nil, nil, []string{whole, "device_up{GPU-a,lost} 0", "device_up{MIG-a,lost} 0"}},
		"answers":               {[]Device{gpu, part}, []Device{nvGPU("GPU-a", a)}, nil, nil, []string{"device_up{GPU-a,} 1"}},
		"replaced":              {[]Device{gpu}, []Device{nvGPU("GPU-b", a)}, nil, nil, []string{"device_up{GPU-b,} 1"}},
		"moved":                 {[]Device{gpu}, []Device{nvGPU("GPU-a", b)}, nil, nil, []string{"device_up{GPU-a,} 1"}},
		"longer ago":            {[]Device{gpu}, []Device{nvGPU("GPU-b", b)}, nil, nil, []string{"device_up{GPU-b,} 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recall := slices.Clone(c.recall)
				for i := range recall {
					if recall[i].Sampled = time.Now().Add(-time.Minute); name == "longer ago" {
						recall[i].Sampled = time.Now().Add(-DefaultSettings().ForgetAfter)
					}
				}
				nvml, bus := newFake("nvidia", c.nvml...), newFake("pcie", c.bus...)
				nvml.answer(Round{Devices: c.nvml}, c.nvmlErr)
				s := NewSampler(DefaultSettings())
				s.Add(nvml, Cover{Class: GPU, Vendor: "nvidia"})
				s.Add(bus, Cover{Class: GPU, Bus: true})
				s.Recall(recall...)
				run(t, s)
				tick()
				tick()
				expect(t, s, []*Metric{DeviceInfo, DeviceUp}, c.want...)
			})
		})
	}
}

// TestReservedName: a device that is passed through has the name by which the device
// plugin then knows it, beside its names of before.
func TestReservedName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const a = "0000:1b:00.0"
		gpu := nvGPU("GPU-a", a)
		gpu.KubeIDs = []string{"GPU-a", "nvidia1"}
		passed := onBus(a, "vfio-pci")
		passed.KubeIDs = []string{"/dev/vfio/65"}
		nvml, bus := newFake("nvidia", gpu), newFake("pcie", onBus(a, "nvidia"))
		s := driverAndBus(t, nvml, bus)
		nvml.answer(Round{}, nil)
		bus.answer(Round{Devices: []Device{passed}}, nil)
		tick()
		devices := s.Latest().Devices
		if want := []string{"GPU-a", "nvidia1", "/dev/vfio/65"}; len(devices) != 1 || !slices.Equal(devices[0].KubeIDs, want) {
			t.Errorf("%+v, want the names %q", devices, want)
		}
	})
}
