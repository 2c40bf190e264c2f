package main

import (
	"strings"
	"testing"
)

// TestLongWords: a word that is wider than the screen is broken.
func TestLongWords(t *testing.T) {
	if got := strings.Join(wrap("a bbbbbbb cc", 3), "|"); got != "a|bbb|bbb|b|cc" {
		t.Error(got)
	}
}
