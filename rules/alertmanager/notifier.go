// Package alertmanager sends alerts to Alertmanagers, through their API v2.
//
//   - Every endpoint has its own queue and sender and receives every alert: an
//     endpoint that hangs delays no other.
//   - The queue contains the latest state of each alert, so it never grows
//     beyond the number of alerts. While an Alertmanager is unreachable, its
//     queue is kept.
//   - Dropped alerts are counted by reason. An alert that an Alertmanager
//     refuses does not affect the others.
//   - Credentials are read from files before every request and appear in no
//     error and no log.
//
// docs/alertmanager.md explains the settings.
package alertmanager

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// Options configure a Notifier.
type Options struct {
	// Settings are in force until Apply.
	Settings Settings
	// Log receives one line when a failure starts and one when it ends. Nil
	// discards them.
	Log *slog.Logger
	// Grace bounds the time in which Run sends the queue after its context is
	// done: 5 s by default.
	Grace time.Duration
	// Dial connects to endpoints and proxies: TCP by default.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Notifier sends alerts to Alertmanagers. It implements prometheus.Collector.
type Notifier struct {
	log   *slog.Logger
	grace time.Duration
	dial  dialFunc

	plan atomic.Pointer[plan]
	sent atomic.Uint64 // the last item

	mu      sync.Mutex      // guards the following fields and changes of plan
	soft    context.Context // Run's; nil before it
	hard    context.Context
	ended   bool
	running sync.WaitGroup
}

// plan is the form of Settings in use. It is immutable.
type plan struct {
	external map[string]string // labels
	senders  []*sender
}

// New returns a Notifier that queues alerts and sends them after Run is called.
// The error is of the settings or of the certificates that they name.
func New(o Options) (*Notifier, error) {
	n := &Notifier{log: o.Log, grace: cmp.Or(o.Grace, 5*time.Second), dial: o.Dial}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	n.plan.Store(&plan{})
	if err := n.Apply(o.Settings); err != nil {
		return nil, err
	}
	return n, nil
}

// Apply replaces the settings, all of them or none. An endpoint whose address
// stays keeps its queue; a removed endpoint loses it.
func (n *Notifier) Apply(s Settings) error {
	apply, err := n.Prepare(s)
	if err != nil {
		return err
	}
	apply()
	return nil
}

// Prepare checks settings, reads the certificates that they name, and returns
// the function that puts them into force.
func (n *Notifier) Prepare(s Settings) (apply func(), err error) {
	external := maps.Clone(s.ExternalLabels)
	labels := make([]string, len(s.Endpoints))
	clients := make([]*client, len(s.Endpoints))
	for i := range s.Endpoints {
		u, err := parseURL(s.Endpoints[i].URL)
		if err != nil {
			return nil, err
		}
		labels[i] = u.String()
		if clients[i], err = newClient(u, s.http(&s.Endpoints[i]), n.dial); err != nil {
			return nil, fmt.Errorf("%s: %w", labels[i], err)
		}
	}
	return func() { n.install(external, labels, clients) }, nil
}

func (n *Notifier) install(external map[string]string, labels []string, clients []*client) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := map[string]*sender{}
	for _, s := range n.plan.Load().senders {
		old[s.label] = s
	}
	next := &plan{external: external}
	for i, label := range labels {
		s := old[label]
		if s == nil {
			s = newSender(label, n.log)
		}
		if clients[i].plain {
			s.log.Warn("Credentials are sent unencrypted: the address begins with http://")
		}
		s.configure(clients[i])
		if old[label] == nil {
			n.start(s)
		}
		delete(old, label)
		next.senders = append(next.senders, s)
	}
	n.plan.Store(next)
	for _, s := range old {
		s.stop()
	}
}

// start runs a sender if Run was called.
func (n *Notifier) start(s *sender) {
	if n.soft == nil || n.ended {
		return
	}
	var soft, hard context.Context
	soft, stop := context.WithCancel(n.soft)
	hard, kill := context.WithCancel(n.hard)
	s.stop = func() { stop(); kill() }
	n.running.Go(func() {
		defer s.stop()
		s.run(soft, hard)
	})
}

// Send queues alerts for every endpoint and replaces older states of them. The labels of an
// alert, with the external labels, identify it. Send never blocks and is safe for concurrent
// use. The last call for an alert has its newest state.
func (n *Notifier) Send(alerts []engine.Alert) {
	p := n.plan.Load()
	now := time.Now()
	items := make([]*item, len(alerts))
	for i := range alerts {
		items[i] = newItem(&alerts[i], p.external, n.sent.Add(1), now)
	}
	for _, s := range p.senders {
		s.add(items)
	}
}

// Run sends alerts until ctx is done, and then the queue for up to
// Options.Grace. It must be called once.
func (n *Notifier) Run(ctx context.Context) {
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	n.mu.Lock()
	n.soft, n.hard = ctx, hard
	for _, s := range n.plan.Load().senders {
		n.start(s)
	}
	n.mu.Unlock()
	<-ctx.Done()
	defer time.AfterFunc(n.grace, kill).Stop()
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	n.running.Wait()
}
