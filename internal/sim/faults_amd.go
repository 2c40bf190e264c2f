package sim

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/gpumetrics"
)

var (
	amdArg      = Arg{Name: "card", Help: "AMD GPU by number, by (part of) the name of its tree, or by address; all"}
	rasKinds    = []string{"corrected", "uncorrected", "deferred"}
	hangEnds    = []string{"soft", "queue", "reset", "failed", "none"}
	amdThrottle = []string{"power", "thermal"}
)

// amdRing is the queue that hangs.
const amdRing = "comp_1.0.0"

// amdFaults are faults of GPUs of the driver amdgpu.
var amdFaults = []Fault{
	{
		Name: "amd-ecc", Help: "count RAS errors of an AMD GPU, which the driver logs", apply: onAMD(countRAS),
		Args: []Arg{{Name: "type", Help: strings.Join(rasKinds, ", ")}, amdArg},
		Flags: []Flag{
			{Name: "block", Help: "umc, gfx, sdma, … as in the files of ras", Default: "umc"},
			{Name: "poison", Help: "consumed: a program has read the damaged data and the GPU must be reset"},
			countFlag, logFlag,
		},
	},
	{
		Name: "amd-hang", Help: "a queue of an AMD GPU hangs, and the driver recovers it", apply: onAMD(hangQueue), Args: []Arg{amdArg},
		Flags: []Flag{
			{Name: "ends", Help: "with " + strings.Join(hangEnds, ", "), Default: "reset"},
			{Name: "duration", Help: "of the reset", Default: "2s"},
		},
	},
	{
		Name: "amd-reset", Help: "somebody has an AMD GPU reset; returns when that has ended", apply: onAMD(resetAMD), Args: []Arg{amdArg},
		Flags: []Flag{{Name: "duration", Help: "how long it takes", Default: "2s"}},
	},
	{
		Name: "amd-throttle", Help: "an AMD GPU reduces its clocks; returns when it no longer does", apply: onAMD(throttleAMD),
		Args:  []Arg{{Name: "reason", Help: strings.Join(amdThrottle, ", ")}, amdArg},
		Flags: []Flag{{Name: "for", Help: "how long", Default: "10s"}},
	},
	{
		Name: "amd-xgmi", Help: "an XGMI link of an AMD GPU is down, or up", apply: onAMD(linkXGMI),
		Args: []Arg{{Name: "link", Help: "number of the link"}, {Name: "what", Help: "down or up"}, amdArg},
	},
	{
		Name: "amd-sleep", Help: "runtime power management suspends an AMD GPU, or resumes it", apply: onAMD(sleepAMD),
		Args: []Arg{amdArg, {Name: "switch", Help: "on or off", Optional: true, Default: "on"}},
	},
	{
		Name: "amd-retire", Help: "an AMD GPU retires pages of its memory", apply: onAMD(retirePages),
		Args: []Arg{{Name: "pages", Help: "how many more"}, amdArg},
	},
	{Name: "amd-overheat", Help: "an AMD GPU passes its critical temperature, and the driver announces to power the node off", apply: onAMD(overheat), Args: []Arg{amdArg}},
}

// amdCard is an AMD GPU, and the state it is in.
type amdCard struct {
	card
	s *State
	t *faketree.Tree
}

// onAMD applies f to the GPU of the argument card, or to all.
func onAMD(f func(amdCard, input) error) func(*State, input) error {
	return func(s *State, in input) error {
		tree, err := s.hardware()
		if err != nil {
			return err
		}
		found := amdCards(tree)
		if in["card"] != "all" {
			c, _, err := s.card(in["card"])
			if err != nil {
				return err
			}
			if c.kind != "amd" {
				return fmt.Errorf("%s is no AMD GPU", c.at)
			}
			found = []card{c}
		}
		if len(found) == 0 {
			return fmt.Errorf("this machine has no AMD GPU")
		}
		for _, c := range found {
			if err := f(amdCard{c, s, tree}, in); err != nil {
				return err
			}
		}
		return nil
	}
}

// amdCards returns the GPUs of the driver amdgpu by their addresses.
func amdCards(t *faketree.Tree) (out []card) {
	cards := cardsOf(t)
	for _, at := range t.Names("/sys/bus/pci/drivers/amdgpu") {
		if c, ok := cards[at]; ok {
			out = append(out, c)
		}
	}
	return out
}

// loadedAMD logs that the driver was loaded for a GPU, which ends its faults.
func (s *State) loadedAMD(c card) {
	s.log("[drm] Initialized amdgpu 3.64.0 for %s on minor 1", c.at)
}

// then adds a step to the fault, which finds the GPU again.
func (c amdCard) then(after time.Duration, do func(amdCard)) {
	at := c.at
	c.s.then(after, func(s *State) error {
		tree, err := s.hardware()
		if err != nil {
			return err
		}
		if c, ok := cardsOf(tree)[at]; ok {
			do(amdCard{c, s, tree})
		}
		return nil
	})
}

