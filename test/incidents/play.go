package incidents

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim"
	"github.com/accel-exporter/accel-exporter/test/stack"
)

// Play plays an incident to its end and judges what arrived. Where ctx ends
// first, the verdict reports it.
func (s *Settings) Play(ctx context.Context, i *Incident) *Verdict {
	v, err := s.play(ctx, i)
	if err != nil {
		return &Verdict{Incident: i, Err: err}
	}
	return v
}

func (s *Settings) play(ctx context.Context, i *Incident) (_ *Verdict, err error) {
	n, err := s.newNode(ctx, i)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	zero := time.Now()
	// Steps may take time themselves, as a reconfiguration does.
	var wg sync.WaitGroup
	failed := make(chan error, len(i.Timeline))
	for _, step := range i.Timeline {
		if err := sleep(ctx, time.Until(zero.Add(step.At))); err != nil {
			return nil, err
		}
		wg.Go(func() {
			if err := n.do(ctx, step); err != nil {
				failed <- fmt.Errorf("%s: %w", &step, err)
				cancel()
			}
		})
	}
	err = sleep(ctx, time.Until(zero.Add(i.Lasts)))
	over := err == nil
	var arrivals []Arrival
	silent := false
	for _, a := range n.receiver.since(zero) {
		if a.Labels["alertname"] == watchdog {
			silent = a.Resolved
			continue
		}
		a.At = max(a.At, 0) // what was wrong from the start
		arrivals = append(arrivals, a)
	}
	if over && silent {
		err = errors.New("the exporter no longer notifies Alertmanager")
	}
	cancel() // faults that last longer than the play
	wg.Wait()
	select {
	case err := <-failed:
		if !over {
			return nil, err
		}
	default:
	}
	return Judge(n.incident, arrivals, n.receiver.noticesSince(zero, pager), n.receiver.noticesSince(zero, tickets)), err
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// node is the simulated machine of a play and what runs there.
type node struct {
	settings *Settings
	incident *Incident // with its devices resolved
	dir      string
	state    string // file of the simulation
	args     []string

	receiver    *receiver
	running     []*stack.Process // but the exporter
	stopKubelet func()

	mu       sync.Mutex // a stop and a start may overlap
	exporter *stack.Process
}

// newNode starts everything and returns once the exporter has asked every
// source and an alert has come through to the webhook.
func (s *Settings) newNode(ctx context.Context, i *Incident) (*node, error) {
	// The path of a socket has room for about a hundred bytes.
	dir, err := os.MkdirTemp(s.Dir, "")
	if err != nil {
		return nil, err
	}
	n := &node{settings: s, dir: dir, state: filepath.Join(dir, "state"), stopKubelet: func() {}}
	if err := n.setUp(ctx, i); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *node) setUp(ctx context.Context, i *Incident) error {
	state, sc, err := i.compile(n.settings.Fixtures())
	if err != nil {
		return err
	}
	if n.incident, err = i.resolve(state); err != nil {
		return err
	}
	if err := state.Install(n.state); err != nil {
		return err
	}
	library := n.settings.Library
	if len(sc.Missing) > 0 {
		library = n.state + ".so"
		if err := sim.WithoutSymbols(n.settings.Library, library, sc.Missing); err != nil {
			return err
		}
	}
	has, err := sim.HasKubelet(n.state)
	if err != nil {
		return err
	}
	if has {
		serving, cancel := context.WithCancel(context.Background())
		wait, err := sim.ServeKubelet(serving, n.state)
		if err != nil {
			cancel()
			return err
		}
		n.stopKubelet = func() { cancel(); wait() }
	}
	if n.receiver, err = newReceiver(i.KubeStateMetrics); err != nil {
		return err
	}
	if n.args, err = n.arguments(library); err != nil {
		return err
	}
	shipped, err := os.ReadFile(filepath.Join(n.settings.Root, "deploy/prometheus/alertmanager.yml"))
	if err != nil {
		return err
	}
	if shipped, err = shippedConfig(shipped, n.receiver.url, n.settings.Factor); err != nil {
		return err
	}
	var alertmanagers []string
	for k, config := range [][]byte{fmt.Appendf(nil, alertmanagerConfig, n.receiver.url), shipped} {
		dir := filepath.Join(n.dir, fmt.Sprint("alertmanager", k))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		p, url, err := stack.Alertmanager(ctx, n.settings.Alertmanager, dir, "127.0.0.1:0", config)
		if err != nil {
			return err
		}
		n.running = append(n.running, p)
		alertmanagers = append(alertmanagers, url)
	}
	if i.Prometheus != "" {
		if err := n.startPrometheus(ctx, i.Prometheus == "beside", alertmanagers); err != nil {
			return err
		}
	} else {
		for _, url := range alertmanagers {
			n.args = append(n.args, "--alertmanager.url="+url)
		}
	}
	if err := n.startExporter(ctx); err != nil {
		return err
	}
	return n.receiver.await(ctx, Pattern{Alert: watchdog})
}

// prometheusConfig sets the label node, which alerts on devices need.
const prometheusConfig = `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
alerting: {alertmanagers: [{static_configs: [{targets: [%s]}]}]}
scrape_configs:
  - job_name: accelerators
    honor_labels: true
    static_configs:
      - {targets: [%q], labels: {node: ` + nodeName + `}}
`

// anotherNode is a target beside the node of the play.
const anotherNode = `      - {targets: [%q], labels: {node: n02}}
`

// nodeName is the label node of all series of the node.
const nodeName = "n01"

// startPrometheus starts a Prometheus for the exporter, which gets an address that
// outlives it, and for another node if there is one beside.
func (n *node) startPrometheus(ctx context.Context, beside bool, alertmanagers []string) error {
	var addresses []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addresses = append(addresses, l.Addr().String())
		l.Close()
	}
	n.args = override(n.args, []string{"--web.listen-address=" + addresses[0]}, n.dir)
	config := fmt.Appendf(nil, prometheusConfig, n.settings.rules,
		strings.ReplaceAll(strings.Join(alertmanagers, ","), "http://", ""), addresses[0])
	if beside {
		config = fmt.Appendf(config, anotherNode, strings.TrimPrefix(strings.TrimSuffix(n.receiver.url, "/"), "http://"))
	}
	p, err := stack.Prometheus(ctx, n.settings.Prometheus, n.dir, addresses[1], config,
		"--query.lookback-delta="+shorter(5*time.Minute, n.settings.Factor, time.Second).String())
	if err == nil {
		n.running = append(n.running, p)
	}
	return err
}

