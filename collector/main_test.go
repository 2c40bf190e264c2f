package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// behaviourEnv makes this test binary a worker, or the parent of a worker. Its
// value is a key of behaviours and, after a colon, an argument.
const behaviourEnv = "COLLECTOR_TEST_BEHAVIOUR"

func TestMain(m *testing.M) {
	if b := os.Getenv(behaviourEnv); b != "" {
		name, arg, _ := strings.Cut(b, ":")
		behaviours[name](arg)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// testCommand returns a command that runs this test binary with the behaviour.
func testCommand(behaviour string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	// The race detector would have a worker sleep before it exits.
	cmd.Env = append(os.Environ(), behaviourEnv+"="+behaviour, "GORACE=atexit_sleep_ms=0")
	return cmd
}

var behaviours map[string]func(arg string)

func init() {
	behaviours = map[string]func(string){
		"good": func(string) { work(counting()) },
		// Each Sample returns the named sentinel error.
		"error": func(arg string) {
			work(func(context.Context) (Round, error) { return Round{}, fmt.Errorf("sample: %w", sentinels[arg]) })
		},
		// The dynamic linker reports a symbol that the library lacks.
		"linker": func(string) {
			fmt.Fprintln(os.Stderr, "accel-exporter: symbol lookup error: accel-exporter: undefined symbol: nvmlDeviceGetFoo")
			os.Exit(127)
		},
		// The call ends the process by the named signal.
		"signal": func(arg string) {
			work(func(context.Context) (Round, error) {
				return Round{}, syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -" + arg + " $$"}, nil)
			})
		},
		// The call causes a fault that the Go runtime reports.
		"report": func(string) {
			work(func(context.Context) (Round, error) {
				syscall.Kill(os.Getpid(), syscall.SIGSEGV)
				select {}
			})
		},
		"exit": func(string) { work(func(context.Context) (Round, error) { os.Exit(3); return Round{}, nil }) },
		// Invalid or unexpected data on the pipe.
		"garbage":     func(string) { raw([]byte("NVRM: loading\n")) },
		"other-build": func(string) { raw(frames(greeting(1))) },
		"bad-round": func(string) {
			raw(frames(greeting(0), &message{Round: &roundMessage{Seq: 1, Values: []float64{1}}}))
		},
		"unasked": func(string) {
			raw(frames(greeting(0), &message{Round: new(roundEncoder).encode(7, &Round{}, nil)}))
		},
		"silent": func(string) { raw(frames(greeting(0))) },
		// The call never returns.
		"hang": func(string) {
			work(func(context.Context) (Round, error) {
				fmt.Println(os.Getpid())
				select {}
			})
		},
		// Each Sample returns at its deadline with no data.
		"empty": func(string) {
			work(func(ctx context.Context) (Round, error) { <-ctx.Done(); return Round{}, ctx.Err() })
		},
		// No device of a list answers, or the last one does.
		"stuck": func(arg string) {
			work(func(context.Context) (Round, error) {
				return Round{Devices: []Device{{ID: "a", Down: ReasonStuck}, {ID: "b", Down: arg}}}, context.DeadlineExceeded
			})
		},
		// The first call returns on SIGUSR2, after its deadline.
		"late": func(string) {
			usr2 := make(chan os.Signal, 1)
			signal.Notify(usr2, syscall.SIGUSR2)
			sample := counting()
			first := true
			work(func(ctx context.Context) (Round, error) {
				if first {
					first = false
					fmt.Println(os.Getpid())
					<-usr2
				}
				return sample(ctx)
			})
		},
		// The worker does not end when its stdin is closed.
		"deaf": func(string) {
			Serve(endless{os.Stdin}, os.NewFile(3, "rounds"), &fakeSource{name: "w", sample: counting()}, nil)
		},
		// A process that starts a worker.
		"parent": func(arg string) {
			p := NewProcess("w", func() *exec.Cmd {
				cmd := testCommand(arg)
				cmd.Stdout = os.Stdout
				return cmd
			}, func(Event) {})
			p.Sample(context.Background())
			select {}
		},
	}
}

var sentinels = map[string]error{
	"absent": ErrAbsent, "restart": ErrRestart, "driver": ErrDriver, "mismatch": ErrMismatch, "other": errors.New("no luck"),
}

// work is the main of a well-behaved worker named w.
func work(sample func(context.Context) (Round, error)) {
	in, out := WorkerIO()
	if err := Serve(in, out, &fakeSource{name: "w", sample: sample}, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// counting returns a sample function whose nth round has one GPU with an energy of
// n and one call error.
func counting() func(context.Context) (Round, error) {
	n := 0
	return func(context.Context) (Round, error) {
		if n++; n == 1 {
			fmt.Println(os.Getpid())
		}
		d := Device{ID: "GPU-a", Class: GPU, Vendor: "nvidia", Sampled: time.Now()}
		d.Set(EnergyJoules, float64(n))
		return Round{Devices: []Device{d}, Calls: []CallError{{"nvmlFoo", "not_found", 1}}}, nil
	}
}

// raw writes b to the parent and waits for the end of its input.
func raw(b []byte) {
	in, out := WorkerIO()
	out.Write(b)
	io.Copy(io.Discard, in)
}

// frames returns the encoded frames of values.
func frames(values ...any) []byte {
	var b bytes.Buffer
	w := newFrameWriter(&b)
	for _, v := range values {
		if err := w.write(v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

// greeting is the first message of the worker w. If other is not 0, its metric
// table differs from this one.
func greeting(other uint64) *message {
	return &message{Hello: &hello{"w", fingerprint() + other}}
}

// endless is a reader that never ends.
type endless struct{ io.Reader }

func (e endless) Read(b []byte) (int, error) {
	n, err := e.Reader.Read(b)
	if err == io.EOF {
		select {}
	}
	return n, err
}
