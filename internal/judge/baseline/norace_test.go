//go:build !race

package baseline_test

const raceEnabled = false
