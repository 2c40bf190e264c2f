package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
)

// maxRecord bounds a line of the log, in bytes.
const maxRecord = 64 << 10

// LogWriter returns what a slog.JSONHandler of the other end writes to. write
// takes a frame's buffer, header included.
func LogWriter(write func(buf []byte) error) io.Writer { return logWriter(write) }

type logWriter func([]byte) error

// Write implements io.Writer for one whole record.
func (w logWriter) Write(record []byte) (int, error) {
	if len(record) > maxRecord {
		return 0, fmt.Errorf("log record of %d bytes", len(record))
	}
	return len(record), w(append(make([]byte, collector.FrameHeader, collector.FrameHeader+len(record)), record...))
}

// Repeat writes a line of the other end's log, as LogWriter made it, to log.
func Repeat(log *slog.Logger, payload []byte) error {
	var record map[string]any
	if len(payload) > maxRecord || json.Unmarshal(payload, &record) != nil {
		return fmt.Errorf("%w: line of the log", collector.ErrProtocol)
	}
	var level slog.Level
	text, _ := record[slog.LevelKey].(string)
	if level.UnmarshalText([]byte(text)) != nil {
		level = slog.LevelError
	}
	what, _ := record[slog.MessageKey].(string)
	for _, key := range []string{slog.LevelKey, slog.MessageKey, slog.TimeKey} {
		delete(record, key)
	}
	attrs := make([]slog.Attr, 0, len(record))
	for _, key := range slices.Sorted(maps.Keys(record)) {
		attrs = append(attrs, slog.Any(key, record[key]))
	}
	log.LogAttrs(context.Background(), level, what, attrs...)
	return nil
}
