package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Only a POST with a body within bounds triggers a pass. The content of the body is
// ignored. TestRemedyWebhook in test/kubelet has the password.
func TestWebhook(t *testing.T) {
	triggers := 0
	mux := http.NewServeMux()
	mux.Handle("POST /webhook", webhook(func() { triggers++ }))
	for _, c := range []struct {
		name, method   string
		body           io.Reader
		want, triggers int
	}{
		{"GET", http.MethodGet, nil, http.StatusMethodNotAllowed, 0},
		{"too long", http.MethodPost, bytes.NewReader(make([]byte, maxWebhook+1)), http.StatusRequestEntityTooLarge, 0},
		{"the largest", http.MethodPost, bytes.NewReader(make([]byte, maxWebhook)), http.StatusAccepted, 1},
		{"no JSON", http.MethodPost, strings.NewReader("{"), http.StatusAccepted, 1},
	} {
		triggers = 0
		resp := httptest.NewRecorder()
		mux.ServeHTTP(resp, httptest.NewRequest(c.method, "/webhook", c.body))
		if resp.Code != c.want || triggers != c.triggers {
			t.Errorf("%s: %d, triggers %d; want %d, triggers %d", c.name, resp.Code, triggers, c.want, c.triggers)
		}
	}
}
