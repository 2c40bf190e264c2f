package trace

import "os"

// headers are the headers in a file. The file is read again when it changes.
type headers struct {
	path  string // "" for none
	known os.FileInfo
	now   map[string]string
}

// read reads the file if it changed. The previous headers stay after an error.
func (h *headers) read() error {
	if h.path == "" {
		return nil
	}
	info, err := os.Stat(h.path)
	if err != nil {
		return err
	}
	if h.known != nil && os.SameFile(info, h.known) && info.ModTime().Equal(h.known.ModTime()) && info.Size() == h.known.Size() {
		return nil
	}
	now, err := ReadHeaders(h.path)
	if err != nil {
		return err
	}
	h.known, h.now = info, now
	return nil
}
