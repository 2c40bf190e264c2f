package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/accel-exporter/accel-exporter/internal/sim"
)

// This test binary is also the programs that its tests start, by this variable.
const roleVar = "ACCEL_SIM_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "accel-sim":
		main()
		os.Exit(0)
	case "exporter":
		for _, arg := range os.Args[1:] {
			if socket, ok := strings.CutPrefix(arg, "--podresources.socket="); ok {
				pods, err := pods(socket)
				fmt.Println(pods, err)
				os.Exit(7)
			}
		}
		os.Exit(8)
	}
	os.Exit(m.Run())
}

// pods is how many pods the kubelet at a socket lists.
func pods(socket string) (int, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	resp, err := podresources.NewPodResourcesListerClient(conn).List(ctx, &podresources.ListPodResourcesRequest{})
	return len(resp.GetPodResources()), err
}

// self is this binary in a role.
func self(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// The program finds a kubelet that answers, and accel-sim ends as the program
// does.
func TestRunWithPods(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"--scenario=h100-8": "11 <nil>\n", "--no-pods": ""} {
		cmd := self(t, "accel-sim", "--state="+state, "--fixtures=../../fixtures", "run", flag, "--library=main.go", "--", "env", roleVar+"=exporter", exe)
		out, err := cmd.Output()
		status := map[string]int{"--scenario=h100-8": 7, "--no-pods": 8}[flag]
		if string(out) != want || cmd.ProcessState.ExitCode() != status {
			t.Errorf("%s: %q, %v; want %q and status %d", flag, out, err, want, status)
		}
	}
	if n, err := pods(sim.KubeletSocket(state)); status.Code(err) != codes.Unavailable {
		t.Errorf("the kubelet outlives the program: %d pods, %v", n, err)
	}
}
