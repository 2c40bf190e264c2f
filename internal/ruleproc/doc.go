// Package ruleproc keeps the rule engine in a process of its own, accel-rules,
// and is both ends of the pipes between that and the exporter. The engine and
// what tells Alertmanager are large, and most nodes have no use for them.
//
//   - Process is the exporter's end. It starts the program, hands it rule files
//     and settings as they were read, answers it with the page, and starts it
//     again where it crashes, hangs or talks nonsense. What the engine counts
//     goes on across that.
//   - Serve is the engine's end. It returns when the exporter is gone.
//
// A scrape asks the engine nothing: its metrics are what it told last.
package ruleproc
