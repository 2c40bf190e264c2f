package exposition

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Field numbers and values of io.prometheus.client.
const (
	familyName, familyHelp, familyType, familyMetric = 1, 2, 3, 4
	metricLabel, metricGauge, metricCounter          = 1, 2, 3
	pairName, pairValue                              = 1, 2
	sampleValue                                      = 1
	typeCounter, typeGauge                           = 0, 1
)

// sampleSize is the size of a Gauge or Counter in a Metric: tag and size, tag
// of the value, the value.
const sampleSize = 2 + 1 + 8

// protoBlocks turns label blocks into the beginning of a Metric: its tag, its
// size with a value, its labels.
func protoBlocks(text *blocks) *blocks {
	out := new(blocks)
	var body, pair []byte
	for i := range text.len() {
		body = body[:0]
		for _, l := range parseBlock(text.at(int32(i))) {
			pair = appendString(pair[:0], pairName, l.name)
			pair = appendString(pair, pairValue, l.value)
			body = appendBytes(body, metricLabel, pair)
		}
		out.text = protowire.AppendTag(out.text, familyMetric, protowire.BytesType)
		out.text = protowire.AppendVarint(out.text, uint64(len(body)+sampleSize))
		out.text = append(out.text, body...)
		out.ends = append(out.ends, int32(len(out.text)))
	}
	return out
}

// protoHead is the size of a MetricFamily and all of it before its series.
func protoHead(fam family, l *layout, b *blocks) []byte {
	kind := uint64(typeGauge)
	if fam.metric.Kind.Type() == "counter" {
		kind = typeCounter
	}
	head := appendString(nil, familyName, fam.metric.Name)
	head = appendString(head, familyHelp, help(fam.metric))
	head = protowire.AppendTag(head, familyType, protowire.VarintType)
	head = protowire.AppendVarint(head, kind)
	size := len(head)
	for _, block := range l.block[fam.begin:fam.end] {
		size += len(b.at(block)) + sampleSize
	}
	return append(protowire.AppendVarint(nil, uint64(size)), head...)
}

// protoTail is what comes between the labels and the eight bytes of the value.
func protoTail(m *collector.Metric) []byte {
	field := protowire.Number(metricGauge)
	if m.Kind.Type() == "counter" {
		field = metricCounter
	}
	tail := protowire.AppendTag(nil, field, protowire.BytesType)
	tail = protowire.AppendVarint(tail, sampleSize-2)
	return protowire.AppendTag(tail, sampleValue, protowire.Fixed64Type)
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendBytes(b []byte, field protowire.Number, s []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), s)
}
