package kube

import (
	"path"
	"slices"
)

// maxLabels is how many labels are kept of one pod.
const maxLabels = 32

// maxLabelValue is the longest label value that the API server accepts, in
// bytes.
const maxLabelValue = 63

// allowList has the patterns of the labels that are kept.
type allowList []string

// rank returns the index of the first pattern that key matches, or false
// without a match.
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
