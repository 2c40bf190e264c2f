package kernellog

import (
	"bytes"
	"time"

	"golang.org/x/sys/unix"
)

// stamp is the timestamp of a line, as text.
type stamp struct{ boot, wall []byte }

// stripPrefix returns the message of a line as printed by dmesg, syslog or the
// journal, and its timestamp. A line of another process than the kernel is
// returned whole: it is no message of the kernel.
func stripPrefix(line []byte) (text []byte, st stamp) {
	text = bytes.TrimLeft(line, " \t") // the journal indents continuation lines
	if facility, rest, ok := bytes.Cut(text, []byte(":")); ok && len(facility) <= 8 && bytes.HasPrefix(facility, []byte("kern")) {
		// dmesg -x: "kern  :warn  : ".
		if _, rest, ok = bytes.Cut(rest, []byte(":")); ok {
			text = bytes.TrimLeft(rest, " ")
		}
	}
	if len(text) > 2 && text[0] == '<' {
		// dmesg -r: "<4>".
		if prio, rest, ok := number(text[1:]); ok && prio < facilities && len(rest) > 0 && rest[0] == '>' {
			text = rest[1:]
		}
	}
	if len(text) > 0 && text[0] != '[' {
		rest, wall, ok := syslogPrefix(text)
		if !ok {
			return text, st
		}
		text, st.wall = rest, wall
	}
	for len(text) > 0 && text[0] == '[' && !bytes.HasPrefix(text, []byte("[drm")) {
		// "[  123.456789] ", "[Sun Feb 23 16:24:18 2025] ", and the caller
		// after it: "[   T42] ".
		inside, rest, ok := bytes.Cut(text[1:], []byte("] "))
		if !ok {
			break
		}
		inside = bytes.TrimLeft(inside, " ")
		switch {
		case len(inside) > 0 && inside[0] >= '0' && inside[0] <= '9':
			st.boot = inside
		case len(st.wall) == 0:
			st.wall = inside
		}
		text = bytes.TrimLeft(rest, " ")
	}
	return text, st
}

// syslogPrefix cuts "2025-01-21T04:41:44,285060+00:00 " as printed by dmesg, or
// with "host kernel: " as by syslog, which also prints "Jan  3 07:39:45 ".
func syslogPrefix(text []byte) (rest, wall []byte, ok bool) {
	const bsd = len("Jan  3 07:39:45")
	switch {
	case len(text) > 20 && text[4] == '-' && text[10] == 'T':
		wall, rest, ok = bytes.Cut(text, []byte(" "))
	case len(text) > bsd && text[3] == ' ' && text[bsd-3] == ':' && text[bsd] == ' ':
		wall, rest, ok = text[:bsd], text[bsd+1:], true
	}
	if !ok {
		return nil, nil, false
	}
	if _, after, tagged := bytes.Cut(rest, []byte(" ")); tagged && bytes.HasPrefix(after, []byte("kernel: ")) {
		return after[len("kernel: "):], wall, true
	}
	return rest, wall, true // another program's line begins with the host name
}

// time returns when the line was written, zero where it has no timestamp. boot
// is when the kernel's log clock was 0.
func (st stamp) time(boot, now time.Time) time.Time {
	wall := string(bytes.Replace(st.wall, []byte(","), []byte("."), 1))
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999-0700"} {
		if t, err := time.Parse(layout, wall); err == nil {
			return t
		}
	}
	// These are in the time zone of the machine, assumed to be the local one.
	if t, err := time.ParseInLocation(time.ANSIC, wall, now.Location()); err == nil {
		return t
	}
	if t, err := time.ParseInLocation(time.Stamp, wall, now.Location()); err == nil {
		t = t.AddDate(now.Year(), 0, 0)
		if t.After(now.Add(24 * time.Hour)) {
			t = t.AddDate(-1, 0, 0)
		}
		return t
	}
	if sec, rest, ok := number(st.boot); ok && len(rest) > 0 && rest[0] == '.' && sec < 1<<32 && !boot.IsZero() {
		frac, err := time.ParseDuration("0" + string(rest) + "s")
		if err == nil {
			return boot.Add(time.Duration(sec)*time.Second + frac)
		}
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
