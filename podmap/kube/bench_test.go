package kube

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkList reads a list of 250 pods of 10 KB each. Most fields are not kept.
func BenchmarkList(b *testing.B) {
	rest := strings.Repeat(`{"name":"VARIABLE","value":"a value of some length","n":[1,2.5,true,null]},`, 120)
	var items []string
	for i := range 250 {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"pod-%d","namespace":"ns","uid":"u-%d","labels":{"team":"x","other":"y"}},"spec":{"nodeName":"node","env":[%s0]},"status":{"phase":"Running"}}`, i, i, rest))
	}
	data := []byte(`{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[` + strings.Join(items, ",") + `]}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		each := func(d *document) { keep(d, fuzzedLabels, nil); n++ }
		if _, err := readList(bytes.NewReader(data), "Pod", 1<<20, each); err != nil || n != 250 {
			b.Fatal(n, err)
		}
	}
}
