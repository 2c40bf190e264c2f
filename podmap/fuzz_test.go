package podmap

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
)

// script simulates a kubelet with arbitrary behaviour. Each byte is one action.
type script struct {
	now        time.Time
	connection uint64
	pods       []kubelet.Pod
	ledger     *ledger
}

var fuzzedIDs = []string{
	"GPU-5f1c9a1e-0001-0001-0001-000000000001", "GPU-5f1c9a1e-0001-0001-0001-000000000001::0", "GPU-5f1c9a1e-0001-0001-0001-000000000001::1",
	"nvidia0", "/dev/nvidia0", "x", "card0-1", "0000:1b:00.0",
}

func (s *script) do(b byte) {
	arg := int(b >> 3)
	switch b & 7 {
	case 0, 1: // a pod with a device, listed again
		s.pods = append(s.pods, kubelet.Simple("ns", fmt.Sprint("pod-", arg&3), fmt.Sprint("r.com/", b&1), fuzzedIDs[arg>>2]))
	case 2: // a pod with a claim
		s.pods = append(s.pods, kubelet.Pod{
			Namespace: "ns", Name: fmt.Sprint("pod-", arg&3), Containers: []kubelet.Container{{Name: "a"}, {Name: "b"}},
			Claims: []kubelet.Claim{{Namespace: "ns", Name: fmt.Sprint("claim-", arg>>2&1), Devices: []kubelet.ClaimDevice{{Driver: "d", Pool: "p", Device: "gpu-0", Share: []string{"", "", "s", "t"}[arg>>3]}}}},
		})
	case 3: // a pod without devices
		s.pods = append(s.pods, kubelet.Pod{Namespace: "ns", Name: fmt.Sprint("other-", arg)})
	case 4:
		s.pods = s.pods[:len(s.pods)*arg/32]
	case 5:
		s.connection++
	case 6:
		s.now = s.now.Add(time.Duration(arg) * 20 * time.Second)
		s.ledger.expireAt(s.now)
	}
}

// exclusive reports whether two allocations conflict. It is a reference implementation
// that compares one pair.
func exclusive(a, b *Allocation) bool {
	if a.Claim != "" || b.Claim != "" {
		same := a.Claim != "" && b.Claim != "" && a.Resource == b.Resource && a.Pool == b.Pool && a.Ref == b.Ref
		return same && a.Claim != b.Claim && (a.Share == b.Share || a.Share == "" || b.Share == "")
	}
	if a.Pod == b.Pod || !a.Ref.global() && a.Resource != b.Resource {
		return false
	}
	if a.Ref.Form != b.Ref.Form || a.Ref.UUID != b.Ref.UUID || a.Ref.Minor != b.Ref.Minor || a.Ref.PCI != b.Ref.PCI || a.Ref.Name != b.Ref.Name {
		return false
	}
	if a.Ref.Form == FormUnknown && a.Ref.ID != b.Ref.ID {
		return false
	}
	return a.Ref.Replica == b.Ref.Replica || a.Ref.Replica == "" || b.Ref.Replica == ""
}

// FuzzList: for any sequence of lists, the allocations are consistent with the lists.
// Two pods have the same unshared device only if they are marked as contested.
func FuzzList(f *testing.F) {
	f.Add([]byte{0, 3, 6, 4, 5, 0})
	f.Add([]byte{0, 8, 16, 24, 0xfe, 1, 33, 2, 66, 5, 4, 6, 0})
	f.Add([]byte("restart and list nothing, then something, then all"))
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 300 {
			return
		}
		l := newLedger(time.Minute, Pod{})
		s := &script{now: time.Unix(1e9, 0), connection: 1, ledger: l}
		for _, b := range program {
			s.do(b)
			if b&7 > 5 {
				continue
			}
			s.now = s.now.Add(time.Second)
			a := readList(kubelet.Answer(s.pods...))
			l.take(s.now, s.connection, time.Time{}, a, inferred)
			holders, superseded := l.list()
			check(t, l, a, holders, superseded)

			// The same answer again changes nothing, except that an allocation may
			// be released because its time has passed.
			s.now = s.now.Add(time.Second)
			l.take(s.now, s.connection, time.Time{}, readList(kubelet.Answer(s.pods...)), inferred)
			again, _ := l.list()
			if !reflect.DeepEqual(holders, again) && len(again) >= len(holders) {
				t.Fatalf("the same list twice yields\n%+v\nthen\n%+v", holders, again)
			}
		}
	})
}

func check(t *testing.T, l *ledger, a *answer, holders, superseded []Allocation) {
	t.Helper()
	reported := map[allocationKey]bool{}
	for i := range holders {
		h := &holders[i]
		key := allocationKey{pod: h.Pod, resource: h.Resource, device: h.DeviceID, pool: h.Pool, share: h.Share}
		if reported[key] {
			t.Fatalf("reported twice: %+v", h)
		}
		reported[key] = true
		if _, listed := a.allocations[key]; listed == h.Kept {
			t.Fatalf("listed %v, kept %v: %+v", listed, h.Kept, h)
		}
		if h.Kept && l.settled {
			t.Fatalf("kept although the list is complete: %+v", h)
		}
		if h.After.After(h.Since) {
			t.Fatalf("out of order: %+v", h)
		}
		conflict := slices.ContainsFunc(holders, func(o Allocation) bool { return exclusive(h, &o) })
		if conflict != h.Contested {
			t.Fatalf("contested %v, has a conflict %v: %+v\namong %+v", h.Contested, conflict, h, holders)
		}
	}
	for i := range superseded {
		h := &superseded[i]
		reported[allocationKey{pod: h.Pod, resource: h.Resource, device: h.DeviceID, pool: h.Pool, share: h.Share}] = true
		if h.Kept {
			t.Fatalf("superseded and kept: %+v", h)
		}
	}
	for key := range a.allocations {
		if !reported[key] {
			t.Fatalf("listed, not reported: %+v", key)
		}
	}
	if !slices.IsSortedFunc(holders, func(a, b Allocation) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.DeviceID, b.DeviceID), cmp.Compare(a.Share, b.Share))
	}) {
		t.Fatalf("not in order: %+v", holders)
	}
}

// FuzzAnswer: every allocation read from any answer has a pod, a resource and a device.
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
		f.Add(append(slices.Clip(b), b...)) // protobuf merges both messages
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var list podresources.ListPodResourcesResponse
		if proto.Unmarshal(b, &list) == nil {
			got := readList(&list)
			for key, l := range got.allocations {
				if _, ok := got.pods[key.pod]; !ok || key.device == "" || key.resource == "" || len(l.containers) == 0 {
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
