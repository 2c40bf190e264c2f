package kernellog_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

const captures = "../../fixtures/kernel-log"

var outcomes = map[kernellog.Outcome]string{
	kernellog.Unrelated: "unrelated", kernellog.Reported: "reported", kernellog.Part: "part of another",
	kernellog.MalformedXid: "malformed Xid", kernellog.MalformedSXid: "malformed SXid",
}

// Every line of the captures has the expected outcome, and the events of a log are
// the events of its lines.
func TestCaptures(t *testing.T) {
	files, err := filepath.Glob(captures + "/*.*")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "README.md" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := render(string(text))
			golden.Compare(t, filepath.Join("testdata", name+".golden"), lines)
			log := kernellog.NewFed(false)
			log.Feed(append(text, '\n'))
			if want := fmt.Sprintf("\nreported: %d\n", len(log.Events)); !strings.Contains(lines, want) {
				t.Errorf("%d events", len(log.Events))
			}
		})
	}
}

// TestMessages: the files of testdata/messages have cases of lines, each with its
// outcome if that is not unrelated.
func TestMessages(t *testing.T) {
	files, err := filepath.Glob("testdata/messages/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		golden.Cases(t, file, func(_ *testing.T, _, lines []string) (played []string) {
			p := kernellog.NewParser(func(addr string) bool { return addr == "0000:1b:00.0" })
			for _, line := range lines {
				played = append(played, line)
				switch e, outcome := p.Parse([]byte(strings.TrimPrefix(line, "< "))); outcome {
				case kernellog.Unrelated:
				case kernellog.Reported:
					played = append(played, "+ "+describe(e))
				default:
					played = append(played, "+ "+outcomes[outcome])
				}
			}
			return played
		})
	}
}

// render lists the outcome of each line that is not unrelated.
func render(text string) string {
	p := kernellog.NewParser(nil)
	counts := map[kernellog.Outcome]int{}
	var list strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, " ") {
			continue // a property of the record before it
		}
		e, outcome := p.Line([]byte(line))
		counts[outcome]++
		switch outcome {
		case kernellog.Unrelated:
		case kernellog.Reported:
			fmt.Fprintf(&list, "%d: %s\n", n, describe(e))
		default:
			fmt.Fprintf(&list, "%d: %s: %s\n", n, outcomes[outcome], line)
		}
	}
	var head strings.Builder
	for o := kernellog.Unrelated; o <= kernellog.MalformedSXid; o++ {
		fmt.Fprintf(&head, "%s: %d\n", outcomes[o], counts[o])
	}
	return head.String() + "\n" + list.String()
}

func describe(e collector.Event) string {
	s := fmt.Sprintf("%s %s %d", cmp.Or(e.PCI, e.Device), e.Kind, e.Code)
	for _, more := range []struct {
		name  string
		value any
		empty bool
	}{{"sub", e.Sub, e.Sub == ""}, {"action", e.Action, e.Action == ""}, {"cause", e.Cause, e.Cause == 0}, {"place", e.Place, e.Place == ""}} {
		if !more.empty {
			s += fmt.Sprintf(" %s=%v", more.name, more.value)
		}
	}
	return s
}
