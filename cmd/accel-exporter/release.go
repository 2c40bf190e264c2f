package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
)

// releasePoll is the interval at which the release directory is read.
const releasePoll = 500 * time.Millisecond

// watchReleases releases the sources that have a file in the release directory: it
// closes every handle to the source's hardware, so that its driver can be unloaded or
// its devices reset. Write permission on the directory is the authorization.
func (p *sampling) watchReleases(ctx context.Context) {
	seen := map[string]fileRelease{}
	tick := time.NewTicker(releasePoll)
	defer tick.Stop()
	for {
		for name := range p.workers {
			seen[name] = p.followFile(name, seen[name])
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// fileRelease is the state of a release file.
type fileRelease struct {
	changed time.Time // modification time; zero without a file
	until   time.Time // end of the release; zero while the file exists
	unread  bool      // the file could not be inspected
}

// followFile applies changes of a source's release file since the state seen,
// and returns the new state.
func (p *sampling) followFile(name string, seen fileRelease) fileRelease {
	now, err := readRelease(p.flags.releaseDir, name)
	switch {
	case now.unread:
		if !seen.unread {
			p.log.Error("Release file cannot be inspected; the source keeps its state", "collector", name, "err", err)
		}
		seen.unread = true
		return seen
	case now.changed.Equal(seen.changed):
		return now
	case now.changed.IsZero():
		p.workers[name].Attach()
		p.sampler.Wake(name)
		p.log.Info("Source attached: its release file was removed", "collector", name)
		return now
	case err != nil:
		// The file requests a release even if its duration is invalid.
		p.log.Error("Release file is invalid; source is released while the file exists", "collector", name, "err", err)
	}
	var d time.Duration
	if !now.until.IsZero() {
		if d = time.Until(now.until); d <= 0 {
			return now // the release has ended before the file was read
		}
		time.AfterFunc(d, func() { p.sampler.Wake(name) })
	}
	err = p.workers[name].Release(d)
	p.sampler.Wake(name)
	if err != nil {
		p.log.Error("Release is not complete", "collector", name, "err", err)
	} else {
		p.log.Info("Source released by file", "collector", name, "for", d)
	}
	return now
}

// readRelease reads the release file of a source. It is empty or has a duration,
// which starts at the file's modification time. A link is not followed: others may
// write to the directory.
func readRelease(dir, name string) (fileRelease, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fileRelease{}, nil
	}
	if err != nil {
		return fileRelease{unread: true}, err
	}
	defer root.Close()
	path := filepath.Join(dir, name)
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fileRelease{}, nil
	}
	if err != nil {
		return fileRelease{unread: true}, err
	}
	r := fileRelease{changed: info.ModTime()}
	if !info.Mode().IsRegular() || info.Size() > 64 {
		return r, fmt.Errorf("%s: accepted is an empty file or a duration such as 10m", path)
	}
	text, err := readSame(root, name, info)
	if err != nil {
		return r, err
	}
	s := strings.TrimSpace(string(text))
	if s == "" {
		return r, nil
	}
	d, err := strict.ParseDuration(s)
	if err != nil || d <= 0 {
		return r, fmt.Errorf("%s: %q; accepted is an empty file or a duration such as 10m", path, s)
	}
	r.until = r.changed.Add(d)
	return r, nil
}

// readSame reads the file that info is of. A FIFO may have taken its place since, which
// must not be waited for.
func readSame(root *os.Root, name string, info fs.FileInfo) ([]byte, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if opened, err := file.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(err, fmt.Errorf("%s: replaced while it was read", name))
	}
	return io.ReadAll(io.LimitReader(file, info.Size()))
}
