// Package dcgm holds the simulated libdcgm against NVIDIA's own bindings,
// unmodified, and against the simulated NVML: both must tell the same story.
package dcgm
