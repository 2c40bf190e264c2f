package engine

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options configure an Engine. Page is required; the zero value of any other
// field stands for its default.
type Options struct {
	// Page has the latest values. It is gathered once per evaluation and must not
	// wait for a device.
	Page prometheus.Gatherer
	// Rules are the initial rules; nil means no rules.
	Rules *Set
	// Labels are the labels of the scrape target: job, instance and others. A
	// series that has such a label keeps its own value.
	Labels map[string]string
	// ExternalLabels are the $externalLabels of templates. Alerts do not get
	// them; the notifier adds them.
	ExternalLabels map[string]string
	// ExternalURL is the address of the exporter without a trailing slash:
	// $externalURL, and the base of GeneratorURL.
	ExternalURL string
	// Interval is the time between two evaluations of a group whose file gives
	// no interval: 1 s to 1 h, by default 15 s.
	Interval time.Duration
	// Resend is the time after which a firing alert is passed to Notify
	// again: by default one minute.
	Resend time.Duration
	// Limits bound memory and time.
	Limits Limits
	// Notify receives the alerts to send: firing alerts when they start and
	// every Resend, and resolved alerts for 15 minutes. It must not block. Nil
	// sends nothing.
	Notify func([]Alert)
	// Log receives one line when a failure starts and one when it ends. Nil
	// discards them.
	Log *slog.Logger
	// Now replaces time.Now.
	Now func() time.Time
}

// Limits bound an Engine. Zero values stand for the defaults.
type Limits struct {
	// Series is the number of series in memory; further ones are left out: by
	// default 50000.
	Series int
	// Bytes bounds the samples of all series; beyond it the largest series
	// lose their oldest samples: by default 16 MiB.
	Bytes int
	// Range is how far back a rule may look; rules that look further are
	// skipped and counted: by default 8 days.
	Range time.Duration
	// Samples is the number of samples, 16 bytes each, that one query may load
	// at a time: by default 2000000. A rule beyond it fails.
	Samples int
	// Time bounds one evaluation of one rule, with its templates: by default
	// 10 s. A rule beyond it fails.
	Time time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Series: cmp.Or(l.Series, 50_000), Bytes: cmp.Or(l.Bytes, 16<<20), Range: cmp.Or(l.Range, 8*24*time.Hour),
		Samples: cmp.Or(l.Samples, 2_000_000), Time: cmp.Or(l.Time, 10*time.Second),
	}
}

// withDefaults returns o with its defaults filled in.
func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Notify == nil {
		o.Notify = func([]Alert) {}
	}
	o.Interval = cmp.Or(o.Interval, 15*time.Second)
	o.Resend = cmp.Or(o.Resend, time.Minute)
	o.Limits = o.Limits.withDefaults()
	return o
}
