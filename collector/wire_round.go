package collector

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// A round travels as its shape (which devices have which series) and its
// values. The shape is sent only when it differs from the previous round's,
// which is rare; a steady round is little more than an array of numbers.

// series identifies one reading of a shape.
type series struct {
	metric *Metric
	labels []string
}

// same compares by pointer first: a source passes the same label slices
// every round.
func (s series) same(r *Reading) bool {
	if s.metric != r.Metric || len(s.labels) != len(r.Labels) {
		return false
	}
	return len(s.labels) == 0 || &s.labels[0] == &r.Labels[0] || slices.Equal(s.labels, r.Labels)
}

// deviceShape is what of a Device seldom changes.
type deviceShape struct {
	device  Device // without Down, Passing, Sampled, Readings, Rejects, Clients and Accounts
	series  []series
	clients []clientShape
	looked  bool // Clients is not nil
}

type clientShape struct {
	pid    int
	kind   string
	series []series
}

func (s *deviceShape) same(d *Device) bool {
	o := &s.device
	return o.ID == d.ID && o.Parent == d.Parent && o.Class == d.Class && o.Vendor == d.Vendor &&
		o.Model == d.Model && o.PCI == d.PCI && slices.Equal(o.KubeIDs, d.KubeIDs) && sameSeries(s.series, d.Readings) &&
		s.looked == (d.Clients != nil) && slices.EqualFunc(s.clients, d.Clients, func(s clientShape, c Client) bool {
		return s.pid == c.PID && s.kind == c.Type && sameSeries(s.series, c.Readings)
	})
}

func sameSeries(s []series, readings []Reading) bool {
	if len(s) != len(readings) {
		return false
	}
	for i := range readings {
		if !s[i].same(&readings[i]) {
			return false
		}
	}
	return true
}

func seriesOf(readings []Reading) []series {
	s := make([]series, len(readings))
	for i, r := range readings {
		s[i] = series{r.Metric, r.Labels}
	}
	return s
}

// roundEncoder writes rounds; it remembers the shape that the other end has.
type roundEncoder struct {
	sent    bool
	devices []deviceShape
	node    []series
}

func (e *roundEncoder) same(r *Round) bool {
	if !e.sent || len(e.devices) != len(r.Devices) || !sameSeries(e.node, r.Node) {
		return false
	}
	for i := range r.Devices {
		if !e.devices[i].same(&r.Devices[i]) {
			return false
		}
	}
	return true
}

// encode appends the payload of a round. why is the error that came with it.
func (e *roundEncoder) encode(b []byte, seq uint64, r *Round, why error) []byte {
	b = binary.AppendUvarint(b, seq)
	if why == nil {
		b = append(b, 0)
	} else {
		b = append(b, 1)
		b = putString(b, reason(why))
		b = putString(b, why.Error())
	}
	if e.same(r) {
		b = append(b, 0)
	} else {
		b = append(b, 1)
		b = e.encodeShape(b, r)
	}
	for i := range r.Devices {
		b = encodeOutcome(b, &r.Devices[i])
	}
	b = binary.AppendUvarint(b, uint64(len(r.Calls)))
	for _, c := range r.Calls {
		b = putString(b, c.Call)
		b = putString(b, c.Code)
		b = binary.AppendUvarint(b, c.Count)
	}
	for i := range r.Devices {
		b = encodeValues(b, r.Devices[i].Readings)
		for _, c := range r.Devices[i].Clients {
			b = encodeValues(b, c.Readings)
		}
	}
	return encodeValues(b, r.Node)
}

func (e *roundEncoder) encodeShape(b []byte, r *Round) []byte {
	e.sent = true
	e.devices = e.devices[:0]
	e.node = seriesOf(r.Node)
	b = binary.AppendUvarint(b, uint64(len(r.Devices)))
	for i := range r.Devices {
		d := &r.Devices[i]
		s := deviceShape{series: seriesOf(d.Readings), device: Device{
			ID: d.ID, Parent: d.Parent, Class: d.Class, Vendor: d.Vendor,
			Model: d.Model, PCI: d.PCI, KubeIDs: slices.Clone(d.KubeIDs),
		}}
		s.looked = d.Clients != nil
		for _, c := range d.Clients {
			s.clients = append(s.clients, clientShape{c.PID, c.Type, seriesOf(c.Readings)})
		}
		e.devices = append(e.devices, s)
		b = putStrings(b, []string{d.ID, d.Parent, string(d.Class), d.Vendor, d.Model, d.PCI})
		b = putStrings(b, d.KubeIDs)
		b = encodeSeries(b, s.series)
		b = encodeClients(b, &s)
	}
	return encodeSeries(b, e.node)
}

