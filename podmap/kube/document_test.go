package kube

import (
	"strings"
	"testing"
)

// TestReadList: the limit applies to each item, keys may have any order, and a field of
// an unexpected type stays empty.
func TestReadList(t *testing.T) {
	long := `{"metadata":{"name":"a","x":"` + strings.Repeat("x", 800) + `"}}`
	for _, c := range []struct {
		name, text string
		items      string
		err        error
	}{
		{"items first", `{"items":[{"metadata":{"name":"a"}}],"metadata":{"resourceVersion":"1"},"kind":"PodList"}`, "a", nil},
		{"no items", `{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":null}`, "", nil},
		{"unexpected types", `{"kind":"PodList","metadata":{"resourceVersion":"1","continue":3},"items":[{"spec":7,"metadata":{"uid":[],"name":"a"}},9]}`, "a ", nil},
		{"large in all", `{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[` + long + "," + long + "," + long + `]}`, "a a a", nil},
		{"a large item", `{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[` + strings.Replace(long, "xxx", strings.Repeat("x", 300), 1) + `]}`, "", errTooLarge},
		{"items of another type", `{"kind":"PodList","items":{}}`, "", errJSON},
	} {
		t.Run(c.name, func(t *testing.T) {
			var names []string
			_, err := readList(strings.NewReader(c.text), "Pod", 1000, func(d *document) { names = append(names, d.Metadata.Name) })
			if got := strings.Join(names, " "); err != c.err || got != c.items {
				t.Errorf("%q, %v; want %q, %v", got, err, c.items, c.err)
			}
		})
	}
}
