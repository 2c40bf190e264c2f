//go:build race

package exporter_test

const raceEnabled = true
