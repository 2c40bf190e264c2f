package remediation

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Alert is one that Alertmanager lists.
type Alert struct {
	Labels map[string]string
	// Summary is its annotation of that name.
	Summary string
	// StartsAt is when it began to fire.
	StartsAt time.Time
	// Suppressed: a person has silenced it, or another alert inhibits it. What
	// was done for it stays, and nothing is begun.
	Suppressed bool
}

// Name is the value of the label alertname.
func (a *Alert) Name() string { return a.Labels["alertname"] }

// key tells alerts apart by all of their labels.
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

// Alerts are those that fire, with a memory for those that have just gone.
type Alerts struct {
	settle time.Duration
	began  time.Time // of listening without a gap
	known  map[string]*standing
	blind  bool // nobody has answered when asked last
}

type standing struct {
	Alert
	seen   time.Time // when it was listed last
	listed bool      // in the last list
}

// NewAlerts returns a memory that begins at a time. An alert counts as gone
// when it has not been listed for settle.
func NewAlerts(settle time.Duration, now time.Time) *Alerts {
	return &Alerts{settle: settle, began: now, known: map[string]*standing{}, blind: true}
}

// Listed takes what all Alertmanagers list that have answered. After a gap
// everything known counts as listed just now: who answers again may have
// started anew, and know none.
func (a *Alerts) Listed(now time.Time, list []Alert) {
	listed := map[string]*standing{}
	for _, alert := range list {
		key := alert.key()
		if s := listed[key]; s != nil {
			s.merge(&alert)
			continue
		}
		listed[key] = &standing{alert, now, true}
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

// Missed says that no Alertmanager has answered.
func (a *Alerts) Missed() { a.blind = true }

// merge takes what another Alertmanager lists of the same alert. It may have
// heard of a silence earlier, or of the alert later.
func (s *standing) merge(other *Alert) {
	s.Suppressed = s.Suppressed || other.Suppressed
	if other.StartsAt.Before(s.StartsAt) {
		s.StartsAt = other.StartsAt
	}
}

// settled reports whether what is not known to fire may be taken for gone:
// alerts have been listed for as long as one may be missing from a list.
func (a *Alerts) settled(now time.Time) bool {
	return !a.blind && now.Sub(a.began) > a.settle
}

// firing reports whether the alert is one to act for: not one that has just
// gone, that somebody suppresses, or of which nobody answers whether it fires.
func (a *Alerts) firing(s *standing) bool {
	return !a.blind && s.listed && !s.Suppressed
}

// standing returns the alerts that fire or have just gone, in an order that
// depends on nothing else.
func (a *Alerts) standing() []*standing {
	list := make([]*standing, 0, len(a.known))
	for _, s := range a.known {
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y *standing) int {
		return cmp.Or(x.StartsAt.Compare(y.StartsAt), strings.Compare(x.key(), y.key()))
	})
	return list
}
