package ruleproc_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/ruleapp"
	"github.com/accel-exporter/accel-exporter/internal/ruleproc"
)

// engineVariable has the test binary be an engine, a good one or not.
const engineVariable = "ACCEL_TEST_ENGINE"

func TestMain(m *testing.M) {
	if behaviour := os.Getenv(engineVariable); behaviour != "" {
		os.Exit(behave(behaviour))
	}
	goleak.VerifyTestMain(m)
}

func behave(behaviour string) int {
	if behaviour == "good" {
		return ruleapp.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	answers := os.NewFile(3, "answers")
	switch behaviour {
	case "crash":
		fmt.Fprintln(os.Stderr, "panic: out of ideas")
		return 2
	case "killed":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "garbage":
		fmt.Fprint(answers, "HTTP/1.1 400 Bad Request\r\n\r\n")
	case "no greeting":
		collector.WriteFrame(answers, 99, make([]byte, collector.FrameHeader))
	case "silent":
	case "parent":
		p := ruleproc.New(ruleproc.Options{
			Command: func() *exec.Cmd {
				cmd := command("good")
				cmd.Stdout = os.Stdout // held for as long as it lives
				return cmd
			},
			Build: ruleproc.Build(), Page: func(io.Writer) error { return nil }, Log: slog.New(slog.DiscardHandler),
		}, settings())
		if _, err := p.Start(context.Background()); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("started")
		p.Run(context.Background())
	default:
		fmt.Fprintln(os.Stderr, "no such behaviour:", behaviour)
		return 3
	}
	io.Copy(io.Discard, os.Stdin) // until the parent has had enough
	return 0
}

// command is one of an engine that behaves so.
func command(behaviour string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "serve")
	cmd.Env = append(os.Environ(), engineVariable+"="+strings.TrimSpace(behaviour))
	return cmd
}
