package traceproc

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/peer"
)

// programVariable has the test binary be a program that behaves so.
const programVariable = "ACCEL_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if behaviour := os.Getenv(programVariable); behaviour != "" {
		os.Exit(behave(behaviour))
	}
	goleak.VerifyTestMain(m)
}

func behave(behaviour string) int {
	answers := os.NewFile(3, "answers")
	switch behaviour {
	case "good", "stranger":
		build := peer.Build()
		if behaviour == "stranger" {
			build = "another"
		}
		if err := Serve(os.Stdin, answers, build, func(Settings, io.Writer) (Sender, error) { return taker{}, nil }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case "crash":
		fmt.Fprintln(os.Stderr, "panic: out of ideas")
		return 2
	case "garbage":
		fmt.Fprint(answers, "HTTP/1.1 400 Bad Request\r\n\r\n")
	case "liar", "silent":
		hello, _ := peer.Frame(peer.Hello{Build: peer.Build()})
		collector.WriteFrame(answers, frameHello, hello)
		if behaviour == "silent" {
			break
		}
		var s Settings
		var b batch
		expect(os.Stdin, frameSettings, nil, &s)
		expect(os.Stdin, frameBatch, nil, &b)
		lie, _ := peer.Frame(answer{b.ID, Outcome{Sent: len(b.Spans) + 1}})
		collector.WriteFrame(answers, frameAnswer, lie)
	}
	io.Copy(io.Discard, os.Stdin) // until the parent has had enough
	return 0
}

// taker takes all.
type taker struct{}

func (taker) Send(spans []Span) Outcome { return Outcome{Sent: len(spans)} }
func (taker) Close()                    {}
