package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

// asPod is a Pod as encoding/json reads it.
type asPod struct {
	Metadata struct {
		Namespace, Name, UID string
		Labels               map[string]string
	}
	Spec struct{ NodeName string }
}

var fuzzedLabels = allowList{"team", "app.kubernetes.io/*", "x-?"}

const fuzzedLimit = 1 << 16

// checkObject: nothing is kept that is not allowed, and nothing is larger than
// its limit.
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
	for _, s := range []string{o.namespace, o.name, o.uid, o.staticUID, o.version, o.node, o.driver, o.pool, o.controller.Kind, o.controller.Name, string(o.phase)} {
		if len(s) > maxName {
			t.Fatalf("%d bytes: %q", len(s), s)
		}
	}
	if len(o.context) > maxContext {
		t.Fatalf("a trace context of %d bytes", len(o.context))
	}
	if len(o.status.message) > maxMessage+len("…") {
		t.Fatalf("a message of %d bytes", len(o.status.message))
	}
}

const fuzzedPod = `{"kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"c","labels":{"team":"x","password":"y","app.kubernetes.io/n":"\u00e9\ud83d\ude00"},"annotations":{"other":"x","traceparent":"00-1-2-01"},` +
	`"ownerReferences":[{"kind":"ReplicaSet","name":"w-1","controller":true}],"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"node","containers":[{"env":[1.5e3,null,true]}]},"status":{"phase":"Running"}}`

const fuzzedSlice = `{"kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"node","pool":{"name":"p","generation":1,"resourceSliceCount":2},` +
	`"devices":[{"name":"gpu-0","attributes":{"uuid":{"string":"GPU-1"},"minor":{"int":0}}},{"name":"gpu-1","basic":{"attributes":{"pciAddr":{"string":"0000:c1:00.0"}}}}]}}`

// FuzzList: what is read of a list is bounded and allowed, and a document that
// encoding/json reads is read alike.
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
		p, err := readList(&reader{scanner: newScanner(bytes.NewReader(data)), allow: fuzzedLabels, contexts: []string{"traceparent", "example.com/context"}}, "Pod", fuzzedLimit, func(o *object) {
			checkObject(t, o)
			objects = append(objects, o)
		})
		if err == nil && (p.version == "" || len(p.version) > maxVersion || len(p.token) > maxToken) {
			t.Fatalf("%+v", p)
		}
		same(t, data, p, err, objects)

		// Whatever was read can be told.
		now := time.Unix(1e9, 0)
		pp, ss := pods{node: "node"}, pools{node: "node"}
		pp.replace(slices.DeleteFunc(slices.Clone(objects), func(o *object) bool { return !pp.ours(o) }), now)
		ss.replace(slices.DeleteFunc(slices.Clone(objects), func(o *object) bool { return !ss.ours(o) }), now)
		m := &Map{Pods: pp.tell(), Devices: ss.tell()}
		m.index()
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

// same compares with encoding/json where that is of one mind with this: it
// takes keys in any case, and of a key given twice joins what both say.
func same(t *testing.T, data []byte, p page, err error, objects []*object) {
	t.Helper()
	var list struct {
		Kind     string
		Metadata struct{ ResourceVersion string }
		Items    []asPod
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if dec.Decode(&list) != nil || list.Kind != "PodList" || ambiguous(data) {
		return
	}
	if v := list.Metadata.ResourceVersion; err != nil && v != "" && len(v) <= maxVersion && !deep(data) {
		t.Fatalf("refused: %v", err)
	}
	if err != nil {
		return
	}
	if p.version != list.Metadata.ResourceVersion || len(objects) != len(list.Items) {
		t.Fatalf("%q with %d items, want %q with %d", p.version, len(objects), list.Metadata.ResourceVersion, len(list.Items))
	}
	for i, want := range list.Items {
		o := objects[i]
		for _, pair := range [][2]string{{o.name, want.Metadata.Name}, {o.namespace, want.Metadata.Namespace}, {o.node, want.Spec.NodeName}} {
			if pair[0] != pair[1] && len(pair[1]) <= maxName && !strings.Contains(pair[1], "\ufffd") {
				t.Fatalf("%q, want %q", pair[0], pair[1])
			}
		}
		for key, value := range want.Metadata.Labels {
			_, ok := fuzzedLabels.rank(key)
			if got := podOf(o).Labels[key]; ok && got != value && len(value) <= maxLabelValue && len(o.labels) < maxLabels && !strings.Contains(key+value, "\ufffd") {
				t.Fatalf("label %s: %q, want %q", key, got, value)
			}
		}
	}
}

// ambiguous reports whether a document has a key twice in one object, in any
// case, or a key that is not lower case where it matters.
func ambiguous(data []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var keys []map[string]bool // of each open object; nil of an array
	key := false
	for {
		tok, err := dec.Token()
		if err != nil {
			return false
		}
		switch tok {
		case json.Delim('{'):
			keys = append(keys, map[string]bool{})
			key = true
			continue
		case json.Delim('['):
			keys = append(keys, nil)
			key = false
			continue
		case json.Delim('}'), json.Delim(']'):
			keys = keys[:len(keys)-1]
		default:
			if s, ok := tok.(string); ok && key {
				folded := strings.ToLower(strings.ToUpper(s))
				if keys[len(keys)-1][folded] || strings.ContainsFunc(s, func(r rune) bool { return r > '~' }) {
					return true
				}
				for _, name := range []string{"kind", "metadata", "resourceVersion", "items", "name", "namespace", "labels", "spec", "nodeName", "uid", "status"} {
					if strings.EqualFold(s, name) && s != name {
						return true
					}
				}
				keys[len(keys)-1][folded] = true
				key = false
				continue
			}
		}
		if len(keys) == 0 {
			return false
		}
		key = keys[len(keys)-1] != nil
	}
}

// deep reports whether a document may nest deeper than is read, or have
// something longer in it than is kept.
func deep(data []byte) bool {
	return bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) > maxDepth/2 || len(data) > maxToken
}

// FuzzWatch: each event is bounded and allowed whatever came before it, and
// what a store makes of them is too.
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
		r := &reader{scanner: newScanner(bytes.NewReader(data)), allow: fuzzedLabels}
		for n := 0; ; n++ {
			kind, o, err := readEvent(r, 1<<12)
			if err != nil {
				break
			}
			if n > len(data)/2 {
				t.Fatal("more events than there is text for")
			}
			checkObject(t, o)
			for _, s := range []store{&pp, &ss} {
				switch {
				case !s.ours(o):
				case kind == "DELETED":
					s.remove(o, now)
				default:
					s.put(o)
				}
				if there, kept := s.count(); there < 0 || kept < 0 || there > n+1 && s.kind() == "Pod" {
					t.Fatalf("%d there, %d kept after %d events", there, kept, n+1)
				}
			}
		}
		if len(pp.tell()) != len(pp.live)+len(pp.gone) || len(ss.tell()) > ss.devices() {
			t.Fatalf("%+v %+v", pp, ss)
		}
	})
}
