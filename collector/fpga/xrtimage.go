package fpga

import (
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// slotRegion is one slot of the card that an image can be loaded into.
type slotRegion struct {
	*region
	name string
	id   string    // of the image that is or was loaded
	left time.Time // when id was last seen, zero while it is loaded
	seen bool
}

// slot returns the slot of a number.
func (a *alveo) slot(n int) *slotRegion {
	for len(a.slots) <= n {
		name := "slot" + strconv.Itoa(len(a.slots))
		a.slots = append(a.slots, &slotRegion{region: a.memory.region(name), name: name})
	}
	return a.slots[n]
}

// images tells what is loaded: xclbinuuid has a line for each slot that holds
// an image, and none where nothing is loaded or the slot is busy, so that an
// image that is gone is still told for loadPatience, as one that cannot be
// used. A load of an image with new compute units is seen when they leave; any
// other is seen when the uuid changes.
func (a *alveo) images(r *reading) (answered bool) {
	if a.user.dir == "" {
		return false
	}
	a.load.Lock()
	a.load.region = a.slot(0).region
	a.load.Unlock()
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
				a.changed(r)
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
		a.tell(r, s, id)
	}
	return true
}

func (a *alveo) tell(r *reading, s *slotRegion, id string) {
	loaded := id != ""
	switch {
	case loaded:
		s.id, s.left = id, time.Time{}
	case s.left.IsZero():
		s.left = r.now
	}
	if !s.seen && !loaded && !a.unitsLeft {
		// An empty slot: what comes into it is a change.
		s.settle(r.now, r.now, "", true)
	}
	s.seen = true
	if s.id != "" && r.now.Sub(s.left) > loadPatience && !loaded {
		s.id = ""
	}
	r.SetBool(collector.FPGABitstreamLoaded, loaded, a.labels.of(s.name, "")[:1]...)
	if s.id != "" {
		r.Set(collector.FPGABitstreamInfo, 1, s.name, "xclbin", s.id)
	}
}

// transfers tells of the bytes that the DMA engine has moved. The driver calls
// the directions after the card and the host; as of all accelerators, what the
// card sends is transmitted.
func (a *alveo) transfers(r *reading) {
	dir := a.user.one("dma.xdma", "dma.qdma", "dma.qdma4")
	if dir == "" {
		return
	}
	text, ok := r.text(dir + "/channel_stat_raw")
	if !ok {
		return
	}
	toHost, toCard, ok := parseChannels(text)
	if !ok {
		r.Reject(collector.PCIeTransmit, collector.RejectType)
		return
	}
	r.Set(collector.PCIeTransmit, float64(toHost))
	r.Set(collector.PCIeReceive, float64(toCard))
}

// clockNames are the clocks of a slot in the order in which the driver keeps
// them.
var clockNames = []string{"data", "kernel", "system", "extra"}

// clocks tells of the clocks of the loaded image. The read waits for a load to
// end and counts cycles, so it is made once a minute, and of the management
// function where that can be asked: the user function asks it in turn.
func (a *alveo) clocks(r *reading) {
	dir := a.mgmt.one("icap")
	if dir == "" {
		dir = a.user.one("icap")
	}
	if dir == "" || a.unitsLeft || a.user.dir != "" && a.image == "" {
		return
	}
	text, ok := r.textEvery(identityInterval, dir+"/clock_freqs")
	if !ok {
		return
	}
	for i, hertz := range parseClocks(text) {
		if hertz == 0 {
			continue
		}
		name := clockNames[i%len(clockNames)]
		if slot := i / len(clockNames); slot > 0 {
			name = "slot" + strconv.Itoa(slot) + "/" + name
		}
		r.Set(collector.ClockHertz, hertz, a.labels.of(name, "")[:1]...)
	}
}
