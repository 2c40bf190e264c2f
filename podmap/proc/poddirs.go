package proc

import (
	"sync"
	"time"
)

// PodDirs knows the pods of the node by the kubelet's directories below /var/log/pods.
// It is safe for concurrent use.
type PodDirs struct {
	list func() ([]string, error)

	mu      sync.Mutex
	latest  *PodList
	listing bool
	asked   time.Time
}

// PodList is a list of the pods.
type PodList struct {
	// At is when the listing began.
	At    time.Time
	ByUID map[string]PodName
	// UID is "" for a name of several pods: all but one have ended, and it is unknown
	// which.
	UID map[PodName]string
}

// NewPodDirs returns PodDirs that list the names of the directories by a function,
// which may block.
func NewPodDirs(list func() ([]string, error)) *PodDirs { return &PodDirs{list: list} }

// Latest returns the latest list, nil before the first.
func (d *PodDirs) Latest() *PodList {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.latest
}

// listPause is the least time between two lists.
const listPause = 2 * time.Second

// Refresh starts a new list, unless one is being made or is recent. It does not block.
func (d *PodDirs) Refresh(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listing || now.Sub(d.asked) < listPause && !now.Before(d.asked) {
		return
	}
	d.listing, d.asked = true, now
	go func() { // a disk may hang
		dirs, err := d.list()
		names := &PodList{At: now, ByUID: make(map[string]PodName, len(dirs)), UID: make(map[PodName]string, len(dirs))}
		for _, dir := range dirs {
			name, uid, ok := ParsePodDir(dir)
			if !ok {
				continue
			}
			names.ByUID[uid] = name
			if _, again := names.UID[name]; again {
				uid = ""
			}
			names.UID[name] = uid
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.listing = false; err == nil || len(dirs) > 0 {
			d.latest = names
		}
	}()
}
