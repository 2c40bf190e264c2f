package engine

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
)

// Options are what an Engine works with. Gather is needed; zero values of the
// others stand for their defaults.
type Options struct {
	// Gather renders the page; it is asked once an evaluation and must not
	// wait for a device. prometheus.ToTransactionalGatherer makes one of a
	// plain Gatherer.
	Gather prometheus.TransactionalGatherer
	// Rules are the rules to begin with; nil is none.
	Rules *Set
	// Labels are those of the scrape target: job, instance and others. A
	// series that has such a label itself keeps its own.
	Labels map[string]string
	// ExternalLabels are what templates see as $externalLabels. Alerts do not
	// get them; who sends them on adds them.
	ExternalLabels map[string]string
	// ExternalURL is where the exporter is reached, without a trailing slash:
	// $externalURL, and the base of GeneratorURL.
	ExternalURL string
	// Interval is how often the page is gathered and groups without an
	// interval of their own are evaluated: 1 s to 1 h, by default 15 s.
	Interval time.Duration
	// Resend is after how long a firing alert is handed to Notify again: by
	// default a minute.
	Resend time.Duration
	// Limits bound the memory.
	Limits Limits
	// Notify takes the alerts that are to be sent: those that fire, when they
	// begin and every Resend, and those that have resolved, for 15 minutes.
	// It must not block. Nil sends nothing.
	Notify func([]Alert)
	// Evaluated is called after each evaluation and what Notify did with it.
	// It must not block. Nil does nothing.
	Evaluated func()
	// Log receives one line when a failure begins and one when it ends. Nil
	// discards them.
	Log *slog.Logger
}

// Limits bound what an Engine holds. Zero values stand for the defaults.
type Limits struct {
	// Series is how many series are held; more are left out: by default
	// 50000.
	Series int
	// Bytes is what the samples of all series may take; beyond it the series
	// that take most lose their oldest: by default 16 MiB.
	Bytes int
	// Range is how far back a rule may look; rules that look further are
	// skipped and counted: by default 8 days.
	Range time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{Series: cmp.Or(l.Series, 50_000), Bytes: cmp.Or(l.Bytes, 16<<20), Range: cmp.Or(l.Range, 8*24*time.Hour)}
}

// withDefaults returns o with its defaults filled in, or what is wrong with it.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Rules == nil {
		o.Rules = &Set{}
	}
	if o.Notify == nil {
		o.Notify = func([]Alert) {}
	}
	if o.Evaluated == nil {
		o.Evaluated = func() {}
	}
	o.Interval = cmp.Or(o.Interval, 15*time.Second)
	o.Resend = cmp.Or(o.Resend, time.Minute)
	o.Limits = o.Limits.withDefaults()
	if o.Interval < time.Second || o.Interval > time.Hour {
		errs = append(errs, fmt.Errorf("option Interval is %v; accepted is 1s to 1h", o.Interval))
	}
	if o.Resend < 0 || o.Limits.Series < 0 || o.Limits.Bytes < 0 || o.Limits.Range < 0 {
		errs = append(errs, errors.New("options Resend and Limits must not be negative"))
	}
	for _, labels := range []map[string]string{o.Labels, o.ExternalLabels} {
		for name := range labels {
			if !model.LegacyValidation.IsValidLabelName(name) {
				errs = append(errs, fmt.Errorf("label %q: its name is none", name))
			}
		}
	}
	return o, errors.Join(errs...)
}
