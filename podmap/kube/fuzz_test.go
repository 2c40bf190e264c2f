package kube

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

var fuzzedLabels = allowList{"team", "app.kubernetes.io/*", "x-?"}

const fuzzedLimit = 1 << 16

// checkObject checks that an object has only allowed labels and is within the limits.
func checkObject(t *testing.T, o *object) {
	t.Helper()
	if len(o.labels) > maxLabels || len(o.devices) > maxSliceDevices || len(o.templateHashes) > len(templateLabels) {
		t.Fatalf("%d labels, %d devices, %d hashes", len(o.labels), len(o.devices), len(o.templateHashes))
	}
	for key, value := range podOf(o).Labels {
		allowed := slices.ContainsFunc(fuzzedLabels, func(p string) bool {
			ok, _ := path.Match(p, key)
			return ok
		})
		if !allowed || len(key) > maxLabelKey || len(value) > maxLabelValue {
			t.Fatalf("label %q=%q", key, value)
		}
	}
	for _, s := range []string{o.namespace, o.name, o.uid, o.version, o.node, o.driver, o.pool, o.controller.Kind, o.controller.Name} {
		if len(s) > maxName {
			t.Fatalf("%d bytes: %q", len(s), s)
		}
	}
	if len(o.context) > maxContext {
		t.Fatalf("a trace context of %d bytes", len(o.context))
	}
}

const fuzzedPod = `{"kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"c","labels":{"team":"x","password":"y","app.kubernetes.io/n":"\u00e9\ud83d\ude00"},"annotations":{"other":"x","traceparent":"00-1-2-01"},` +
	`"ownerReferences":[{"kind":"ReplicaSet","name":"w-1","controller":true}],"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"node","containers":[{"env":[1.5e3,null,true]}]},"status":{"phase":"Running"}}`

const fuzzedSlice = `{"kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"node","pool":{"name":"p","generation":1,"resourceSliceCount":2},` +
	`"devices":[{"name":"gpu-0","attributes":{"uuid":{"string":"GPU-1"},"minor":{"int":0}}},{"name":"gpu-1","basic":{"attributes":{"pciAddr":{"string":"0000:c1:00.0"}}}}]}}`

// FuzzList: for any list, kept objects are allowed and within the limits.
func FuzzList(f *testing.F) {
	f.Add([]byte(`{"kind":"PodList","metadata":{"resourceVersion":"5","continue":"t"},"items":[` + fuzzedPod + `,` + fuzzedPod + `]}`))
	f.Add([]byte(`{"items":[` + fuzzedSlice + `],"kind":"PodList","metadata":{"resourceVersion":"5"}}`))
	f.Add([]byte(`{"kind":"Status","status":"Failure","code":410,"message":"gone","details":{"retryAfterSeconds":3}}`))
	f.Add([]byte(`{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":null}`))
	f.Add([]byte(strings.Repeat(`[`, 300)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > fuzzedLimit {
			return
		}
		var objects []*object
		p, err := readList(bytes.NewReader(data), "Pod", fuzzedLimit, func(d *document) {
			o := keep(d, fuzzedLabels, []string{"traceparent", "example.com/context"})
			checkObject(t, o)
			objects = append(objects, o)
		})
		if err == nil && (p.Version == "" || len(p.Version) > maxVersion || len(p.Token) > maxToken) {
			t.Fatalf("%+v", p)
		}

		// Every kept object can be found.
		now := time.Unix(1e9, 0)
		pp, ss := pods{node: "node"}, pools{node: "node"}
		pp.replace(slices.DeleteFunc(slices.Clone(objects), func(o *object) bool { return !pp.ours(o) }), now)
		ss.replace(slices.DeleteFunc(slices.Clone(objects), func(o *object) bool { return !ss.ours(o) }), now)
		m := &Map{Pods: pp.list(), Devices: ss.list()}
		for _, pod := range m.Pods {
			if _, ok := m.Pod(pod.Namespace, pod.Name); !ok {
				t.Fatalf("not found: %+v", pod)
			}
		}
		for _, d := range m.Devices {
			if got, ok := m.Device(d.Driver, d.Pool, d.Name); !ok || got != d {
				t.Fatalf("%+v, got %+v", d, got)
			}
		}
	})
}

// FuzzWatch: for any sequence of events, kept objects are allowed and within the limits.
func FuzzWatch(f *testing.F) {
	f.Add([]byte(fmt.Sprintf("{\"type\":\"ADDED\",\"object\":%s}\n{\"object\":%s,\"type\":\"DELETED\"}\n", fuzzedPod, fuzzedPod)))
	f.Add([]byte(fmt.Sprintf("{\"type\":\"ADDED\",\"object\":%s}{\"type\":\"DELETED\",\"object\":%s}", fuzzedSlice, fuzzedSlice)))
	f.Add([]byte(`{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410}}`))
	f.Add([]byte(`{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9","creationTimestamp":null}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > fuzzedLimit {
			return
		}
		now := time.Unix(1e9, 0)
		pp, ss := pods{node: "node"}, pools{node: "node"}
		dec := newDecoder(bytes.NewReader(data), 1<<12)
		for n := 0; ; n++ {
			e, err := readEvent(dec)
			if err != nil {
				break
			}
			if n > len(data)/2 {
				t.Fatal("more events than the text can contain")
			}
			var d document
			e.decode(&d)
			o := keep(&d, fuzzedLabels, nil)
			checkObject(t, o)
			for _, s := range []store{&pp, &ss} {
				switch {
				case !s.ours(o):
				case e.Type == "DELETED":
					s.remove(o, now)
				default:
					s.put(o)
				}
				if current, kept := s.count(); current < 0 || kept < 0 || current > n+1 && s.kind() == "Pod" {
					t.Fatalf("%d current, %d kept after %d events", current, kept, n+1)
				}
			}
		}
		if len(pp.list()) != len(pp.live)+len(pp.gone) || len(ss.list()) > ss.devices() {
			t.Fatalf("%+v %+v", pp, ss)
		}
	})
}
