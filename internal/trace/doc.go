// Package trace sends the stages of allocations as OpenTelemetry traces by OTLP.
//
//   - Tracker compares the states of allocations and returns the spans of stages
//     that have ended. Their IDs are derived from the pod, the device and the
//     stage.
//   - Sender records the spans with OpenTelemetry's SDK. The SDK's batch span
//     processor queues them and its OTLP exporter sends and retries them.
//   - Follower runs both in one goroutine.
//
// No code of OpenTelemetry runs before NewSender.
package trace
