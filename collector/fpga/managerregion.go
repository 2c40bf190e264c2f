package fpga

import (
	"path"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// managerRegion is one region: its files and its node in the device tree.
type managerRegion struct {
	name, dir, node string
	uevent          string
}

// read sets the readings of a region: its compatibility id and the image that
// the device tree requested. It returns the image.
func (g *managerRegion) read(r *reading, c *managerCard) (string, bool) {
	// ENOENT is usual: regions of the device tree have no compat_id.
	if id, ok := r.textEvery(c.options.SlowInterval, g.dir+"/compat_id"); ok {
		r.Set(collector.FPGABitstreamInfo, 1, g.name, "pr_interface", tidy(strings.ToLower(id)))
	}
	if g.node == "" {
		g.node = r.nodeOf(g.uevent)
	}
	if g.node == "" {
		return "", false
	}
	raw, err := c.firmware.ReadBytes(path.Join(c.base, g.node, "firmware-name"), sysfs.Page)
	if err != nil {
		return "", false // no overlay, or no device tree
	}
	id := deviceTreeText(raw)
	if id == "" {
		return "", false
	}
	r.Set(collector.FPGABitstreamInfo, 1, g.name, "firmware", id)
	return id, true
}

// nodeOf returns the path in the device tree of the device with the given
// uevent file, without the leading slash.
func (r *reading) nodeOf(uevent string) string {
	text, ok := r.textEvery(identityInterval, uevent)
	if !ok {
		return ""
	}
	for line := range strings.Lines(text) {
		if node, ok := strings.CutPrefix(strings.TrimSpace(line), "OF_FULLNAME=/"); ok && !strings.Contains(node, "..") {
			return node
		}
	}
	return ""
}

// firmwareFiles are the properties that may be read of a separately mounted
// device tree.
var firmwareFiles = []string{"model", "*/firmware-name"}

// deviceTreeText returns the text of a property: NUL-terminated strings, joined
// by commas.
func deviceTreeText(raw []byte) string {
	var parts []string
	for p := range strings.SplitSeq(string(raw), "\x00") {
		if p = tidy(p); p != "" {
			parts = append(parts, p)
		}
	}
	return tidy(strings.Join(parts, ","))
}
