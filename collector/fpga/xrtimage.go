package fpga

import (
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

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
// image, and none where nothing is loaded or the slot is busy, so an image that
// has gone is reported as not loaded for loadPatience. A load of an image with
// new compute units is detected when they leave; any other when the uuid
// changes.
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
	r.SetBool(collector.FPGABitstreamLoaded, loaded, a.labels.of(s.name, "")[:1]...)
	if s.id != "" {
		r.Set(collector.FPGABitstreamInfo, 1, s.name, "xclbin", s.id)
	}
}

// transfers sets the bytes that the DMA engine has moved. The driver names the
// directions from the card's and the host's side; as for all accelerators, what
// the card sends is transmitted.
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

// clockNames are the clocks of a slot in the driver's order.
var clockNames = []string{"data", "kernel", "system", "extra"}

// clocks sets the clocks of the loaded image. The read waits for a load to end
// and counts cycles, so it is made once a minute, and of the management
// function where possible: the user function would call it.
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
