package collector

import (
	"fmt"
	"slices"
	"strings"
)

// Level is the part of a family that --metrics.detail=standard serves. The
// zero value is the whole family. The rest is served with
// --metrics.detail=full, and of a device that needs attention.
type Level struct {
	serves selection
	label  string
	values []string
}

type selection uint8

const (
	whole selection = iota
	nothing
	unlessZero
	with
	without
)

// onAttention: no series.
var onAttention = Level{serves: nothing}

// inForce: series whose value is not 0. Of a set of states that is the state in
// force. Of a counter it is what has happened: its first increase is from absence,
// so a family with a sum that is always served must stand beside it.
var inForce = Level{serves: unlessZero}

// only: series whose label has one of the values.
func only(label string, values ...string) Level {
	return Level{serves: with, label: label, values: values}
}

// except: series whose label has none of the values.
func except(label string, values ...string) Level {
	return Level{serves: without, label: label, values: values}
}

// Serves reports whether the standard page can have the series of m with these
// label values.
func (m *Metric) Serves(labels []string) bool {
	l := &m.Level
	switch l.serves {
	case nothing:
		return false
	case with, without:
		i := slices.Index(m.Labels, l.label)
		return slices.Contains(l.values, labels[i]) == (l.serves == with)
	}
	return true
}

// HidesZero reports whether the standard page leaves a series of the family out
// while its value is 0.
func (l Level) HidesZero() bool { return l.serves == unlessZero }

// String describes the serves: "all", "none", "not 0", "unit: sm, tensor" or
// "code: not not_supported".
func (l Level) String() string {
	switch l.serves {
	case nothing:
		return "none"
	case unlessZero:
		return "not 0"
	case with:
		return fmt.Sprintf("%s: %s", l.label, strings.Join(l.values, ", "))
	case without:
		return fmt.Sprintf("%s: not %s", l.label, strings.Join(l.values, ", not "))
	}
	return "all"
}
