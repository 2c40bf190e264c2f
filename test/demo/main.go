// Command demo shows the exporter at work: a simulated node, the exporter with
// its own rules, a real Prometheus and Alertmanager, and Grafana where it is
// installed, all on loopback. After a while a GPU falls off the bus. Run it
// from the root of the repository by make demo.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/test/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	d := &demo{out: stdout}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&d.scenario, "scenario", "h100-8", "the simulated node")
	flags.StringVar(&d.exporter, "exporter", "127.0.0.1:19400", "address of the exporter")
	flags.StringVar(&d.prometheus, "prometheus", "127.0.0.1:9090", "address of Prometheus")
	flags.StringVar(&d.alertmanager, "alertmanager", "127.0.0.1:9093", "address of Alertmanager")
	flags.StringVar(&d.grafana, "grafana", "127.0.0.1:3000", "address of Grafana")
	flags.DurationVar(&d.after, "after", time.Minute, "how long all is well")
	flags.StringVar(&d.only, "only", "", "start only this program and no fault, as Alertmanager")
	flags.BoolVar(&d.once, "once", false, "end when the alert has arrived, instead of going on until Ctrl-C")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || d.after < 0 {
		return errors.New("no arguments are accepted, and no negative time")
	}
	var err error
	if d.root, err = filepath.Abs("."); err != nil {
		return err
	}
	if d.dir, err = os.MkdirTemp("", "demo"); err != nil {
		return err
	}
	defer os.RemoveAll(d.dir)
	defer d.end()
	if err := d.start(ctx); err != nil {
		return err
	}
	if d.only != "" {
		return d.wait(ctx, nil)
	}
	return d.play(ctx)
}

// demo is a running stack.
type demo struct {
	out                                         io.Writer
	scenario                                    string
	exporter, prometheus, alertmanager, grafana string
	only                                        string
	after                                       time.Duration
	once                                        bool
	root, dir                                   string
	running                                     []*stack.Process
}

// end stops what runs, the last one first.
func (d *demo) end() {
	for i := len(d.running) - 1; i >= 0; i-- {
		d.running[i].Stop()
	}
}

func (d *demo) print(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// broken is the GPU that falls off the bus, by index.
const broken = "2"

// play breaks a GPU and prints what follows.
func (d *demo) play(ctx context.Context) error {
	d.print("\nAll GPUs are healthy. In %s GPU %s falls off the bus; Ctrl-C ends everything.", d.after, broken)
	if err := d.wait(ctx, time.After(d.after)); err != nil {
		return err
	}
	began := time.Now()
	if err := d.inject(ctx, "lost "+broken); err != nil {
		return err
	}
	d.print("\n%s  GPU %s fell off the bus.", began.Format(time.TimeOnly), broken)
	a, err := d.firstAlert(ctx)
	if err != nil {
		return err
	}
	d.print("%s  %s is in Alertmanager: %s", time.Now().Format(time.TimeOnly), a.Labels["alertname"], a.Annotations["summary"])
	d.print("\nLook at")
	d.print("  bin/accel-exporter alerts            the alert on the node: the affected pod, and what to do")
	d.print("  bin/accel-exporter who               the other pods and their devices are not affected")
	d.print("  http://%-30sthe same rules in Prometheus, after the next scrape", d.prometheus+"/alerts")
	d.print("  .cache/alertmanager/usr/bin/amtool alert query --alertmanager.url=http://%s", d.alertmanager)
	d.print("To repair it and resolve the alert:")
	d.print("  bin/accel-sim --state=%s clear", d.state())
	if d.once {
		return nil
	}
	return d.wait(ctx, nil)
}

// wait waits for c or the end, which may come from a program of the stack.
func (d *demo) wait(ctx context.Context, c <-chan time.Time) error {
	ended := make(chan *stack.Process, len(d.running))
	for _, p := range d.running {
		go func() { <-p.Ended(); ended <- p }()
	}
	select {
	case <-c:
		return nil
	case p := <-ended:
		return fmt.Errorf("a program has ended, and left this behind:\n%s", tail(p.Log()))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tail is the end of a file.
func tail(file string) []byte {
	data, err := os.ReadFile(file)
	if err != nil {
		return []byte(err.Error())
	}
	return data[max(0, len(data)-2000):]
}

func (d *demo) state() string { return filepath.Join(d.dir, "state") }

func (d *demo) inject(ctx context.Context, fault string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", `exec bin/accel-sim inject --state="$0" `+fault, d.state())
	cmd.Dir = d.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("inject %s: %w: %s", fault, err, out)
	}
	return nil
}

type alert struct {
	Labels, Annotations map[string]string
}

// firstAlert waits for a critical alert in Alertmanager.
func (d *demo) firstAlert(ctx context.Context) (*alert, error) {
	ctx, cancel := context.WithTimeout(ctx, stack.Patience)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond) // Alertmanager notifies only receivers
	defer again.Stop()
	for {
		found, err := d.alerts(ctx)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			return &found[0], nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("no alert has come: %w", ctx.Err())
		}
	}
}

func (d *demo) alerts(ctx context.Context) ([]alert, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.alertmanager+"/api/v2/alerts?filter=severity%3Dcritical", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var found []alert
	return found, json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&found)
}
