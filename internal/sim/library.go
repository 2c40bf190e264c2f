package sim

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
)

// WithoutSymbols copies a shared library so that the named functions are not
// found in it, as in an older driver's library. A function that it does not
// have is an error.
func WithoutSymbols(from, to string, names []string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	section := f.Section(".dynstr")
	if section == nil {
		return fmt.Errorf("%s: no dynamic symbols", from)
	}
	if section.Type == elf.SHT_NOBITS || section.Offset > uint64(len(data)) || section.Size > uint64(len(data))-section.Offset {
		return fmt.Errorf("%s: its .dynstr is not within the file of %d bytes", from, len(data))
	}
	table := data[section.Offset : section.Offset+section.Size]
	for _, name := range names {
		// The loader compares names after the hash: another first letter hides
		// a name.
		i := bytes.Index(table, []byte("\x00"+name+"\x00"))
		if i < 0 {
			return fmt.Errorf("%s: no function %s to take away", from, name)
		}
		table[i+1] = 'x'
	}
	return os.WriteFile(to, data, 0o755)
}

// WithoutSymbolsIn is WithoutSymbols to a folder, which it creates, under the
// library's name.
func WithoutSymbolsIn(from, folder string, names []string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return WithoutSymbols(from, filepath.Join(folder, filepath.Base(from)), names)
}
