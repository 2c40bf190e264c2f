package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/ruleproc"
	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// alertFlags is the command line of the rules that are evaluated here.
type alertFlags struct {
	files       []string
	program     string
	interval    time.Duration
	labels      map[string]string
	externalURL string
	urls        []string
}

func (f *alertFlags) add(app *kingpin.Application) {
	f.labels = map[string]string{}
	app.Flag("rules.file", "Rule files to evaluate on this node, a path or a pattern; repeatable. By default the built-in ones, where --alertmanager.url is given, and none where it is not. Read again like the configuration file.").PlaceHolder("GLOB").StringsVar(&f.files)
	app.Flag("rules.program", "The program that evaluates them, accel-rules. By default the one beside this executable.").PlaceHolder("PATH").StringVar(&f.program)
	app.Flag("rules.interval", "Time between two evaluations of the rules; after an event they are evaluated at once.").Default("15s").DurationVar(&f.interval)
	app.Flag("rules.target-label", "Label that a scrape of this exporter gives its series, so that alerts from here and from Prometheus are the same; repeatable. By default job=accel-exporter and instance=NODE:PORT.").PlaceHolder("NAME=VALUE").StringMapVar(&f.labels)
	app.Flag("web.external-url", "Where people reach this exporter, for links in alerts. By default http://NODE:PORT.").PlaceHolder("URL").StringVar(&f.externalURL)
	app.Flag("alertmanager.url", "Alertmanager to tell of alerts, as http://HOST:9093; repeatable. Further ones, and how to log in, are in the configuration file.").PlaceHolder("URL").StringsVar(&f.urls)
}

func (f *alertFlags) check() error {
	if f.interval < time.Second || f.interval > time.Hour {
		return fmt.Errorf("--rules.interval is %s; 1s to 1h is accepted", f.interval)
	}
	return nil
}

// alerts is the rule engine, in a process of its own.
type alerts struct {
	*ruleproc.Process
	input *input // the rule files; nil for those that are built in
}

// openAlerts returns nil where no rules are to be evaluated. config is the
// configuration file, without a name where there is none.
func openAlerts(ctx context.Context, f *flags, cfg *config.Config, config strict.Content, page func(io.Writer) error, log *slog.Logger) (*alerts, error) {
	if len(f.alerts.files) == 0 && len(f.alerts.urls) == 0 && !cfg.Alertmanager.Given {
		return nil, nil
	}
	files, unread := readRules(f.alerts.files)
	target := targetLabels(f)
	a := &alerts{Process: ruleproc.New(ruleOptions(f, page, log), ruleproc.Settings{
		Rules: files, Config: config, URLs: f.alerts.urls, Interval: f.alerts.interval, Labels: target,
		ExternalURL: cmp.Or(strings.TrimSuffix(f.alerts.externalURL, "/"), "http://"+target["instance"]),
	})}
	endpoints, err := a.Start(ctx)
	refused := (*ruleproc.Refusal)(nil)
	switch {
	case unread != nil, errors.As(err, &refused):
		a.Close()
		return nil, strict.Join(unread, err)
	case err != nil:
		log.Error("Rule engine does not start and is tried again", "err", err)
	case len(f.alerts.files) == 0 && endpoints == 0:
		a.Close()
		return nil, nil
	}
	if len(f.alerts.files) > 0 {
		a.input = rulesInput(f.alerts.files, a.Process)
	}
	return a, nil
}

// ruleOptions say how the engine is run.
func ruleOptions(f *flags, page func(io.Writer) error, log *slog.Logger) ruleproc.Options {
	program := rulesProgram(f.alerts.program)
	return ruleproc.Options{
		Command: func() *exec.Cmd {
			cmd := exec.Command(program, "serve")
			cmd.Stderr = &lineLogger{log: log.With("process", "accel-rules")}
			return cmd
		},
		Build: ruleproc.Build(), Page: page, Log: log,
	}
}

// rulesProgram returns where accel-rules is.
func rulesProgram(flag string) string { return besides(flag, "accel-rules") }

// besides returns where a program is, by its flag or beside this executable.
func besides(flag, name string) string {
	if flag != "" {
		return flag
	}
	self, err := os.Executable()
	if err != nil {
		return name // without procfs, from the PATH
	}
	return filepath.Join(filepath.Dir(self), name)
}

// readRules reads the files that patterns stand for. The error is of those
// that cannot be read.
func readRules(patterns []string) ([]strict.Content, error) {
	paths, err := strict.Glob(patterns)
	files, unread := strict.ReadFiles(paths)
	return files, errors.Join(err, unread)
}

