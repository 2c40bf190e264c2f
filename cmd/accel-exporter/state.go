package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// stateJSON is the response of /debug/state. It is for diagnosis and can change
// with any version.
type stateJSON struct {
	Seq     uint64              `json:"seq"`
	Time    time.Time           `json:"time"`
	Sources []sourceJSON        `json:"sources"`
	Devices []collector.Device  `json:"devices"`
	Node    []collector.Reading `json:"node"`
	Events  []collector.Event   `json:"events"`
	// Allocation has the pods of each device. Kubelet and APIServer are the
	// states of its sources, nil for a source that is not configured.
	Allocation *allocation.Report `json:"allocation"`
	Kubelet    *podmap.Status     `json:"kubelet,omitempty"`
	APIServer  *kube.Status       `json:"api_server,omitempty"`
}

type sourceJSON struct {
	collector.Status
	WorkerPID     int        `json:"worker_pid,omitempty"`
	ReleasedUntil *time.Time `json:"released_until,omitempty"`
}

// Limits of the /debug endpoints: clients that do not read their response must
// not use up the file descriptors that scrapes need.
const (
	maxStates    = 4
	stateTimeout = 10 * time.Second
)

// debugState serves the latest Snapshot.
func (p *program) debugState(w http.ResponseWriter, _ *http.Request) {
	p.sendState(w, &p.answers.state, func() any { return p.stateJSON() })
}

// debugAllocations serves the allocations of all devices.
func (p *program) debugAllocations(w http.ResponseWriter, _ *http.Request) {
	p.sendState(w, &p.answers.allocations, func() any {
		return whoReport{Report: *p.pods.judge.Report(), Sources: p.sourcesJSON(p.sampler.Latest())}
	})
}

// debugRules serves the rules and their alerts.
func (p *program) debugRules(w http.ResponseWriter, _ *http.Request) {
	if p.alerts == nil {
		http.Error(w, "no rules are evaluated; start the exporter with --rules.builtin, --rules.file or --alertmanager.url", http.StatusNotFound)
		return
	}
	p.sendState(w, &p.answers.rules, func() any { return p.alerts.engine.Report() })
}

// sendState serves a value as JSON to at most maxStates clients at a time.
func (p *program) sendState(w http.ResponseWriter, a *answer, state func() any) {
	if p.states.Add(1) > maxStates {
		p.states.Add(-1)
		http.Error(w, "too many requests for the state at the same time", http.StatusServiceUnavailable)
		return
	}
	defer p.states.Add(-1)
	body, err := a.get(state)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// Only now: a busy machine takes long to make the response.
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stateTimeout)); err != nil {
		p.log.Debug("State has no write deadline", "err", err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Write(body)
}

// mostReuse bounds the age of a response, also where a busy machine took long to
// make it.
const mostReuse = 2 * time.Second

// answer is a response of a /debug endpoint as JSON. It is sent again for ten
// times as long as it took to make, at most mostReuse: however many requests there
// are, they take about a tenth of a core.
type answer struct {
	mu   sync.Mutex
	body []byte
	ends time.Time // of its validity
}

// get returns the response, of the value of state if the last one is too old.
func (a *answer) get(state func() any) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := time.Now()
	if began.Before(a.ends) {
		return a.body, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(state()); err != nil {
		return nil, err
	}
	a.body = b.Bytes()
	valid := min(10*time.Since(began), mostReuse)
	a.ends = time.Now().Add(valid)
	time.AfterFunc(valid, a.drop)
	return a.body, nil
}

// drop frees the response.
func (a *answer) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !time.Now().Before(a.ends) {
		a.body = nil
	}
}

func (p *program) stateJSON() stateJSON {
	snap := p.sampler.Latest()
	out := stateJSON{Sources: p.sourcesJSON(snap), Devices: []collector.Device{}, Node: []collector.Reading{}, Events: []collector.Event{}}
	if snap != nil {
		out.Seq, out.Time = snap.Seq, snap.Time
		out.Devices = append(out.Devices, snap.Devices...)
		for i := range out.Devices {
			out.Devices[i].Readings = append([]collector.Reading{}, out.Devices[i].Readings...) // not null
		}
		out.Node = append(out.Node, snap.Node...)
		out.Events = append(out.Events, snap.Events...)
	}
	out.Allocation, out.Kubelet, out.APIServer = p.pods.state()
	return out
}

// sourcesJSON returns the sources of a Snapshot, which may be nil.
func (p *program) sourcesJSON(snap *collector.Snapshot) []sourceJSON {
	out := []sourceJSON{} // not null
	if snap == nil {
		return out
	}
	for _, s := range snap.Sources {
		j := sourceJSON{Status: s}
		if w := p.workers[s.Source]; w != nil {
			j.WorkerPID = w.PID()
			if released, until := w.Released(); released && !until.IsZero() {
				j.ReleasedUntil = &until
			}
		}
		out = append(out, j)
	}
	return out
}
