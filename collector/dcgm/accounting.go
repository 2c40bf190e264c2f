//go:build linux && cgo

package dcgm

import (
	"cmp"
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

const (
	// maxRecords is the most records of one read; the buffer takes 96 KiB.
	maxRecords = 2048
	// maxAccounts is the most processes that are reported per GPU.
	maxAccounts = 128
	// keepEnded is how long an ended process is reported, by the host engine
	// and to the Sampler: a late or lost round must not lose it.
	keepEnded = 5 * time.Minute
	// maxAccountings bounds the groups into which GPUs are divided where one of
	// them refuses.
	maxAccountings = 8
)

// accounting reads the driver's accounting of processes. Of DCGM's data by
// process, only this describes the process and not the whole GPU.
type accounting struct {
	watches []*watch
	since   map[*watch]int64 // start of the next read, µs since the epoch
	asked   []entity
	next    time.Time
	known   map[entity]map[accountKey]*account
}

// accountKey identifies a process: the kernel reuses PIDs.
type accountKey struct {
	pid     int
	started int64
}

type account struct {
	collector.Account
	reported time.Time // when the host engine last reported it
}

// accountable are the GPUs with accounting: the driver has none with MIG.
func (e *engine) accountable() []entity {
	if !e.options.Processes {
		return nil
	}
	var list []entity
	for _, g := range e.there.gpus {
		if d := e.devices[g]; d != nil && d.down == "" && len(e.instancesOf(g)) == 0 {
			list = append(list, g)
		}
	}
	return list
}

// start watches the GPUs. The processes are read again: a GPU's number may
// belong to another GPU by now.
func (a *accounting) start(e *engine) code {
	a.stop(e)
	a.asked, a.since, a.known = e.accountable(), map[*watch]int64{}, map[entity]map[accountKey]*account{}
	if len(a.asked) == 0 {
		return ok
	}
	if !has("dcgmGetValuesSince_v2") {
		e.calls.count("dcgmGetValuesSince_v2", functionNotFound)
		return ok
	}
	return a.arm(e, a.asked)
}

// arm watches GPUs; those that refuse get separate groups.
func (a *accounting) arm(e *engine, list []entity) code {
	if len(a.watches) >= maxAccountings {
		e.calls.count(callOf(fieldAccounting), maxLimit)
		return ok
	}
	w, c := e.armOn(list, []uint16{fieldAccounting}, terms{e.options.AccountInterval, keepEnded, 0})
	switch {
	case c == ok:
		a.watches = append(a.watches, w)
		return ok
	case c.gone():
		return c
	case len(list) == 1 || c == requiresRoot || c == maxLimit:
		return ok // counted
	}
	half := len(list) / 2
	if c := a.arm(e, list[:half]); c != ok {
		return c
	}
	return a.arm(e, list[half:])
}

// stop ends the watches.
func (a *accounting) stop(e *engine) {
	for _, w := range a.watches {
		e.disarm(w)
	}
	a.watches, a.asked = nil, nil
}

// read adds the accounts to the round, after reading new records when that is
// due.
func (a *accounting) read(e *engine, now time.Time) code {
	if e.options.Processes && !now.Before(a.next) {
		a.next = now.Add(e.options.AccountInterval)
		if !slices.Equal(a.asked, e.accountable()) {
			if c := a.start(e); c != ok {
				return c
			}
		}
		for _, w := range a.watches {
			if c := a.ask(e, w, now); c.gone() {
				return c
			}
		}
		a.forget(e, now)
	}
	for _, w := range a.watches {
		for _, g := range w.entities {
			if d := e.devices[g]; d != nil && a.since[w] > 0 {
				d.now.Accounts = a.list(g)
			}
		}
	}
	return ok
}

// ask reads the records that the host engine has got since the last call.
func (a *accounting) ask(e *engine, w *watch, now time.Time) code {
	// After the clock was set back, later records are older than the last one.
	records, lost, next, c := e.reader.accounts(w, min(a.since[w], now.UnixMicro()))
	if !e.calls.count("dcgmGetValuesSince_v2", c) {
		return c
	}
	a.since[w] = max(next, 1)
	for range lost {
		e.calls.count(callOf(fieldAccounting), maxLimit)
	}
	for i := range records {
		if d := e.devices[entity{gpus, records[i].gpu}]; d != nil {
			if x, is := records[i].account(d.now.Reject); is {
				a.take(d.entity, x, now)
			}
		}
	}
	return ok
}

// take stores an account, unless the process ended long ago.
func (a *accounting) take(g entity, x collector.Account, now time.Time) {
	if !x.Ended.IsZero() && now.Sub(x.Ended) > keepEnded {
		return
	}
	if a.known[g] == nil {
		a.known[g] = map[accountKey]*account{}
	}
	a.known[g][accountKey{x.PID, x.Started.UnixMicro()}] = &account{x, now}
}

// forget drops processes that ended long ago, those that run and are no longer
// reported, and the oldest of too many.
func (a *accounting) forget(e *engine, now time.Time) {
	for g, list := range a.known {
		if e.devices[g] == nil {
			delete(a.known, g)
			continue
		}
		for key, x := range list {
			if x.Ended.IsZero() && now.Sub(x.reported) > 3*e.options.AccountInterval || !x.Ended.IsZero() && now.Sub(x.Ended) > keepEnded {
				delete(list, key)
			}
		}
		if over := len(list) - maxAccounts; over > 0 {
			for _, x := range a.list(g)[:over] {
				delete(list, accountKey{x.PID, x.Started.UnixMicro()})
				e.calls.count(callOf(fieldAccounting), maxLimit)
			}
		}
	}
}

// list returns the processes of a GPU: the ended ones first, by start time. It
// is never nil.
func (a *accounting) list(g entity) []collector.Account {
	list := make([]collector.Account, 0, len(a.known[g]))
	for _, x := range a.known[g] {
		list = append(list, x.Account)
	}
	slices.SortFunc(list, func(a, b collector.Account) int {
		if a.Ended.IsZero() != b.Ended.IsZero() {
			return b.Ended.Compare(a.Ended)
		}
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.PID, b.PID))
	})
	return list
}
