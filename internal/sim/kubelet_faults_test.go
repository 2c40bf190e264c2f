package sim

import (
	"context"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// play lets a fault last for a time, or for ever where that is 0s.
func (n *rig) play(fault, lasts string) {
	n.t.Helper()
	if err := findFault(fault).Play(n.t.Context(), n.state, map[string]string{"for": lasts}); err != nil {
		n.t.Error(err)
	}
}

// The kubelet's own faults, each until it is undone.
func TestKubeletMisbehaves(t *testing.T) {
	n := serving(t, "h100-8")
	n.until("at first", has("training/llm-0"))
	before, err := os.Stat(KubeletSocket(n.state))
	if err != nil || time.Since(before.ModTime()) < longUp {
		t.Errorf("the socket is new: %v", err)
	}
	down := fails(codes.Unavailable)
	n.after("kubelet-down", down)
	n.after("kubelet-up", has("training/llm-0"))
	n.after("kubelet-down", down)
	n.after("clear all", has("training/llm-0"))
	after, err := os.Stat(KubeletSocket(n.state))
	if err != nil || !after.ModTime().After(before.ModTime()) {
		t.Errorf("the socket of a kubelet that was down is as old as before: %v", err)
	}

	strike(t, n.state, "kubelet-hang")
	for guard := time.Now(); ; {
		soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := n.list(soon)
		cancel()
		if status.Code(err) == codes.DeadlineExceeded {
			break
		}
		if time.Since(guard) > patience {
			t.Fatalf("it does not hang: %v", err)
		}
	}
	n.after("kubelet-up", has("training/llm-0"))

	n.after("kubelet-garbage", fails(codes.Internal))
	n.after("kubelet-up", has("training/llm-0"))
	n.after("kubelet-remove", down)
	refused(t, n.state, map[string]string{"kubelet-hang": "the kubelet is removed"})
	n.after("kubelet-up", has("training/llm-0"))

	// A restart: the kubelet answers, and omits the pods that it does not know
	// yet.
	ended := make(chan error, 1)
	played, stop := context.WithCancel(t.Context())
	go func() {
		ended <- findFault("kubelet-restart").Play(played, n.state, map[string]string{"for": "1h", "pods": "1"})
	}()
	n.until("restarted", lists("kube-system/kube-apiserver-node"))
	stop()
	<-ended
	n.after("clear all", has("training/llm-0", "kube-system/kube-apiserver-node"))
	n.play("kubelet-restart", "1ms")
	n.until("a short one", has("training/llm-0"))
	n.play("kubelet-restart", "0s")
	n.until("one without an end", lists())
	n.after("kubelet-up", has("training/llm-0"))
	n.play("kubelet-hang", "1ms")
	n.until("a short hang", has("training/llm-0"))
}

// Without its API server a kubelet lists static pods only after a restart.
func TestKubeletWithoutAPIServer(t *testing.T) {
	n := serving(t, "h100-8")
	static := lists("kube-system/kube-apiserver-node")
	for _, end := range []string{"api-server-up", "clear all"} {
		strike(t, n.state, "api-server-down")
		refused(t, n.state, map[string]string{"pod-start a/b gpu:7": "the API server is down", "pod-end llm-0": "the API server is down"})
		n.after("kubelet-restart", static)
		n.after("kubelet-restart --pods=5", static)
		n.after(end, has("training/llm-0"))
	}
}
