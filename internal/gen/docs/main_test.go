package main

import "testing"

// TestCurrent checks that the committed page is generated from the metric table.
func TestCurrent(t *testing.T) {
	t.Chdir("../../..")
	if err := run(true); err != nil {
		t.Error(err)
	}
}
