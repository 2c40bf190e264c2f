package exporter

import (
	"io"
	"os"
)

// procFile is a file that is kept open: its kernel buffer, once large enough,
// spares the next read the second attempt that the first one took.
type procFile struct {
	name string
	f    *os.File
	buf  []byte
}

// read returns the content, valid until the next call, or nil.
func (p *procFile) read() []byte {
	if p.f == nil {
		f, err := os.Open(p.name)
		if err != nil {
			return nil
		}
		p.f, p.buf = f, make([]byte, 16<<10)
	}
	n, err := p.f.ReadAt(p.buf, 0)
	if err != nil && err != io.EOF {
		p.f.Close()
		p.f = nil
		return nil
	}
	return p.buf[:n]
}
