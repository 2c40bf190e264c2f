package podmap

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
)

// FuzzAnswer: the data read from any answer is within the limits.
func FuzzAnswer(f *testing.F) {
	claims := kubelet.Pod{
		Namespace: "ns", Name: "claims", Containers: []kubelet.Container{{Name: "a"}, {Name: "b"}},
		Claims: []kubelet.Claim{{Namespace: "ns", Name: "claim", Devices: []kubelet.ClaimDevice{{Driver: "d", Pool: "p", Device: "gpu-0", Share: "s"}}}},
	}
	for _, pods := range [][]kubelet.Pod{nil, {kubelet.Simple("ns", "pod", "nvidia.com/gpu", fuzzedIDs...)}, {claims}} {
		b, err := proto.Marshal(kubelet.Answer(pods...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(append(b[:len(b):len(b)], b...)) // protobuf merges both messages
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var list podresources.ListPodResourcesResponse
		if proto.Unmarshal(b, &list) == nil {
			got := readList(&list)
			for key, l := range got.allocations {
				if _, ok := got.pods[key.pod]; !ok || key.device == "" || key.resource == "" || len(key.device) > maxText || len(l.containers) > maxContainers {
					t.Fatalf("%+v: %+v", key, l)
				}
			}
		}
		var allocatable podresources.AllocatableResourcesResponse
		if proto.Unmarshal(b, &allocatable) == nil {
			for _, a := range readAllocatable(&allocatable) {
				if len(a.IDs) == 0 || !slices.IsSorted(a.IDs) || len(a.IDs) != len(slices.Compact(slices.Clone(a.IDs))) {
					t.Fatalf("%+v", a)
				}
			}
		}
	})
}
