package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/accel-exporter/accel-exporter/cmd/accel-remediator/kube"
	"github.com/accel-exporter/accel-exporter/internal/strict"
	"github.com/accel-exporter/accel-exporter/remediation"
)

// errLost: another process has the lease, and this one must not go on.
var errLost = errors.New("the lease was lost")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parseFlags(args, stdout, stderr)
	if errors.Is(err, errDone) {
		return nil
	}
	if err != nil {
		return err
	}
	file := strict.NewFile(f.policyFile)
	policy, err := loadPolicy(file)
	if err != nil {
		return err
	}
	if f.policyCheck {
		fmt.Fprintf(stdout, "%s: ok\n", f.policyFile)
		return nil
	}
	log := promslog.New(f.log)
	log.Info("Starting accel-remediator", "version", version.Info(), "act", f.act)
	alerts, err := newAlertmanagers(f.alertmanagers, f.alertmanagerClient)
	if err != nil {
		return err
	}
	client, err := newClient(f.kubeconfig)
	if err != nil {
		return err
	}
	p := &program{flags: f, log: log, client: client, file: file}
	var controller *remediation.Controller
	p.cluster, err = kube.New(client, f.namespace, func() { controller.Ring() })
	if err != nil {
		return err
	}
	controller = remediation.New(remediation.Options{
		Cluster: p.cluster, Alerts: alerts, Policy: policy, Act: f.act, Interval: f.interval, Log: log,
		Call: hooks{&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}.call,
	})
	p.controller = controller
	return p.serve(ctx)
}

// loadPolicy reads the policy and the Jobs that it names.
func loadPolicy(file *strict.File) (*remediation.Policy, error) {
	data, err := file.Read()
	if err != nil {
		return nil, err
	}
	policy, err := remediation.ParsePolicy(file.Path(), data)
	if err != nil {
		return nil, err
	}
	for name, hook := range policy.Hooks {
		if hook.Job == "" {
			continue
		}
		if _, err := kube.ReadJob(hook.Job); err != nil {
			return nil, fmt.Errorf("%s: hooks.%s.job: %w", file.Path(), name, err)
		}
	}
	return policy, nil
}

// newClient returns a client of the API server that asks it no more often than
// a controller should.
func newClient(kubeconfig string) (kubernetes.Interface, error) {
	var cfg *rest.Config
	var err error
	if kubeconfig != "" {
		cfg, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	} else {
		cfg, err = rest.InClusterConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("the API server: %w", err)
	}
	cfg.UserAgent = "accel-remediator"
	cfg.QPS, cfg.Burst = 20, 40
	return kubernetes.NewForConfig(cfg)
}

type program struct {
	flags      *flags
	log        *slog.Logger
	client     kubernetes.Interface
	cluster    *kube.Cluster
	controller *remediation.Controller
	file       *strict.File
	leads      atomic.Bool
	reloaded   atomic.Bool
}

// serve runs until ctx is done, the listener fails or the lease is lost.
func (p *program) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.reloaded.Store(true)
	server := &http.Server{
		Handler: p.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	var loops sync.WaitGroup
	loops.Go(func() { p.cluster.Run(ctx) })
	loops.Go(func() { p.reload(ctx) })
	loops.Go(func() {
		if p.cluster.Synced(ctx) {
			p.lead(ctx, cancel)
		}
	})
	loops.Go(func() {
		<-ctx.Done()
		stop, done := context.WithTimeout(context.Background(), 3*time.Second)
		defer done()
		if server.Shutdown(stop) != nil {
			server.Close()
		}
	})
	err := web.ListenAndServe(server, p.flags.web, p.log)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	cancel(err)
	loops.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errLost) {
		return cause
	}
	return err
}

// lead runs the controller while this process holds the lease. One that loses
// it ends: what it still has under way must not go on beside another.
func (p *program) lead(ctx context.Context, end context.CancelCauseFunc) {
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Name: p.flags.lease, Namespace: p.flags.namespace},
		Client:    p.client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: p.flags.pod},
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true, Name: p.flags.lease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				p.leads.Store(true)
				p.log.Info("Holds the lease", "pod", p.flags.pod)
				p.controller.Run(ctx)
			},
			OnStoppedLeading: func() {
				p.leads.Store(false)
				if ctx.Err() == nil {
					end(errLost)
				}
			},
		},
	})
}

// look is the time between two looks at the policy.
const look = 2 * time.Second

// reload puts a changed policy into force; one with a mistake changes nothing.
func (p *program) reload(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-hangup:
		case <-tick.C:
			if changed, err := p.file.Changed(); err != nil || !changed {
				continue
			}
		case <-ctx.Done():
			return
		}
		policy, err := loadPolicy(p.file)
		p.reloaded.Store(err == nil)
		if err != nil {
			p.log.Error("The policy is wrong; the former stays in force", "err", err)
			continue
		}
		p.controller.Apply(policy)
		p.log.Info("The policy is in force", "file", p.file.Path())
	}
}

// maxWebhook is the size in bytes of the largest webhook that is taken.
const maxWebhook = 16 << 20

func (p *program) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		p.controller, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector("accel_remediator"),
	)
	registry.MustRegister(remediation.Process(p.leads.Load, p.reloaded.Load)...)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry, MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("POST /webhook", func(w http.ResponseWriter, r *http.Request) {
		// Read so that the connection can be used again, and not believed.
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxWebhook))
		p.controller.Ring()
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("GET /debug/plan", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(p.controller.Plan())
	})
	return mux
}
