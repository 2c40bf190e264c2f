package remediation

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Alert is an alert as Alertmanager lists it.
type Alert struct {
	Labels map[string]string
	// Summary is its annotation of that name.
	Summary string
	// Pods are the pods that its annotation of that name lists, each as namespace/name.
	// They are no labels, so that the alert stays the same while pods come and go.
	Pods []string
	// StartsAt is when it began to fire.
	StartsAt time.Time
	// Suppressed: it is silenced or inhibited. It causes no new action, and what was
	// done for it stays.
	Suppressed bool
	// Inhibited: it is suppressed by other alerts and by no silence. On a node that
	// was taken out this is no reason to stop: the cordon itself inhibits.
	Inhibited bool
}

// Name is the value of the label alertname.
func (a *Alert) Name() string { return a.Labels["alertname"] }

// key identifies an alert by all of its labels.
func (a *Alert) key() string {
	names := make([]string, 0, len(a.Labels))
	for name := range a.Labels {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name)
		b.WriteByte(0)
		b.WriteString(a.Labels[name])
		b.WriteByte(0)
	}
	return b.String()
}

// Alerts tracks the firing alerts and those that have just disappeared.
type Alerts struct {
	settle time.Duration
	began  time.Time // of lists without a gap
	known  map[string]*tracked
	blind  bool // no Alertmanager answered the last time
}

type tracked struct {
	Alert
	seen   time.Time // when it was listed last
	listed bool      // in the last list
}

// NewAlerts returns an Alerts without alerts. An alert counts as resolved when
// it has not been listed for settle.
func NewAlerts(settle time.Duration, now time.Time) *Alerts {
	return &Alerts{settle: settle, began: now, known: map[string]*tracked{}, blind: true}
}

// Listed adds the alerts of every Alertmanager that answered. After a gap, all
// known alerts count as listed now: an Alertmanager that has restarted lists
// none at first.
func (a *Alerts) Listed(now time.Time, list []Alert) {
	listed := map[string]*tracked{}
	for _, alert := range list {
		key := alert.key()
		if s := listed[key]; s != nil {
			s.merge(&alert)
			continue
		}
		listed[key] = &tracked{alert, now, true}
	}
	if a.blind {
		a.began = now
	}
	for key, s := range a.known {
		if a.blind {
			s.seen = now
		}
		if s.listed = false; listed[key] == nil && now.Sub(s.seen) <= a.settle {
			listed[key] = s
		}
	}
	a.known, a.blind = listed, false
}

// Missed records that no Alertmanager answered.
func (a *Alerts) Missed() { a.blind = true }

// merge adds the same alert of another Alertmanager, which may have received a
// silence earlier, or the alert later.
func (s *tracked) merge(other *Alert) {
	s.Inhibited = (s.Inhibited || !s.Suppressed) && (other.Inhibited || !other.Suppressed)
	s.Suppressed = s.Suppressed || other.Suppressed
	if other.StartsAt.Before(s.StartsAt) {
		s.StartsAt = other.StartsAt
	}
}

// settled reports whether an unlisted alert is resolved: lists have had no gap
// for longer than settle.
func (a *Alerts) settled(now time.Time) bool {
	return !a.blind && now.Sub(a.began) > a.settle
}

// firing reports whether the alert may cause an action: it is in the last list
// and not suppressed, or only inhibited and its node is out.
func (a *Alerts) firing(s *tracked, out bool) bool {
	return !a.blind && s.listed && (!s.Suppressed || s.Inhibited && out)
}

// sorted returns the tracked alerts by the time they began.
func (a *Alerts) sorted() []*tracked {
	list := make([]*tracked, 0, len(a.known))
	for _, s := range a.known {
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y *tracked) int {
		return cmp.Or(x.StartsAt.Compare(y.StartsAt), strings.Compare(x.key(), y.key()))
	})
	return list
}
