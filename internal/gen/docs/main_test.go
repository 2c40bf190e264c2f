package main

import "testing"

// TestCurrent: the committed page is the one that the metric table makes.
func TestCurrent(t *testing.T) {
	t.Chdir("../../..")
	if err := run(true); err != nil {
		t.Error(err)
	}
}
