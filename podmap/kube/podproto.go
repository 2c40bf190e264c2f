package kube

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is an encoded message: the bytes and the numbers of its fields.
type message struct {
	bytes   map[protowire.Number][][]byte
	numbers map[protowire.Number]uint64
}

// last returns the last value of a field.
func (m *message) last(n protowire.Number) []byte {
	if list := m.bytes[n]; len(list) > 0 {
		return list[len(list)-1]
	}
	return nil
}

func (m *message) text(n protowire.Number) string { return string(m.last(n)) }

func readMessage(b []byte) (m message, err error) {
	m = message{map[protowire.Number][][]byte{}, map[protowire.Number]uint64{}}
	for size := 0; len(b) > 0; b = b[size:] {
		n, kind, tag := protowire.ConsumeTag(b)
		if size = tag; size >= 0 {
			size = protowire.ConsumeFieldValue(n, kind, b[tag:])
		}
		if size < 0 {
			return m, protowire.ParseError(size)
		}
		switch value := b[tag:]; kind {
		case protowire.BytesType:
			text, _ := protowire.ConsumeBytes(value)
			m.bytes[n] = append(m.bytes[n], text)
		case protowire.VarintType:
			m.numbers[n], _ = protowire.ConsumeVarint(value)
		}
		size += tag
	}
	return m, nil
}

// podReader reads the fields of a core v1.Pod that document has, by their numbers in
// k8s.io/api/core/v1 and k8s.io/apimachinery/pkg/apis/meta/v1. The spec, with the
// environment of the containers, is not decoded.
type podReader struct{ err error }

func (r *podReader) message(b []byte) message {
	m, err := readMessage(b)
	if err != nil {
		r.err = err
	}
	return m
}

// entries returns a map of strings.
func (r *podReader) entries(list [][]byte) map[string]string {
	out := map[string]string{}
	for _, b := range list {
		entry := r.message(b)
		out[entry.text(1)] = entry.text(2)
	}
	return out
}

func readPod(pod []byte, node string) (d document, err error) {
	var r podReader
	whole := r.message(pod)
	m := r.message(whole.last(1))
	d.Spec.NodeName = node
	d.Metadata.Name, d.Metadata.Namespace, d.Metadata.UID = m.text(1), m.text(3), m.text(5)
	if created := r.message(m.last(8)); created.numbers[1] != 0 {
		d.Metadata.CreationTimestamp = time.Unix(int64(created.numbers[1]), 0)
	}
	d.Metadata.Labels, d.Metadata.Annotations = r.entries(m.bytes[11]), r.entries(m.bytes[12])
	for _, b := range m.bytes[13] {
		o := r.message(b)
		d.Metadata.OwnerReferences = append(d.Metadata.OwnerReferences, owner{o.text(1), o.text(3), o.numbers[6] != 0})
	}
	return d, r.err
}
