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
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// A release closes every handle to a source's hardware, so that its driver
// can be unloaded or its devices reset, while metrics go on.

func (p *program) postRelease(w http.ResponseWriter, r *http.Request) {
	name, worker, ok := p.releasable(w, r)
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
	if err := worker.Release(d); err != nil {
		p.log.Error("Release is not complete", "collector", name, "err", err)
		http.Error(w, err.Error(), http.StatusGatewayTimeout)
		return
	}
	p.log.Info("Source released on request", "collector", name, "for", d)
	fmt.Fprintf(w, "%s released\n", name)
}

func (p *program) postAttach(w http.ResponseWriter, r *http.Request) {
	name, worker, ok := p.releasable(w, r)
	if !ok {
		return
	}
	worker.Attach()
	p.log.Info("Source attached on request", "collector", name)
	fmt.Fprintf(w, "%s attached\n", name)
}

// releasable finds the worker that a request names.
func (p *program) releasable(w http.ResponseWriter, r *http.Request) (string, *collector.Process, bool) {
	if !p.flags.release {
		http.Error(w, "release over HTTP is off; start with --web.enable-release, or use --release.directory", http.StatusForbidden)
		return "", nil, false
	}
	name := r.URL.Query().Get("source")
	worker, ok := p.workers[name]
	if !ok {
		http.Error(w, fmt.Sprintf("source is %q; accepted: %s", name, strings.Join(slices.Sorted(maps.Keys(p.workers)), ", ")), http.StatusBadRequest)
	}
	return name, worker, ok
}

// releasePoll is how often the release directory is looked at.
const releasePoll = 500 * time.Millisecond

// watchReleases releases sources for which a file stands in the release
// directory. It has no privilege to ask for: whoever may write there decides.
func (p *program) watchReleases(ctx context.Context) {
	held := map[string]fileRelease{}
	tick := time.NewTicker(releasePoll)
	defer tick.Stop()
	for {
		for name, worker := range p.workers {
			p.followFile(name, worker, held)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// fileRelease is a release asked for by a file.
type fileRelease struct {
	changed time.Time // of the file
	until   time.Time // zero: as long as the file stands
}

func (p *program) followFile(name string, worker *collector.Process, held map[string]fileRelease) {
	want, err := readRelease(filepath.Join(p.flags.releaseDir, name))
	have, holding := held[name]
	followed := holding && have.changed.Equal(want.changed)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if holding {
			delete(held, name)
			worker.Attach()
			p.log.Info("Source attached: its release file is gone", "collector", name)
		}
		return
	case err != nil && !followed:
		// Whoever made the file wants the handles closed; how long is the
		// lesser question.
		p.log.Error("Release file is not understood; released as long as it stands", "collector", name, "err", err)
	}
	if followed {
		return
	}
	held[name] = want
	var d time.Duration
	if !want.until.IsZero() {
		if d = time.Until(want.until); d <= 0 {
			return // an old file whose time has passed
		}
	}
	if err := worker.Release(d); err != nil {
		p.log.Error("Release is not complete", "collector", name, "err", err)
		return
	}
	p.log.Info("Source released by file", "collector", name, "for", d)
}

// readRelease reads a release file: empty, or a duration that counts from the
// file's modification.
func readRelease(path string) (fileRelease, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileRelease{}, err
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
