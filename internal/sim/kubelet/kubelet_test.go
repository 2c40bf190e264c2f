package kubelet_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is a client that reconnects, as those in the field do.
func client(t *testing.T, socket string) podresources.PodResourcesListerClient {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return podresources.NewPodResourcesListerClient(conn)
}

func names(t *testing.T, c podresources.PodResourcesListerClient) []string {
	t.Helper()
	var resp *podresources.ListPodResourcesResponse
	err := status.Error(codes.Unavailable, "not called yet")
	for status.Code(err) == codes.Unavailable { // the result of a connection that has just broken
		resp, err = c.List(t.Context(), &podresources.ListPodResourcesRequest{}, grpc.WaitForReady(true))
	}
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, p := range resp.GetPodResources() {
		list = append(list, p.GetNamespace()+"/"+p.GetName())
	}
	slices.Sort(list)
	return list
}

func TestServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "pod-resources", "kubelet.sock")
	s, err := kubelet.Serve(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	s.SetPods(kubelet.Simple("ns", "b", "r.com/x", "1"), kubelet.Simple("ns", "a", "r.com/x", "2"))
	s.SetAllocatable(map[string][]string{"r.com/x": {"1"}})
	c := client(t, socket)
	if diff := cmp.Diff([]string{"ns/a", "ns/b"}, names(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	free, err := c.GetAllocatableResources(t.Context(), &podresources.AllocatableResourcesRequest{})
	if err != nil || len(free.GetDevices()) != 1 || free.GetDevices()[0].GetDeviceIds()[0] != "1" {
		t.Errorf("allocatable: %v, %v", free, err)
	}
	if _, err := c.Get(t.Context(), &podresources.GetPodResourcesRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("Get: %v", err)
	}

	before, err := os.Stat(socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(kubelet.Simple("ns", "c", "r.com/x", "1")); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(socket); err != nil || os.SameFile(before, after) {
		t.Errorf("the socket after a restart is the one of before: %v", err)
	}
	if diff := cmp.Diff([]string{"ns/c"}, names(t, c)); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	s.Stop()
	if _, err := os.Stat(socket); err != nil {
		t.Errorf("a stopped kubelet took its socket along: %v", err)
	}
}
