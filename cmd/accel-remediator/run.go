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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/accel-exporter/accel-exporter/cmd/accel-remediator/kube"
	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parseFlags(args, stdout, stderr)
	if errors.Is(err, errDone) {
		return nil
	}
	if err != nil {
		return err
	}
	files := newSettings(f.policyFile)
	policy, jobs, err := files.load()
	if err != nil {
		return err
	}
	if f.policyCheck {
		fmt.Fprintf(stdout, "%s: ok\n", f.policyFile)
		return nil
	}
	log := promslog.New(f.log)
	klog.SetSlogLogger(log) // of client-go
	log.Info("Starting accel-remediator", "version", version.Info(), "act", f.act)
	alerts, err := newAlertmanagers(f.alertmanagers, f.alertmanagerClient)
	if err != nil {
		return err
	}
	p := &program{flags: f, log: log, files: files}
	if err := p.connect(); err != nil {
		return fmt.Errorf("the API server: %w", err)
	}
	p.cluster.SetJobs(jobs)
	proofs, err := newExporters(f.exporterURL, f.exporterClient, p.cluster.Exporters)
	if err != nil {
		return err
	}
	p.controller = remediation.New(remediation.Options{
		Cluster: p.cluster, Alerts: alerts, Prover: proofs, Policy: policy, Act: f.act, Interval: f.interval, Log: log, Taken: &p.lease.Taken,
		Call: newHooks(p.lease.Valid).call,
	})
	return p.serve(ctx)
}

// connect makes the clients of the API server.
func (p *program) connect() error {
	cfg, err := rest.InClusterConfig()
	if p.flags.kubeconfig != "" {
		cfg, err = clientcmd.BuildConfigFromFlags("", p.flags.kubeconfig)
	}
	if err != nil {
		return err
	}
	if p.lease, err = kube.NewLease(cfg, p.flags.namespace, p.flags.lease, p.flags.pod); err != nil {
		return err
	}
	client, err := kube.NewClient(cfg)
	if err != nil {
		return err
	}
	p.cluster, err = kube.New(client, p.flags.namespace, p.flags.exporter, p.lease.Valid, func() { p.controller.Trigger() })
	return err
}

type program struct {
	flags      *flags
	log        *slog.Logger
	lease      *kube.Lease
	cluster    *kube.Cluster
	controller *remediation.Controller
	files      *settings
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
	if cause := context.Cause(ctx); errors.Is(cause, kube.ErrLost) {
		return cause
	}
	return err
}

// lead runs the controller while this process has the lease. The process ends
// when it loses the lease, because its state is out of date then.
func (p *program) lead(ctx context.Context, end context.CancelCauseFunc) {
	defer p.leads.Store(false)
	err := p.lease.Run(ctx, func(ctx context.Context) {
		p.leads.Store(true)
		p.log.Info("Started to lead", "pod", p.flags.pod)
		p.controller.Run(ctx)
	})
	if err != nil {
		end(err)
	}
}

// checkInterval is the time between two checks of the policy for a change.
const checkInterval = 2 * time.Second

// reload puts a changed policy into force. A policy with a mistake changes
// nothing.
func (p *program) reload(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-hangup:
		case <-tick.C:
			if !p.files.changed() {
				continue
			}
		case <-ctx.Done():
			return
		}
		policy, jobs, err := p.files.load()
		p.reloaded.Store(err == nil)
		if err != nil {
			p.log.Error("The policy has a mistake; the former policy stays in force", "err", err)
			continue
		}
		p.cluster.SetJobs(jobs)
		p.controller.Apply(policy)
		p.log.Info("The policy is in force", "file", p.flags.policyFile)
	}
}

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
	mux.Handle("POST /webhook", webhook(p.controller.Trigger))
	mux.HandleFunc("GET /debug/plan", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(p.controller.Plan())
	})
	return mux
}

// maxWebhook is the size in bytes of the largest webhook that is accepted.
const maxWebhook = 16 << 20

// webhook accepts webhooks. It reads their content only to keep the connection,
// and ignores it.
func webhook(trigger func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxWebhook)); err != nil {
			http.Error(w, fmt.Sprintf("found a truncated body or more than %d bytes; accepted is a body of at most that size", maxWebhook), http.StatusRequestEntityTooLarge)
			return
		}
		trigger()
		w.WriteHeader(http.StatusAccepted)
	}
}
