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
)

// Options say how a Notifier works.
type Options struct {
	// Settings are those until Apply brings others.
	Settings Settings
	// Log takes what a person has to know; nil for nothing.
	Log *slog.Logger
	// Grace is how long Run tries to send what is queued once it is told to
	// end; 5 s where it is 0.
	Grace time.Duration
	// Changed is called when the metrics have changed. It must not block; nil
	// does nothing.
	Changed func()
	// Dial connects to endpoints and proxies; TCP where it is nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Notifier tells Alertmanagers of alerts. It implements prometheus.Collector.
type Notifier struct {
	log     *slog.Logger
	grace   time.Duration
	changed func()
	dial    dialFunc

	plan           atomic.Pointer[plan]
	relabelDropped atomic.Uint64

	mu      sync.Mutex      // guards what follows, and is held while plan changes
	soft    context.Context // Run's; nil before it
	hard    context.Context
	ended   bool
	running sync.WaitGroup
}

// plan is what settings amount to. It is never altered.
type plan struct {
	relabelling *relabelling
	senders     []*sender
}

// New returns a Notifier that queues what it is told, and sends it once Run is
// called. The error says what is wrong with the settings.
func New(o Options) (*Notifier, error) {
	n := &Notifier{log: o.Log, grace: cmp.Or(o.Grace, 5*time.Second), changed: o.Changed, dial: o.Dial}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if n.changed == nil {
		n.changed = func() {}
	}
	n.plan.Store(&plan{relabelling: &relabelling{}})
	if err := n.Apply(o.Settings); err != nil {
		return nil, err
	}
	return n, nil
}

// Apply takes new settings, whole or not at all. An endpoint whose address
// stays keeps its queue; one that goes loses it.
func (n *Notifier) Apply(s Settings) error {
	apply, err := n.Prepare(s)
	if err != nil {
		return err
	}
	apply()
	return nil
}

// Prepare checks settings, reads the certificates that they name, and returns
// what makes them those in force.
func (n *Notifier) Prepare(s Settings) (apply func(), err error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r, err := newRelabelling(&s)
	if err != nil {
		return nil, err
	}
	r.external = maps.Clone(r.external)
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
	limits := limits{queue: s.QueueSize, batch: s.BatchSize, body: s.MaxBody}
	return func() { n.install(r, labels, clients, limits) }, nil
}

func (n *Notifier) install(r *relabelling, labels []string, clients []*client, l limits) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := map[string]*sender{}
	for _, s := range n.plan.Load().senders {
		old[s.label] = s
	}
	next := &plan{relabelling: r}
	for i, label := range labels {
		s := old[label]
		if s == nil {
			s = newSender(label, n.log, n.changed)
		}
		if clients[i].plain() {
			s.log.Warn("Credentials are sent unencrypted: the address begins with http://")
		}
		s.configure(clients[i], l)
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

// start runs a sender where Run is under way.
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

// Send queues alerts for every endpoint, in place of older states of them. It
// never blocks, and may be called from any goroutine; of one alert, the state
// that is told last is taken for the newest.
func (n *Notifier) Send(alerts ...Alert) {
	p := n.plan.Load()
	now := time.Now()
	items := make([]*item, 0, len(alerts))
	for i := range alerts {
		ls, keep := p.relabelling.apply(alerts[i].Labels)
		if !keep {
			n.relabelDropped.Add(1)
			continue
		}
		if len(p.senders) > 0 {
			items = append(items, newItem(&alerts[i], ls, now))
		}
	}
	for _, s := range p.senders {
		s.add(items)
	}
	n.changed()
}

// Run sends until ctx is done, and for up to Options.Grace what is queued then.
// It is to be called once.
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
