package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestWatch: --watch prints again, also after an error and while nothing matches, and
// ends without an error.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	answers := []error{noMatch{"device", "failed"}, nil, errors.New("the exporter is\x1b[2J away"), nil}
	var out strings.Builder
	n := 0
	err := show(ctx, &viewFlags{watch: true, interval: 1}, &out, func(context.Context) (int, error) {
		if n++; n > len(answers) {
			cancel()
			return 0, ctx.Err()
		}
		return n, answers[n-1]
	}, func(s *screen, n int) error {
		_, err := fmt.Fprintln(s, "answer", n)
		return err
	})
	const want = "no device matches \"failed\"; without an argument, all are listed\n\nanswer 2\n\nthe exporter is?[2J away\n\nanswer 4\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\n%q", err, &out)
	}
	broken := errors.New("refused")
	err = show(t.Context(), &viewFlags{watch: true}, &out, func(context.Context) (int, error) { return 0, broken }, func(*screen, int) error { return nil })
	if !errors.Is(err, broken) {
		t.Errorf("an error at first: %v", err)
	}
}

// TestLongWords: a word that is wider than the screen is broken.
func TestLongWords(t *testing.T) {
	if got := strings.Join(wrap("a bbbbbbb cc", 3), "|"); got != "a|bbb|bbb|b|cc" {
		t.Error(got)
	}
}
