package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

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
		if len(words) > 1 && !strings.HasPrefix(words[1], "-") {
			continue // a worker, or another command
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
