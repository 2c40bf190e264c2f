package fpga

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// alveo reads one card.
type alveo struct {
	*env
	user, mgmt subdevices
	// known are the sensors and flags, by file, that have once had a value:
	// what does not exist reads 0.
	known map[string]bool

	identity

	slots []*slotRegion
	asked bool   // image is known
	image string // uuids of the loaded images
	// trips are the trips of firewalls by file, where only the user function is there.
	trips map[string]*trip
	// clocked are the clocks that have had a frequency with the image.
	clocked map[string]bool

	beats uint64    // of the board's controller, by the user function
	beat  time.Time // the last of them
	// units: the card has had compute units within longestLoad; left is when they left,
	// zero while they are there. unitsLeft: they may be away for a load.
	units, unitsLeft bool
	left             time.Time
	// The driver has taken the card offline, as for a reset, in this round and the last.
	offline, wasOffline bool
}

// read implements card.
func (a *alveo) read(r *reading) {
	a.list(r)
	a.identifyCard(r)
	answered := a.state(r)
	answered = a.images(r) || answered
	a.computeUnits(r)
	a.transfers(r)
	a.memories(r)
	a.clocks(r)
	a.firewalls(r)
	a.ecc(r)
	a.board(r)
	a.sysmon(r)
	a.vmr(r)
	if !answered {
		// The rest is from memory.
		r.Down, r.Readings = collector.ReasonError, nil
	}
}

// xrtStates are the values of the label state of accel_fpga_card_state for
// XRT's drivers.
var xrtStates = []string{"ready", "not_ready", "offline", "reset_required"}

// state sets whether the card can be used.
func (a *alveo) state(r *reading) (answered bool) {
	ready, ok := a.flag(r, a.user.file("ready"))
	if !ok {
		ready, ok = a.flag(r, a.mgmt.file("ready"))
	}
	offline, _ := a.flag(r, a.user.file("dev_offline"))
	away, _ := a.flag(r, a.mgmt.file("dev_offline"))
	bad, _ := a.flag(r, a.user.file("device_bad_state"))
	a.offline, a.wasOffline = offline || away, a.offline
	state := ""
	switch {
	case a.offline:
		state = "offline"
	case bad:
		state = "reset_required"
	case ok && ready:
		state = "ready"
	case ok:
		state = "not_ready"
	default:
		return false
	}
	r.states(collector.FPGACardState, xrtStates, state)
	return true
}

// flag reads a file with 0 or another number. An absent function has no file.
func (a *alveo) flag(r *reading, name string) (on, ok bool) {
	if name == "" {
		return false, false
	}
	v, ok := r.unsigned(collector.FPGACardState, 0, name)
	return v != 0, ok
}

const (
	// longestLoad is how long compute units may be absent before the card
	// counts as having no image.
	longestLoad = time.Minute
	// loadPatience is how long a load may take before the attributes that it
	// blocks are read nevertheless and the previous image is no longer
	// reported.
	loadPatience = 20 * time.Second
)

// identifyCard sets the card's identity. It does not change while the drivers are
// bound, except by a firmware update.
func (a *alveo) identifyCard(r *reading) {
	r.Vendor = "amd"
	rom := []string{a.user.one("rom"), a.mgmt.one("rom")}
	boards := []string{a.mgmt.one("xmc", "xmc.u2"), a.user.one("xmc", "xmc.u2")}
	versals := []string{a.mgmt.one("hwmon_sdm"), a.user.one("hwmon_sdm")}
	controllers := slices.Concat(boards, versals)
	functions := []string{a.user.dir, a.mgmt.dir}
	vbnv := a.first(r, identityInterval, rom, "VBNV")
	part := a.first(r, identityInterval, rom, "FPGA")
	serial := a.first(r, identityInterval, controllers, "serial_num")
	number := a.first(r, identityInterval, versals, "bd_part_num")
	r.Model = productName(a.first(r, identityInterval, controllers, "bd_name"), a.first(r, sysfs.Never, functions, "board_name"), vbnv)

	r.info(a.env, r.Driver, r.pci, part, serial, number, "")
	for _, f := range []struct {
		component, file string
		dirs            []string
	}{{"sc", "bmc_ver", boards}, {"sc_expected", "exp_bmc_ver", boards}, {"sc", "active_msp_ver", versals}, {"cmc", "version", boards}} {
		if v := a.first(r, identityInterval, f.dirs, f.file); v != "" && v != "0" {
			r.Set(collector.FirmwareInfo, 1, f.component, v)
		}
	}

	static := func(kind, id string) {
		if id != "" {
			r.Set(collector.FPGABitstreamInfo, 1, "static", kind, strings.ToLower(id))
		}
	}
	static("shell", vbnv)
	if stamp := a.first(r, identityInterval, rom, "timestamp"); stamp != "0" {
		static("shell_timestamp", stamp)
	}
	for _, id := range a.uuids(r, "logic_uuids") {
		static("logic", id)
	}
	for _, id := range a.uuids(r, "interface_uuids") {
		static("interface", id)
	}
}

