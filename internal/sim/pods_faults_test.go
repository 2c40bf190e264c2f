package sim

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Processes and pods start, move and end; impossible faults return an error.
func TestPodFaults(t *testing.T) {
	state, _ := installed(t, "h100-8")
	owners := func(when string, want map[int]string) {
		t.Helper()
		got := ownersOf(t, state)
		for pid, owner := range want {
			if got[pid] != owner {
				t.Errorf("%s: %d is of %q, want %q", when, pid, got[pid], owner)
			}
		}
	}
	gpus := func(pid string) (on []string) {
		s := stateOf(t, state)
		for _, key := range s.uses(pid) {
			on = append(on, strings.Split(key, ".")[1]+" "+attr(s.Get(key), "gi"))
		}
		return on
	}
	strike(t, state, "pod-start ml/late-0 gpu:7 mig:4/3 --pid=61001 --memory=512")
	owners("started", map[int]string{61001: "ml/late-0 python3", 61002: "ml/late-0 python3"})
	if diff := cmp.Diff([]string{"7 -1", "4 10"}, append(gpus("61001"), gpus("61002")...)); diff != "" {
		t.Errorf("the processes are on (-want +got):\n%s", diff)
	}
	strike(t, state, "process-start 71001 0 --name=/usr/bin/nvtop")
	strike(t, state, "process-start 71002 0 --pod=ml/late-0")
	owners("strangers", map[int]string{71001: "host nvtop", 71002: "ml/late-0 python3"})
	strike(t, state, "process-end 71001")
	strike(t, state, "pod-finish late-0")
	owners("finished", map[int]string{71001: "", 61001: "", 71002: "", 21001: "training/llm-0 python3"})
	if got := append(gpus("61001"), gpus("71002")...); got != nil {
		t.Errorf("still on %v", got)
	}
	before := podDirs(t, state)
	strike(t, state, "pod-start ml/late-0 gpu:7 --pid=61001")
	after := podDirs(t, state)
	if len(before) != len(after) || slices.Equal(before, after) {
		t.Errorf("a pod that was replaced has not another UID: %v", after)
	}
	strike(t, state, "pod-end late-0")
	owners("ended", map[int]string{61001: ""})
	if got := podDirs(t, state); len(got) != len(after)-1 {
		t.Errorf("its logs are there: %v", got)
	}
	strike(t, state, "mig 4 7g.80gb")
	owners("reshaped", map[int]string{41001: "", 41002: ""})
	strike(t, state, "process-start 21001 3 --pod=training/llm-0")
	strike(t, state, "clear all")
	owners("cleared", map[int]string{21001: "training/llm-0 python3", 41001: "research/segment-0 python3", 71002: ""})
}

func podDirs(t *testing.T, state string) (names []string) {
	t.Helper()
	dirs, err := os.ReadDir(PodLogs(state))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		names = append(names, d.Name())
	}
	return names
}