func encodeClients(b []byte, s *deviceShape) []byte {
	if !s.looked {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.AppendUvarint(b, uint64(len(s.clients)))
	for _, c := range s.clients {
		b = binary.AppendUvarint(b, uint64(max(c.pid, 0)))
		b = putString(b, c.kind)
		b = encodeSeries(b, c.series)
	}
	return b
}

func encodeSeries(b []byte, list []series) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = binary.AppendUvarint(b, uint64(s.metric.index))
		b = putStrings(b, s.labels)
	}
	return b
}

func encodeOutcome(b []byte, d *Device) []byte {
	b = putString(b, d.Down)
	b = append(b, 0)
	if d.Passing {
		b[len(b)-1] = 1
	}
	b = putTime(b, d.Sampled)
	b = binary.AppendUvarint(b, uint64(len(d.Rejects)))
	for _, r := range d.Rejects {
		b = binary.AppendUvarint(b, uint64(r.Metric.index))
		b = putString(b, r.Reason)
	}
	return encodeAccounts(b, d.Accounts)
}

func encodeAccounts(b []byte, list []Account) []byte {
	if list == nil {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		account := &list[i]
		b = binary.AppendUvarint(b, uint64(max(account.PID, 0)))
		b = putTime(putTime(b, account.Started), account.Ended)
		for _, v := range []*float64{account.MemoryPeak, account.Compute, account.Memory} {
			b = putOptional(b, v)
		}
	}
	return b
}

func putOptional(b []byte, v *float64) []byte {
	if v == nil {
		return append(b, 0)
	}
	return binary.LittleEndian.AppendUint64(append(b, 1), math.Float64bits(*v))
}

func encodeValues(b []byte, readings []Reading) []byte {
	for i := range readings {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(readings[i].Value))
	}
	return b
}

