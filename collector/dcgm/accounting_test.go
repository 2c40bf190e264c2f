//go:build linux && cgo

package dcgm

import (
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// accountsOf returns the accounts of a GPU by process.
func accountsOf(r collector.Round, gpu int) map[int]collector.Account {
	list := class(r, collector.GPU)
	if gpu >= len(list) || list[gpu].Accounts == nil {
		return nil
	}
	m := map[int]collector.Account{}
	for _, a := range list[gpu].Accounts {
		m[a.PID] = a
	}
	return m
}

// accounted has processes accounted for, at an interval that a test can wait
// for.
var accounted = Options{Processes: true, AccountInterval: 10 * time.Millisecond}

// Running processes are reported with their use, ended ones with their end; a
// GPU without processes has an empty list, and one with MIG none.
func TestAccounting(t *testing.T) {
	inChild(t, setting{scenario: "h100-8"}, func(s *sampling) {
		s.open(accounted)
		r := s.Until("processes of a GPU that two share", func(r collector.Round, _ error) bool { return len(accountsOf(r, 5)) == 2 })
		for pid, memory := range map[int]float64{51001: 16384 << 20, 51002: 4096 << 20} {
			a := accountsOf(r, 5)[pid]
			if a.MemoryPeak == nil || *a.MemoryPeak != memory || a.Compute == nil || a.Started.IsZero() || !a.Ended.IsZero() {
				s.Errorf("process %d: %+v", pid, a)
			}
		}
		r = s.Until("a GPU without processes", func(r collector.Round, _ error) bool { return accountsOf(r, 7) != nil })
		if got := accountsOf(r, 7); len(got) != 0 {
			s.Errorf("processes of GPU 7: %v", got)
		}
		if got := accountsOf(r, 4); got != nil {
			s.Errorf("processes of a GPU with MIG: %v", got)
		}
		s.Inject("process-end", "51002")
		r = s.Until("the end of a process", func(r collector.Round, _ error) bool { return !accountsOf(r, 5)[51002].Ended.IsZero() })
		ended := accountsOf(r, 5)[51002]
		if ended.Ended.Before(ended.Started) || *ended.MemoryPeak != 4096<<20 {
			s.Errorf("ended: %+v", ended)
		}
		if other := accountsOf(r, 5)[51001]; !other.Ended.IsZero() {
			s.Errorf("the other ended too: %+v", other)
		}
		if again := accountsOf(s.Round(), 5)[51002]; again.Ended != ended.Ended {
			s.Errorf("reported again as %+v, before %+v", again, ended)
		}
	})
}

// Without the option nothing is turned on.
func TestAccountingOff(t *testing.T) {
	inChild(t, setting{scenario: "h100-8"}, func(s *sampling) {
		s.Round()
		for _, d := range s.Round().Devices {
			if d.Accounts != nil {
				s.Errorf("%s has accounts: %v", d.ID, d.Accounts)
			}
		}
	})
}

// Without root accounting cannot be turned on, and a library may lack the
// function: that is counted, and nothing else suffers.
func TestAccountingRefused(t *testing.T) {
	for name, c := range map[string]struct {
		set  setting
		want string
	}{
		"root":     {setting{scenario: "a100", faults: [][]string{{"error", "nvmlDeviceSetAccountingMode", "NO_PERMISSION"}}}, "dcgmWatchFields requires_root"},
		"function": {setting{scenario: "a100", missing: []string{"dcgmGetValuesSince_v2"}}, "dcgmGetValuesSince_v2 function_not_found"},
		"read":     {setting{scenario: "a100", faults: [][]string{{"dcgm-error", "dcgmGetValuesSince_v2", "GENERIC_ERROR"}}}, "dcgmGetValuesSince_v2 generic_error"},
	} {
		t.Run(name, func(t *testing.T) {
			inChild(t, c.set, func(s *sampling) {
				s.open(accounted)
				if n := calls(s.Round())[c.want]; n == 0 {
					s.Errorf("%s is not counted", c.want)
				}
				for _, d := range class(s.Round(), collector.GPU) {
					if d.Accounts != nil || d.Down != "" {
						s.Errorf("%s: %v, down %q", d.ID, d.Accounts, d.Down)
					}
				}
			})
		})
	}
}

// A GPU that refuses costs its own accounts only.
func TestAccountingOfTheOthers(t *testing.T) {
	inChild(t, setting{scenario: "h100-8", faults: [][]string{{"error", "nvmlDeviceSetAccountingMode", "UNKNOWN", "2"}}}, func(s *sampling) {
		s.open(accounted)
		r := s.Until("accounts of the others", func(r collector.Round, _ error) bool { return len(accountsOf(r, 3)) > 0 && len(accountsOf(r, 0)) > 0 })
		if got := accountsOf(r, 2); got != nil {
			s.Errorf("GPU 2 has %v", got)
		}
	})
}
