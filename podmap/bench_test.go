package podmap

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
)

// crowd returns the pods and GPUs of a node on which 250 pods share 16 GPUs.
func crowd() (pods []kubelet.Pod, devices []Known) {
	for i := range 16 {
		devices = append(devices, Known{ID: fmt.Sprintf("GPU-5f1c9a1e-0000-0000-0000-%012d", i), Vendor: "nvidia", Minor: fmt.Sprint(i)})
	}
	for i := range 250 {
		pods = append(pods, kubelet.Simple("ml", fmt.Sprint("pod-", i), "nvidia.com/gpu", fmt.Sprintf("%s::%d", devices[i%16].ID, i/16)))
	}
	return pods, devices
}

// BenchmarkTake decodes and processes one answer of the kubelet.
func BenchmarkTake(b *testing.B) {
	pods, _ := crowd()
	message, err := proto.Marshal(kubelet.Answer(pods...))
	if err != nil {
		b.Fatal(err)
	}
	l := newLedger(time.Minute, time.Hour, Pod{})
	now := time.Unix(1e9, 0)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(10 * time.Second)
		var resp podresources.ListPodResourcesResponse
		if err := proto.Unmarshal(message, &resp); err != nil {
			b.Fatal(err)
		}
		l.take(now, 1, time.Time{}, readList(&resp))
		l.list()
	}
}

// BenchmarkResolve finds the device of every allocation.
func BenchmarkResolve(b *testing.B) {
	pods, devices := crowd()
	l := newLedger(time.Minute, time.Hour, Pod{})
	l.take(time.Unix(1e9, 0), 1, time.Time{}, readList(kubelet.Answer(pods...)))
	allocations, _ := l.list()
	index := new(Resolver).Index(devices)
	b.ReportAllocs()
	for b.Loop() {
		for i := range allocations {
			if id, _ := index.Resolve(allocations[i].Resource, allocations[i].Ref); id == "" {
				b.Fatal(allocations[i])
			}
		}
	}
}

// BenchmarkIndex builds the index of the devices.
func BenchmarkIndex(b *testing.B) {
	_, devices := crowd()
	b.ReportAllocs()
	for b.Loop() {
		new(Resolver).Index(devices)
	}
}
