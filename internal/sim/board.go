package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// board is a GPU model: values from a capture, and its MIG profiles.
type board struct {
	description, source string
	values              []line
	addresses           []string
	profiles            []string
}

func loadBoard(fixtures fs.FS, name string) (*board, error) {
	file := "boards/" + name + ".yaml"
	data, err := fs.ReadFile(fixtures, file)
	if errors.Is(err, fs.ErrNotExist) {
		files, _ := fs.Glob(fixtures, "boards/*.yaml")
		for i, f := range files {
			files[i] = strings.TrimSuffix(filepath.Base(f), ".yaml")
		}
		return nil, fmt.Errorf("no board %q; want one of %s", name, strings.Join(files, ", "))
	}
	if err != nil {
		return nil, err
	}
	return parseBoard(file, data)
}

func parseBoard(file string, data []byte) (*board, error) {
	root, err := parseYAML(file, data)
	if err != nil {
		return nil, err
	}
	b := &board{}
	return b, root.fields(map[string]func(node) error{
		"description":   toText(&b.description),
		"source":        toText(&b.source),
		"pci_addresses": toTexts(&b.addresses),
		"values":        toValues(&b.values),
		"mig_profiles":  func(n node) error { return n.items(b.parseProfile) },
	})
}

func (b *board) parseProfile(_ int, n node) error {
	var name string
	var starts int
	numbers := []string{"index", "id", "slices", "count", "sm", "ce", "dec", "enc", "jpg", "ofa", "size", "memory"}
	got := make([]int, len(numbers))
	known := map[string]func(node) error{
		"name": toText(&name),
		"starts": func(c node) error {
			return c.items(func(_ int, v node) error {
				var at int
				err := toInt(&at, 0, 7)(v)
				starts |= 1 << at
				return err
			})
		},
	}
	for i, key := range numbers {
		known[key] = toInt(&got[i], 0, 1<<20)
	}
	if err := n.fields(known); err != nil {
		return err
	}
	var rec strings.Builder
	fmt.Fprintf(&rec, "name=%s starts=%d", name, starts)
	for i, key := range numbers {
		fmt.Fprintf(&rec, " %s=%d", key, got[i])
	}
	b.profiles = append(b.profiles, rec.String())
	return nil
}

func (b *board) compile(s *State, index int) {
	prefix := fmt.Sprintf("board.%d.", index)
	for _, v := range b.values {
		s.Set(prefix+v.key, v.value)
	}
	for i, p := range b.profiles {
		s.Set(fmt.Sprintf("%sprofile.%d", prefix, i), p)
	}
}

// address returns the PCI address: the captured ones first, then generated
// ones.
func (b *board) address(n int) string {
	if n < len(b.addresses) {
		return b.addresses[n]
	}
	for bus := 0x11 + n%16*0xd; ; bus++ {
		if a := fmt.Sprintf("%08X:%02X:00.0", n/16, bus); !slices.Contains(b.addresses, a) {
			return a
		}
	}
}
