package sim

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// Package podmap finds every device of the two nodes' pods, with no
// configuration but that of generic-device-plugin, and the list to be complete
// at once.
func TestPodmapFindsTheDevices(t *testing.T) {
	for scenario, want := range map[string]map[string]string{
		"h100-8": {
			"training/llm-0": "gpu 0, gpu 1, gpu 2", "inference/chat-6b9f7d5c4-tq8zn": "gpu 3",
			"research/segment-0": "mig 4/0", "research/speech-0": "mig 4/1", "notebooks/jupyter-small-0": "mig 4/2", "research/probe-0": "mig 4/3",
			"analytics/simulate-0": "gpu 5 shared", "analytics/explore-0": "gpu 5 shared", "notebooks/jupyter-large-0": "gpu 6",
		},
		"mixed-node": {"training/resnet-0": "gpu 0", "training/eval-0": "gpu 1", "ran/fec-0": "0000:1b:00.0", "ran/fec-1": "0000:b1:00.0", "video/transcode-0": "0000:5e:00.1"},
	} {
		n := serving(t, scenario)
		s := stateOf(t, n.state)
		resolver := podmap.Resolver{Generic: []podmap.Generic{{Paths: []string{"/dev/dfl-port.*"}}}}
		index := resolver.Index(s.known())
		w := podmap.New(podmap.Options{Socket: KubeletSocket(n.state)})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		for w.Latest().State != podmap.StateFresh && ctx.Err() == nil {
			select {
			case <-w.Changed():
			case <-ctx.Done():
			}
		}
		m := w.Latest()
		cancel()
		<-done
		got := map[string]string{}
		for _, h := range m.Allocations {
			id, _ := index.Resolve(h.Resource, h.Ref)
			if h.Shared {
				id += " shared"
			}
			name := h.Pod.Namespace + "/" + h.Pod.Name
			got[name] = strings.TrimPrefix(got[name]+", "+id, ", ")
		}
		for name, list := range got {
			parts := strings.Split(list, ", ")
			slices.Sort(parts)
			got[name] = strings.Join(parts, ", ")
		}
		if diff := cmp.Diff(want, got); diff != "" || m.State != podmap.StateFresh {
			t.Errorf("%s: %s, %+v (-want +got):\n%s", scenario, m.State, w.Status(), diff)
		}
	}
}

// known are the devices of the state as an exporter has them.
func (s *State) known() (out []podmap.Known) {
	for i := range s.gpus() {
		name := "gpu " + s.gpuGet(i, "minor_number")
		out = append(out, podmap.Known{
			ID: name, Vendor: "nvidia", PCI: s.address(i), Index: s.gpuGet(i, "minor_number"), Minor: s.gpuGet(i, "minor_number"),
			KubeIDs: []string{s.gpuGet(i, "uuid")},
		})
		for m := range s.migs(i) {
			rec := s.migRecord(device{i, m})
			out = append(out, podmap.Known{
				ID: "mig 4/" + string(rune('0'+m)), Parent: name, Vendor: "nvidia", GI: attr(rec, "gi"), CI: attr(rec, "ci"),
				Profile: attr(rec, "profile"), Start: attr(rec, "start"), KubeIDs: []string{attr(rec, "uuid")},
			})
		}
	}
	for _, key := range s.keys("card.") {
		rec := s.Get(key)
		k := podmap.Known{ID: attr(rec, "at"), PCI: attr(rec, "at")}
		switch attr(rec, "kind") {
		case "dfl":
			k.Vendor, k.Names = "intel", []string{"dfl-port." + strings.TrimPrefix(key, "card.")}
		case "xrt":
			k.Vendor = "amd"
		default:
			continue
		}
		out = append(out, k)
	}
	return out
}
