package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// reconfigure plays the load of another image, step by step, as the drivers
// show it. Later steps look up the card again: it may have gone meanwhile.
func reconfigure(s *State, _ *faketree.Tree, c card, in input) error {
	takes, err := in.duration("duration")
	if err != nil {
		return err
	}
	id, err := imageID(c, in)
	if err != nil {
		return err
	}
	step := func(after time.Duration, do func(*faketree.Tree, card)) {
		s.then(after, onCardAt(c.at, do))
	}
	step(0, func(t *faketree.Tree, c card) { c.beginLoad(t) })
	switch c.kind {
	case "xrt":
		step(takes, func(t *faketree.Tree, c card) { c.endXRT(t, id, in["fail"] == "true") })
	default:
		step(takes/8, func(t *faketree.Tree, c card) { c.state(t, "write init") })
		step(takes/8, func(t *faketree.Tree, c card) { c.state(t, "write") })
		step(takes/2, func(t *faketree.Tree, c card) { c.state(t, "write complete") })
		step(takes/4, func(t *faketree.Tree, c card) { c.endManager(t, id, in["fail"] == "true") })
	}
	return nil
}

func onCardAt(at string, do func(*faketree.Tree, card)) func(*State) error {
	return func(s *State) error {
		tree, err := s.hardware()
		if err != nil {
			return err
		}
		if c, ok := cardsOf(tree)[at]; ok {
			do(tree, c)
		}
		return nil
	}
}

// imageID is the identity of the image to load: an AFU's 32 digits, an xclbin's
// UUID, the name of a bit file. A missing one is generated, a different one at
// each call.
func imageID(c card, in input) (string, error) {
	sum := sha256.Sum256([]byte(c.at + in["duration"] + strconv.FormatInt(time.Now().UnixNano(), 10)))
	made := hex.EncodeToString(sum[:16])
	switch c.kind {
	case "dfl":
		id := strings.ToLower(strings.ReplaceAll(in["afu"], "-", ""))
		if id == "" {
			return made, nil
		}
		if _, err := hex.DecodeString(id); err != nil || len(id) != 32 {
			return "", fmt.Errorf("afu: want 32 hexadecimal digits, found %q", in["afu"])
		}
		return id, nil
	case "xrt":
		if in["uuid"] == "" {
			return strings.Join([]string{made[:8], made[8:12], made[12:16], made[16:20], made[20:]}, "-"), nil
		}
		return strings.ToLower(in["uuid"]), nil
	}
	if in["firmware"] == "" {
		return "image-" + made[:8] + ".bit.bin", nil
	}
	return in["firmware"], nil
}

// manager is the directory of the card's FPGA manager, "" for XRT.
func (c card) manager(t *faketree.Tree) string {
	if c.kind == "dfl" {
		return first(t, c.dir, "fpga_region/*/dfl-fme.*/dfl-fme-mgr.*/fpga_manager/*")
	}
	return first(t, c.dir, "fpga_manager/*")
}

func (c card) state(t *faketree.Tree, state string) {
	if m := c.manager(t); m != "" {
		t.Set(m+"/state", state+"\n")
	}
}

// beginLoad shows the card during the load of an image. Reads that wait for the
// driver's lock block where they can: in a mounted tree.
func (c card) beginLoad(t *faketree.Tree) {
	var locked []string
	switch c.kind {
	case "dfl":
		c.state(t, "firmware request")
		port := first(t, c.dir, "fpga_region/*/dfl-port.*")
		t.Set(first(t, c.dir, "fpga_region/*/dfl-fme.*/dfl-fme-bridge.*/fpga_bridge/*")+"/state", "disabled\n")
		if t.Exists(port + "/afu_id") {
			t.SetErr(port+"/afu_id", syscall.EBUSY)
		}
		locked = append(locked, port+"/errors", first(t, c.dir, "fpga_region/*/dfl-fme.*")+"/errors")
	case "xrt":
		t.Set(c.dir+"/xclbinuuid", "")
		t.Set(c.dir+"/kds_custat_raw", "")
		t.Set(c.dir+"/mig_calibration", "0x0\n")
		for _, name := range t.Names(c.dir) {
			if strings.HasPrefix(name, "cu.") {
				t.Unplug(c.dir + "/" + name)
			}
		}
		locked = append(locked, c.dir+"/xclbinuuid", first(t, c.dir, "icap.*"))
		if c.mgmt != "" {
			locked = append(locked, first(t, c.mgmt, "icap.*"))
		}
	default:
		c.state(t, "firmware request")
	}
	for _, dir := range locked {
		if t.Exists(dir) {
			t.Block(dir)
		}
	}
}

// endManager ends a load through the FPGA manager.
func (c card) endManager(t *faketree.Tree, id string, failed bool) {
	t.Unblock(c.dir)
	manager := c.manager(t)
	if failed {
		t.Set(manager+"/state", "write error\n")
		t.Set(manager+"/status", "reconfig CRC error\n")
		return // the port stays disabled, the region has no image
	}
	t.Set(manager+"/state", "operating\n")
	t.Set(manager+"/status", "")
	if c.kind == "dfl" {
		t.Set(first(t, c.dir, "fpga_region/*/dfl-fme.*/dfl-fme-bridge.*/fpga_bridge/*")+"/state", "enabled\n")
		if afu := first(t, c.dir, "fpga_region/*/dfl-port.*") + "/afu_id"; t.Exists(afu) {
			t.Set(afu, id+"\n")
		}
		return
	}
	if name := "/sys/firmware/devicetree/base/fpga-full/firmware-name"; t.Exists(name) {
		t.Set(name, id+"\x00")
	}
}

// endXRT ends the load of an xclbin with two compute units of one kernel, at
// numbers that no unit had before.
func (c card) endXRT(t *faketree.Tree, id string, failed bool) {
	t.Unblock(c.dir)
	if c.mgmt != "" {
		t.Unblock(c.mgmt)
	}
	if failed {
		return // nothing is loaded
	}
	sum := sha256.Sum256([]byte(id))
	kernel := "krnl_" + hex.EncodeToString(sum[:2])
	t.Set(c.dir+"/xclbinuuid", id+"\n")
	t.Set(c.dir+"/mig_calibration", "0x1\n")
	var table strings.Builder
	for i := range 2 {
		at := 0x1800000 + i*0x10000
		name := fmt.Sprintf("%s:%s_%d", kernel, kernel, i+1)
		unit := fmt.Sprintf("cu.u.%d", 44040192+64+i+2*int(sum[2]))
		fmt.Fprintf(&table, "0,%d,%s,0x%x,0x4,0\n", i, name, at)
		dir := c.dir + "/" + unit
		for file, text := range map[string]string{
			"name": name + "\n", "base_paddr": fmt.Sprintf("0x%x\n", at), "size": "65536\n", "is_ucu": "0\n", "modalias": "platform:cu.u\n",
			"cu_stat": "Pending queue:    0\nRunning queue:    0\nSubmitted queue:  0\nCompleted queue:  0\nBad state:        0\n" +
				"Current credit:   1\nCU status:        0x4\nsleep cnt:        0\nmax running:      0\n\x00",
		} {
			t.Set(dir+"/"+file, text)
		}
		t.Link(dir+"/subsystem", up(dir)+"bus/platform")
		t.Link(dir+"/driver", up(dir)+"bus/platform/drivers/xocl_cu")
		t.Link("/sys/bus/platform/devices/"+unit, "../../../"+strings.TrimPrefix(dir, "/sys/"))
	}
	t.Set(c.dir+"/kds_custat_raw", table.String())
}
