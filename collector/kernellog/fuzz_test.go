package kernellog_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
)

var (
	kernelAddress = regexp.MustCompile(`^([0-9a-f]{4}|[1-9a-f][0-9a-f]{4,7}):[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)
	aerSub        = regexp.MustCompile(`^(corrected|nonfatal|fatal)/[A-Za-z_]+$`)
	actions       = []string{"", "none", "reset", "reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "bus_reset", "system_reboot", "other"}
)

// subs are the values of Sub of kinds that have some.
var subs = map[collector.EventKind][]string{
	collector.EventRetirementLimit: {"near"}, collector.EventFirmwareStuck: {"gsp"}, collector.EventProbeFailed: {"unsupported", "no_region"},
}

// addressed are the kinds whose lines always have an address.
var addressed = []collector.EventKind{collector.EventXid, collector.EventSXid, collector.EventBusLoss, collector.EventAER}

// invented returns the parts of an event that no log can contain.
func invented(e collector.Event) string {
	sub := false
	switch e.Kind {
	case collector.EventXid:
		sub = e.Sub == "" || slices.Contains(append(kernellog.NVLinkSubs(e.Code), collector.SubFatal), e.Sub)
	case collector.EventSXid:
		sub = slices.Contains([]string{"", "fatal", "nonfatal"}, e.Sub)
	case collector.EventAER:
		sub = aerSub.MatchString(e.Sub)
	case collector.EventBusLoss, collector.EventDriverLoaded:
		sub = e.Sub == ""
	default:
		sub = e.Sub == "" || slices.Contains(subs[e.Kind], e.Sub)
	}
	fault := e.Kind == collector.EventXid || e.Kind == collector.EventSXid
	switch {
	case !sub:
		return "sub"
	case fault && (e.Code == 0 || e.Code > 99_999), !fault && e.Code >= 1<<32:
		return "code"
	case e.Cause > 99_999, e.Cause != 0 && e.Kind != collector.EventXid:
		return "cause"
	case !slices.Contains(actions, e.Action), e.Action != "" && e.Code != 154:
		return "action"
	case !kernelAddress.MatchString(e.PCI) && (e.PCI != "" || slices.Contains(addressed, e.Kind)):
		return "address"
	case e.Detail == "":
		return "detail"
	}
	return ""
}

func seeds(f *testing.F, add func(string)) {
	files, err := filepath.Glob(captures + "/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		add(string(text))
	}
}

// FuzzParse: an event of a message contains only what a log can contain, and
// Parse never panics.
func FuzzParse(f *testing.F) {
	seeds(f, func(text string) {
		for line := range strings.Lines(text) {
			f.Add(strings.TrimSuffix(line, "\n"))
		}
	})
	f.Fuzz(func(t *testing.T, text string) {
		p := kernellog.NewParser(func(string) bool { return true })
		for range 2 { // state of the first must not affect the second
			e, outcome := p.Line([]byte(text))
			if what := invented(e); outcome == kernellog.Reported && what != "" {
				t.Errorf("%s: %+v", what, e)
			}
			if outcome != kernellog.Reported && !cmp.Equal(e, collector.Event{}) {
				t.Errorf("not expected: %+v", e)
			}
		}
	})
}

// FuzzLog: the events do not depend on how the log's bytes are divided.
func FuzzLog(f *testing.F) {
	seeds(f, func(text string) {
		// Long seeds make slow mutations.
		for some := range slices.Chunk(slices.Collect(strings.Lines(text)), 4) {
			part := strings.Join(some, "")
			f.Add([]byte(part), uint16(len(part)/2))
		}
	})
	f.Add([]byte("4,1,2,-;NVRM: Xid (PCI:0000:1b:00): 63, \\xe2\\x80\\x94\\x0aNVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.\n A=b\n"), uint16(9))
	f.Fuzz(func(t *testing.T, log []byte, at uint16) {
		whole, parts := kernellog.NewFed(true), kernellog.NewFed(true)
		whole.Feed(log)
		cut := min(int(at), len(log))
		parts.Feed(log[:cut])
		parts.Feed(log[cut:])
		if diff := cmp.Diff(whole.Events, parts.Events); diff != "" || whole.Malformed() != parts.Malformed() {
			t.Errorf("cut at %d: %s", cut, diff)
		}
		for _, e := range whole.Events {
			if what := invented(e); what != "" {
				t.Errorf("%s: %+v", what, e)
			}
		}
	})
}
