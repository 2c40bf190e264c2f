// Command play plays the incidents of fixtures/incidents and prints what was
// caught, missed and false. It fails where anything was not as stated. Run it
// from the root of the repository after make build; docs/incidents.md explains
// the play.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/accel-exporter/accel-exporter/test/incidents"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "play:", err)
		os.Exit(1)
	}
}

// errNotAsStated is the error of a run whose report names the differences.
var errNotAsStated = errors.New("not all is as the incidents state")

// short are the incidents that -only short plays, one of each kind.
const short = "xid-79-pod-dies,ecc-uncorrected,fpga-firewall,source-blind,healthy-application-xids,healthy-corrected-ecc"

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("play", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "names of incidents to play, by comma; all by default, short for a few")
	parallel := flags.Int("parallel", 2, "plays at the same time")
	factor := flags.Int("factor", 60, "what times are divided by")
	keep := flags.Bool("keep", false, "keep the files of every play, and not of failed ones only")
	bin := flags.String("bin", "bin", "directory of what make build makes")
	alertmanager := flags.String("alertmanager", "", "Alertmanager's program; by default that in .cache/alertmanager, else in PATH")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *parallel < 1 || *factor < 1 || flags.NArg() > 0 {
		return errors.New("parallel and factor are whole numbers above 0; further arguments are not accepted")
	}
	s, err := settings(*bin, *factor, *alertmanager)
	if err != nil {
		return err
	}
	alerts, err := s.Prepare()
	if err == nil {
		err = play(ctx, s, alerts, *only, *parallel, stdout)
	}
	if err != nil || *keep {
		fmt.Fprintf(stderr, "files of the plays: %s\n", s.Dir)
		return err
	}
	return os.RemoveAll(s.Dir)
}

func settings(bin string, factor int, alertmanager string) (*incidents.Settings, error) {
	root, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return nil, err
	}
	s := &incidents.Settings{
		Root: root, Factor: factor, Exporter: filepath.Join(bin, "accel-exporter"), Simulator: filepath.Join(bin, "accel-sim"),
		Library: filepath.Join(bin, "sim", "libnvidia-ml.so.1"),
	}
	for _, path := range []string{s.Exporter, s.Simulator, s.Library} {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%w; make build makes it", err)
		}
	}
	if s.Alertmanager, err = program(root, alertmanager, ".cache/alertmanager/usr/bin/prometheus-alertmanager", "prometheus-alertmanager", "alertmanager"); err != nil {
		return nil, err
	}
	if s.Prometheus, err = program(root, "", ".cache/prometheus/usr/bin/prometheus", "prometheus"); err != nil {
		return nil, err
	}
	if s.Alertmanager == "" {
		return nil, errors.New("no Alertmanager; make incidents takes Debian's, or give -alertmanager")
	}
	s.Dir, err = os.MkdirTemp("", "play")
	return s, err
}

// program returns the path of the given program, else of the first of the names
// that there is, or nothing.
func program(root, given, unpacked string, names ...string) (string, error) {
	if given != "" {
		names = []string{given}
	} else {
		names = append([]string{filepath.Join(root, unpacked)}, names...)
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		} else if name == given {
			return "", err
		}
	}
	return "", nil
}

func play(ctx context.Context, s *incidents.Settings, alerts map[string]incidents.Alert, only string, parallel int, w io.Writer) error {
	all, err := incidents.Load(filepath.Join(s.Fixtures(), "incidents"))
	if err != nil {
		return err
	}
	if all, err = choose(all, only); err != nil {
		return err
	}
	report := &incidents.Report{Alerts: alerts, Factor: s.Factor}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, i := range all {
		slots <- struct{}{}
		wg.Go(func() {
			v := s.Play(ctx, i)
			mu.Lock()
			report.Verdicts = append(report.Verdicts, v)
			v.Line(w)
			mu.Unlock()
			<-slots
		})
	}
	wg.Wait()
	if err := report.Print(w); err != nil {
		return err
	}
	if !report.Good() {
		return errNotAsStated
	}
	return nil
}

// choose returns the incidents of the names, in that order.
func choose(all []*incidents.Incident, only string) ([]*incidents.Incident, error) {
	switch only {
	case "":
		return all, nil
	case "short":
		only = short
	}
	byName := map[string]*incidents.Incident{}
	for _, i := range all {
		byName[i.Name] = i
	}
	var chosen []*incidents.Incident
	for name := range strings.SplitSeq(only, ",") {
		if byName[name] == nil {
			return nil, fmt.Errorf("no incident is named %s", name)
		}
		chosen = append(chosen, byName[name])
	}
	return chosen, nil
}
