//go:build race

package exposition_test

const raceEnabled = true
