package ruleproc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// idle is an Engine that does nothing.
type idle struct{}

func (idle) Prepare(*Settings, Part) (func(), int, error) { return func() {}, 1, nil }
func (idle) Report(context.Context, bool) ([]byte, error) { return []byte("{}"), nil }
func (idle) Ping()                                        {}
func (idle) Trigger()                                     {}

// TestPage: a page is that which was asked for, or there is none.
func TestPage(t *testing.T) {
	in, toEngine, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromEngine, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var parent *Parent
	opened := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(in, out, "b", func(p *Parent) Engine { parent = p; close(opened); return idle{} })
	}()
	<-opened
	next := func() (collector.FrameKind, []byte) {
		t.Helper()
		kind, payload, err := collector.ReadFrame(fromEngine, nil)
		if err != nil {
			t.Fatal(err)
		}
		return kind, payload
	}
	if kind, payload := next(); kind != frameHello || !bytes.Contains(payload, []byte(`"b"`)) {
		t.Fatalf("the first word is %d %q", kind, payload)
	}
	send := func(kind collector.FrameKind, payload string) {
		collector.WriteFrame(toEngine, kind, append(make([]byte, collector.FrameHeader), payload...))
	}
	type got struct {
		text []byte
		err  error
	}
	ask := func(ctx context.Context) <-chan got {
		answers := make(chan got, 1)
		go func() {
			text, err := parent.Page(ctx)
			answers <- got{text, err}
		}()
		if kind, _ := next(); kind != frameGather {
			t.Fatalf("asked with %d", kind)
		}
		return answers
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := ask(ctx)
	cancel()
	if g := <-first; !errors.Is(g.err, context.Canceled) {
		t.Errorf("a page that did not come: %q, %v", g.text, g.err)
	}
	second := ask(t.Context())
	send(framePage, "\x01\nlate 1\n")
	send(framePage, "\x02half of it; is missing\nup 1\n")
	if g := <-second; string(g.text) != "up 1\n" || g.err == nil || !strings.Contains(g.err.Error(), "missing") {
		t.Errorf("page: %q, %v", g.text, g.err)
	}
	toEngine.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the engine outlives the exporter")
	}
	for _, f := range []io.Closer{in, out, fromEngine} {
		f.Close()
	}
}
