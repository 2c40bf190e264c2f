//go:build !race

package exposition_test

const raceEnabled = false
