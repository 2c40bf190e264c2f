package exposition

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

const (
	// fresh is how long an answer is given again.
	fresh = time.Second
	// maxAnswers bounds the answers that are kept. Others are rendered each time.
	maxAnswers = 8
)

// answer is a rendered page. It is an http.ResponseWriter until once is done.
type answer struct {
	once   sync.Once
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) { a.code = code }

// answers are the rendered pages of one Snapshot, by what the client asks for: several
// Prometheus servers that scrape a node in the same second cost one page.
type answers struct {
	mu       sync.Mutex
	snapshot *collector.Snapshot
	since    time.Time
	list     map[[3]string]*answer
}

// of returns the answer for a request, which is empty if the request is the first.
func (c *answers) of(r *http.Request, s *collector.Snapshot) *answer {
	asked := [3]string{r.Header.Get("Accept"), r.Header.Get("Accept-Encoding"), r.URL.RawQuery}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.snapshot != s || now.Sub(c.since) > fresh || c.list == nil {
		c.snapshot, c.since, c.list = s, now, map[[3]string]*answer{}
	}
	a := c.list[asked]
	if a == nil {
		a = &answer{header: http.Header{}}
		if len(c.list) < maxAnswers {
			c.list[asked] = a
		}
	}
	return a
}

// forget drops every answer: the settings have changed, or one was an error.
func (c *answers) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = nil
}
