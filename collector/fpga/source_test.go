package fpga

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// bench has cards with scripted behaviour.
type bench struct {
	mu    sync.Mutex
	cards map[string]*fakeCard
	order []string
	fail  error
	opens int
	reads map[string]int // under way
	hangs chan struct{}  // blocks a read beyond the end of the test
}

// fakeCard is a card whose read takes until block is closed.
type fakeCard struct {
	dir   string
	block chan struct{}
	value float64
	// panics: the card's text makes the parser panic.
	panics bool
}

func (b *bench) family() *family {
	return &family{
		name: "fake", allow: pciFiles,
		find: func(*tree) ([]place, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			var out []place
			for _, id := range b.order {
				if c := b.cards[id]; c != nil {
					out = append(out, place{id: id, dir: c.dir})
				}
			}
			return out, b.fail
		},
		open: func(e *env) card {
			b.mu.Lock()
			b.opens++
			b.mu.Unlock()
			return &benchCard{b, e.id}
		},
	}
}

type benchCard struct {
	*bench
	id string
}

func (c *benchCard) read(r *reading) {
	c.mu.Lock()
	var f *fakeCard
	if now := c.cards[c.id]; now != nil {
		is := *now
		f = &is
	}
	c.reads[c.id]++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.reads[c.id]--
		c.mu.Unlock()
	}()
	if f == nil {
		r.gone = true
		return
	}
	if f.block != nil {
		<-f.block
	}
	if f.panics {
		panic("a mistake in the code of this card")
	}
	r.Set(collector.PowerWatts, f.value)
}

// benched runs a test in virtual time with a Source over cards that are all well.
func benched(t *testing.T, ids []string, test func(t *testing.T, b *bench, s *Source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{cards: map[string]*fakeCard{}, reads: map[string]int{}, order: ids}
		root := t.TempDir()
		for i, id := range ids {
			if err := os.Mkdir(filepath.Join(root, id), 0o755); err != nil {
				t.Fatal(err)
			}
			b.cards[id] = &fakeCard{dir: id, value: float64(i)}
		}
		s := newSource(sysfs.New(root), Options{PollInterval: -1}, []*family{b.family()})
		test(t, b, s)
		if err := s.Close(); (err != nil) != (b.hangs != nil) {
			t.Errorf("close: %v", err)
		}
		if b.hangs != nil {
			close(b.hangs)
		}
	})
}

func (b *bench) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// round is a Sample with five seconds, and the state of each card.
func round(t *testing.T, s *Source) (map[string]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := s.Sample(ctx)
	out := map[string]string{}
	for _, d := range r.Devices {
		state := fmt.Sprintf("%s age %v", d.Down, time.Since(d.Sampled))
		for _, v := range d.Readings {
			state += fmt.Sprintf(" %v", v.Value)
		}
		out[d.ID] = strings.TrimSpace(state)
	}
	return out, err
}

// TestStuckCardCostsItself: a card whose read does not return is stuck and gets
// no second read; the others are read in each round.
func TestStuckCardCostsItself(t *testing.T) {
	benched(t, []string{"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"}, func(t *testing.T, b *bench, s *Source) {
		if _, err := round(t, s); err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		b.set(func() { b.cards["0000:02:00.0"].block = release })
		for n := range 8 {
			time.Sleep(time.Second)
			start := time.Now()
			got, err := round(t, s)
			if took := time.Since(start); took > solo.Patience {
				t.Errorf("round %d took %v", n, took)
			}
			for _, id := range []string{"0000:01:00.0", "0000:03:00.0"} {
				if !strings.HasPrefix(got[id], "age 500ms") && !strings.HasPrefix(got[id], "age 0s") {
					t.Errorf("round %d: %s: %s", n, id, got[id])
				}
			}
			stuck := strings.HasPrefix(got["0000:02:00.0"], collector.ReasonStuck)
			if overdue := n >= 3; stuck != overdue || (err != nil) != overdue || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("round %d: %q, %v", n, got["0000:02:00.0"], err)
			}
			b.set(func() {
				if b.reads["0000:02:00.0"] != 1 {
					t.Errorf("round %d: %d reads of the stuck card at once", n, b.reads["0000:02:00.0"])
				}
			})
		}
		// Its late answer is out of date: not reported, though the next read hangs too.
		again := make(chan struct{})
		b.set(func() { b.cards["0000:02:00.0"].block = again })
		close(release)
		synctest.Wait()
		if got, _ := round(t, s); !strings.HasPrefix(got["0000:02:00.0"], collector.ReasonStuck) {
			t.Errorf("its late answer is reported: %q", got["0000:02:00.0"])
		}
		b.set(func() { b.cards["0000:02:00.0"].block = nil })
		close(again)
		synctest.Wait()
		got, err := round(t, s)
		if err != nil || got["0000:02:00.0"] != "age 0s 1" {
			t.Errorf("after it returned: %q, %v", got["0000:02:00.0"], err)
		}
	})
}

