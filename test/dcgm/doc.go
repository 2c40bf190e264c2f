// Package dcgm tests the simulated libdcgm through NVIDIA's unmodified bindings, and compares
// its values with the values of the simulated NVML.
package dcgm
