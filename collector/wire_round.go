package collector

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// roundMessage is a Round as it is sent, with the error that came with it. The
// Readings of its devices, in order, and then those of the node are sent as columns,
// which gob encodes several times as fast as a list of structs.
type roundMessage struct {
	Seq     uint64
	Failure *failure // nil where there was no error
	Round   Round
	Devices []deviceMessage // of Round.Devices, in order
	Series  *series         // nil where it is that of the previous round
	Values  []float64
}

type failure struct{ Reason, Text string }

// deviceMessage is what a Device loses on the way.
type deviceMessage struct {
	Readings int // their number
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

// series are the metrics and the labels of readings, without their values.
type series struct {
	Metrics []int    // Metric.Index
	Labels  []string // of all readings, in order
}

// add appends the metrics and labels of readings, and returns values with theirs.
func (s *series) add(list []Reading, values []float64) []float64 {
	for i := range list {
		s.Metrics = append(s.Metrics, list[i].Metric.index)
		s.Labels = append(s.Labels, list[i].Labels...)
		values = append(values, list[i].Value)
	}
	return values
}

// readings returns the readings of s without their values.
func (s *series) readings() ([]Reading, error) {
	list := make([]Reading, len(s.Metrics))
	labels := s.Labels
	for i, index := range s.Metrics {
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

// roundEncoder converts rounds. It keeps the series that the other end knows. A message is
// valid until the next one.
type roundEncoder struct {
	last, next series // next is scratch space
	values     []float64
}

func (e *roundEncoder) encode(seq uint64, r *Round, why error) *roundMessage {
	m := &roundMessage{Seq: seq, Round: *r}
	if why != nil {
		m.Failure = &failure{reason(why), clipText(why.Error())}
	}
	s := series{e.next.Metrics[:0], e.next.Labels[:0]}
	m.Values = e.values[:0]
	m.Round.Devices = slices.Clone(r.Devices)
	for i := range m.Round.Devices {
		d := &m.Round.Devices[i]
		more := deviceMessage{Readings: len(d.Readings), HasClients: d.Clients != nil}
		if !d.Sampled.IsZero() {
			more.Age = time.Since(d.Sampled)
		}
		m.Values, d.Readings = s.add(d.Readings, m.Values), nil
		m.Devices = append(m.Devices, more)
	}
	m.Values, m.Round.Node = s.add(r.Node, m.Values), nil
	e.values, e.next = m.Values, s
	if !slices.Equal(s.Metrics, e.last.Metrics) || !slices.Equal(s.Labels, e.last.Labels) {
		m.Series, e.last, e.next = &s, s, e.last
	}
	return m
}

// roundDecoder converts back. The label slices that it returns are shared
// between rounds of the same series.
type roundDecoder struct {
	last    []Reading  // without values
	sampled []sampling // of the devices, in order
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
	all, err := d.readings(m)
	if err != nil {
		return Round{}, why, err
	}
	if len(r.Devices) != len(m.Devices) {
		return Round{}, why, fmt.Errorf("readings of %d devices for %d", len(m.Devices), len(r.Devices))
	}
	for i := range r.Devices {
		n := m.Devices[i].Readings
		if n < 0 || n > len(all) {
			return Round{}, why, fmt.Errorf("%d readings of a device, %d are left", n, len(all))
		}
		r.Devices[i].Readings, all = all[:n:n], all[n:]
		if err := d.device(i, &m.Devices[i], &r.Devices[i]); err != nil {
			return Round{}, why, err
		}
	}
	r.Node = all
	return r, why, nil
}

// readings returns all readings of m. A value outside its metric's range cannot come
// from an intact worker.
func (d *roundDecoder) readings(m *roundMessage) (list []Reading, err error) {
	if m.Series != nil {
		if d.last, err = m.Series.readings(); err != nil {
			return nil, err
		}
	}
	list = slices.Clone(d.last)
	if len(list) != len(m.Values) {
		return nil, fmt.Errorf("%d values for %d readings", len(m.Values), len(list))
	}
	for i, v := range m.Values {
		if metric := list[i].Metric; !metric.Range.Contains(v) {
			return nil, fmt.Errorf("%s is %v", metric.Name, v)
		}
		list[i].Value = v
	}
	return list, nil
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

func (d *roundDecoder) device(at int, m *deviceMessage, to *Device) error {
	to.Sampled = d.sampling(at, to.Sampled, m.Age, time.Now())
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
