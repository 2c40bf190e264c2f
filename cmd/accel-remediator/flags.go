package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	slogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	webflag "github.com/prometheus/exporter-toolkit/web/kingpinflag"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/accel-exporter/accel-exporter/cmd/accel-remediator/kube"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/remediation"
	"github.com/accel-exporter/accel-exporter/rules"
)

const defaultAddress = ":19401"

type flags struct {
	web                        *web.FlagConfig
	log                        *promslog.Config
	policyFile                 string
	policyCheck                bool
	act                        bool
	alertmanagers              []string
	alertmanagerClient         string
	exporter                   kube.Exporters
	exporterURL                string
	exporterClient             string
	interval                   time.Duration
	kubeconfig, namespace, pod string
	lease                      string
}

// errDone: the command line requested output only, such as --help.
var errDone = errors.New("done")

func parseFlags(args []string, stdout, stderr io.Writer) (*flags, error) {
	app := kingpin.New("accel-remediator", "Labels, taints and cordons nodes for alerts on their accelerators, and reverts this when the alerts are resolved. Without --act it only reports its plan.")
	f := &flags{log: &promslog.Config{Writer: stderr}}
	f.web = webflag.AddFlags(app, defaultAddress)
	app.Flag("policy.file", "YAML file that maps alerts to actions. Reloaded when it changes and on SIGHUP.").Required().PlaceHolder("FILE").StringVar(&f.policyFile)
	app.Flag("policy.check", "Check the policy and exit.").BoolVar(&f.policyCheck)
	app.Flag("act", "Execute the policy. Without this flag nothing is changed.").BoolVar(&f.act)
	app.Flag("alertmanager.url", "Address of an Alertmanager, as http://HOST:9093. Repeat the flag for each member of a cluster.").PlaceHolder("URL").StringsVar(&f.alertmanagers)
	app.Flag("alertmanager.http.config.file", "HTTP client configuration of Prometheus for Alertmanager: TLS and credentials.").PlaceHolder("FILE").StringVar(&f.alertmanagerClient)
	app.Flag("exporter.url", "Metrics of the exporter of a node, which must prove that its devices are healthy before the node returns. {address} is the address of its pod.").Default("http://{address}:19400/metrics").PlaceHolder("URL").StringVar(&f.exporterURL)
	app.Flag("exporter.namespace", "Namespace of the pods of the exporter.").Default("accel-exporter").StringVar(&f.exporter.Namespace)
	app.Flag("exporter.selector", "Labels of these pods. Empty for exporters that are no pods: {address} is then the internal address of the node.").Default("app.kubernetes.io/name=accel-exporter").StringVar(&f.exporter.Selector)
	app.Flag("exporter.http.config.file", "HTTP client configuration of Prometheus for exporters: TLS and credentials.").PlaceHolder("FILE").StringVar(&f.exporterClient)
	app.Flag("interval", "Time between two passes; a webhook triggers a pass at once.").Default("15s").DurationVar(&f.interval)
	app.Flag("kubeconfig", "Kubeconfig file, for use outside the cluster.").PlaceHolder("FILE").StringVar(&f.kubeconfig)
	app.Flag("namespace", "Namespace of the lease and of Jobs.").Default(os.Getenv("POD_NAMESPACE")).StringVar(&f.namespace)
	app.Flag("pod", "Identity of this process in the lease; it must be unique.").Default(os.Getenv("POD_NAME")).StringVar(&f.pod)
	app.Flag("lease", "Name of the lease that elects the one remediator that acts.").Default("accel-remediator").StringVar(&f.lease)
	slogflag.AddFlags(app, f.log)

	done := false
	app.UsageWriter(stdout).ErrorWriter(stderr).Terminate(func(int) { done = true })
	app.Version(version.Print("accel-remediator")).VersionFlag.Short('V')
	app.HelpFlag.Short('h')
	_, err := app.Parse(args)
	switch {
	case done:
		return nil, errDone
	case err != nil:
		return nil, fmt.Errorf("%w, try --help", err)
	case f.policyCheck:
		return f, nil
	case len(f.alertmanagers) == 0:
		return nil, errors.New("--alertmanager.url is required")
	case f.namespace == "":
		return nil, errors.New("--namespace or POD_NAMESPACE is required")
	case f.interval < time.Second || f.interval > time.Hour:
		return nil, fmt.Errorf("--interval is %s; 1s to 1h is accepted", f.interval)
	}
	if f.pod == "" {
		f.pod, err = os.Hostname()
	}
	return f, err
}

var alertLine = regexp.MustCompile(`(?m)^\s*- alert: (\S+)`)

// shippedAlerts returns the names of the alerts of this project.
var shippedAlerts = sync.OnceValue(func() (names []string) {
	files, _ := rules.Files.ReadDir(".") // built in
	for _, f := range files {
		text, _ := rules.Files.ReadFile(f.Name())
		for _, m := range alertLine.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	return names
})

// settings are the policy and the manifests of Jobs that it names. They come into
// force together or not at all.
type settings struct {
	policy *strict.File
	jobs   map[string]*strict.File // by their names in the policy
}

func newSettings(file string) *settings {
	return &settings{policy: strict.NewFile(file), jobs: map[string]*strict.File{}}
}

// load reads all files. Its error names every mistake of the policy, or of the
// manifests.
func (s *settings) load() (*remediation.Policy, map[string]*batchv1.Job, error) {
	data, err := s.policy.Read()
	if err != nil {
		return nil, nil, err
	}
	policy, err := remediation.ParsePolicy(s.policy.Path(), data, shippedAlerts())
	if err != nil {
		return nil, nil, err
	}
	jobs := map[string]*batchv1.Job{}
	files := map[string]*strict.File{}
	var errs []error
	for name, hook := range policy.Hooks {
		if hook.Job == "" || files[hook.Job] != nil {
			continue
		}
		file := strict.NewFile(hook.Job)
		files[hook.Job] = file
		if jobs[hook.Job], err = loadJob(file); err != nil {
			errs = append(errs, fmt.Errorf("%s: hooks.%s.job: %w", s.policy.Path(), name, err))
		}
	}
	s.jobs = files // also files with a mistake, to load them when they change
	return policy, jobs, errors.Join(errs...)
}

func loadJob(file *strict.File) (*batchv1.Job, error) {
	data, err := file.Read()
	if err != nil {
		return nil, err
	}
	return kube.ParseJob(file.Path(), data)
}

// changed reports once that a file differs from the loaded one.
func (s *settings) changed() bool {
	any, _ := s.policy.Changed()
	for _, file := range s.jobs {
		changed, _ := file.Changed()
		any = any || changed
	}
	return any
}