func (c amdCard) print(format string, args ...any) {
	c.s.log("amdgpu "+c.at+": amdgpu: "+format, args...)
}

// old reports whether the driver is of a kernel that prints some lines without an
// address: its RAS files date from before ACA.
func (c amdCard) old() bool { return c.t.Exists(c.dir + "/ras/umc_err_count") }

// table changes a field of gpu_metrics, if it has it.
func (c amdCard) table(field string, i int, change func(was uint64) uint64) error {
	text, ok := c.t.Get(c.dir + "/gpu_metrics")
	if !ok {
		return fmt.Errorf("%s has no gpu_metrics", c.at)
	}
	b := []byte(text)
	was, err := gpumetrics.Get(b, field, i)
	if err == nil {
		err = gpumetrics.Set(b, field, i, change(was))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.at, err)
	}
	c.t.Set(c.dir+"/gpu_metrics", string(b))
	return nil
}

// version is that of gpu_metrics.
func (c amdCard) version() string {
	text, _ := c.t.Get(c.dir + "/gpu_metrics")
	if len(text) < 4 {
		return ""
	}
	return fmt.Sprintf("%d.%d", text[2], text[3])
}

// countsThrottling reports whether the tables of a GPU count the time with reduced
// clocks.
func (s *State) countsThrottling(arg string) bool {
	c, tree, err := s.card(arg)
	return err == nil && amdCard{c, s, tree}.version() != "1.3"
}

func countRAS(c amdCard, in input) error {
	kind, err := in.one("type", rasKinds)
	if err != nil {
		return err
	}
	n, err := in.whole("count")
	if err != nil {
		return err
	}
	if _, err := in.one("poison", []string{"", "consumed"}); err != nil {
		return err
	}
	block := in["block"]
	file := c.dir + "/ras/aca_" + block
	if c.old() {
		file = c.dir + "/ras/" + block + "_err_count"
	}
	text, ok := c.t.Get(file)
	name := []string{"ce", "ue", "de"}[kind]
	if !ok || !strings.Contains(text, name+": ") {
		return fmt.Errorf("%s does not count %s errors of the block %s", c.at, rasKinds[kind], block)
	}
	addTo(c.t, file, name+":", n)
	if !in.on("log") {
		return nil
	}
	words := []string{"correctable", "uncorrectable", "deferred"}[kind]
	if c.old() {
		c.print("%d %s hardware errors detected in %s block", n, words, block)
	} else {
		id := c.s.integer("amd.events") + 1
		c.s.Set("amd.events", strconv.FormatInt(id, 10))
		c.s.log("amdgpu %s: {%d}socket: 0, die: 0, %d new %s hardware errors detected in %s block", c.at, id, n, words, block)
		c.s.log("amdgpu %s: {%d}socket: 0, die: 0, %d %s hardware errors detected in total in %s block", c.at, id, n, words, block)
	}
	if in["poison"] != "" {
		c.print("GPU reset for %s RAS poison consumption is issued!", block)
	}
	return nil
}

func hangQueue(c amdCard, in input) error {
	ends, err := in.one("ends", hangEnds)
	if err != nil {
		return err
	}
	takes, err := in.duration("duration")
	if err != nil {
		return err
	}
	timeout := fmt.Sprintf("ring %s timeout, ", amdRing)
	say := func(text string) {
		if c.old() {
			c.s.log("[drm:amdgpu_job_timedout [amdgpu]] *ERROR* %s", text)
		} else {
			c.print("%s", text)
		}
	}
	if hangEnds[ends] == "soft" {
		say(timeout + "but soft recovered")
		return nil
	}
	say(timeout + "signaled seq=48, emitted seq=50")
	say("Process information: process python3 pid 4242 thread python3 pid 4242")
	switch hangEnds[ends] {
	case "queue":
		if c.old() {
			return fmt.Errorf("%s: the driver of this kernel resets no single queue", c.at)
		}
		c.print("Starting %s ring reset", amdRing)
		c.print("Ring %s reset succeeded", amdRing)
	case "reset":
		c.reset(takes, true)
	case "failed":
		c.reset(takes, false)
	}
	return nil
}

func resetAMD(c amdCard, in input) error {
	takes, err := in.duration("duration")
	if err == nil {
		c.reset(takes, true)
	}
	return err
}

// fromHardware are patterns of the files that the driver does not answer during a
// reset.
var fromHardware = []string{
	"gpu_metrics", "gpu_busy_percent", "mem_busy_percent", "vcn_busy_percent", "pcie_replay_count", "pp_dpm_*",
	"hwmon/*/temp*_input", "hwmon/*/power1_input", "hwmon/*/power1_average", "hwmon/*/freq*_input", "hwmon/*/fan1_input",
}