// uuids reads a list of uuids of the user function. A shell without any returns
// EINVAL.
func (a *alveo) uuids(r *reading, file string) []string {
	if a.user.dir == "" {
		return nil
	}
	text, err := r.fs.ReadEvery(r.now, sysfs.Never, a.user.dir+"/"+file)
	if err != nil {
		return nil
	}
	ids, _ := parseUUIDs(text)
	return ids
}

// productName is the name from the board's controller, else one made of the
// driver's name for the board, else the shell's.
func productName(board, short, vbnv string) string {
	switch {
	case board != "":
		return board
	case len(short) > 1 && (short[0] == 'u' || short[0] == 'v') && short[1] >= '0' && short[1] <= '9':
		return "ALVEO " + strings.ToUpper(short)
	case short != "":
		return short
	}
	return vbnv
}

// slotRegion is one slot of the card for images.
type slotRegion struct {
	*region
	name string
	id   string    // of the image that is or was loaded
	left time.Time // when id was last read, zero while it is loaded
	seen bool
}

// slot returns the slot with the number.
func (a *alveo) slot(n int) *slotRegion {
	for len(a.slots) <= n {
		name := "slot" + strconv.Itoa(len(a.slots))
		a.slots = append(a.slots, &slotRegion{region: a.memory.region(name), name: name})
	}
	return a.slots[n]
}

// images sets the loaded images. xclbinuuid has a line for each slot with an
// image, and no line where nothing is loaded or the slot is busy, so an image
// that has gone is reported as not loaded for loadPatience. A load of an image
// with new compute units is detected when they leave; any other when the uuid
// changes.
func (a *alveo) images(r *reading) (answered bool) {
	if a.user.dir == "" {
		return false
	}
	var ids []string
	if !a.unitsLeft {
		asked := time.Now()
		text, ok := r.text(a.user.file("xclbinuuid"))
		if !ok {
			return false
		}
		if ids, ok = parseUUIDs(text); !ok {
			r.Reject(collector.FPGABitstreamInfo, collector.RejectType)
			return true
		}
		if now := strings.Join(ids, " "); now != a.image {
			if a.asked {
				r.fs.Forget()
				clear(a.clocked)
				for _, t := range a.trips {
					t.open = false
				}
			}
			a.image = now
		}
		a.asked = true
		for i, id := range ids {
			if s := a.slot(i); id != "" {
				s.settle(asked, time.Now(), id, true)
			}
		}
	}
	for i, s := range a.slots {
		id := ""
		if i < len(ids) {
			id = ids[i]
		}
		a.report(r, s, id)
	}
	return true
}

func (a *alveo) report(r *reading, s *slotRegion, id string) {
	loaded := id != ""
	switch {
	case loaded:
		s.id, s.left = id, time.Time{}
	case s.left.IsZero():
		s.left = r.now
	}
	if !s.seen && !loaded && !a.unitsLeft {
		// An empty slot: its next image is a change.
		s.settle(r.now, r.now, "", true)
	}
	s.seen = true
	if s.id != "" && r.now.Sub(s.left) > loadPatience && !loaded {
		s.id = ""
	}
	r.SetBool(collector.FPGABitstreamLoaded, loaded, s.name)
	if s.id != "" {
		r.Set(collector.FPGABitstreamInfo, 1, s.name, "xclbin", s.id)
	}
}

// nullUUID is what xocl prints for a slot that has been emptied.
const nullUUID = "00000000-0000-0000-0000-000000000000"

