package kube_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// part is a field of an encoded message: its number, then text, a number or parts.
func part(n protowire.Number, content any) []byte {
	switch c := content.(type) {
	case string:
		return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), c)
	case int:
		return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), uint64(c))
	case [][]byte:
		return part(n, strings.Join(toStrings(c), ""))
	}
	panic(fmt.Sprintf("%T", content))
}

func toStrings(parts [][]byte) (list []string) {
	for _, p := range parts {
		list = append(list, string(p))
	}
	return list
}

// corePod is a core v1.Pod with a secret in the environment of its container.
func corePod(name, uid string) []byte {
	metadata := [][]byte{
		part(1, name), part(3, "ml"), part(5, uid), part(8, [][]byte{part(1, 1767225600), part(2, 0)}),
		part(11, [][]byte{part(1, "team"), part(2, "speech")}), part(11, [][]byte{part(1, "password"), part(2, "hunter2")}),
		part(13, [][]byte{part(1, "StatefulSet"), part(3, "train"), part(6, 1)}),
	}
	env := part(7, [][]byte{part(1, "TOKEN"), part(2, "hunter2")})
	return append(part(1, metadata), part(2, [][]byte{part(2, [][]byte{part(1, "main"), env})})...)
}

// kubelet serves the pods API.
type kubelet struct {
	pods.UnimplementedPodsServer
	starting bool
	list     atomic.Pointer[pods.ListPodsResponse]
}

func (k *kubelet) ready() error {
	if k.starting {
		return status.Error(codes.FailedPrecondition, "Kubelet is initializing")
	}
	return nil
}

func (k *kubelet) GetPod(context.Context, *pods.GetPodRequest) (*pods.GetPodResponse, error) {
	if err := k.ready(); err != nil {
		return nil, err
	}
	return nil, status.Error(codes.NotFound, "pod with UID none not found")
}

func (k *kubelet) ListPods(context.Context, *pods.ListPodsRequest) (*pods.ListPodsResponse, error) {
	return k.list.Load(), k.ready()
}

func (k *kubelet) serve(t *testing.T, socket string) *grpc.Server {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pods.RegisterPodsServer(s, k)
	go s.Serve(l)
	return s
}

// TestKubelet: pods come from the kubelet as soon as it serves them, without an API
// server, and nothing of their environment is kept.
func TestKubelet(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "pods.sock")
	w, err := kube.New(kube.Options{Kubelet: socket, Labels: []string{"team"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	await := func(what string, ok func() bool) {
		t.Helper()
		for begin := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Since(begin) > time.Minute {
				t.Fatalf("not %s: %+v, %+v", what, w.Status(), w.Latest())
			}
		}
	}
	await("without the API", func() bool { return w.Status().Pods.Reason != "" })
	if s := w.Status().Pods.State; s != kube.StateNone {
		t.Errorf("without a socket the state is %q", s)
	}
	if _, known := w.Ready(ctx); known {
		t.Error("without a socket the readiness is known")
	}

	starting := &kubelet{starting: true}
	s := starting.serve(t, socket)
	await("starting", func() bool {
		ready, known := w.Ready(ctx)
		return known && !ready && strings.Contains(w.Status().Pods.Reason, "Kubelet is initializing")
	})
	s.Stop()

	k := &kubelet{}
	k.list.Store(&pods.ListPodsResponse{Pods: [][]byte{corePod("train-0", "uid-0")}})
	defer k.serve(t, socket).Stop()
	await("synchronized", func() bool { return w.Latest().State == kube.StateFresh })
	if ready, known := w.Ready(ctx); !ready || !known {
		t.Errorf("ready %t, known %t", ready, known)
	}
	if got := fmt.Sprintf("%+v", w.Latest().Pods); got != "[{Namespace:ml Name:train-0 UID:uid-0 Labels:map[team:speech] Context: "+
		"Controller:{Kind:StatefulSet Name:train} Workload:{Kind:StatefulSet Name:train} Created:2026-01-01 00:00:00 +0000 UTC Deleted:0001-01-01 00:00:00 +0000 UTC}]" {
		t.Error(got)
	}
	k.list.Store(&pods.ListPodsResponse{Pods: [][]byte{corePod("train-2", "uid-2")}})
	await("changed", func() bool {
		old, _ := w.Latest().PodOf("uid-0")
		_, found := w.Latest().PodOf("uid-2")
		return found && !old.Deleted.IsZero() && old.Labels["team"] == "speech"
	})
	if all := fmt.Sprintf("%+v %+v", w.Latest(), w.Status()); strings.Contains(all, "hunter2") {
		t.Error(all)
	}
}
