package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// board is a GPU model: values from a capture, and its MIG profiles.
type board struct {
	Description, Source string
	Addresses           []string `yaml:"pci_addresses"`
	Values              map[string]string
	Profiles            []profileEntry `yaml:"mig_profiles"`

	values []line // checked
}

type profileEntry struct {
	Name                                                               string
	Index, ID, Slices, Count, SM, CE, Dec, Enc, JPG, OFA, Size, Memory int
	Starts                                                             []int
}

func loadBoard(fixtures fs.FS, name string) (*board, error) {
	file := "boards/" + name + ".yaml"
	data, err := fs.ReadFile(fixtures, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no board %q; want one of %s", name, strings.Join(fixtureNames(fixtures, "boards/*.yaml"), ", "))
	}
	if err != nil {
		return nil, err
	}
	b := &board{}
	root, err := decode(file, data, b)
	if err == nil {
		b.values, err = checkValues(root.at("values"), b.Values)
	}
	return b, err
}

func (b *board) compile(s *State, index int) {
	prefix := fmt.Sprintf("board.%d.", index)
	for _, v := range b.values {
		s.Set(prefix+v.key, v.value)
	}
	for i, p := range b.Profiles {
		starts := 0
		for _, at := range p.Starts {
			starts |= 1 << at
		}
		s.Set(fmt.Sprintf("%sprofile.%d", prefix, i), fmt.Sprintf(
			"name=%s starts=%d index=%d id=%d slices=%d count=%d sm=%d ce=%d dec=%d enc=%d jpg=%d ofa=%d size=%d memory=%d",
			p.Name, starts, p.Index, p.ID, p.Slices, p.Count, p.SM, p.CE, p.Dec, p.Enc, p.JPG, p.OFA, p.Size, p.Memory))
	}
}

// address returns the PCI address: the captured ones first, then generated
// ones.
func (b *board) address(n int) string {
	if n < len(b.Addresses) {
		return b.Addresses[n]
	}
	for bus := 0x11 + n%16*0xd; ; bus++ {
		if a := fmt.Sprintf("%08X:%02X:00.0", n/16, bus); !slices.Contains(b.Addresses, a) {
			return a
		}
	}
}
