package kube

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// message calls field for each field of an encoded message that has bytes or a number.
func message(b []byte, field func(n protowire.Number, bytes []byte, number uint64) error) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		var text []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			text, size = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(b)
		default:
			size = protowire.ConsumeFieldValue(n, kind, b)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		if err := field(n, text, number); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

// readPod reads the fields of a core v1.Pod that document has, by the numbers of
// k8s.io/api/core/v1/generated.proto and k8s.io/apimachinery/pkg/apis/meta/v1. The spec,
// with the environment of the containers, is skipped.
func readPod(pod []byte, node string) (d document, err error) {
	d.Spec.NodeName = node
	m := &d.Metadata
	err = message(pod, func(n protowire.Number, metadata []byte, _ uint64) error {
		if n != 1 {
			return nil
		}
		return message(metadata, func(n protowire.Number, b []byte, _ uint64) (err error) {
			switch n {
			case 1:
				m.Name = string(b)
			case 3:
				m.Namespace = string(b)
			case 5:
				m.UID = string(b)
			case 8:
				m.CreationTimestamp, err = readTime(b)
			case 11:
				err = readEntry(&m.Labels, b)
			case 12:
				err = readEntry(&m.Annotations, b)
			case 13:
				var o owner
				o, err = readOwner(b)
				m.OwnerReferences = append(m.OwnerReferences, o)
			}
			return err
		})
	})
	return d, err
}

func readTime(b []byte) (t time.Time, err error) {
	err = message(b, func(n protowire.Number, _ []byte, v uint64) error {
		if n == 1 {
			t = time.Unix(int64(v), 0)
		}
		return nil
	})
	return t, err
}

// readEntry adds an entry of a map of strings.
func readEntry(to *map[string]string, b []byte) error {
	var key, value string
	err := message(b, func(n protowire.Number, text []byte, _ uint64) error {
		switch n {
		case 1:
			key = string(text)
		case 2:
			value = string(text)
		}
		return nil
	})
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[key] = value
	return err
}

func readOwner(b []byte) (o owner, err error) {
	err = message(b, func(n protowire.Number, text []byte, v uint64) error {
		switch n {
		case 1:
			o.Kind = string(text)
		case 3:
			o.Name = string(text)
		case 6:
			o.Controller = v != 0
		}
		return nil
	})
	return o, err
}
