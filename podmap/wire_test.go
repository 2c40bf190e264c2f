package podmap

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
)

// TestAPI holds what is read of the API against Kubernetes' own library.
func TestAPI(t *testing.T) {
	if methodList != podresources.PodResourcesLister_List_FullMethodName || methodAllocatable != podresources.PodResourcesLister_GetAllocatableResources_FullMethodName {
		t.Error("the methods have other names")
	}
	for message, fields := range map[protoreflect.ProtoMessage]map[protoreflect.Name]protoreflect.FieldNumber{
		&podresources.ListPodResourcesResponse{}:     {"pod_resources": listPods},
		&podresources.AllocatableResourcesResponse{}: {"devices": allocatableDevices},
		&podresources.PodResources{}:                 {"name": podName, "namespace": podNamespace, "containers": podContainers},
		&podresources.ContainerResources{}:           {"name": containerName, "devices": containerDevices, "dynamic_resources": containerClaims},
		&podresources.ContainerDevices{}:             {"resource_name": devicesResource, "device_ids": devicesIDs},
		&podresources.DynamicResource{}:              {"claim_name": claimName, "claim_namespace": claimNamespace, "claim_resources": claimResources},
		&podresources.ClaimResource{}:                {"driver_name": claimedDriver, "pool_name": claimedPool, "device_name": claimedDevice, "share_id": claimedShare},
	} {
		d := message.ProtoReflect().Descriptor()
		for name, number := range fields {
			f := d.Fields().ByName(name)
			if f == nil || f.Number() != number || f.Kind() != protoreflect.StringKind && f.Kind() != protoreflect.MessageKind {
				t.Errorf("%s.%s is not field %d", d.Name(), name, number)
			}
		}
	}
}

// byLibrary is readList as the library's types have it.
func byLibrary(resp *podresources.ListPodResourcesResponse) *answer {
	a := &answer{pods: map[Pod]struct{}{}, holds: map[holdKey]*listed{}}
	for _, p := range resp.GetPodResources() {
		pod := Pod{Namespace: p.GetNamespace(), Name: p.GetName()}
		switch {
		case pod.Name == "":
			a.malformed++
			continue
		case len(a.pods) >= maxPods || tooLong(pod.Name, pod.Namespace):
			a.overflow++
			continue
		}
		a.pods[pod] = struct{}{}
		for _, c := range p.GetContainers() {
			for _, d := range c.GetDevices() {
				for _, id := range d.GetDeviceIds() {
					a.add(holdKey{pod: pod, resource: d.GetResourceName(), device: id}, "", c.GetName(), false)
				}
			}
			for _, claim := range c.GetDynamicResources() {
				for _, r := range claim.GetClaimResources() {
					key := holdKey{pod: pod, resource: r.GetDriverName(), device: r.GetDeviceName(), pool: r.GetPoolName(), share: r.GetShareId()}
					a.add(key, claim.GetClaimNamespace()+"/"+claim.GetClaimName(), c.GetName(), true)
				}
			}
		}
	}
	for _, l := range a.holds {
		slices.Sort(l.containers)
		l.containers = slices.Compact(l.containers)
	}
	return a
}

// FuzzAnswer: whatever the bytes of an answer say, what is taken from it is
// within the limits, and what Kubernetes' own library takes from it.
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
		f.Add(append(b[:len(b):len(b)], b...)) // protobuf's way to add to a message
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkAllocatable(t, b)
		var resp podresources.ListPodResourcesResponse
		libraryErr := proto.Unmarshal(b, &resp)
		got, err := readList(b)
		if err != nil {
			if libraryErr == nil {
				t.Fatalf("the library reads it: %v", err)
			}
			return
		}
		for key, l := range got.holds {
			if _, ok := got.pods[key.pod]; !ok || key.device == "" || key.resource == "" || len(key.device) > maxText || len(l.containers) > maxContainers {
				t.Fatalf("%+v: %+v", key, l)
			}
		}
		if libraryErr != nil {
			return // in a part that is not read
		}
		want := byLibrary(&resp)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(answer{}, holdKey{}, listed{})); diff != "" {
			t.Fatalf("the library reads something else (-library +here):\n%s", diff)
		}
	})
}

func checkAllocatable(t *testing.T, b []byte) {
	t.Helper()
	got, err := readAllocatable(b)
	for _, a := range got {
		if len(a.IDs) == 0 || !slices.IsSorted(a.IDs) || len(a.IDs) != len(slices.Compact(slices.Clone(a.IDs))) {
			t.Fatalf("%+v", a)
		}
	}
	var resp podresources.AllocatableResourcesResponse
	if proto.Unmarshal(b, &resp) != nil {
		return
	}
	if err != nil {
		t.Fatalf("the library reads it: %v", err)
	}
	want, n := map[string]map[string]bool{}, 0
	for _, d := range resp.GetDevices() {
		for _, id := range d.GetDeviceIds() {
			if n++; n <= maxHolds && id != "" && !tooLong(d.GetResourceName(), id) {
				if want[d.GetResourceName()] == nil {
					want[d.GetResourceName()] = map[string]bool{}
				}
				want[d.GetResourceName()][id] = true
			}
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d resources, the library reads %d", len(got), len(want))
	}
	for _, a := range got {
		if !slices.Equal(a.IDs, slices.Sorted(maps.Keys(want[a.Resource]))) {
			t.Fatalf("%+v, the library reads %v", a, want[a.Resource])
		}
	}
}