// TestFirstReadStuck: a card that never answered is listed as stuck too, and Close
// gives up and returns an error.
func TestFirstReadStuck(t *testing.T) {
	benched(t, []string{"0000:01:00.0", "0000:02:00.0"}, func(t *testing.T, b *bench, s *Source) {
		b.hangs = make(chan struct{})
		b.cards["0000:01:00.0"].block = b.hangs
		got, err := round(t, s)
		if !strings.HasPrefix(got["0000:01:00.0"], collector.ReasonStuck) || !strings.HasSuffix(got["0000:02:00.0"], " 1") || err == nil {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// TestStuckCardLeaves: a card that leaves the bus in a read is not listed. Back at
// its place, it is stuck until that read has returned, and is then read again.
func TestStuckCardLeaves(t *testing.T) {
	const id = "0000:01:00.0"
	benched(t, []string{id}, func(t *testing.T, b *bench, s *Source) {
		dir, release := b.cards[id].dir, make(chan struct{})
		b.cards[id].block = release
		round(t, s)
		b.set(func() { b.cards[id] = nil })
		if got, err := round(t, s); len(got) != 0 || err != nil {
			t.Fatalf("left, but %v, %v", got, err)
		}
		b.set(func() { b.cards[id] = &fakeCard{dir: dir, value: 7} })
		for range 2 {
			if got, err := round(t, s); !strings.HasPrefix(got[id], collector.ReasonStuck) || err == nil || b.opens != 1 {
				t.Errorf("within the read: %v, %v, %d opened", got, err, b.opens)
			}
		}
		close(release)
		synctest.Wait()
		if got, err := round(t, s); got[id] != "age 0s 7" || err != nil || b.opens != 2 {
			t.Errorf("after it returned: %v, %v", got, err)
		}
	})
}

// TestSlowCardIsNotWaitedFor: while a card is slow its previous result is
// reported, with its age.
func TestSlowCardIsNotWaitedFor(t *testing.T) {
	benched(t, []string{"0000:01:00.0"}, func(t *testing.T, b *bench, s *Source) {
		round(t, s)
		time.Sleep(time.Second)
		release := make(chan struct{})
		b.set(func() { b.cards["0000:01:00.0"].block = release })
		got, err := round(t, s)
		if got["0000:01:00.0"] != "age 1.5s 0" || err != nil {
			t.Errorf("%v, %v", got, err)
		}
		b.set(func() { b.cards["0000:01:00.0"] = &fakeCard{dir: "0000:01:00.0", value: 3} })
		close(release)
		synctest.Wait()
		if got, err := round(t, s); got["0000:01:00.0"] != "age 0s 3" || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// TestPanicCostsItsCard: a panic affects only its card.
func TestPanicCostsItsCard(t *testing.T) {
	benched(t, []string{"0000:01:00.0", "0000:02:00.0"}, func(t *testing.T, b *bench, s *Source) {
		b.cards["0000:01:00.0"].panics = true
		for range 2 {
			got, err := round(t, s)
			if !strings.HasPrefix(got["0000:01:00.0"], collector.ReasonError) || got["0000:02:00.0"] != "age 0s 1" || err == nil {
				t.Errorf("%v, %v", got, err)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestListingFails: a bus that cannot be listed is an error, and its cards have
// not left.
func TestListingFails(t *testing.T) {
	benched(t, []string{"0000:01:00.0"}, func(t *testing.T, b *bench, s *Source) {
		round(t, s)
		broken := errors.New("permission denied")
		b.set(func() { b.fail = broken })
		got, err := round(t, s)
		if len(got) != 1 || !errors.Is(err, broken) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// TestAbsent: a machine without FPGAs is no fault; a machine whose FPGA has
// left is up with no device.
func TestAbsent(t *testing.T) {
	benched(t, nil, func(t *testing.T, b *bench, s *Source) {
		if _, err := round(t, s); !errors.Is(err, collector.ErrAbsent) {
			t.Errorf("none: %v", err)
		}
		b.set(func() { b.order = []string{"a"}; b.cards["a"] = &fakeCard{dir: "."} })
		if got, err := round(t, s); len(got) != 1 || err != nil {
			t.Errorf("one: %v, %v", got, err)
		}
		b.set(func() { b.order = nil })
		if got, err := round(t, s); len(got) != 0 || err != nil {
			t.Errorf("left: %v, %v", got, err)
		}
	})
}

// TestTooManyCards: the bound on cards applies, and the omission is an error.
func TestTooManyCards(t *testing.T) {
	var ids []string
	for i := range maxCards + 3 {
		ids = append(ids, fmt.Sprintf("0000:%02x:00.0", i))
	}
	benched(t, ids, func(t *testing.T, _ *bench, s *Source) {
		got, err := round(t, s)
		if len(got) != maxCards || err == nil || !strings.Contains(err.Error(), ids[maxCards]) {
			t.Errorf("%d cards, %v", len(got), err)
		}
	})
}

// TestForeignCards: a card is the first family's that finds it, by its id or
// by the directory that it lies in.
func TestForeignCards(t *testing.T) {
	fixed := func(name string, places ...place) *family {
		return &family{name: name, find: func(*tree) ([]place, error) { return places, nil }}
	}
	l := lister{last: map[*family][]place{}, families: []*family{
		fixed("first", place{id: "a", dir: "pci/a", claims: []string{"pci/b"}}),
		fixed("second", place{id: "a", dir: "elsewhere"}, place{id: "x", dir: "pci/a/fpga/x"}, place{id: "y", dir: "pci/b/y"}, place{id: "ab", dir: "pci/ab"}),
	}}
	var got []string
	for _, p := range l.list(time.Now()).places {
		got = append(got, p.family.name+" "+p.id)
	}
	if want := []string{"first a", "second ab"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAllowLists: no family may open a harmful file, whatever is in its tree.
func TestAllowLists(t *testing.T) {
	const card = "devices/pci0000:00/0000:00:01.0/0000:01:00.0/"
	for _, file := range []string{
		card + "error", card + "mig_cache_update", card + "cu.u.1/stats_begin", card + "cu.u.1/stats_end", card + "cu.u.1/stat",
		card + "config", card + "resource0", card + "rom", card + "reset", card + "remove", card + "rescan", card + "enable", card + "sriov_numvfs",
		card + "hwmon/hwmon1/temp15_input", card + "hwmon/hwmon1/power2_input", card + "icap.u.1/rp_bit", card + "fdt_blob",
		card + "fpga_region/region0/dfl-port.0/userclk_freqcmd", card + "fpga_region/region0/dfl-port.0/userclk_freqcntrcmd",
		card + "fpga_region/region0/dfl-fme.0/dfl_dev.1/secure-update/image_load",
		card + "fpga_region/region0/dfl-port.0/errors/first_malformed_req", card + "fpga_region/region0/dfl-fme.0/hwmon/hwmon1/temp1_max_policy",
		card + "x-sec-update.1.auto/firmware/secure-update0/data", card + "x-sec-update.1.auto/firmware/secure-update0/loading",
		card + "x-sec-update.1.auto/firmware/secure-update0/cancel", card + "x-sec-update.1.auto/security/bmc_canceled_csks",
		"devices/platform/firmware:zynqmp-firmware/firmware:zynqmp-firmware:pcap/fpga_manager/fpga0/key",
		"devices/platform/firmware:zynqmp-firmware/firmware:zynqmp-firmware:pcap/fpga_manager/fpga0/firmware",
		"devices/platform/firmware:zynqmp-firmware/firmware:zynqmp-firmware:pcap/fpga_manager/fpga0/flags",
		"../../etc/shadow", "class/fpga_manager/fpga0/../../../../etc/state",
	} {
		for _, f := range families {
			if sysfs.Allows(f.allow, file) {
				t.Errorf("%s may open %s", f.name, file)
			}
		}
	}
	fs := newTree(sysfs.New(t.TempDir()), []string{"a/b*"})
	if _, err := fs.Read("x/a/b1"); errors.Is(err, sysfs.ErrForbidden) {
		t.Error("an allowed file is not")
	}
	for _, name := range []string{"a/c", "b1", "a/b1/c", "b/b1", ""} {
		if _, err := fs.Read(name); !errors.Is(err, sysfs.ErrForbidden) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := fs.ReadBytes(name, 1); !errors.Is(err, sysfs.ErrForbidden) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
