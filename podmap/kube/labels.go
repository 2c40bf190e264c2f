package kube

import (
	"cmp"
	"path"
	"slices"
)

// maxLabels is how many labels are kept of one pod.
const maxLabels = 32

// maxLabelValue is what the API server accepts as a label's value, in bytes.
const maxLabelValue = 63

// allowList says which labels are kept.
type allowList []string

// rank returns the first pattern that key matches, or false where no pattern
// does.
func (l allowList) rank(key string) (int, bool) {
	if key == "" || len(key) > maxLabelKey {
		return 0, false
	}
	i := slices.IndexFunc(l, func(pattern string) bool {
		ok, err := path.Match(pattern, key)
		return ok && err == nil
	})
	return i, i >= 0
}

// label is one that is allowed.
type label struct {
	rank       int
	key, value string
}

// labels are the best that a pod has, at most maxLabels.
type labels []label

// add takes a label in and reports whether it or another was left out.
func (ls *labels) add(l label) (left bool) {
	if i := slices.IndexFunc(*ls, func(o label) bool { return o.key == l.key }); i >= 0 {
		(*ls)[i] = l
		return false
	}
	if len(*ls) < maxLabels {
		*ls = append(*ls, l)
		return false
	}
	worst := 0
	for i := range *ls {
		if compareLabels((*ls)[i], (*ls)[worst]) > 0 {
			worst = i
		}
	}
	if compareLabels(l, (*ls)[worst]) < 0 {
		(*ls)[worst] = l
	}
	return true
}

func compareLabels(a, b label) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.key, b.key))
}

// table returns the labels by key, nil where there are none.
func (ls labels) table() map[string]string {
	if len(ls) == 0 {
		return nil
	}
	m := make(map[string]string, len(ls))
	for _, l := range ls {
		m[l.key] = l.value
	}
	return m
}
