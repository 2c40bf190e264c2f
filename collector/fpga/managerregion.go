package fpga

import (
	"path"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// managerRegion is one region: its files and its place in the device tree.
type managerRegion struct {
	name, dir, node string
	uevent          string
}

// read sets what is known of a region: what may be loaded into it, and which
// image the device tree asked for. It returns the latter.
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
		return "", false // no overlay, or no device tree to be seen
	}
	id := deviceTreeText(raw)
	if id == "" {
		return "", false
	}
	r.Set(collector.FPGABitstreamInfo, 1, g.name, "firmware", id)
	return id, true
}

// nodeOf returns the path in the device tree of the device whose uevent file
// is given, without the slash in front.
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

// firmwareFiles are the properties that may be read of a device tree that is
// mounted elsewhere.
var firmwareFiles = []string{"model", "*/firmware-name"}

// deviceTreeText is the text of a property: strings that end in NUL each,
// joined by commas.
func deviceTreeText(raw []byte) string {
	var parts []string
	for p := range strings.SplitSeq(string(raw), "\x00") {
		if p = tidy(p); p != "" {
			parts = append(parts, p)
		}
	}
	return tidy(strings.Join(parts, ","))
}
