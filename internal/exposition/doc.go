// Package exposition serves the latest collector.Snapshot on /metrics.
//
// A Snapshot becomes metric families once, at the first request after it; scrapes and
// the rule engine share them. promhttp writes every format. A scrape reads no device
// and takes no lock while it writes to a socket, so a client that stops reading delays
// neither the sampler nor another scrape.
//
// No Snapshot can break the page: duplicate series, invalid labels and series
// beyond the limit are left out and counted in
// accel_exporter_series_dropped_total.
package exposition
