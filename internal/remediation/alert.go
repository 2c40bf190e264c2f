package remediation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
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
func (a *Alert) key() uint64 { return model.LabelsToSignature(a.Labels) }

// Answer is the answer of one Alertmanager.
type Answer struct {
	// Alertmanager is its host, which is the same in each pass.
	Alertmanager string
	Alerts       []Alert
	// Err is why it did not answer, nil if it did.
	Err error
}

// Alerts tracks the firing alerts and the alerts that have just disappeared.
//
// Alertmanagers do not tell each other their alerts. An alert is therefore resolved only
// when each Alertmanager that listed it answers without it, and after a start only when
// each Alertmanager has answered.
type Alerts struct {
	settle time.Duration
	began  time.Time // of answers without a gap
	known  map[uint64]*tracked
	blind  bool // no Alertmanager answered the last time
	// silent has each Alertmanager without an answer since the start.
	silent map[string]bool
}

type tracked struct {
	Alert
	seen   time.Time // when it was listed last
	listed bool      // in the last answers
	ahead  bool      // the clock of its node is ahead, so it began when it was listed first
	// by has each Alertmanager whose last answer had the alert.
	by map[string]bool
}

// NewAlerts returns an Alerts without alerts. An alert counts as resolved when
// it has not been listed for settle.
func NewAlerts(settle time.Duration, now time.Time) *Alerts {
	return &Alerts{settle: settle, began: now, known: map[uint64]*tracked{}, blind: true, silent: map[string]bool{}}
}

// Listed takes the answers of a pass, one of each Alertmanager. After a gap without any
// answer, all known alerts count as listed now: an Alertmanager that has restarted lists
// none at first.
func (a *Alerts) Listed(now time.Time, answers []Answer) {
	listed, failed, answered := map[uint64]*tracked{}, map[string]bool{}, false
	for _, answer := range answers {
		if answer.Err != nil {
			failed[answer.Alertmanager] = true
			if _, known := a.silent[answer.Alertmanager]; !known {
				a.silent[answer.Alertmanager] = true
			}
			continue
		}
		a.silent[answer.Alertmanager], answered = false, true
		for _, alert := range answer.Alerts {
			key := alert.key()
			was, ahead := a.known[key], alert.StartsAt.After(now)
			switch {
			case was != nil && was.listed && was.ahead:
				alert.StartsAt, ahead = was.StartsAt, true
			case ahead:
				alert.StartsAt = now
			}
			if s := listed[key]; s != nil {
				s.merge(&alert)
			} else {
				listed[key] = &tracked{Alert: alert, seen: now, listed: true, ahead: ahead, by: map[string]bool{}}
			}
			listed[key].by[answer.Alertmanager] = true
		}
	}
	if !answered {
		a.blind = true
		return
	}
	if a.blind {
		a.began = now
	}
	for key, s := range a.known {
		maps.DeleteFunc(s.by, func(host string, _ bool) bool { return !failed[host] })
		if again := listed[key]; again != nil {
			maps.Copy(again.by, s.by)
			continue
		}
		if a.blind || len(s.by) > 0 {
			s.seen = now
		}
		if s.listed = false; now.Sub(s.seen) <= a.settle {
			listed[key] = s
		}
	}
	a.known, a.blind = listed, false
}

// merge adds the same alert of another Alertmanager, which may have received a
// silence earlier, or the alert later.
func (s *tracked) merge(other *Alert) {
	s.Inhibited = (s.Inhibited || !s.Suppressed) && (other.Inhibited || !other.Suppressed)
	s.Suppressed = s.Suppressed || other.Suppressed
	if other.StartsAt.Before(s.StartsAt) {
		s.StartsAt = other.StartsAt
	}
}

// unheard returns which Alertmanager has not answered since the start, or whether no Alertmanager did
// in the last pass; else "".
func (a *Alerts) unheard() string {
	for _, host := range slices.Sorted(maps.Keys(a.silent)) {
		if a.silent[host] {
			return "Alertmanager " + host + " has not answered yet"
		}
	}
	if a.blind {
		return "no Alertmanager answers"
	}
	return ""
}

// settled reports whether an unlisted alert is resolved: answers have had no gap
// for longer than settle.
func (a *Alerts) settled(now time.Time) bool {
	return a.unheard() == "" && now.Sub(a.began) > a.settle
}

// fires reports whether an alert of one of the names is known for a node or device,
// whatever the policy makes of it: a label of any name has the node as its value.
func (a *Alerts) fires(names []string, n *Node) bool {
	for _, s := range a.known {
		if slices.Contains(names, s.Name()) && slices.Contains(slices.Collect(maps.Values(s.Labels)), n.Name) &&
			(n.Device == nil || s.Labels["device"] == n.Device.ID) {
			return true
		}
	}
	return false
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
		return cmp.Or(x.StartsAt.Compare(y.StartsAt), cmp.Compare(x.key(), y.key()))
	})
	return list
}
