// Package peer is what the exporter's end and the other end have in common for
// every program that the exporter starts beside itself: accel-rules and
// accel-traces. They talk in frames of package collector, over the pipes of a
// collector.Child.
package peer

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/prometheus/common/version"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Build says what this program was made from. Two that say the same speak the
// same protocol, to which no version is given otherwise.
func Build() string {
	return fmt.Sprintf("%s %s %s", version.Version, version.GetRevision(), runtime.Version())
}

// Hello is the first that the other end says.
type Hello struct {
	Build string `json:"build"`
}

// Greeted reads a Hello and refuses one of another build than that.
func Greeted(payload []byte, build string) (stray, err error) {
	var h Hello
	if err := json.Unmarshal(payload, &h); err != nil {
		return nil, fmt.Errorf("%w: greeting: %w", collector.ErrProtocol, err)
	}
	if h.Build == build {
		return nil, nil
	}
	stray = fmt.Errorf("%w: it is of the build %.80q, and this exporter of %q; install both from one release", collector.ErrProtocol, h.Build, build)
	return stray, stray
}

// Frame returns what collector.WriteFrame takes: room for the header, and v as
// JSON.
func Frame(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(data) > collector.MaxFrame {
		return nil, fmt.Errorf("%d bytes are more than the %d that one message may have", len(data), collector.MaxFrame)
	}
	return append(make([]byte, collector.FrameHeader, collector.FrameHeader+len(data)), data...), nil
}
