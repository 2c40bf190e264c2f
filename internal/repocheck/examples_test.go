package repocheck

import (
	"regexp"
	"strings"
	"testing"
)

// example is a fenced block below a line that is the name of a file.
var example = regexp.MustCompile("(?ms)^ *`([^`\n]+)`:\n\n *```\\w+\n(.*?)^ *```$")

// TestExamples asserts that the code in CONTRIBUTING.md is part of the files
// that it names.
func TestExamples(t *testing.T) {
	text := string(read(t, "CONTRIBUTING.md"))
	examples := example.FindAllStringSubmatch(text, -1)
	if len(examples) == 0 || len(examples) != strings.Count(text, "```")/2 {
		t.Fatalf("%d of %d blocks name a file", len(examples), strings.Count(text, "```")/2)
	}
	for _, e := range examples {
		if !strings.Contains(string(read(t, e[1])), "\n"+e[2]) {
			t.Errorf("%s does not contain:\n%s", e[1], e[2])
		}
	}
}
