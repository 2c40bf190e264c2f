// Package traceproc makes traces of how pods held devices, and is both ends of
// the pipes to the program that sends them, accel-traces. OpenTelemetry's SDK
// is in that program alone: most nodes have no use for it.
//
//   - Book makes spans of the records of package lifecycle. It knows no more of
//     OpenTelemetry than what a span consists of.
//   - Process is the exporter's end. It queues spans, has one program send them,
//     batch after batch, and starts it again where it crashes, hangs or talks
//     nonsense. A batch stays in the queue until the program has said what
//     became of it.
//   - Serve is the program's end. It keeps nothing, and returns when the
//     exporter is gone.
package traceproc
