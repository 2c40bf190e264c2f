package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

const (
	// MaxSize bounds a bundle in bytes, manifestSize the part of it that the manifest and
	// the end of the archive need.
	MaxSize      = 2 << 20
	manifestSize = 32 << 10

	// Bounds of a bundle that is read: of its content, of its files, and of a file that
	// is kept in memory.
	maxContent = 256 << 20
	maxFiles   = 1000
	maxKept    = 16 << 20
)

// Names of files in a bundle.
const (
	readmeName   = "README.txt"
	incidentName = "incident.json"
	manifestName = "MANIFEST.json"
)

// Manifest lists the files of a bundle, except itself.
type Manifest struct {
	Files []ManifestFile `json:"files"`
	// LeftOut are the files for which the bundle had no room.
	LeftOut []string `json:"left_out,omitempty"`
}

// ManifestFile is one file of a bundle.
type ManifestFile struct {
	Name   string `json:"name"`
	Size   int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// archive is a bundle that is being made: a tar of which each file is compressed by
// itself, so that a file that does not fit can be left out. Any gzip and tar read it.
type archive struct {
	data     bytes.Buffer
	manifest Manifest
	time     time.Time
}

// add adds a file, or notes that there is no room for it.
func (a *archive) add(name string, data []byte) {
	part := a.compress(name, data)
	if a.data.Len()+len(part) > MaxSize-manifestSize {
		a.manifest.LeftOut = append(a.manifest.LeftOut, name)
		return
	}
	a.data.Write(part)
	sum := sha256.Sum256(data)
	a.manifest.Files = append(a.manifest.Files, ManifestFile{name, len(data), hex.EncodeToString(sum[:])})
}

// compress returns a part of the compressed archive: a file, or its end if name is empty.
// Writing to a buffer does not fail.
func (a *archive) compress(name string, data []byte) []byte {
	var part bytes.Buffer
	zip := gzip.NewWriter(&part)
	to := tar.NewWriter(zip)
	if name == "" {
		_ = to.Close()
	} else {
		_ = to.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), ModTime: a.time, Format: tar.FormatPAX})
		_, _ = to.Write(data)
		_ = to.Flush()
	}
	_ = zip.Close()
	return part.Bytes()
}

// bytes returns the archive with its manifest.
func (a *archive) bytes() []byte {
	a.data.Write(a.compress(manifestName, toJSON(a.manifest)))
	a.data.Write(a.compress("", nil))
	return a.data.Bytes()
}

func toJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic(err) // cannot happen for the types of this package
	}
	return b.Bytes()
}

// Bundle is a bundle that was read.
type Bundle struct {
	SHA256   string   `json:"sha256"`
	Incident Incident `json:"incident"`
	Manifest Manifest `json:"manifest"`
	// Problems are differences between the files and the manifest.
	Problems []string `json:"problems,omitempty"`
	// Text is the bundle as a page for a person.
	Text string `json:"-"`
}

// Parse reads a bundle, which may come from anywhere.
func Parse(data []byte) (*Bundle, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("found %d bytes; a bundle has at most %d", len(data), MaxSize)
	}
	sum := sha256.Sum256(data)
	b := &Bundle{SHA256: hex.EncodeToString(sum[:])}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("is no bundle: %w", err)
	}
	content := &io.LimitedReader{R: zip, N: maxContent}
	from := tar.NewReader(content)
	kept, found := map[string][]byte{}, map[string]string{}
	for {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("is no complete bundle: %w", err)
		}
		if len(found) == maxFiles {
			return nil, fmt.Errorf("has more than %d files", maxFiles)
		}
		hash := sha256.New()
		var to io.Writer = hash
		var keep bytes.Buffer
		if h.Name == readmeName || h.Name == incidentName || h.Name == manifestName {
			if h.Size > maxKept {
				return nil, fmt.Errorf("%s has %d bytes; at most %d are accepted", h.Name, h.Size, maxKept)
			}
			to = io.MultiWriter(hash, &keep)
		}
		if _, err := io.Copy(to, from); err != nil {
			return nil, fmt.Errorf("%q is not complete: %w", h.Name, err)
		}
		kept[h.Name], found[h.Name] = keep.Bytes(), hex.EncodeToString(hash.Sum(nil))
	}
	for name, into := range map[string]any{incidentName: &b.Incident, manifestName: &b.Manifest} {
		if err := json.Unmarshal(kept[name], into); err != nil {
			return nil, fmt.Errorf("is no bundle: %s: %w", name, err)
		}
	}
	b.Text = string(kept[readmeName])
	for _, f := range b.Manifest.Files {
		switch got := found[f.Name]; got {
		case f.SHA256:
		case "":
			b.Problems = append(b.Problems, fmt.Sprintf("%q is missing", f.Name))
		default:
			b.Problems = append(b.Problems, fmt.Sprintf("%q was changed: its SHA-256 is %s, in the manifest it is %.64q", f.Name, got, f.SHA256))
		}
		delete(found, f.Name)
	}
	delete(found, manifestName)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		b.Problems = append(b.Problems, fmt.Sprintf("%q is not in the manifest", name))
	}
	return b, nil
}
