package collector

import (
	"fmt"
	"testing"
	"time"
)

// mig is a round of n GPUs with k instances each of r readings.
func mig(n, k, r int) Round {
	out := gpus(n, r)
	for i := range n {
		for j := range k {
			d := out.Devices[i]
			d.Parent, d.ID = d.ID, fmt.Sprintf("MIG-%d-%d", i, j)
			out.Devices = append(out.Devices, d)
		}
	}
	return out
}

// A steady round on its way from worker to Sampler.
func BenchmarkRound(b *testing.B) {
	for name, r := range map[string]Round{"8x80": gpus(8, 80), "16x7x60": mig(16, 7, 60)} {
		b.Run(name, func(b *testing.B) {
			var enc roundEncoder
			var dec roundDecoder
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = enc.encode(buf[:0], 1, &r, nil)
				if _, _, _, err := dec.decode(buf); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(buf)), "bytes/round")
		})
	}
}

// A round taken in and a Snapshot made of it.
func BenchmarkPublish(b *testing.B) {
	for name, r := range map[string]Round{"8x80": gpus(8, 80), "16x7x60": mig(16, 7, 60)} {
		b.Run(name, func(b *testing.B) {
			s := NewSampler(DefaultSettings())
			s.Add(newFake("s"))
			now := time.Now()
			b.ReportAllocs()
			for b.Loop() {
				s.sources[0].returned(now, outcome{round: r}, &s.settings)
				s.publish(now)
			}
		})
	}
}
