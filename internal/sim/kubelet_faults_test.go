package sim

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The kubelet's own faults, each until it is undone.
func TestKubeletMisbehaves(t *testing.T) {
	n := serving(t, "h100-8")
	n.until("at first", has("training/llm-0"))
	before, err := os.Stat(KubeletSocket(n.state))
	if err != nil || time.Since(before.ModTime()) < longUp {
		t.Errorf("the socket is new: %v", err)
	}
	down := func(_ []string, code codes.Code) bool { return code == codes.Unavailable }
	strike(t, n.state, "kubelet-down")
	n.until("down", down)
	strike(t, n.state, "kubelet-up")
	n.until("up", has("training/llm-0"))
	strike(t, n.state, "kubelet-down")
	n.until("down again", down)
	mend(t, n.state, "all")
	n.until("cleared", has("training/llm-0"))
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
	strike(t, n.state, "kubelet-up")
	n.until("goes on", has("training/llm-0"))

	code := func(want codes.Code) func([]string, codes.Code) bool {
		return func(_ []string, got codes.Code) bool { return got == want }
	}
	strike(t, n.state, "kubelet-garbage")
	n.until("answers garbage", code(codes.Internal))
	strike(t, n.state, "kubelet-up")
	n.until("makes sense", has("training/llm-0"))
	strike(t, n.state, "kubelet-limit --count=2")
	n.until("rejects a call", code(codes.ResourceExhausted))
	n.until("after two", has("training/llm-0"))
	strike(t, n.state, "kubelet-pad 5000000")
	n.until("too large an answer", code(codes.ResourceExhausted))
	mend(t, n.state, "all")
	n.until("of the usual size", has("training/llm-0"))
	strike(t, n.state, "kubelet-remove")
	n.until("gone", down)
	refused(t, n.state, map[string]string{"kubelet-hang": "the kubelet is removed"})
	strike(t, n.state, "kubelet-up")
	n.until("there again", has("training/llm-0"))

	// A restart: the kubelet answers, and omits the pods that it does not know
	// yet.
	f := findFault("kubelet-restart")
	ended := make(chan error, 1)
	played, stop := context.WithCancel(t.Context())
	go func() { ended <- f.Play(played, n.state, map[string]string{"for": "1h", "pods": "1"}) }()
	n.until("restarted", func(lines []string, code codes.Code) bool {
		return code == codes.OK && slices.Equal(lines, []string{"kube-system/kube-apiserver-node"})
	})
	stop()
	<-ended
	mend(t, n.state, "all")
	n.until("cleared", has("training/llm-0", "kube-system/kube-apiserver-node"))
	if err := f.Play(t.Context(), n.state, map[string]string{"for": "1ms"}); err != nil {
		t.Error(err)
	}
	n.until("a short one", has("training/llm-0"))
	played, stop = context.WithCancel(t.Context())
	if err := f.Play(played, n.state, map[string]string{"for": "0s"}); err != nil {
		t.Error(err)
	}
	stop()
	n.until("one without an end", func(lines []string, code codes.Code) bool { return code == codes.OK && len(lines) == 0 })
	strike(t, n.state, "kubelet-up")
	n.until("set up", has("training/llm-0"))
	for _, brief := range []string{"kubelet-down", "kubelet-hang"} {
		if err := findFault(brief).Play(t.Context(), n.state, map[string]string{"for": "1ms"}); err != nil {
			t.Error(err)
		}
		n.until(brief+" for a moment", has("training/llm-0"))
	}
}

// Without its API server a kubelet continues; after a restart it lists static
// pods only.
func TestKubeletWithoutAPIServer(t *testing.T) {
	n := serving(t, "h100-8")
	static := func(lines []string, code codes.Code) bool {
		return code == codes.OK && slices.Equal(lines, []string{"kube-system/kube-apiserver-node"})
	}
	for how, end := range map[string]func(){
		"api-server-up": func() { strike(t, n.state, "api-server-up") },
		"clear":         func() { mend(t, n.state, "all") },
	} {
		strike(t, n.state, "api-server-down")
		strike(t, n.state, "kubelet-pad 1") // visible when the previous one is
		n.until(how+": goes on", has("padding/padding", "training/llm-0"))
		strike(t, n.state, "kubelet-pad 0")
		refused(t, n.state, map[string]string{"pod-start a/b gpu:7": "the API server is down", "pod-end llm-0": "the API server is down"})
		strike(t, n.state, "kubelet-restart")
		n.until(how+": restarted", static)
		strike(t, n.state, "kubelet-up")
		strike(t, n.state, "kubelet-restart --pods=5")
		n.until(how+": restarted again", static)
		end()
		n.until(how, has("training/llm-0"))
	}
	if err := findFault("api-server-down").Play(t.Context(), n.state, map[string]string{"for": "1ms"}); err != nil {
		t.Error(err)
	}
	strike(t, n.state, "pod-start a/b gpu:7")
	n.until("up after a time", has("a/b main"))
}

// Two kubelets, one with a path that is too long for a socket.
func TestServeKubeletRefuses(t *testing.T) {
	state, _ := installed(t, "a100")
	if _, err := ServeKubelet(t.Context(), state); err == nil || !strings.Contains(err.Error(), "no kubelet") {
		t.Errorf("outside Kubernetes: %v", err)
	}
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 100), "state")
	if _, err := ServeKubelet(t.Context(), long); err == nil || !strings.Contains(err.Error(), "a socket's path has at most 103 bytes") {
		t.Errorf("a long path: %v", err)
	}
	if _, err := ServeKubelet(t.Context(), filepath.Join(t.TempDir(), "state")); err == nil || !strings.Contains(err.Error(), "no simulation is set up") {
		t.Errorf("nothing there: %v", err)
	}
}

// A kubelet continues when another scenario is set up at its state file: as
// that scenario's, or as none.
func TestKubeletOutlivesTheScenario(t *testing.T) {
	n := serving(t, "h100-8")
	n.until("the first", has("training/llm-0"))
	for scenario, want := range map[string]string{"mixed-node": "ran/fec-0", "h100-8": "training/llm-0"} {
		if err := compiled(t, "no-gpu").Install(n.state); err != nil {
			t.Fatal(err)
		}
		n.until("none", func(_ []string, code codes.Code) bool { return code == codes.Unavailable })
		if err := compiled(t, scenario).Install(n.state); err != nil {
			t.Fatal(err)
		}
		n.until(scenario, has(want))
	}
}
