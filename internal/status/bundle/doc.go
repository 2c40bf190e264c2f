// Package bundle keeps the evidence of a failed device: when the verdict on a device
// becomes failed, it writes one compressed tar with all that the exporter has sampled
// and received around that moment, before the node is rebooted or replaced.
//
// It calls no device and starts no program. The Sampler is not delayed: the Recorder
// is a judge that copies values, and a goroutine writes. A file gets its name once it is
// complete, so there is never half a bundle. A disk that is full or read-only is counted
// and logged, and nothing else depends on it.
package bundle
