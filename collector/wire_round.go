package collector

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// roundMessage is a Round as it is sent, with the error that came with it.
type roundMessage struct {
	Seq     uint64
	Failure *failure // nil where there was no error
	Devices []deviceMessage
	Calls   []CallError
	Node    columns
	// Distributions name their Metric by its Index.
	Distributions []distributionMessage
}

type distributionMessage struct {
	Metric         int
	Device, Parent string
	Labels         []string
	Counts         []uint64
	Sum            float64
}

type failure struct{ Reason, Text string }

// deviceMessage has those fields of a Device that a worker's Source sets.
type deviceMessage struct {
	ID, Parent, Vendor, Model, PCI, Down string
	Class                                Class
	Passing                              bool
	KubeIDs                              []string
	Sampled                              time.Time
	// Age is that of Sampled by the monotonic clock, which a message does not carry.
	Age      time.Duration
	Readings columns
	Rejects  []rejectMessage
	// gob does not distinguish nil from empty.
	HasClients, HasAccounts bool
	Clients                 []clientMessage
	Accounts                []accountMessage
}

type rejectMessage struct {
	Metric int
	Reason string
}

type clientMessage struct {
	PID      int
	Type     string
	Readings columns
}

// accountMessage has NaN for unknown values: gob does not distinguish a
// pointer to zero from nil.
type accountMessage struct {
	PID                         int
	Started, Ended              time.Time
	MemoryPeak, Compute, Memory float64
}

// columns are readings as parallel lists, which gob encodes several times as
// fast as a list of structs. Where Same is set the metrics and labels are
// those of the round before, and only the values are sent.
type columns struct {
	Same    bool
	Metrics []int    // Metric.Index
	Labels  []string // of all readings, in order
	Values  []float64
}

func columnsOf(list []Reading) columns {
	c := columns{Metrics: make([]int, len(list)), Values: make([]float64, len(list))}
	for i := range list {
		c.Metrics[i], c.Values[i] = list[i].Metric.index, list[i].Value
		c.Labels = append(c.Labels, list[i].Labels...)
	}
	return c
}

// series returns the readings of c without their values.
func (c *columns) series() ([]Reading, error) {
	list := make([]Reading, len(c.Metrics))
	labels := c.Labels
	for i, index := range c.Metrics {
		m := byIndex(index)
		if m == nil {
			return nil, fmt.Errorf("no metric has index %d", index)
		}
		n := len(m.Labels)
		if len(labels) < n {
			return nil, fmt.Errorf("%s lacks labels", m.Name)
		}
		list[i] = Reading{Metric: m, Labels: labels[:n:n]}
		labels = labels[n:]
	}
	if len(labels) > 0 {
		return nil, fmt.Errorf("%d labels belong to no reading", len(labels))
	}
	return list, nil
}

// fill sets the values of list. A value outside its metric's range cannot come
// from an intact worker.
func (c *columns) fill(list []Reading) error {
	if len(list) != len(c.Values) {
		return fmt.Errorf("%d values for %d readings", len(c.Values), len(list))
	}
	for i, v := range c.Values {
		if m := list[i].Metric; !m.Range.Contains(v) {
			return fmt.Errorf("%s is %v", m.Name, v)
		}
		list[i].Value = v
	}
	return nil
}

// roundEncoder converts rounds. It keeps the series that the other end knows.
type roundEncoder struct {
	last []columns // of the devices, in order, then of the node
}

func (e *roundEncoder) encode(seq uint64, r *Round, why error) *roundMessage {
	m := &roundMessage{Seq: seq, Calls: r.Calls}
	if why != nil {
		m.Failure = &failure{reason(why), clipText(why.Error())}
	}
	for i := range r.Devices {
		m.Devices = append(m.Devices, e.device(i, &r.Devices[i]))
	}
	m.Node = e.columns(len(r.Devices), r.Node)
	for _, d := range r.Distributions {
		m.Distributions = append(m.Distributions, distributionMessage{d.Metric.index, d.Device, d.Parent, d.Labels, d.Counts, d.Sum})
	}
	e.last = e.last[:len(r.Devices)+1]
	return m
}

func (e *roundEncoder) columns(at int, list []Reading) columns {
	if at == len(e.last) {
		e.last = append(e.last, columns{})
	}
	c, last := columnsOf(list), &e.last[at]
	if slices.Equal(c.Metrics, last.Metrics) && slices.Equal(c.Labels, last.Labels) {
		return columns{Same: true, Values: c.Values}
	}
	last.Metrics, last.Labels = c.Metrics, c.Labels
	return c
}

