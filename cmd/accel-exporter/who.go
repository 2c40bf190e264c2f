package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/fetch"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/ruleproc"
)

// askTimeout is how long a running exporter may take to answer.
const askTimeout = 10 * time.Second

// askFlags say which running exporter a subcommand asks.
type askFlags struct {
	url        string
	httpConfig string
	program    string // accel-rules, as --rules.program has it
}

func (f *askFlags) add(app interface {
	Flag(name, help string) *kingpin.FlagClause
},
) {
	app.Flag("url", "The running exporter.").Default("http://localhost" + defaultAddress).PlaceHolder("URL").StringVar(&f.url)
	app.Flag("http.config.file", "How to reach it where it asks for TLS or a password: an HTTP client's configuration as Prometheus has it (basic_auth, authorization, tls_config).").PlaceHolder("FILE").StringVar(&f.httpConfig)
}

// get decodes what a path of the exporter answers.
func (f *askFlags) get(ctx context.Context, path, query string, into any) error {
	base, err := url.Parse(f.url)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return errors.New("--url is not of the form http://HOST:PORT")
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	base = base.JoinPath(path)
	base.RawQuery = query
	var body bytes.Buffer
	if f.httpConfig != "" {
		err = f.fetchWith(ctx, base.String(), &body)
	} else {
		err = fetch.Get(ctx, http.DefaultClient, base.String(), &body)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body.Bytes(), into); err != nil {
		return fmt.Errorf("%s did not answer as an exporter does: %w", base.Redacted(), err)
	}
	return nil
}

// fetchWith has accel-rules ask, which has the client for what the file says.
func (f *askFlags) fetchWith(ctx context.Context, address string, body io.Writer) error {
	var complaint bytes.Buffer
	err := runRules(ctx, f.program, nil, body, &complaint, []string{"fetch", ruleproc.Build(), f.httpConfig, address})
	if errors.Is(err, errPrinted) {
		return errors.New(strings.TrimSpace(complaint.String()))
	}
	return err
}

// whoCommand is `accel-exporter who`: who holds which device of a node, by a
// running exporter.
func whoCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var ask askFlags
	app := kingpin.New("accel-exporter who", "Says who holds the devices of this node, since when and what for, and why nobody holds the others.")
	ask.add(app)
	asJSON := app.Flag("json", "Print what is known as JSON.").Bool()
	wide := app.Flag("wide", "Print whole ids, models, containers and resources.").Short('w').Bool()
	what := app.Arg("WHAT", "Only these devices: an index (2), the beginning of an id (GPU-4d1a), a PCI address (86:00.0), pod/NAME, pod/NAMESPACE/NAME, namespace/NAME, or free.").Strings()
	done := false
	app.UsageWriter(stdout).ErrorWriter(stderr).Terminate(func(int) { done = true })
	app.HelpFlag.Short('h')
	_, err := app.Parse(args)
	if done {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w, try --help", err)
	}
	var report allocation.Report
	if err := ask.get(ctx, "/debug/allocations", "", &report); err != nil {
		return err
	}
	if err := narrow(&report, *what); err != nil {
		return err
	}
	if *asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(&report)
	}
	return printWho(stdout, &report, *wide)
}

// narrow leaves the devices that one of what fits, their partitions, and what
// is said of them.
func narrow(r *allocation.Report, what []string) error {
	if len(what) == 0 {
		return nil
	}
	found, keep := make([]bool, len(what)), map[string]bool{}
	for i := range r.Devices {
		for n, w := range what {
			if fits(&r.Devices[i], w) {
				found[n], keep[r.Devices[i].ID] = true, true
			}
		}
	}
	for i, w := range what {
		if !found[i] {
			return fmt.Errorf("nothing here is %q; without it, all devices are listed", w)
		}
	}
	r.Devices = slices.DeleteFunc(r.Devices, func(d allocation.Device) bool { return !keep[d.ID] && !keep[d.Parent] })
	r.Unattributed = slices.DeleteFunc(r.Unattributed, func(p allocation.Process) bool { return !keep[p.Device] })
	r.Unresolved, r.Resources = nil, nil
	return nil
}

// fits reports whether a person who writes what means the device.
func fits(d *allocation.Device, what string) bool {
	held := func(f func(h *allocation.Hold) bool) bool {
		return slices.ContainsFunc(d.Holders, func(h allocation.Hold) bool { return f(&h) })
	}
	if what == "free" {
		return d.Availability == allocation.Free
	}
	if ns, ok := strings.CutPrefix(what, "namespace/"); ok {
		return held(func(h *allocation.Hold) bool { return h.Namespace == ns })
	}
	if pod, ok := strings.CutPrefix(what, "pod/"); ok {
		ns, name, both := strings.Cut(pod, "/")
		if !both {
			ns, name = "", pod
		}
		return held(func(h *allocation.Hold) bool { return h.Pod == name && (ns == "" || h.Namespace == ns) })
	}
	if what == d.Index && d.Parent == "" {
		return true
	}
	lower := strings.ToLower(what)
	return len(what) > 2 && (strings.HasPrefix(strings.ToLower(d.ID), lower) ||
		d.Parent == "" && d.PCI != "" && strings.Contains(what, ":") && strings.HasSuffix(strings.ToLower(d.PCI), lower))
}
