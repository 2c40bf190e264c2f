package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
)

// A release closes every handle to a source's hardware, so that its driver can
// be unloaded or its devices reset. Attaching the source reopens them.

// Origins of a release. A source is released while at least one origin releases
// it.
const (
	byRequest = "request"
	byFile    = "file"
)

// releases are the current releases.
type releases struct {
	mu sync.Mutex
	// ends are the end times by source and origin. The zero time means until
	// attached.
	ends map[string]map[string]time.Time
}

// release releases a source for an origin, for d or, if d is 0, until it is
// attached. It returns once every handle is closed.
func (p *sampling) release(name, origin string, d time.Duration) error {
	var until time.Time
	if d > 0 {
		until = time.Now().Add(d)
		time.AfterFunc(d, func() { p.sampler.Wake(name) })
	}
	p.releases.mu.Lock()
	defer p.releases.mu.Unlock()
	if p.releases.ends == nil {
		p.releases.ends = map[string]map[string]time.Time{}
	}
	if p.releases.ends[name] == nil {
		p.releases.ends[name] = map[string]time.Time{}
	}
	p.releases.ends[name][origin] = until
	return p.enforce(name)
}

// attach ends the release of an origin. It returns the other origin that still
// releases the source, or "".
func (p *sampling) attach(name, origin string) (string, error) {
	p.releases.mu.Lock()
	defer p.releases.mu.Unlock()
	delete(p.releases.ends[name], origin)
	err := p.enforce(name)
	for other := range p.releases.ends[name] {
		return other, err
	}
	return "", err
}

// enforce releases or attaches the worker of a source. The caller has locked
// p.releases.mu.
func (p *sampling) enforce(name string) error {
	defer p.sampler.Wake(name)
	ends, now := p.releases.ends[name], time.Now()
	var last time.Duration
	for origin, until := range ends {
		switch {
		case until.IsZero():
			return p.workers[name].Release(0)
		case until.After(now):
			last = max(last, until.Sub(now))
		default:
			delete(ends, origin)
		}
	}
	if len(ends) == 0 {
		p.workers[name].Attach()
		return nil
	}
	return p.workers[name].Release(last)
}

// releasePoll is the interval at which the release directory is read.
const releasePoll = 500 * time.Millisecond

// watchReleases releases the sources that have a file in the release directory.
// Write permission on the directory is the authorization.
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
		if other, err := p.attach(name, byFile); err != nil || other != "" {
			p.log.Info("Release file was removed; source is still released", "collector", name, "by", other, "err", err)
		} else {
			p.log.Info("Source attached: its release file was removed", "collector", name)
		}
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
	}
	if err := p.release(name, byFile, d); err != nil {
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
	text, err := root.ReadFile(name)
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
