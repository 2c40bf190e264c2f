package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/status"
	"github.com/accel-exporter/accel-exporter/internal/status/bundle"
	"github.com/accel-exporter/accel-exporter/internal/trace"
)

// bundleFlags is the command line of the evidence of failed devices.
type bundleFlags struct {
	directory   string
	keep        int
	url         string
	headersFile string

	target *bundle.Target
}

func (f *bundleFlags) add(app *kingpin.Application) {
	app.Flag("bundle.directory", "Directory in which a bundle of evidence is written when a device fails: its readings, events, kernel log lines and identity. By default none is written.").PlaceHolder("DIR").StringVar(&f.directory)
	app.Flag("bundle.keep", "Number of bundles in the directory, each of at most 2 MiB. The oldest is removed.").Default("20").IntVar(&f.keep)
	app.Flag("bundle.url", "URL that also receives each bundle by HTTP PUT. {name}, or the end of a path that ends with a slash, becomes the name of the bundle.").PlaceHolder("URL").StringVar(&f.url)
	app.Flag("bundle.headers-file", "File with headers for these requests, such as credentials (YAML, name: value). Read again for each.").PlaceHolder("FILE").StringVar(&f.headersFile)
}

func (f *bundleFlags) check() (err error) {
	var errs []error
	if f.keep < 1 || f.keep > 1000 {
		errs = append(errs, fmt.Errorf("--bundle.keep is %d; 1 to 1000 is accepted", f.keep))
	}
	if f.url != "" && f.directory == "" {
		errs = append(errs, errors.New("--bundle.url needs --bundle.directory, which keeps a bundle until it is sent"))
	}
	if f.headersFile != "" && f.url == "" {
		errs = append(errs, errors.New("--bundle.headers-file needs --bundle.url"))
	}
	if f.url != "" {
		var headers func() (map[string]string, error)
		if f.headersFile != "" {
			headers = func() (map[string]string, error) { return trace.ReadHeaders(f.headersFile) }
		}
		if f.target, err = bundle.NewTarget(f.url, headers); err != nil {
			errs = append(errs, fmt.Errorf("--bundle.url: %w", err))
		}
	}
	return errors.Join(errs...)
}

// openRecorder returns the Recorder, which writes nothing without a directory.
func openRecorder(f *bundleFlags, node *sampling, log *slog.Logger) *bundle.Recorder {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease") // of the running kernel, also in a container
	return bundle.New(bundle.Options{
		Node: node.flags.pods.nodeOrHost(),
		Software: []bundle.Fact{
			{Name: "kernel", Value: strings.TrimSpace(string(release)) + " " + runtime.GOARCH}, {Name: "accel-exporter", Value: version.Version},
		},
		Latest: node.sampler.Latest, History: &node.history,
		Allocations: func() *allocation.Report { report, _, _ := node.pods.state(); return report },
		KernelLog:   node.kernelLines,
		Directory:   f.directory, Keep: f.keep, Target: f.target, Log: log,
	})
}

// permits reports whether a request may have bundles: it is authenticated, or from this
// machine. Bundles have lines of the kernel log and names of pods.
func (f *webFlags) permits(r *http.Request) bool {
	if address, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && address.Addr().IsLoopback() {
		return true
	}
	if *f.web.WebConfigFile == "" {
		return false
	}
	var cfg struct {
		TLS struct {
			ClientAuth string `yaml:"client_auth_type"`
		} `yaml:"tls_server_config"`
		Users map[string]string `yaml:"basic_auth_users"`
	}
	data, err := os.ReadFile(*f.web.WebConfigFile)
	if err != nil || yaml.Unmarshal(data, &cfg) != nil {
		return false
	}
	return len(cfg.Users) > 0 || cfg.TLS.ClientAuth == "RequireAndVerifyClientCert"
}

