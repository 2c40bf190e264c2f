package collector

import (
	"bytes"
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

// Encoding and decoding of a round whose series do not change.
func BenchmarkRound(b *testing.B) {
	for name, r := range map[string]Round{"8x80": gpus(8, 80), "16x7x60": mig(16, 7, 60)} {
		b.Run(name, func(b *testing.B) {
			var pipe bytes.Buffer
			w, frames := newFrameWriter(&pipe), newFrameReader(&pipe)
			var enc roundEncoder
			var dec roundDecoder
			size := 0
			b.ReportAllocs()
			for b.Loop() {
				if err := w.write(&message{Round: enc.encode(1, &r, nil)}); err != nil {
					b.Fatal(err)
				}
				size = pipe.Len()
				var m message
				if err := frames.read(&m); err != nil {
					b.Fatal(err)
				}
				if _, _, err := dec.decode(m.Round); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size), "bytes/round")
		})
	}
}

// One round accepted and one Snapshot built.
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