func (e *roundEncoder) device(at int, d *Device) deviceMessage {
	m := deviceMessage{
		ID: d.ID, Parent: d.Parent, Vendor: d.Vendor, Model: d.Model, PCI: d.PCI, Down: d.Down, Class: d.Class,
		Passing: d.Passing, KubeIDs: d.KubeIDs, Sampled: d.Sampled, Readings: e.columns(at, d.Readings),
		HasClients: d.Clients != nil, HasAccounts: d.Accounts != nil,
	}
	if !d.Sampled.IsZero() {
		m.Age = time.Since(d.Sampled)
	}
	for _, r := range d.Rejects {
		m.Rejects = append(m.Rejects, rejectMessage{r.Metric.index, r.Reason})
	}
	for _, c := range d.Clients {
		m.Clients = append(m.Clients, clientMessage{c.PID, c.Type, columnsOf(c.Readings)})
	}
	for _, a := range d.Accounts {
		m.Accounts = append(m.Accounts, accountMessage{a.PID, a.Started, a.Ended, orNaN(a.MemoryPeak), orNaN(a.Compute), orNaN(a.Memory)})
	}
	return m
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// roundDecoder converts back. The label slices that it returns are shared
// between rounds of the same series.
type roundDecoder struct {
	last    [][]Reading // of the devices, in order, then of the node; without values
	sampled []sampling  // of the devices, in order
}

// sampling is a time of the worker, and the same time here. A sample that is sent
// again keeps its time.
type sampling struct{ sent, at time.Time }

// sampling gives the time of a device's sample the monotonic reading that is lost on
// the way. Without one, setting the clock would look like time that passed between
// two samples.
func (d *roundDecoder) sampling(at int, m *deviceMessage, now time.Time) time.Time {
	if at >= len(d.sampled) {
		d.sampled = append(d.sampled, make([]sampling, at+1-len(d.sampled))...)
	}
	s := &d.sampled[at]
	switch {
	case m.Sampled.IsZero():
		*s = sampling{}
	case !m.Sampled.Equal(s.sent):
		s.sent, s.at = m.Sampled, anchored(m.Sampled, now)
		if (now.Sub(s.at) - m.Age).Abs() >= clockSlack {
			s.at = now.Add(-m.Age) // the clock was set since
		}
	}
	return s.at
}

// decode returns the Round of m and the error that came with it. err reports
// that m cannot come from an intact worker.
func (d *roundDecoder) decode(m *roundMessage) (r Round, why, err error) {
	if m.Failure != nil {
		why = &remoteError{m.Failure.Reason, clipText(m.Failure.Text)}
	}
	r.Calls = m.Calls
	r.Devices = make([]Device, len(m.Devices))
	for i := range m.Devices {
		if err := d.device(i, &m.Devices[i], &r.Devices[i]); err != nil {
			return Round{}, why, err
		}
	}
	for _, v := range m.Distributions {
		metric := byIndex(v.Metric)
		if metric == nil || metric.Kind != Histogram || len(v.Labels) != len(metric.Labels) ||
			len(v.Counts) != len(metric.Buckets)+1 || !nonNegative.Contains(v.Sum) {
			return Round{}, why, fmt.Errorf("metric %d has no series %q of %d buckets with the sum %v", v.Metric, v.Labels, len(v.Counts), v.Sum)
		}
		r.Distributions = append(r.Distributions, Distribution{metric, v.Device, v.Parent, v.Labels, v.Counts, v.Sum})
	}
	r.Node, err = d.readings(len(m.Devices), &m.Node)
	d.last = d.last[:len(m.Devices)+1]
	return r, why, err
}

func (d *roundDecoder) readings(at int, c *columns) ([]Reading, error) {
	if at == len(d.last) {
		d.last = append(d.last, nil)
	}
	if !c.Same {
		series, err := c.series()
		if err != nil {
			return nil, err
		}
		d.last[at] = series
	}
	list := slices.Clone(d.last[at])
	return list, c.fill(list)
}

func (d *roundDecoder) device(at int, m *deviceMessage, to *Device) (err error) {
	*to = Device{
		ID: m.ID, Parent: m.Parent, Vendor: m.Vendor, Model: m.Model, PCI: m.PCI, Down: m.Down, Class: m.Class,
		Passing: m.Passing, KubeIDs: m.KubeIDs, Sampled: d.sampling(at, m, time.Now()),
	}
	if to.Readings, err = d.readings(at, &m.Readings); err != nil {
		return err
	}
	for _, r := range m.Rejects {
		metric := byIndex(r.Metric)
		if metric == nil {
			return fmt.Errorf("no metric has index %d", r.Metric)
		}
		to.Rejects = append(to.Rejects, Reject{metric, r.Reason})
	}
	if m.HasClients {
		to.Clients = make([]Client, len(m.Clients))
	}
	for i := range to.Clients {
		c := &m.Clients[i]
		list, err := c.Readings.series()
		if err == nil {
			err = c.Readings.fill(list)
		}
		if err != nil {
			return err
		}
		to.Clients[i] = Client{c.PID, c.Type, list}
	}
	if m.HasAccounts {
		to.Accounts = make([]Account, len(m.Accounts))
	}
	for i := range to.Accounts {
		if to.Accounts[i], err = m.Accounts[i].account(); err != nil {
			return err
		}
	}
	return nil
}

func (m *accountMessage) account() (Account, error) {
	a := Account{PID: m.PID, Started: m.Started, Ended: m.Ended}
	for _, f := range []struct {
		to     **float64
		v      float64
		within Range
	}{{&a.MemoryPeak, m.MemoryPeak, nonNegative}, {&a.Compute, m.Compute, ratio}, {&a.Memory, m.Memory, ratio}} {
		if math.IsNaN(f.v) {
			continue
		}
		if !f.within.Contains(f.v) {
			return a, fmt.Errorf("%v in the account of a process", f.v)
		}
		*f.to = new(f.v)
	}
	return a, nil
}

// remoteError is an error that a worker reported. It matches the sentinel of
// its reason and keeps the worker's text.
type remoteError struct {
	reason string
	text   string
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Is(target error) bool {
	return target != nil && reason(target) == e.reason && reason(target) != SourceError
}
