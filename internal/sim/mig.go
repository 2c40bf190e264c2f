package sim

import (
	"crypto/sha256"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// profile is a GPU instance profile of a board, as its record in the state.
type profile struct {
	name             string
	id, slices, size int
	starts           []int
}

func (s *State) profiles(gpu int) []profile {
	var out []profile
	board := s.Get(fmt.Sprintf("gpu.%d.board", gpu))
	for _, key := range s.keys("board." + board + ".profile.") {
		rec := s.Get(key)
		p := profile{name: attr(rec, "name")}
		p.id, _ = strconv.Atoi(attr(rec, "id"))
		p.slices, _ = strconv.Atoi(attr(rec, "slices"))
		p.size, _ = strconv.Atoi(attr(rec, "size"))
		mask, _ := strconv.Atoi(attr(rec, "starts"))
		for i := range 8 {
			if mask&(1<<i) != 0 {
				p.starts = append(p.starts, i)
			}
		}
		out = append(out, p)
	}
	return out
}

// instance is a GPU instance to create: its profile and the slices of its
// compute instances.
type instance struct {
	profile
	compute []int
	start   int
}

// setMIG applies a MIG layout: items such as 3g.40gb, or 3g.40gb:1c+2c for two
// compute instances in one GPU instance.
func (s *State) setMIG(gpu int, items []string) error {
	placed, err := place(s.profiles(gpu), items)
	if err != nil {
		return fmt.Errorf("gpu %d: %w", gpu, err)
	}
	for _, key := range append(s.keys(fmt.Sprintf("gpu.%d.mig.", gpu)), s.keys(fmt.Sprintf("touched.gpu.%d.mig.", gpu))...) {
		if !strings.Contains(key, ".mig.mode") && !strings.Contains(key, ".mig.pending") {
			s.Delete(key)
		}
	}
	uuid, n := s.gpuGet(gpu, "uuid"), 0
	for _, in := range placed {
		gi, ciStart := instanceID(in), 0
		for ci, slices := range in.compute {
			name := in.name
			if slices != in.slices {
				name = fmt.Sprintf("%dc.%s", slices, in.name)
			}
			s.Set(fmt.Sprintf("gpu.%d.mig.%d", gpu, n), fmt.Sprintf(
				"uuid=%s profile=%s gi=%d ci=%d gi_profile=%d start=%d ci_slices=%d ci_start=%d",
				madeUUID("MIG", uuid, strconv.Itoa(gi), strconv.Itoa(ci)), name, gi, ci, in.id, in.start, slices, ciStart))
			n++
			ciStart += slices
		}
	}
	return nil
}

// place finds slices for every instance, largest first as the driver does.
func place(known []profile, items []string) ([]instance, error) {
	var wanted []instance
	for _, item := range items {
		in, err := parseInstance(known, item)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, in)
	}
	sort.SliceStable(wanted, func(i, j int) bool { return wanted[i].slices > wanted[j].slices })
	taken := 0
	for i := range wanted {
		w := &wanted[i]
		w.start = -1
		for k := range w.starts {
			start := w.starts[k]
			if w.size == 4 && len(w.starts) > 1 {
				start = w.starts[len(w.starts)-1-k] // a half is placed at the upper end
			}
			if mask := (1<<w.size - 1) << start; taken&mask == 0 {
				w.start, taken = start, taken|mask
				break
			}
		}
		if w.start < 0 {
			return nil, fmt.Errorf("no room for %s in the layout %s", w.name, strings.Join(items, ","))
		}
	}
	return wanted, nil
}

func parseInstance(known []profile, item string) (instance, error) {
	name, parts, split := strings.Cut(item, ":")
	var names []string
	for _, p := range known {
		if p.name != name {
			names = append(names, p.name)
			continue
		}
		in := instance{profile: p, compute: []int{p.slices}}
		if !split {
			return in, nil
		}
		in.compute = nil
		sum := 0
		for c := range strings.SplitSeq(parts, "+") {
			n, err := strconv.Atoi(strings.TrimSuffix(c, "c"))
			if err != nil || n < 1 || n > p.slices {
				return in, fmt.Errorf("compute instance %q in %q: want 1c to %dc", c, item, p.slices)
			}
			in.compute = append(in.compute, n)
			sum += n
		}
		if sum > p.slices {
			return in, fmt.Errorf("%q wants %d compute slices of %d", item, sum, p.slices)
		}
		return in, nil
	}
	if len(names) == 0 {
		return instance{}, fmt.Errorf("this board has no MIG")
	}
	return instance{}, fmt.Errorf("unknown MIG profile %q: want one of %s", name, strings.Join(names, ", "))
}

// instanceID numbers instances by size and position, as the driver does.
func instanceID(in instance) int {
	switch in.size {
	case 8:
		return 0
	case 4:
		return 1 + in.start/4
	case 2:
		return 3 + in.start/2
	}
	return 7 + in.start
}

// madeUUID is deterministic: the same device has the same UUID in every run.
func madeUUID(prefix string, parts ...string) string {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", prefix, h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
