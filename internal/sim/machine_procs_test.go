package sim

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

// ownersOf returns the owner of each process of the simulation, as package proc
// finds it in the simulated /proc and the directories of the pods' logs.
func ownersOf(t *testing.T, state string) map[int]string {
	t.Helper()
	procfs := filepath.Join(Root(state), "proc")
	names := map[string]string{}
	dirs, err := os.ReadDir(PodLogs(state))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, d := range dirs {
		name, uid, ok := proc.ParsePodDir(d.Name())
		if !ok {
			t.Errorf("%s is no directory of a pod", d.Name())
		}
		names[uid] = name.Namespace + "/" + name.Name
	}
	out := map[int]string{}
	entries, err := os.ReadDir(procfs)
	if err != nil {
		t.Fatal(err)
	}
	m := proc.New(sysfs.New(procfs))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		o := m.Owner(pid, time.Unix(1e9, 0))
		text := map[proc.Kind]string{proc.Hidden: "hidden", proc.Host: "host", proc.Gone: "gone"}[o.Kind]
		if o.Kind == proc.Pod {
			text = names[o.PodUID]
			if o.Container == "" {
				text += " without a container"
			}
		}
		out[pid] = text + " " + o.Command
	}
	return out
}

// A process is found to be its pod's.
func TestProcessesOfPods(t *testing.T) {
	want := map[int]string{
		21001: "training/llm-0 python3", 21011: "training/llm-0 python3", 21021: "training/llm-0 python3",
		31001: "inference/chat-6b9f7d5c4-tq8zn server", 31002: "inference/chat-6b9f7d5c4-tq8zn nvidia-cuda-mps",
		41001: "research/segment-0 python3", 41002: "research/speech-0 python3", 41003: "research/probe-0 python3",
		51001: "analytics/simulate-0 julia", 51002: "analytics/explore-0 python3", 56001: "notebooks/jupyter-large-0 python3",
	}
	state, _ := installed(t, "h100-8")
	if diff := cmp.Diff(want, ownersOf(t, state)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
