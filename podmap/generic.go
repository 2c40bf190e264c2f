package podmap

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
)

// Generic is one group of devices of generic-device-plugin, from its
// configuration. The plugin calls a device by the SHA-1 of the number of the
// replica and the paths that it matched, so the id can be recognised but not
// read: https://github.com/squat/generic-device-plugin, deviceplugin/path.go.
type Generic struct {
	// Paths are the patterns of the group, in its order: /dev/ami*. Only the
	// last element is matched as a pattern.
	Paths []string `yaml:"paths"`
	// Count is how often the plugin gives out each device; 1 by default.
	Count int `yaml:"count" accept:"1..256"`
}

// Check returns the mistake in an entry of a configuration file.
func (g *Generic) Check() error {
	if len(g.Paths) == 0 {
		return errors.New("found no paths; accepted are one or more")
	}
	for _, p := range g.Paths {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("found the pattern %.40q; accepted is a pattern such as /dev/ami*", p)
		}
	}
	return nil
}

// Limits on the hashes made for one device and group.
const (
	maxReplicas     = 256
	maxCombinations = 64
)

// hashes returns the ids that the plugin can have made for the devices: for
// each the paths that its own names yield, one for each pattern.
func hashes(groups []Generic, devices []Known) map[string]int {
	ids := map[string]int{}
	for _, g := range groups {
		for i := range devices {
			for _, paths := range combinations(g.Paths, devices[i].names) {
				for n := range min(max(g.Count, 1), maxReplicas) {
					put(ids, genericID(n, paths), i)
				}
			}
		}
	}
	return ids
}

func genericID(replica int, paths []string) string {
	h := sha1.New()
	h.Write(strconv.AppendInt(nil, int64(replica), 10))
	for _, p := range paths {
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// combinations returns every way to take one path for each pattern, out of the
// names of one device.
func combinations(patterns, names []string) [][]string {
	if len(patterns) == 0 {
		return nil
	}
	all := [][]string{nil}
	for _, pattern := range patterns {
		var next [][]string
		for _, have := range all {
			for _, name := range names {
				p := path.Join(path.Dir(pattern), name)
				if ok, _ := path.Match(pattern, p); ok && len(next) < maxCombinations {
					next = append(next, append(slices.Clip(have), p))
				}
			}
		}
		all = next
	}
	return all
}
