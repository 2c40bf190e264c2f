package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// TestLogQueue: a log that nobody reads blocks no line. The lines that do not fit are
// counted, and their number is in the log once it is read again.
func TestLogQueue(t *testing.T) {
	r, w := io.Pipe()
	q := newLogQueue(w)
	const extra = 10
	for i := range maxLogQueue + extra + 1 { // one more may be at the writer
		fmt.Fprintf(q, "line %d\n", i)
	}
	dropped := q.dropped.Load()
	if dropped < extra || dropped > extra+1 {
		t.Errorf("%v lines were dropped", dropped)
	}
	read := make(chan string)
	go func() {
		var log bytes.Buffer
		io.Copy(&log, r)
		read <- log.String()
	}()
	q.flush(time.Minute)
	w.Close()
	log := <-read
	if want := fmt.Sprintf("%v log lines were dropped", dropped); !strings.Contains(log, want) || !strings.HasPrefix(log, "line 0\nline 1\n") {
		t.Errorf("%d bytes of log, without %q", len(log), want)
	}
	fmt.Fprintln(q, "after the end") // does not block
}

// TestLogQueueUnread: the end does not wait for a reader that never comes.
func TestLogQueueUnread(t *testing.T) {
	r, w := io.Pipe()
	q := newLogQueue(w)
	fmt.Fprintln(q, "unread")
	q.flush(time.Millisecond)
	r.Close()
	<-q.done
}
