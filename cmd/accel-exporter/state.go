package main

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// stateJSON is the response of /debug/state. It is for diagnosis and can change
// with any version.
type stateJSON struct {
	Seq     uint64            `json:"seq"`
	Time    time.Time         `json:"time"`
	Sources []sourceJSON      `json:"sources"`
	Devices []deviceJSON      `json:"devices"`
	Node    []readingJSON     `json:"node"`
	Events  []collector.Event `json:"events"`
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

type deviceJSON struct {
	ID        string    `json:"id"`
	Parent    string    `json:"parent,omitempty"`
	Class     string    `json:"class"`
	Vendor    string    `json:"vendor"`
	Model     string    `json:"model"`
	PCI       string    `json:"pci_address,omitempty"`
	Functions []string  `json:"functions,omitempty"`
	Driver    string    `json:"driver,omitempty"`
	KubeIDs   []string  `json:"kube_ids,omitempty"`
	Down      string    `json:"down,omitempty"`
	Sampled   time.Time `json:"sampled,omitzero"`
	// Health is the verdict with its reasons.
	Health   *collector.Verdict  `json:"health,omitempty"`
	Clients  []clientJSON        `json:"clients,omitempty"`
	Accounts []collector.Account `json:"accounts,omitempty"`
	Readings []readingJSON       `json:"readings"`
}

type clientJSON struct {
	PID      int           `json:"pid"`
	Type     string        `json:"type"`
	Readings []readingJSON `json:"readings"`
}

type readingJSON struct {
	Metric string            `json:"metric"`
	Labels map[string]string `json:"labels,omitempty"`
	Value  float64           `json:"value"`
}

// Limits of the /debug endpoints: clients that do not read their response must
// not use up the file descriptors that scrapes need.
const (
	maxStates    = 4
	stateTimeout = 10 * time.Second
)

// debugState serves the latest Snapshot.
func (p *program) debugState(w http.ResponseWriter, _ *http.Request) {
	p.sendState(w, func() any { return p.stateJSON() })
}

// debugAllocations serves the allocations of all devices.
func (p *program) debugAllocations(w http.ResponseWriter, _ *http.Request) {
	p.sendState(w, func() any { return p.pods.judge.Report() })
}

// debugRules serves the rules and their alerts. With ?explain=1 each alert has
// the series that caused it.
func (p *program) debugRules(w http.ResponseWriter, r *http.Request) {
	if p.alerts == nil {
		http.Error(w, "no rules are evaluated; start with --rules.file or --alertmanager.url", http.StatusNotFound)
		return
	}
	p.sendState(w, func() any {
		if r.FormValue("explain") == "" {
			return p.alerts.engine.Report()
		}
		ctx, cancel := context.WithTimeout(r.Context(), stateTimeout)
		defer cancel()
		return p.alerts.engine.Explain(ctx)
	})
}

// sendState serves a value as JSON to at most maxStates clients at a time.
func (p *program) sendState(w http.ResponseWriter, state func() any) {
	if p.states.Add(1) > maxStates {
		p.states.Add(-1)
		http.Error(w, "too many requests for the state at the same time", http.StatusServiceUnavailable)
		return
	}
	defer p.states.Add(-1)
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stateTimeout)); err != nil {
		p.log.Debug("State has no write deadline", "err", err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(state()); err != nil {
		p.log.Debug("State was not sent", "err", err)
	}
}

func (p *program) stateJSON() stateJSON {
	out := stateJSON{Sources: []sourceJSON{}, Devices: []deviceJSON{}, Node: []readingJSON{}, Events: []collector.Event{}}
	if snap := p.sampler.Latest(); snap != nil {
		out.Seq, out.Time, out.Node = snap.Seq, snap.Time, readingsJSON(snap.Node)
		out.Events = append(out.Events, snap.Events...)
		for _, s := range snap.Sources {
			out.Sources = append(out.Sources, p.sourceJSON(s))
		}
		for i := range snap.Devices {
			out.Devices = append(out.Devices, newDeviceJSON(&snap.Devices[i]))
		}
	}
	out.Allocation, out.Kubelet, out.APIServer = p.pods.state()
	return out
}

func (p *program) sourceJSON(s collector.Status) sourceJSON {
	out := sourceJSON{Status: s}
	if w := p.workers[s.Source]; w != nil {
		out.WorkerPID = w.PID()
		if released, until := w.Released(); released && !until.IsZero() {
			out.ReleasedUntil = &until
		}
	}
	return out
}

func newDeviceJSON(d *collector.Device) deviceJSON {
	out := deviceJSON{
		ID: d.ID, Parent: d.Parent, Class: string(d.Class), Vendor: d.Vendor, Model: d.Model, PCI: d.PCI,
		Functions: d.Functions, Driver: d.Driver, KubeIDs: d.KubeIDs, Down: d.Down, Sampled: d.Sampled,
		Health: d.Verdict, Accounts: d.Accounts, Readings: readingsJSON(d.Readings),
	}
	for _, c := range d.Clients {
		out.Clients = append(out.Clients, clientJSON{PID: c.PID, Type: c.Type, Readings: readingsJSON(c.Readings)})
	}
	return out
}

func readingsJSON(list []collector.Reading) []readingJSON {
	out := make([]readingJSON, 0, len(list))
	for _, r := range list {
		j := readingJSON{Metric: r.Metric.Name, Value: r.Value}
		for i, l := range r.Metric.Labels {
			if j.Labels == nil {
				j.Labels = map[string]string{}
			}
			j.Labels[l] = r.Labels[i]
		}
		out = append(out, j)
	}
	return out
}
