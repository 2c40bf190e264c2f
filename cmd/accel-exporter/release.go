package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A release closes every handle to a source's hardware, so that its driver
// can be unloaded or its devices reset, while metrics go on.

// Origins of a release. A source stays released while any of them holds it.
const (
	byRequest = "request"
	byFile    = "file"
)

// releases are the holds in force: by source and origin, with their ends; the
// zero time is no end.
type releases struct {
	mu    sync.Mutex
	holds map[string]map[string]time.Time
}

// hold releases a source on behalf of an origin, for d or, where d is 0, until
// it is dropped. It returns once every handle is closed.
func (p *program) hold(name, origin string, d time.Duration) error {
	var until time.Time
	if d > 0 {
		until = time.Now().Add(d)
		time.AfterFunc(d, func() { p.sampler.Wake(name) })
	}
	p.releases.mu.Lock()
	defer p.releases.mu.Unlock()
	if p.releases.holds == nil {
		p.releases.holds = map[string]map[string]time.Time{}
	}
	if p.releases.holds[name] == nil {
		p.releases.holds[name] = map[string]time.Time{}
	}
	p.releases.holds[name][origin] = until
	return p.enforce(name)
}

// drop ends the hold of an origin and returns the other that still holds the
// source, or "".
func (p *program) drop(name, origin string) (string, error) {
	p.releases.mu.Lock()
	defer p.releases.mu.Unlock()
	delete(p.releases.holds[name], origin)
	err := p.enforce(name)
	for other := range p.releases.holds[name] {
		return other, err
	}
	return "", err
}

// enforce brings the worker to what the holds say. The caller holds the lock.
func (p *program) enforce(name string) error {
	defer p.sampler.Wake(name)
	holds, now := p.releases.holds[name], time.Now()
	var last time.Duration
	for origin, until := range holds {
		switch {
		case until.IsZero():
			return p.workers[name].Release(0)
		case until.After(now):
			last = max(last, until.Sub(now))
		default:
			delete(holds, origin)
		}
	}
	if len(holds) == 0 {
		p.workers[name].Attach()
		return nil
	}
	return p.workers[name].Release(last)
}

func (p *program) postRelease(w http.ResponseWriter, r *http.Request) {
	name, ok := p.releasable(w, r)
	if !ok {
		return
	}
	var d time.Duration
	if s := r.URL.Query().Get("for"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil || d <= 0 {
			http.Error(w, fmt.Sprintf("for is %q; a time such as 10m is accepted", s), http.StatusBadRequest)
			return
		}
	}
	if err := p.hold(name, byRequest, d); err != nil {
		p.log.Error("Release is not complete", "collector", name, "err", err)
		http.Error(w, err.Error(), http.StatusGatewayTimeout)
		return
	}
	p.log.Info("Source released on request", "collector", name, "for", d)
	fmt.Fprintf(w, "%s released\n", name)
}

func (p *program) postAttach(w http.ResponseWriter, r *http.Request) {
	name, ok := p.releasable(w, r)
	if !ok {
		return
	}
	other, err := p.drop(name, byRequest)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusGatewayTimeout)
	case other != "":
		http.Error(w, fmt.Sprintf("%s is still released by %s", name, other), http.StatusConflict)
	default:
		p.log.Info("Source attached on request", "collector", name)
		fmt.Fprintf(w, "%s attached\n", name)
	}
}

// releasable finds the source that a request names.
func (p *program) releasable(w http.ResponseWriter, r *http.Request) (string, bool) {
	if !p.flags.release {
		http.Error(w, "release over HTTP is off; start with --web.enable-release, or use --release.directory", http.StatusForbidden)
		return "", false
	}
	name := r.URL.Query().Get("source")
	_, ok := p.workers[name]
	if !ok {
		http.Error(w, fmt.Sprintf("source is %q; accepted: %s", name, strings.Join(slices.Sorted(maps.Keys(p.workers)), ", ")), http.StatusBadRequest)
	}
	return name, ok
}

// releasePoll is how often the release directory is looked at.
const releasePoll = 500 * time.Millisecond

// watchReleases releases sources for which a file stands in the release
// directory. It has no privilege to ask for: whoever may write there decides.
func (p *program) watchReleases(ctx context.Context) {
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

// fileRelease is what a release file said when it was last looked at.
type fileRelease struct {
	changed time.Time // of the file; zero where there is none
	until   time.Time // zero: as long as the file stands
	unread  bool      // it could not be looked at
}

// followFile acts on what has changed of a source's release file since seen.
func (p *program) followFile(name string, seen fileRelease) fileRelease {
	now, err := readRelease(filepath.Join(p.flags.releaseDir, name))
	switch {
	case now.unread:
		if !seen.unread {
			p.log.Error("Release file cannot be looked at; nothing is changed", "collector", name, "err", err)
		}
		seen.unread = true
		return seen
	case now.changed.Equal(seen.changed):
		return now
	case now.changed.IsZero():
		if other, err := p.drop(name, byFile); err != nil || other != "" {
			p.log.Info("Release file is gone; source is still released", "collector", name, "by", other, "err", err)
		} else {
			p.log.Info("Source attached: its release file is gone", "collector", name)
		}
		return now
	case err != nil:
		// Whoever made the file wants the handles closed; how long is the
		// lesser question.
		p.log.Error("Release file is not understood; released as long as it stands", "collector", name, "err", err)
	}
	var d time.Duration
	if !now.until.IsZero() {
		if d = time.Until(now.until); d <= 0 {
			return now // an old file whose time has passed
		}
	}
	if err := p.hold(name, byFile, d); err != nil {
		p.log.Error("Release is not complete", "collector", name, "err", err)
	} else {
		p.log.Info("Source released by file", "collector", name, "for", d)
	}
	return now
}

// readRelease reads a release file: empty, or a duration that counts from the
// file's modification.
func readRelease(path string) (fileRelease, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileRelease{}, nil
	}
	if err != nil {
		return fileRelease{unread: true}, err
	}
	r := fileRelease{changed: info.ModTime()}
	if !info.Mode().IsRegular() || info.Size() > 64 {
		return r, fmt.Errorf("%s: a file that is empty or holds a time such as 10m is accepted", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	s := strings.TrimSpace(string(text))
	if s == "" {
		return r, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return r, fmt.Errorf("%s: holds %q; nothing or a time such as 10m is accepted", path, s)
	}
	r.until = r.changed.Add(d)
	return r, nil
}
