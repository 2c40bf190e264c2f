package exporter

import (
	"fmt"
	"net/http"
	"time"
)

// ServeHTTP serves the page.
func (e *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.slots != nil {
		select {
		case e.slots <- struct{}{}:
			defer func() { <-e.slots }()
		default:
			http.Error(w, fmt.Sprintf("Limit of concurrent requests reached (%d), try again later.", cap(e.slots)), http.StatusServiceUnavailable)
			return
		}
	}
	if e.o.WriteTimeout > 0 {
		// A ResponseWriter that has no deadline (a test's recorder) has no
		// stalled reader either. net/http lifts it after the response.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(e.o.WriteTimeout))
	}
	e.slow.ServeHTTP(w, r)
}
