// Package collector holds the nouns of accel-exporter: Device, Reading,
// Event, Snapshot, Source and the table of every metric. It knows no vendor
// and no way of publishing; it imports the standard library only.
//
// A Source reads hardware. A Sampler calls every Source on its own tick and
// publishes an immutable Snapshot; everything that answers a question
// (exposition, rules) reads the latest Snapshot and never a device. A native
// library is read by a worker process, which Serve and Process connect.
//
// Three promises hold throughout. A value that was not measured is not in the
// list of Readings: there is no NaN, no -1 and no zero that means unknown.
// When a device or a Source fails, its gauges go and its counters stay. What
// one device or one Source does costs no other.
package collector
