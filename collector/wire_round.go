package collector

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// roundMessage is a Round as it is sent, with the error that came with it. The
// Readings of its devices and of the node are sent as columns.
type roundMessage struct {
	Seq     uint64
	Failure *failure // nil where there was no error
	Round   Round
	Devices []deviceMessage // of Round.Devices, in order
	Node    columns
}

type failure struct{ Reason, Text string }

// deviceMessage is what a Device loses on the way.
type deviceMessage struct {
	Readings columns
	// Age is that of Sampled by the monotonic clock.
	Age time.Duration
	// HasClients: Clients is not nil. gob does not distinguish nil from empty.
	HasClients bool
}

// GobEncode implements gob.GobEncoder: both ends have the same table of metrics.
func (m *Metric) GobEncode() ([]byte, error) {
	return binary.AppendVarint(nil, int64(m.index)), nil
}

// GobDecode implements gob.GobDecoder. It sets the index only; listed returns the
// Metric of the table.
func (m *Metric) GobDecode(b []byte) error {
	index, n := binary.Varint(b)
	if n != len(b) {
		return fmt.Errorf("%d bytes are no index of a metric", len(b))
	}
	m.index = int(index)
	return nil
}

// listed replaces a decoded metric by that of the table.
func listed(m **Metric) error {
	if *m == nil || byIndex((*m).index) == nil {
		return fmt.Errorf("no such metric")
	}
	*m = byIndex((*m).index)
	return nil
}

// columns are readings as parallel lists, which gob encodes several times as
// fast as a list of structs. Where Same is set the metrics and labels are the
// same as in the previous round, and only the values are sent.
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
	m := &roundMessage{Seq: seq, Round: *r}
	if why != nil {
		m.Failure = &failure{reason(why), clipText(why.Error())}
	}
	m.Round.Devices = slices.Clone(r.Devices)
	for i := range m.Round.Devices {
		d := &m.Round.Devices[i]
		more := deviceMessage{Readings: e.columns(i, d.Readings), HasClients: d.Clients != nil}
		if !d.Sampled.IsZero() {
			more.Age = time.Since(d.Sampled)
		}
		d.Readings = nil
		m.Devices = append(m.Devices, more)
	}
	m.Node, m.Round.Node = e.columns(len(r.Devices), r.Node), nil
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
func (d *roundDecoder) sampling(at int, sampled time.Time, age time.Duration, now time.Time) time.Time {
	if at >= len(d.sampled) {
		d.sampled = append(d.sampled, make([]sampling, at+1-len(d.sampled))...)
	}
	s := &d.sampled[at]
	switch {
	case sampled.IsZero():
		*s = sampling{}
	case !sampled.Equal(s.sent):
		s.sent, s.at = sampled, anchored(sampled, now)
		if (now.Sub(s.at) - age).Abs() >= clockSlack {
			s.at = now.Add(-age) // the clock was set since
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
	r = m.Round
	if len(r.Devices) != len(m.Devices) {
		return Round{}, why, fmt.Errorf("readings of %d devices for %d", len(m.Devices), len(r.Devices))
	}
	for i := range r.Devices {
		if err := d.device(i, &m.Devices[i], &r.Devices[i]); err != nil {
			return Round{}, why, err
		}
	}
	for i := range r.Distributions {
		if err := r.Distributions[i].check(); err != nil {
			return Round{}, why, err
		}
	}
	r.Node, err = d.readings(len(m.Devices), &m.Node)
	d.last = d.last[:len(m.Devices)+1]
	return r, why, err
}

// check resolves the metric of a decoded distribution.
func (v *Distribution) check() error {
	if err := listed(&v.Metric); err != nil {
		return err
	}
	if m := v.Metric; m.Kind != Histogram || len(v.Labels) != len(m.Labels) || len(v.Counts) != len(m.Buckets)+1 || !nonNegative.Contains(v.Sum) {
		return fmt.Errorf("%s has no series %q of %d buckets with the sum %v", m.Name, v.Labels, len(v.Counts), v.Sum)
	}
	return nil
}

// check resolves the metric of a decoded reading.
func (r *Reading) check() error {
	if err := listed(&r.Metric); err != nil {
		return err
	}
	if len(r.Labels) != len(r.Metric.Labels) || !r.Metric.Range.Contains(r.Value) {
		return fmt.Errorf("%s%q is %v", r.Metric.Name, r.Labels, r.Value)
	}
	return nil
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
	to.Sampled = d.sampling(at, to.Sampled, m.Age, time.Now())
	if to.Readings, err = d.readings(at, &m.Readings); err != nil {
		return err
	}
	for i := range to.Rejects {
		if err := listed(&to.Rejects[i].Metric); err != nil {
			return err
		}
	}
	if m.HasClients && to.Clients == nil {
		to.Clients = []Client{}
	}
	for _, c := range to.Clients {
		for i := range c.Readings {
			if err := c.Readings[i].check(); err != nil {
				return err
			}
		}
	}
	return nil
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