// exporterConfig has the exporter's own times that a file can change.
const exporterConfig = `sources: {nvidia: {slow_interval: %s}}
allocation: {idle: {grace: %s}}
`

func (n *node) arguments(library string) ([]string, error) {
	s := n.settings
	release := filepath.Join(n.dir, "release")
	if err := os.Mkdir(release, 0o755); err != nil {
		return nil, err
	}
	args := []string{
		"--web.listen-address=127.0.0.1:0", "--release.directory=" + release, "--log.level=debug", "--kubernetes.node=" + nodeName,
		"--rules.file=" + s.rules, "--rules.interval=" + shorter(15*time.Second, s.Factor, time.Second).String(),
		"--health.catalogue=" + s.catalogue,
	}
	config := n.incident.Config
	if config == "" {
		config = fmt.Sprintf(exporterConfig, shorter(10*time.Second, s.Factor, time.Second), shorter(time.Minute, s.Factor, time.Second))
	}
	for _, f := range []struct{ flag, name, content string }{
		{"--config.file=", "config.yml", config},
		{"--baseline.file=", "baseline.yml", n.incident.Baseline},
	} {
		if f.content == "" {
			continue
		}
		path := filepath.Join(n.dir, f.name)
		if err := os.WriteFile(path, []byte(f.content), 0o644); err != nil {
			return nil, err
		}
		args = append(args, f.flag+path)
	}
	args = append(args, sim.ExporterFlags(n.state, library)...)
	args = append(args, sim.PodFlags(n.state)...)
	args = append(args, "--podresources.interval="+shorter(10*time.Second, s.Factor, time.Second).String())
	return override(args, n.incident.Flags, n.dir), nil
}

// override appends flags, in which DIR is dir, and leaves out the args that
// they replace: most flags may be given once.
func override(args, flags []string, dir string) []string {
	for _, f := range flags {
		name, _, _ := strings.Cut(f, "=")
		args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, name+"=") })
	}
	for _, f := range flags {
		args = append(args, strings.ReplaceAll(f, "DIR", dir))
	}
	return args
}

func (n *node) startExporter(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.exporter != nil {
		return errors.New("the exporter runs already")
	}
	p, err := stack.Start(filepath.Join(n.dir, "exporter.log"), []string{"ACCEL_SIM_STATE=" + n.state}, n.settings.Exporter, n.args...)
	if err != nil {
		return err
	}
	n.exporter = p
	address, err := p.Address(ctx)
	if err != nil {
		return err
	}
	return p.Ready(ctx, "http://"+address+"/-/ready") // it has asked every source
}

func (n *node) stopExporter() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.exporter == nil {
		return nil
	}
	err := n.exporter.Stop()
	n.exporter = nil
	return err
}

// do does a step and stays until it is over.
func (n *node) do(ctx context.Context, step Step) error {
	release := filepath.Join(n.dir, "release", step.Release+step.Attach)
	switch {
	case len(step.faults()) > 1:
		return sim.Update(n.state, step.inject)
	case step.Inject != "":
		return n.simulator(ctx, append([]string{"inject"}, strings.Fields(step.Inject)...)...)
	case step.Clear != "":
		return n.simulator(ctx, "clear", step.Clear)
	case step.Exporter == "stop":
		return n.stopExporter()
	case step.Exporter == "start":
		return n.startExporter(ctx)
	case step.Release != "":
		return os.WriteFile(release, nil, 0o644)
	case step.Attach != "":
		return os.Remove(release)
	case step.Config != "":
		return n.configure(step.Config)
	}
	return nil
}

// configure replaces the configuration file, as a ConfigMap is: at once.
func (n *node) configure(content string) error {
	path := filepath.Join(n.dir, "config.yml")
	if err := os.WriteFile(path+".new", []byte(content), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// simulator runs accel-sim as a person would.
func (n *node) simulator(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, n.settings.Simulator, append([]string{"--state=" + n.state}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// close ends all that runs. The files stay for the investigation.
func (n *node) close() error {
	err := n.stopExporter()
	for _, p := range n.running {
		err = errors.Join(err, p.Stop())
	}
	if n.receiver != nil {
		err = errors.Join(err, n.receiver.server.Close())
	}
	n.stopKubelet()
	return err
}
