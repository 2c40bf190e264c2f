package kernellog

import (
	"bytes"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stamp is the timestamp of a line, as text: seconds since boot, and the time of day.
type stamp struct{ boot, wall string }

var (
	// The journal indents continuation lines; dmesg -x prints "kern  :warn  : ", dmesg
	// -r "<4>" with the kernel's facility, syslog "Jan  3 07:39:45 host kernel: ", or
	// the time as dmesg does: "2025-01-21T04:41:44,285060+00:00 ".
	prefix = regexp.MustCompile(`^[ \t]*(?:kern[^:]{0,4}:[^:]*: *)?(?:<[0-7]>)?` +
		`(?:([0-9]{4}-[0-9]{2}-[0-9]{2}T\S+|[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8}) (?:\S+ kernel: )?)?`)
	// "[  123.456789] ", "[Sun Feb 23 16:24:18 2025] ", and the caller after it: "[
	// T42] ".
	bracket = regexp.MustCompile(`^\[ *([^]]*)\] +`)
)

// stripPrefix returns the message of a line as printed by dmesg, syslog or the
// journal, and its timestamp. A line of another process than the kernel keeps the
// name of the host or of the process: it is no message of the kernel.
func stripPrefix(line []byte) (text []byte, st stamp) {
	m := prefix.FindSubmatchIndex(line)
	text = line[m[1]:]
	if m[2] >= 0 {
		st.wall = string(line[m[2]:m[3]])
	}
	for !bytes.HasPrefix(text, []byte("[drm")) {
		b := bracket.FindSubmatch(text)
		if b == nil {
			break
		}
		switch inside := string(b[1]); {
		case inside != "" && inside[0] >= '0' && inside[0] <= '9':
			st.boot = inside
		case st.wall == "":
			st.wall = inside
		}
		text = text[len(b[0]):]
	}
	return text, st
}

// wallLayouts are the forms of the time of day. Those without a zone are in the time
// zone of the machine, assumed to be the local one.
var wallLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999-0700", time.ANSIC, time.Stamp}

// time returns when the line was written, zero where it has no timestamp. boot
// is when the kernel's log clock was 0.
func (st stamp) time(boot, now time.Time) time.Time {
	wall := strings.Replace(st.wall, ",", ".", 1)
	for _, layout := range wallLayouts {
		t, err := time.ParseInLocation(layout, wall, now.Location())
		if err != nil {
			continue
		}
		if layout == time.Stamp { // without a year
			t = t.AddDate(now.Year(), 0, 0)
			if t.After(now.Add(24 * time.Hour)) {
				t = t.AddDate(-1, 0, 0)
			}
		}
		return t
	}
	if since, err := time.ParseDuration(st.boot + "s"); err == nil && !boot.IsZero() {
		return boot.Add(since)
	}
	return time.Time{}
}

// bootTime returns the time of day at which the kernel's log clock was 0. That
// clock and CLOCK_MONOTONIC stop during suspend: a record from before the last
// suspend is dated too late by its length.
func bootTime() time.Time {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return time.Time{}
	}
	return time.Now().Round(0).Add(-time.Duration(ts.Nano()))
}