// checkRules has a fresh engine check settings.
func checkRules(f *flags, s ruleproc.Settings, log *slog.Logger) error {
	s.Interval = f.alerts.interval
	_, err := ruleproc.Check(context.Background(), ruleOptions(f, nil, log), s)
	return err
}

// checkAlertmanager has a fresh engine check the section alertmanager, where
// the file has one, and the addresses on the command line.
func checkAlertmanager(f *flags, cfg *config.Config, content strict.Content, log *slog.Logger) error {
	given := bytes.Contains(content.Data, []byte("alertmanager"))
	if cfg != nil { // else the file has mistakes, and may have some there
		given = cfg.Alertmanager.Given
	}
	if !given && len(f.alerts.urls) == 0 {
		return nil
	}
	return checkRules(f, ruleproc.Settings{Config: content, URLs: f.alerts.urls}, log)
}

// targetLabels are those that a scrape would give.
func targetLabels(f *flags) map[string]string {
	node := f.pods.nodeOrHost() // "" makes an instance of the port alone
	port := strings.TrimPrefix(defaultAddress, ":")
	if a := *f.web.WebListenAddresses; len(a) > 0 {
		if _, p, err := net.SplitHostPort(a[0]); err == nil {
			port = p
		}
	}
	labels := map[string]string{"job": "accel-exporter", "instance": net.JoinHostPort(node, port)}
	if f.pods.node != "" {
		labels["node"] = f.pods.node
	}
	maps.Copy(labels, f.alerts.labels)
	return labels
}

// follow has rules evaluated until ctx is done. What is queued by then is still sent.
func (a *alerts) follow(ctx context.Context, s *collector.Sampler) {
	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() { a.Run(ctx) })
	seen := map[string]standing{}
	for {
		next := s.Next()
		if snap := s.Latest(); snap != nil && turned(seen, snap) {
			a.Trigger()
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// standing is how a device stands, as far as that cannot wait for a tick.
type standing struct{ down, health, reasons string }

// codes are those of the reasons. Healthy devices have none, and most of the
// others one.
func codes(reasons []collector.Reason) (all string) {
	for i := range reasons {
		if all != "" {
			all += " "
		}
		all += reasons[i].Code
	}
	return all
}

// turned reports whether a Snapshot has an event, or a device that stands
// otherwise than in the one before.
func turned(seen map[string]standing, snap *collector.Snapshot) bool {
	due := len(snap.News) > 0
	for i := range snap.Devices {
		d := &snap.Devices[i]
		now := standing{down: d.Down}
		if d.Verdict != nil {
			now.health, now.reasons = d.Verdict.State, codes(d.Verdict.Reasons)
		}
		if was, known := seen[d.ID]; !known || was != now {
			due, seen[d.ID] = true, now
		}
	}
	if len(seen) > len(snap.Devices) {
		present := make(map[string]bool, len(snap.Devices))
		for i := range snap.Devices {
			present[snap.Devices[i].ID] = true
		}
		maps.DeleteFunc(seen, func(id string, _ standing) bool { return !present[id] })
		due = true
	}
	return due
}

// rulesInput are rule files as an input.
func rulesInput(patterns []string, engine *ruleproc.Process) *input {
	known := fingerprint(patterns)
	pending := known
	return &input{
		path: strings.Join(patterns, ", "),
		// A change is told by the second look that finds the files in the same
		// state: one that is just being written is left alone.
		changed: func() (bool, error) {
			now := fingerprint(patterns)
			changed := now == pending && now != known
			if pending = now; changed {
				known = now
			}
			return changed, nil
		},
		load: func() (func(), error) {
			known = fingerprint(patterns)
			pending = known
			files, unread := readRules(patterns)
			apply, err := engine.Prepare(context.Background(), ruleproc.Rules, func(s *ruleproc.Settings) { s.Rules = files })
			if err := strict.Join(unread, err); err != nil {
				return nil, err
			}
			return apply, nil
		},
	}
}

// fingerprint changes with the files that patterns match, by what they
// resolve to: Kubernetes updates a ConfigMap by swapping a link.
func fingerprint(patterns []string) string {
	var all []string
	for _, p := range patterns {
		paths, _ := filepath.Glob(p) // strict.Glob says what is wrong with it
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				all = append(all, path)
				continue
			}
			all = append(all, fmt.Sprint(path, " ", info.Size(), " ", info.ModTime().UnixNano()))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