// reset begins a reset. While it lasts, and after it has failed, the driver does
// not answer; after it has succeeded, counters of the firmware begin again.
func (c amdCard) reset(takes time.Duration, succeeds bool) {
	c.print("GPU reset begin!")
	var files []string
	for _, file := range c.t.Paths() {
		name, inside := strings.CutPrefix(file, c.dir+"/")
		if inside && slices.ContainsFunc(fromHardware, func(p string) bool { ok, _ := path.Match(p, name); return ok }) {
			files = append(files, file)
		}
	}
	for _, file := range files {
		c.t.SetErr(file, syscall.EBUSY)
	}
	c.then(takes, func(c amdCard) {
		n := c.s.integer("amd.resets."+c.at) + 1
		if !succeeds {
			c.print("GPU reset(%d) failed", n)
			c.print("GPU reset end with ret = -110")
			return
		}
		c.s.Set("amd.resets."+c.at, strconv.FormatInt(n, 10))
		for _, file := range files {
			c.t.SetErr(file, 0)
		}
		for _, counter := range []string{"energy_accumulator", "accumulation_counter"} {
			_ = c.table(counter, 0, func(uint64) uint64 { return 0 }) // not of every version
		}
		c.print("GPU reset succeeded, trying to resume")
		c.print("GPU reset(%d) succeeded!", n)
	})
}

func throttleAMD(c amdCard, in input) error {
	reason, err := in.one("reason", amdThrottle)
	if err != nil {
		return err
	}
	lasts, err := in.duration("for")
	if err != nil {
		return err
	}
	if c.version() == "1.3" {
		// Flags of the moment, which this version does not count.
		bit := []uint64{0, 36}[reason]
		if err := c.table("indep_throttle_status", 0, func(uint64) uint64 { return 1 << bit }); err != nil {
			return err
		}
		if c.old() && amdThrottle[reason] == "thermal" {
			c.print("WARN: GPU thermal throttling temperature reached, expect performance decrease. Hotspot.")
		}
		c.then(lasts, func(c amdCard) {
			_ = c.table("indep_throttle_status", 0, func(uint64) uint64 { return 0 })
		})
		return nil
	}
	counter := []string{"ppt_residency_acc", "socket_thm_residency_acc"}[reason]
	if err := c.table(counter, 0, func(was uint64) uint64 { return was }); err != nil {
		return err
	}
	c.print("WARN: GPU is throttled, expect performance decrease. %s.", []string{"PPT", "SOC"}[reason])
	const samples = 1000 // of the firmware, in a second
	for range lasts / time.Second {
		c.then(time.Second, func(c amdCard) {
			_ = c.table("accumulation_counter", 0, func(was uint64) uint64 { return was + samples })
			_ = c.table(counter, 0, func(was uint64) uint64 { return was + samples })
		})
	}
	return nil
}

func linkXGMI(c amdCard, in input) error {
	link, err := in.whole("link")
	if err != nil {
		return err
	}
	up, err := in.one("what", []string{"down", "up"})
	if err != nil {
		return err
	}
	if link > 7 {
		return fmt.Errorf("link: want a number from 0 to 7, found %d", link)
	}
	none := false
	err = c.table("xgmi_link_status", int(link), func(was uint64) uint64 {
		if none = was == 0xffff; none {
			return was
		}
		return uint64(up)
	})
	if none {
		return fmt.Errorf("link: %s has no link %d", c.at, link)
	}
	if err != nil {
		return fmt.Errorf("%s does not report the state of XGMI links: its gpu_metrics is of version %s", c.at, c.version())
	}
	return nil
}

func sleepAMD(c amdCard, in input) error {
	off, err := in.one("switch", []string{"on", "off"})
	if err != nil {
		return err
	}
	if control, _ := c.t.Get(c.dir + "/power/control"); control != "auto\n" {
		return fmt.Errorf("%s never sleeps: its power/control is %q", c.at, strings.TrimSpace(control))
	}
	c.t.Set(c.dir+"/power/runtime_status", []string{"suspended\n", "active\n"}[off])
	c.t.Set(c.dir+"/power_state", []string{"D3cold\n", "D0\n"}[off])
	return nil
}

func retirePages(c amdCard, in input) error {
	n, err := in.whole("pages")
	if err != nil || n == 0 || n > 10_000 {
		return fmt.Errorf("pages: want a number from 1 to 10000, found %q", in["pages"])
	}
	const threshold = 256 // at which the driver asks for a replacement
	file := c.dir + "/ras/gpu_vram_bad_pages"
	text, ok := c.t.Get(file)
	if !ok {
		return fmt.Errorf("%s has no list of retired pages", c.at)
	}
	before := uint64(strings.Count(text, "\n"))
	for i := range n {
		text += fmt.Sprintf("0x%08x : 0x00001000 : R\n", 0x100000+before+i)
	}
	c.t.Set(file, text)
	switch now := before + n; {
	case now >= threshold:
		c.print("Saved bad pages %d reaches threshold value %d", now, threshold)
	case now*10 > threshold*9:
		c.print("RAS records:%d exceeds 90%% of threshold:%d", now, threshold)
	}
	return nil
}

func overheat(c amdCard, _ input) error {
	c.print("ERROR: GPU HW Critical Temperature Fault(aka CTF) detected!")
	c.print("ERROR: System is going to shutdown due to GPU HW CTF!")
	return nil
}
