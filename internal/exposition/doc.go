// Package exposition serves the latest collector.Snapshot on /metrics.
//
// A scrape renders memory only. It reads no device and takes no lock while it
// writes to a socket, so a client that stops reading delays neither the
// sampler nor another scrape.
//
// The package writes text and OpenMetrics itself: it lays out names and labels
// once per set of series, and a scrape fills in the numbers. promhttp answers
// every other request (protobuf, a name filter) from the same layout. For one
// Snapshot both paths give the same series and, for text, the same bytes.
//
// No Snapshot can break the page: duplicate series, invalid labels and series
// beyond the limit are left out and counted in
// accel_exporter_series_dropped_total.
package exposition