// bundle serves the list of bundles, one of them by its name, or one of a device as it is
// now.
func (p *serving) bundle(w http.ResponseWriter, r *http.Request) {
	if !p.flags.permits(r) {
		http.Error(w, "Bundles are served to authenticated clients (basic_auth_users or client_auth_type of --web.config.file) and on this machine. On the node: accel-exporter bundle DEVICE", http.StatusForbidden)
		return
	}
	name, device := r.URL.Query().Get("name"), r.URL.Query().Get("device")
	var data []byte
	var err error
	switch {
	case name != "":
		data, err = p.recorder.Read(name)
	case device != "":
		name, data = p.recorder.Make(device)
	default:
		sendJSON(w, p.recorder.List())
		return
	}
	if err != nil || data == nil {
		http.Error(w, "there is no such bundle or device", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Content-Disposition", "attachment; filename="+name)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(data) // it fails when the client has left
}

// unwritten is the remark of the status page and doctor on bundles that cannot be written.
func (p *serving) unwritten() []status.Remark {
	err := p.recorder.Problem()
	if err == nil {
		return nil
	}
	return []status.Remark{{
		What: "bundles", Found: err.Error(), Expected: "a directory with room, in which the exporter may write the evidence of failed devices",
		Cure: "correct --bundle.directory, its permissions or its volume", Tone: "bad",
	}}
}

// bundleCommand is `accel-exporter bundle`: it prints a bundle, or gets one of a device
// from a running exporter.
func bundleCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var ask askFlags
	app := kingpin.New("accel-exporter bundle", "Prints a bundle of evidence as a page, after a check of its files. With a device in place of a file, it gets a bundle of that device from a running exporter first, as it is now, and saves it.")
	ask.add(app)
	asJSON := app.Flag("json", "Print JSON, for programs.").Bool()
	output := app.Flag("output", "File to save a bundle of a device in. By default it has the name of the node and the time.").Short('o').PlaceHolder("FILE").String()
	what := app.Arg("WHAT", "A bundle (FILE.tar.gz), or a device: an index, an id, a PCI address.").Required().String()
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	data, err := bundle.ReadFile(*what)
	device := errors.Is(err, os.ErrNotExist) && !strings.HasSuffix(*what, ".tar.gz") && !strings.Contains(*what, "/")
	if device {
		data, err = ask.bundle(ctx, *what)
	}
	if err != nil {
		return err
	}
	b, err := bundle.Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", *what, err)
	}
	if device {
		if *output == "" {
			*output = bundle.FileName(b.Incident.Node, b.Incident.Written)
		}
		if err := os.WriteFile(*output, data, 0o600); err != nil {
			return err
		}
		fmt.Fprintf(stderr, "%s: %d bytes, SHA-256 %s\n", *output, len(data), b.SHA256)
	}
	if *asJSON {
		return writeJSON(stdout, b)
	}
	for _, problem := range b.Problems {
		fmt.Fprintln(stderr, "warning:", problem)
	}
	_, err = stdout.Write(status.Visible([]byte(b.Text)))
	return err
}

// bundle gets a bundle of the one device that fits.
func (f *askFlags) bundle(ctx context.Context, what string) ([]byte, error) {
	v, err := f.getStatus(ctx, "")
	if err != nil {
		return nil, err
	}
	_, number := strconv.Atoi(what)
	id := ""
	for i := range v.Devices {
		d := &v.Devices[i]
		named := number != nil && strings.Contains(strings.ToLower(d.ID+"\n"+d.PCI), strings.ToLower(what))
		switch {
		case d.Part || d.Index != what && !named:
		case id != "":
			return nil, fmt.Errorf("several devices match %q; accel-exporter who --wide lists their ids", what)
		default:
			id = d.ID
		}
	}
	if id == "" {
		return nil, fmt.Errorf("no device matches %q; accel-exporter who lists all", what)
	}
	var data bytes.Buffer
	err = f.get(ctx, "/debug/bundle", "device="+url.QueryEscape(id), &data)
	return data.Bytes(), err
}
