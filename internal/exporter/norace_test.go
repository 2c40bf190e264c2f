//go:build !race

package exporter_test

const raceEnabled = false
