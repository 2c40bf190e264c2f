package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/cmd/accel-remediator/kube"
	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// A call succeeds only with an answer of status 2xx: a redirect is an error. A
// process that has lost the lease calls no hook.
func TestHooks(t *testing.T) {
	var lost error
	h := newHooks(func() (time.Time, error) { return time.Now().Add(time.Minute), lost })
	defer h.client.CloseIdleConnections()
	called := 0
	answer := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called++
		if r.Header.Get("Idempotency-Key") != "k" || r.Method != http.MethodPost {
			t.Errorf("%s with %v", r.Method, r.Header)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(answer)
	}))
	defer server.Close()
	call := &remediation.Call{Key: "k", Hook: "reset", Node: "n1"}
	for code, succeeds := range map[int]bool{200: true, 202: true, 204: true, 302: false, 404: false, 500: false} {
		called, answer = 0, code
		err := h.call(t.Context(), server.URL, call)
		if (err == nil) != succeeds || called != 1 || err != nil && !strings.HasPrefix(err.Error(), "hook reset: ") {
			t.Errorf("%d: %v, called %d times", code, err, called)
		}
	}
	called, answer, lost = 0, http.StatusOK, kube.ErrLost
	if err := h.call(t.Context(), server.URL, call); err == nil || called != 0 {
		t.Errorf("%v, called %d times without the lease", err, called)
	}
}
