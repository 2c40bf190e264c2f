// Package exposition publishes the latest collector.Snapshot on /metrics.
//
// It promises that a scrape renders memory only: no device is read, no lock is
// held while bytes go to a socket, and a client that stops reading delays
// neither the sampler nor another scrape. Nothing allocated by a scrape grows
// with the number of series; tables that depend on the set of series are
// rebuilt when that set changes.
//
// The same page has two faces. The fast face writes text, OpenMetrics and
// delimited protobuf from label blocks made once, with the values appended.
// The conventional face is a gatherer of the same families for promhttp, which
// answers whatever the fast face does not cover. For one Snapshot both give
// the same bytes.
//
// Nothing a Snapshot holds can break the page: duplicate series, impossible
// labels and series beyond the limit are left out and counted in
// accel_exporter_series_dropped_total.
package exposition
