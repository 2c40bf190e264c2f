// Package trace sends the changes of allocations as OpenTelemetry traces by OTLP.
//
//   - Package lifecycle compares the states of allocations and returns changes.
//   - Builder makes spans of changes. Their IDs are derived from the pod, the
//     device and the change.
//   - Sender records the spans with OpenTelemetry's SDK. The SDK's batch span
//     processor queues them and its OTLP exporters send and retry them.
//   - Follower runs them in one goroutine.
//
// No code of OpenTelemetry runs before NewSender.
package trace
