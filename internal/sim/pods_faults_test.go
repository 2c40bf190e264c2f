package sim

import (
	"context"
	"errors"
	"fmt"
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

// A pod that is evicted after a Xid has it on each of its devices, by any id,
// while it still runs.
func TestPodDiesOfXid(t *testing.T) {
	for pod, devices := range map[string][]device{
		"llm-0": {{0, -1}, {1, -1}, {2, -1}}, "segment-0": {{4, 0}}, "probe-0": {{4, 3}}, "simulate-0": {{5, -1}},
	} {
		state, _ := installed(t, "h100-8")
		before := stateOf(t, state)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- findFault("pod-evict").Play(ctx, state, map[string]string{"pod": pod, "xid": "79", "after": "1h"})
		}()
		s := before
		for !s.Has("event.1") {
			s = stateOf(t, state)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", pod, err)
		}
		var want, got []string
		for i, d := range devices {
			rec, gi := fmt.Sprintf("gpu=%d type=8 data=79", d.gpu), ""
			if d.mig >= 0 {
				gi = fmt.Sprintf(" gi=%s ci=%s", attr(s.migRecord(d), "gi"), attr(s.migRecord(d), "ci"))
			}
			want, got = append(want, rec+gi), append(got, s.Get(fmt.Sprintf("event.%d", i+1)))
		}
		if diff := cmp.Diff(want, got); diff != "" || s.Has(fmt.Sprintf("event.%d", len(devices)+1)) {
			t.Errorf("%s: the events (-want +got):\n%s", pod, diff)
		}
		if len(s.pids()) != len(before.pids()) || len(s.podsListed()) != len(before.podsListed()) {
			t.Errorf("%s: it is gone before its time", pod)
		}
		strike(t, state, "pod-evict "+pod+" --xid=79")
		s = stateOf(t, state)
		if len(s.pids()) >= len(before.pids()) || len(s.podsListed()) != len(before.podsListed())-1 {
			t.Errorf("%s: it is there after its time", pod)
		}
	}
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
