//go:build linux && cgo

package dcgm

import (
	"testing"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
)

// benchFields are 60 fields of numbers.
var benchFields = func() []uint16 {
	var list []uint16
	for _, f := range dcgmfield.All() {
		if f.Entity == dcgmfield.GPU && f.Type == dcgmfield.Int64 && f.ID >= 100 && len(list) < 60 {
			list = append(list, f.ID)
		}
	}
	return list
}()

// reading is a benchmark of 8 GPUs with 60 fields each.
func reading(b *testing.B, read func(s *sampling, w *watch)) {
	inChild(b, setting{scenario: "h100-8"}, func(s *sampling) {
		s.Round()
		e := s.source.engine
		w, c := e.arm(e.there.gpus, benchFields, e.options.WatchInterval)
		if c != ok {
			s.Fatal(c)
		}
		b.ReportAllocs()
		for b.Loop() {
			read(s, w)
		}
		e.disarm(w)
	})
}

// BenchmarkReadShim is the read that a round makes.
func BenchmarkReadShim(b *testing.B) {
	reading(b, func(s *sampling, w *watch) {
		n := 0
		if c := s.source.engine.read(w, func(*record) { n++ }); c != ok || n != len(w.entities)*len(w.fields) {
			s.Fatalf("%s, %d values", c, n)
		}
	})
}

// BenchmarkReadGoDCGM is the same by go-dcgm.
func BenchmarkReadGoDCGM(b *testing.B) {
	reading(b, func(s *sampling, w *watch) {
		pairs := make([]dcgm.GroupEntityPair, len(w.entities))
		for i, x := range w.entities {
			pairs[i] = dcgm.GroupEntityPair{EntityGroupId: dcgm.Field_Entity_Group(x.group), EntityId: uint(x.id)}
		}
		values, err := dcgm.EntitiesGetLatestValues(pairs, shorts(w.fields), 0)
		if err != nil || len(values) != len(w.entities)*len(w.fields) {
			s.Fatalf("%v, %d values", err, len(values))
		}
	})
}
