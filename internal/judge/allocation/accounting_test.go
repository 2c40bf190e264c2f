package allocation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// account adds a process to the driver's accounting. It started at began after the start
// of the test and ran for ran; a negative ran means that it still runs.
func account(pid int, began, ran time.Duration, peak, compute float64) fact {
	return func(d *collector.Device) {
		a := collector.Account{PID: pid, Started: start.Add(began), MemoryPeak: &peak, Compute: &compute}
		if ran >= 0 {
			a.Ended = a.Started.Add(ran)
		}
		d.Accounts = append(d.Accounts, a)
	}
}

// quiet sets an empty list of accounted processes.
func quiet(d *collector.Device) { d.Accounts = []collector.Account{} }

// followed judges several Snapshots, so that the pods of processes are found.
func (r *rig) followed(facts ...fact) {
	for range 3 {
		r.after(3*time.Second, device(gpuA, 0, facts...))
	}
}

// TestAccounts: a process that ends is counted once, for its pod, also on a shared
// device and after the pod has ended.
func TestAccounts(t *testing.T) {
	withProcesses(t, func(t *testing.T, r *rig) {
		r.list(replicas...)
		r.run(1, "a", true)
		r.run(2, "b", true)
		r.run(3, "", false)
		r.after(0, device(gpuA, 0, quiet))
		r.want(collector.AllocationProcessesEnded, "A a 0", "A b 0")
		r.want(collector.AllocationProcessMemoryPeak)
		r.followed(account(1, time.Second, -1, 4*gib, 0.5), account(2, time.Second, -1, gib, 0.1), account(3, time.Second, -1, gib, 0))
		r.want(collector.AllocationProcessMemoryPeak, "A a 4.29497e+09", "A b 1.07374e+09")
		r.want(collector.AllocationProcessSeconds, "A a 0", "A b 0")

		ended := f(account(1, time.Second, 100*time.Second, 6*gib, 0.5), account(2, time.Second, -1, gib, 0.1), account(3, time.Second, 50*time.Second, gib, 0))
		for range 2 { // each counts once
			r.after(100*time.Second, device(gpuA, 0, ended...))
			r.want(collector.AllocationProcessesEnded, "A a 1", "A b 0")
			r.want(collector.AllocationProcessSeconds, "A a 100", "A b 0")
			r.want(collector.ProcessesEnded, "A holder 1", "A other 1", "A unknown 0")
			r.want(collector.AllocationProcessMemoryPeak, "A a 6.44245e+09", "A b 1.07374e+09")
			if got := r.series(collector.AllocationProcessBusy, "engine"); !slices.Equal(got, []string{"A a compute 50", "A b compute 0", "A b memory 0"}) {
				t.Errorf("busy: %q", got)
			}
		}
		// After a time without accounting, as during the restart of a worker,
		// nothing is counted twice.
		r.after(time.Minute, device(gpuA, 0))
		r.want(collector.AllocationProcessMemoryPeak)
		r.want(collector.AllocationProcessesEnded, "A a 1", "A b 0")
		r.after(time.Second, device(gpuA, 0, quiet)).after(time.Second, device(gpuA, 0, ended...))
		r.want(collector.AllocationProcessesEnded, "A a 1", "A b 0")
		// The pod ends before the record of its process.
		r.list()
		r.after(time.Second, device(gpuA, 0, ended...))
		r.after(time.Second, device(gpuA, 0, account(2, time.Second, 200*time.Second, gib, 0.1)))
		r.want(collector.AllocationProcessesEnded, "A a 1", "A b 1")
		r.want(collector.AllocationProcessMemoryPeak)
		// A pod of the same name continues the series. The series of an ended pod
		// end after an hour.
		r.list(replicas[1])
		r.after(time.Second, device(gpuA, 0, quiet))
		r.want(collector.AllocationProcessesEnded, "A b 1", "A a 1")
		r.list(replicas[1])
		r.after(2*time.Hour, device(gpuA, 0, quiet))
		r.want(collector.AllocationProcessesEnded, "A b 1")
	})
}

// TestAccountsUnattributed: a process that ended before the first sample is not
// counted. A process of an unknown pod counts for no pod.
func TestAccountsUnattributed(t *testing.T) {
	r := newRig(t, processes)
	r.list(alloc("a", gpu, gpuA))
	past := account(7, -time.Hour, time.Minute, gib, 0.5)
	r.after(time.Second, device(gpuA, 0, past))
	r.want(collector.ProcessesEnded, "A holder 0", "A other 0", "A unknown 0")
	r.after(time.Minute, device(gpuA, 0, past, account(8, 2*time.Second, 5*time.Second, gib, 0.5)))
	r.want(collector.ProcessesEnded, "A holder 0", "A other 0", "A unknown 1")
	r.want(collector.AllocationProcessesEnded, "A a 0")
}

// TestAccountsWithoutUse: the busy time of a pod is absent if that of one of its
// processes is unknown.
func TestAccountsWithoutUse(t *testing.T) {
	withProcesses(t, func(t *testing.T, r *rig) {
		r.list(alloc("a", gpu, gpuA))
		r.run(1, "a", true)
		r.after(0, device(gpuA, 0, quiet))
		unknown := func(ran time.Duration) fact {
			return func(d *collector.Device) {
				account(1, time.Second, ran, gib, 0.5)(d)
				d.Accounts[0].Compute, d.Accounts[0].MemoryPeak = nil, nil
			}
		}
		r.followed(unknown(-1))
		r.after(time.Minute, device(gpuA, 0, unknown(time.Minute)))
		r.want(collector.AllocationProcessSeconds, "A a 60")
		r.want(collector.AllocationProcessBusy)
		r.want(collector.AllocationProcessMemoryPeak)
	})
}

// TestAccountsWithoutProcfs: without the procfs of the node, the pods of processes
// are unknown.
func TestAccountsWithoutProcfs(t *testing.T) {
	r := newRig(t)
	r.list(alloc("a", gpu, gpuA))
	r.after(time.Second, device(gpuA, 0, account(1, 0, -1, gib, 0.5)))
	r.after(time.Minute, device(gpuA, 0, account(1, 0, 30*time.Second, gib, 0.5)))
	r.want(collector.ProcessesEnded, "A holder 0", "A other 0", "A unknown 1")
	r.want(collector.AllocationProcessesEnded, "A a 0")
}

// TestAccountsAreBounded: the number of tracked processes is bounded. Processes beyond
// it are not counted.
func TestAccountsAreBounded(t *testing.T) {
	r := newRig(t, processes)
	r.list(alloc("a", gpu, gpuA))
	r.after(0, device(gpuA, 0, quiet))
	for i := range 30 {
		var many []fact
		for n := range 100 {
			many = append(many, account(100*i+n+1, time.Second, time.Second, gib, 0))
		}
		r.after(2*time.Second, device(gpuA, 0, many...))
	}
	r.want(collector.ProcessesEnded, "A holder 0", "A other 0", "A unknown 1024")
	r.after(time.Hour, device(gpuA, 0, quiet))
	r.after(time.Second, device(gpuA, 0, account(1, time.Hour, time.Second, gib, 0)))
	r.want(collector.ProcessesEnded, "A holder 0", "A other 0", "A unknown 1025")
}
