// Package dcgm tests the simulated libdcgm through NVIDIA's unmodified bindings, and compares
// its values with those of the simulated NVML.
package dcgm
