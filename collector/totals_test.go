package collector

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// linked is a GPU with two NVLinks, with CRC errors and received bytes by link.
// -1 CRC errors means that the counter cannot be read.
func linked(crc, bytes [2]float64) Device {
	d := Device{ID: "GPU-a", Class: GPU, Vendor: "nvidia", Sampled: time.Now()}
	for i, link := range []string{"0", "1"} {
		if crc[i] >= 0 {
			d.Set(NVLinkErrors, crc[i], link, "crc")
			d.Set(NVLinkErrors, 7, link, "replay")
		}
		d.Set(NVLinkReceive, bytes[i], link)
	}
	return d
}

// TestTotals: the totals of a GPU add the increases of its links. They continue
// when a link counter restarts or cannot be read, and when the GPU or its source
// fails.
func TestTotals(t *testing.T) {
	families := []*Metric{GPUNVLinkErrors, GPUNVLinkReceive, GPUNVLinkTransmit}
	type step struct {
		name    string
		devices []Device
		err     error
		want    []string
	}
	synctest.Test(t, func(t *testing.T) {
		at := func(crc, bytes [2]float64) []Device { return []Device{linked(crc, bytes)} }
		none := []string{"gpu_nvlink_errors_total{GPU-a,crc} 0", "gpu_nvlink_errors_total{GPU-a,replay} 0", "gpu_nvlink_receive_bytes_total{GPU-a} 0"}
		total := func(crc, bytes string) []string {
			return []string{"gpu_nvlink_errors_total{GPU-a,crc} " + crc, none[1], "gpu_nvlink_receive_bytes_total{GPU-a} " + bytes}
		}
		src := &fakeSource{name: "nvidia"}
		src.answer(Round{Devices: at([2]float64{1000, 500}, [2]float64{100, 100})}, nil)
		s := start(t, Settings{Interval: time.Second}, src)
		synctest.Wait()
		expect(t, s, families, none...)
		for _, c := range []step{
			{"increases of both links", at([2]float64{1001, 502}, [2]float64{110, 120}), nil, total("3", "30")},
			{"one link was reset, and has counted two errors since", at([2]float64{2, 502}, [2]float64{110, 120}), nil, total("5", "30")},
			{"the other link cannot be read", at([2]float64{2, -1}, [2]float64{110, 120}), nil, total("5", "30")},
			{"the other link can be read again", at([2]float64{2, 510}, [2]float64{110, 120}), nil, total("13", "30")},
			{"the GPU does not answer", []Device{down("GPU-a", ReasonLost)}, nil, total("13", "30")},
			{"the source does not answer", nil, errors.New("no luck"), total("13", "30")},
			{"GPU and source answer again", at([2]float64{3, 510}, [2]float64{110, 121}), nil, total("14", "31")},
			{"the driver was reloaded", at([2]float64{0, 1}, [2]float64{0, 0}), nil, total("15", "31")},
		} {
			src.answer(Round{Devices: c.devices}, c.err)
			tick()
			t.Log(c.name)
			expect(t, s, families, c.want...)
		}
	})
}

// TestRateTotals: a rate is summed over the time between samples. The sum continues
// after a gap and after a restart of the source, whose first sample has no rate.
func TestRateTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{name: "nvidia"}
		answer := func(rate float64, err error) {
			src.do(func(context.Context) (Round, error) {
				d := Device{ID: "GPU-a", Class: GPU, Vendor: "nvidia", Sampled: time.Now()}
				if rate >= 0 {
					d.Set(PCIeTransmitRate, rate)
				}
				if err != nil {
					return Round{}, err
				}
				return Round{Devices: []Device{d}}, nil
			})
		}
		answer(-1, nil)
		s := start(t, Settings{Interval: time.Second}, src)
		synctest.Wait()
		for _, c := range []struct {
			name  string
			rate  float64
			err   error
			total string
		}{
			{"a second at 100", 100, nil, "100"},
			{"a second at 50", 50, nil, "150"},
			{"the source does not answer", 0, errors.New("no luck"), "150"},
			{"the first sample of a new worker", -1, nil, "150"},
			{"a second at 7", 7, nil, "157"},
		} {
			answer(c.rate, c.err)
			tick()
			t.Log(c.name)
			expect(t, s, []*Metric{PCIeTransmit}, "pcie_transmit_bytes_total{GPU-a} "+c.total)
		}
	})
}
