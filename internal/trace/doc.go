// Package trace sends what happens to allocations as OpenTelemetry traces by
// OTLP.
//
//   - Package lifecycle compares the states of allocations and returns changes.
//   - Builder makes spans of changes, with IDs that follow from what the spans
//     are about.
//   - Sender records the spans with OpenTelemetry's SDK. The SDK's batch span
//     processor queues them and its OTLP exporters send and retry them.
//   - Follower runs all of it in one goroutine beside the sampler.
//
// Nothing of OpenTelemetry runs before NewSender.
package trace