// parseUUIDs parses xclbinuuid: one line per slot with an image. An empty text
// means that nothing is loaded; the null uuid means so for its line, which is
// empty in uuids. ok is false where a line is no uuid.
func parseUUIDs(text string) (uuids []string, ok bool) {
	for line := range strings.Lines(text) {
		switch id := strings.ToLower(strings.Trim(line, "\x00 \t\r\n")); {
		case id == "":
		case !isUUID(id):
			return nil, false
		case id == nullUUID:
			uuids = append(uuids, "")
		default:
			uuids = append(uuids, id)
		}
	}
	for len(uuids) > 0 && uuids[len(uuids)-1] == "" {
		uuids = uuids[:len(uuids)-1]
	}
	return uuids, true
}

// uuidForm is a uuid in lower case; two-stage shells print it without dashes.
var uuidForm = regexp.MustCompile(`^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$`)

func isUUID(s string) bool { return uuidForm.MatchString(s) }

// subdevices are the parts of one PCI function by the driver's names:
// directories such as xmc.u.18874368, dma.xdma.u.5242880 or, in old releases,
// xmc.m.1025.
type subdevices struct {
	dir    string // of the function, empty where there is none
	byType map[string][]string
	hwmon  []string
}

// file returns the path of a file of the function itself, empty where the
// function is absent.
func (s *subdevices) file(name string) string {
	if s.dir == "" {
		return ""
	}
	return s.dir + "/" + name
}

// of returns the directories of the parts of a type, in order of their numbers.
func (s *subdevices) of(kind string) []string { return s.byType[kind] }

// one returns the directory of the first part of a type, empty where there is
// none.
func (s *subdevices) one(kinds ...string) string {
	for _, k := range kinds {
		if d := s.byType[k]; len(d) > 0 {
			return d[0]
		}
	}
	return ""
}

// subdeviceKind returns xmc for xmc.u.18874368, empty for another name.
func subdeviceKind(name string) string {
	parts := strings.Split(name, ".")
	n := len(parts) - 2 // the side: u or m
	if n < 1 || parts[n] != "u" && parts[n] != "m" || !isNumber(parts[n+1]) {
		return ""
	}
	return strings.Join(parts[:n], ".")
}

func listSubdevices(r *reading, dir string) subdevices {
	names, err := r.fs.Names(dir)
	if err != nil {
		if !absent(err) {
			r.fail(err)
		}
		return subdevices{}
	}
	slices.SortFunc(names, natural)
	s := subdevices{dir: dir, byType: map[string][]string{}}
	for _, name := range names {
		if name == "hwmon" {
			s.hwmon = namesUnder(r.fs, dir+"/hwmon")
		} else if kind := subdeviceKind(name); kind != "" {
			s.byType[kind] = append(s.byType[kind], dir+"/"+name)
		}
	}
	return s
}

// list lists the parts of the card's functions.
func (a *alveo) list(r *reading) {
	a.user, a.mgmt = subdevices{}, subdevices{}
	for _, dir := range append([]string{a.dir}, a.claims...) {
		switch driver, _ := r.fs.Link(dir + "/driver"); {
		case driver == "xocl" && a.user.dir == "":
			a.user = listSubdevices(r, dir)
		case driver == "xclmgmt" && a.mgmt.dir == "":
			a.mgmt = listSubdevices(r, dir)
		}
	}
	if a.user.dir == "" {
		a.unitsLeft = false
		return
	}
	// While an image is loaded, the card's compute units are absent: a list of names shows a
	// load without calling a driver.
	switch {
	case a.user.one("cu") != "":
		a.units, a.left = true, time.Time{}
	case a.units && a.left.IsZero():
		a.left = r.now
	}
	away := r.now.Sub(a.left)
	a.units = a.units && (a.left.IsZero() || away < longestLoad)
	a.unitsLeft = !a.left.IsZero() && away < loadPatience
	a.slot(0).setBusy(r.now, a.units && !a.left.IsZero())
}

// unsigned reads an integer of at least 0, decimal or 0x, at most once in an
// interval. All ones in 32 bits, and -1, are the answers of a card that has left
// the bus.
func (r *reading) unsigned(m *collector.Metric, interval time.Duration, file string) (uint64, bool) {
	text, ok := r.textEvery(interval, file)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseUint(text, 0, 64)
	switch {
	case text == "-1" || err == nil && v == 0xffffffff:
		r.Reject(m, collector.RejectSentinel)
		return 0, false
	case err != nil && strings.HasPrefix(text, "-"):
		r.Reject(m, collector.RejectRange)
		return 0, false
	case err != nil:
		r.Reject(m, collector.RejectType)
		return 0, false
	}
	return v, true
}