// remoteError is an error that a worker reported. It is the sentinel of its
// reason again and keeps the worker's text.
type remoteError struct {
	reason string
	text   string
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Is(target error) bool {
	return target != nil && reason(target) == e.reason && reason(target) != SourceError
}

// roundDecoder reads what a roundEncoder wrote. The label slices it yields
// are shared between rounds of one shape.
type roundDecoder struct {
	known    bool
	devices  []Device // shape; Readings with Value 0
	node     []Reading
	readings int
}

// decode reads one payload. The error that travelled with the round is why;
// err means that the payload cannot be understood.
func (d *roundDecoder) decode(b []byte) (seq uint64, r Round, why, err error) {
	in := &decoder{b: b}
	seq = in.uvarint()
	if in.flag() == 1 {
		why = &remoteError{reason: in.string(), text: in.string()}
	}
	if in.flag() == 1 {
		d.decodeShape(in)
	}
	if in.err == nil && !d.known {
		in.fail(fmt.Errorf("values without a shape"))
	}
	if in.err != nil {
		return seq, Round{}, why, in.err
	}
	r.Devices = slices.Clone(d.devices)
	for i := range r.Devices {
		decodeOutcome(in, &r.Devices[i])
	}
	for range in.count(maxReadings) {
		r.Calls = append(r.Calls, CallError{Call: in.string(), Code: in.string(), Count: in.uvarint()})
		if in.err != nil {
			break
		}
	}
	if in.err == nil && len(in.b) != 8*d.readings {
		in.fail(fmt.Errorf("%d bytes for %d values", len(in.b), d.readings))
	}
	if in.err != nil {
		return seq, Round{}, why, in.err
	}
	slab := make([]Reading, 0, d.readings)
	for i := range r.Devices {
		slab = decodeValues(in, slab, &r.Devices[i].Readings)
		r.Devices[i].Clients = slices.Clone(r.Devices[i].Clients)
		for j := range r.Devices[i].Clients {
			slab = decodeValues(in, slab, &r.Devices[i].Clients[j].Readings)
		}
	}
	r.Node = d.node
	decodeValues(in, slab, &r.Node)
	return seq, r, why, in.err
}

func (d *decoder) flag() byte {
	if len(d.b) == 0 {
		d.fail(errShort)
		return 0
	}
	f := d.b[0]
	d.b = d.b[1:]
	if f > 1 {
		d.fail(fmt.Errorf("flag is %d", f))
	}
	return f
}

func (d *roundDecoder) decodeShape(in *decoder) {
	d.known, d.readings = false, 0
	d.devices = make([]Device, 0, 8)
	for range in.count(maxDevices) {
		s := in.strings(6)
		if len(s) != 6 {
			in.fail(errShort)
			return
		}
		dev := Device{ID: s[0], Parent: s[1], Class: Class(s[2]), Vendor: s[3], Model: s[4], PCI: s[5]}
		dev.KubeIDs = in.strings(maxKubeIDs)
		dev.Readings = d.decodeSeries(in)
		if in.flag() == 1 {
			dev.Clients = d.decodeClients(in)
		}
		d.devices = append(d.devices, dev)
		if in.err != nil {
			return
		}
	}
	d.node = d.decodeSeries(in)
	d.known = in.err == nil
}

func (d *roundDecoder) decodeClients(in *decoder) []Client {
	list := []Client{}
	for range in.count(maxClients) {
		c := Client{PID: int(in.uvarint() & math.MaxInt32), Type: in.string()}
		c.Readings = d.decodeSeries(in)
		if in.err != nil {
			return nil
		}
		list = append(list, c)
	}
	return list
}

func (d *roundDecoder) decodeSeries(in *decoder) []Reading {
	var list []Reading
	for range in.count(maxReadings) {
		m := in.metric()
		labels := in.strings(maxLabels)
		if in.err == nil && len(labels) != len(m.Labels) {
			in.fail(fmt.Errorf("%s has %d labels, not %d", m.Name, len(m.Labels), len(labels)))
		}
		if in.err != nil {
			return nil
		}
		list = append(list, Reading{Metric: m, Labels: labels})
	}
	if d.readings += len(list); d.readings > maxReadings {
		in.fail(fmt.Errorf("over %d readings", maxReadings))
	}
	return list
}

func decodeOutcome(in *decoder, d *Device) {
	d.Down = in.string()
	d.Passing = in.flag() == 1
	d.Sampled = in.time()
	for range in.count(maxReadings) {
		r := Reject{Metric: in.metric(), Reason: in.string()}
		if in.err != nil {
			return
		}
		d.Rejects = append(d.Rejects, r)
	}
	if in.flag() == 1 {
		d.Accounts = decodeAccounts(in)
	}
}

func decodeAccounts(in *decoder) []Account {
	list := []Account{}
	for range in.count(maxClients) {
		account := Account{PID: int(in.uvarint() & math.MaxInt32), Started: in.time(), Ended: in.time()}
		account.MemoryPeak, account.Compute, account.Memory = in.optional(nonNegative), in.optional(ratio), in.optional(ratio)
		if in.err != nil {
			return nil
		}
		list = append(list, account)
	}
	return list
}

// optional reads a number that may be absent. One outside its range cannot come
// from an intact worker.
func (d *decoder) optional(within Range) *float64 {
	if d.flag() == 0 {
		return nil
	}
	v := d.float()
	if !within.Contains(v) {
		d.fail(fmt.Errorf("%v in an account of a process", v))
	}
	return &v
}

// decodeValues copies the shape of *list to the end of slab, fills in the
// values and points *list there. A value outside its metric's range cannot
// come from an intact worker.
func decodeValues(in *decoder, slab []Reading, list *[]Reading) []Reading {
	start := len(slab)
	slab = append(slab, *list...)
	own := slab[start:len(slab):len(slab)]
	for i := range own {
		own[i].Value = in.float()
		if !own[i].Metric.Range.Contains(own[i].Value) {
			in.fail(fmt.Errorf("%s is %v", own[i].Metric.Name, own[i].Value))
		}
	}
	*list = own
	return slab
}
