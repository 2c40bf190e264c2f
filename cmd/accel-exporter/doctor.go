package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/status"
)

// States of a finding.
const (
	findingOK    = "ok"
	findingOff   = "off"   // not asked for
	findingNote  = "note"  // missing, and nothing that flags name depends on it
	findingLacks = "LACKS" // lacks, and is asked for
)

// finding is what the doctor reports of one thing.
type finding struct {
	State    string `json:"state"`
	Check    string `json:"check"`
	Found    string `json:"found"`
	Expected string `json:"expected,omitempty"`
	Mend     string `json:"mend,omitempty"`
}

// diagnosis is the output of --json.
type diagnosis struct {
	Version string `json:"version"`
	// User is the numeric id of the user whose permissions were found.
	User     int       `json:"user"`
	Flags    string    `json:"flags"`    // where they are from
	Observed string    `json:"observed"` // who sampled the node
	Lacking  int       `json:"lacking"`
	Findings []finding `json:"findings"`
}

// badUse is an error of the command line, for which the doctor exits with 2.
type badUse struct{ error }

// doctorCommand is `accel-exporter doctor`: it examines what the node has of what
// the exporter needs with the same flags. Native libraries are loaded by the same
// workers as ever, and nothing is changed.
func doctorCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	d := diagnosis{Version: version.Version, User: os.Geteuid(), Flags: "the command line"}
	running := 0
	if !slices.ContainsFunc(args, func(a string) bool { return a != "--json" }) {
		var found []string
		if running, found = runningExporter(hostProcfs, os.Getpid()); running != 0 {
			args = append(slices.Clone(args), found...)
			d.Flags = fmt.Sprintf("process %d", running)
		}
	}
	app := kingpin.New("accel-exporter doctor", `Examines what this node has of what the exporter needs with the same flags, and how to mend what is missing. Without a flag it takes those of the exporter that runs here.

Exit status: 0 if nothing that is asked for is missing, 1 if something is, 2 if the command line is wrong.`)
	asJSON := app.Flag("json", "Print the findings as JSON.").Bool()
	f := &flags{}
	if err := f.parse(app, args, stdout, stderr); err != nil {
		if !errors.Is(err, errDone) {
			err = badUse{err}
		}
		return err
	}
	e := &examination{flags: f}
	d.Observed = e.observe(ctx, running != 0)
	d.Findings = e.all()
	for _, x := range d.Findings {
		if x.State == findingLacks {
			d.Lacking++
		}
	}
	if err := d.print(stdout, *asJSON); err != nil {
		return err
	}
	if d.Lacking > 0 {
		return errPrinted
	}
	return nil
}

// runningExporter returns the exporter that runs here, and its arguments. Of
// several it is the exporter in the container of this process; 0 if there is
// not exactly one.
func runningExporter(procfs string, self int) (pid int, args []string) {
	cgroup := func(pid string) string {
		b, _ := os.ReadFile(filepath.Join(procfs, pid, "cgroup"))
		return string(b)
	}
	own := cgroup(strconv.Itoa(self))
	commands := commands()
	var near, all []string
	line := map[string][]string{}
	entries, _ := os.ReadDir(procfs) // without it none is found
	for _, entry := range entries {
		n, err := strconv.Atoi(entry.Name())
		if err != nil || n == self {
			continue
		}
		b, _ := os.ReadFile(filepath.Join(procfs, entry.Name(), "cmdline"))
		words := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
		if filepath.Base(words[0]) != "accel-exporter" {
			continue
		}
		if len(words) > 1 && (words[1] == "worker" || commands[words[1]] != nil) {
			continue
		}
		line[entry.Name()] = words[1:]
		if all = append(all, entry.Name()); cgroup(entry.Name()) == own {
			near = append(near, entry.Name())
		}
	}
	if len(all) > 1 {
		all = near
	}
	if len(all) != 1 {
		return 0, nil
	}
	pid, _ = strconv.Atoi(all[0])
	return pid, line[all[0]]
}

// examination has what the findings are drawn from.
type examination struct {
	flags  *flags
	view   *status.View
	broken error // why the view is incomplete
}

// observe gets the view of the running exporter, whose permissions may differ from
// this process's, or else samples the node as the exporter would. It returns who
// sampled.
func (e *examination) observe(ctx context.Context, running bool) string {
	if address := e.local(); running && *e.flags.web.WebConfigFile == "" && address != "" {
		ask := askFlags{url: "http://" + address}
		if v, err := ask.getStatus(ctx, ""); err == nil {
			e.view = v
			return "the running exporter at " + ask.url
		}
	}
	e.view, e.broken = e.sample(ctx)
	return "this process and its workers"
}

// local returns where the exporter of these flags can be asked, or "".
func (e *examination) local() string {
	for _, a := range *e.flags.web.WebListenAddresses {
		host, port, err := net.SplitHostPort(a)
		if err != nil || strings.Contains(a, "://") {
			continue
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "localhost"
		}
		return net.JoinHostPort(host, port)
	}
	return ""
}

// samplePatience is how long the doctor waits for all sources: longer than the
// slowest may take.
const samplePatience = 20 * time.Second

// sample samples the node. It leaves out what would change the node or disturb
// others.
func (e *examination) sample(ctx context.Context) (*status.View, error) {
	f := *e.flags
	f.interval = onceInterval
	cfg := config.Default()
	if _, c, err := openConfig(e.flags); err == nil {
		cfg = c.Config
		cfg.Collect.Interval = 0
	}
	allocs, err := openPods(&f.pods, f.sources.procfs, cfg.Allocation, discardedLog)
	if err != nil {
		without := f.pods
		without.api = false
		allocs, _ = openPods(&without, f.sources.procfs, cfg.Allocation, discardedLog) // which cannot fail
	}
	node := newSampling(&f.sampleFlags, cfg, allocs, discardedLog)
	waiting, done := context.WithTimeout(ctx, samplePatience)
	defer done()
	_, late := node.once(waiting)
	return newStatusPage(node, nil, "").View(), errors.Join(err, late)
}

// print writes the findings.
func (d *diagnosis) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, d)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "accel-exporter %s, user %d. Flags: %s. Observed by %s.\n\n", d.Version, d.User, d.Flags, d.Observed)
	for _, f := range d.Findings {
		fmt.Fprintf(&b, "%-5s  %-18s  %s\n", f.State, f.Check, indented(f.Found))
		for _, more := range []struct{ name, text string }{{"expected", f.Expected}, {"mend", f.Mend}} {
			if more.text != "" {
				fmt.Fprintf(&b, "%27s%s: %s\n", "", more.name, indented(more.text))
			}
		}
	}
	switch d.Lacking {
	case 0:
		fmt.Fprintln(&b, "\nNothing that was asked for is missing.")
	case 1:
		fmt.Fprintln(&b, "\n1 thing is missing.")
	default:
		fmt.Fprintf(&b, "\n%d things are missing.\n", d.Lacking)
	}
	_, err := b.WriteTo(w)
	return err
}

// indented returns a text whose further lines are below the first.
func indented(s string) string {
	return strings.ReplaceAll(s, "\n", "\n"+strings.Repeat(" ", 27))
}
