package kube_test

import (
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// TestContext: the first annotation of Options.Contexts that the pod has is kept. No
// other annotation is kept.
func TestContext(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct {
		name        string
		annotations object
		want        string
		malformed   uint64
	}{
		{"none", nil, "", 0},
		{"one", object{"other": "x", "traceparent": parent}, parent, 0},
		{"the first", object{"tekton.dev/taskrunSpanContext": "{}", "traceparent": parent, "traceparent2": "x"}, parent, 0},
		{"the second", object{"tekton.dev/taskrunSpanContext": `{"traceparent":"x"}`, "traceparent": ""}, `{"traceparent":"x"}`, 0},
		{"too long", object{"traceparent": strings.Repeat("0", 1025), "tekton.dev/taskrunSpanContext": "{}"}, "{}", 1},
	} {
		subtest(t, c.name, func(t *testing.T, a *api) {
			a.send("ADDED", podsPath, pod("ns", "pod", "u-1", func(meta, _, _ object) { meta["annotations"] = c.annotations }))
			w := a.run(func(o *kube.Options) { o.Contexts = []string{"traceparent", "tekton.dev/taskrunSpanContext"} })
			if p, _ := w.Latest().Pod("ns", "pod"); p.Context != c.want {
				t.Errorf("%q, want %q", p.Context, c.want)
			}
			if n := w.Status().Pods.Malformed; n != c.malformed {
				t.Errorf("%d malformed, want %d", n, c.malformed)
			}
		})
	}
}

func TestCheckContexts(t *testing.T) {
	for keys, want := range map[string]string{
		"traceparent,tracing.k8s.io/traceparent": "",
		"a,":                                     "0 bytes",
		"trace parent":                           "accepted is a key such as",
		strings.Repeat("k", 400):                 "400 bytes",
		"1,2,3,4,5,6,7,8,9":                      "at most 8",
	} {
		err := kube.CheckContexts(strings.Split(keys, ","))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", keys, err)
		}
	}
}
