package ruleproc

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/peer"
)

// FuzzSession: whatever an engine says, the exporter lives on, and what it
// takes for metrics is some.
func FuzzSession(f *testing.F) {
	say := func(parts ...any) []byte {
		var b bytes.Buffer
		for i := 0; i < len(parts); i += 2 {
			if err := collector.WriteFrame(&b, parts[i].(collector.FrameKind), append(make([]byte, collector.FrameHeader), parts[i+1].([]byte)...)); err != nil {
				f.Fatal(err)
			}
		}
		return b.Bytes()
	}
	greeting, _ := json.Marshal(peer.Hello{Build: "b"})
	counter := []byte("\x2a\n\x1aaccel_rules_passes_total\x12\x04help\x18\x00\"\x06\x1a\x04\x09\x00\x00")
	f.Add([]byte("HTTP/1.1 400 Bad Request"))
	f.Add(say(frameHello, greeting, frameGather, []byte{1}, frameMetrics, counter, frameLog, []byte(`{"level":"WARN","msg":"x","n":1}`), frameAnswer, []byte(`{"id":1}`)))
	f.Add(say(frameHello, []byte("{}")))
	f.Add(say(frameGather, []byte{1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := New(Options{Build: "b", Page: func(io.Writer) error { return nil }, Log: slog.New(slog.DiscardHandler)}, Settings{})
		s := &session{p: p, out: make(chan message, maxQueue), greeted: make(chan struct{}), spare: make(chan []byte, 1), waiting: map[uint64]chan answer{}}
		if err := s.frames(bytes.NewReader(data)); err == nil {
			t.Fatal("what an engine says has no end")
		}
		p.told.gone()
		r := prometheus.NewRegistry()
		r.MustRegister(p)
		families, _ := r.Gather() // a duplicate is an error of that family alone
		if len(families) < 2 {
			t.Errorf("%d families", len(families))
		}
	})
}

// FuzzServe: whatever the exporter says, the engine ends when it is gone.
func FuzzServe(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	var b bytes.Buffer
	for _, r := range []request{{ID: 1, Op: opPing}, {ID: 2, Op: opPrepare, Part: Everything, Settings: &Settings{}}, {ID: 3, Op: opApply, Prepared: 2}, {ID: 4, Op: opReport}, {ID: 5, Op: "dance"}} {
		buf, _ := peer.Frame(r)
		collector.WriteFrame(&b, frameRequest, buf)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		Serve(bytes.NewReader(data), io.Discard, "b", func(*Parent) Engine { return idle{} })
	})
}
