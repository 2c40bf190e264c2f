package main

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
)

// Wrong passwords are checked a few at a time for each client. A password that
// was accepted is not limited, and no client limits another one.
func TestGuard(t *testing.T) { synctest.Test(t, testGuard) }

func testGuard(t *testing.T) {
	var g guard
	checks := 0
	server := &http.Server{}
	inside := g.inside(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		checks++
		if _, password, _ := r.BasicAuth(); password != "right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inside.ServeHTTP(w, r)
	})
	g.wrap(server)
	get := func(address, password string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.RemoteAddr = address
		if password != "" {
			r.SetBasicAuth("prometheus", password)
		}
		server.Handler.ServeHTTP(w, r)
		return w.Code
	}
	if code := get("10.0.0.1:1", "right"); code != http.StatusOK {
		t.Fatalf("the right password: %d", code)
	}
	refused := 0
	for n := range 1000 {
		if get("10.0.0.1:"+strconv.Itoa(n), "wrong"+strconv.Itoa(n)) == http.StatusTooManyRequests {
			refused++
		}
		if code := get("10.0.0.1:1", "right"); code != http.StatusOK {
			t.Fatalf("the right password, from the address of the wrong ones: %d", code)
		}
	}
	if refused < 900 || checks > 1001+100 {
		t.Errorf("%d of 1000 wrong passwords refused unchecked, %d checks", refused, checks)
	}
	if code := get("10.0.0.2:1", "wrong"); code != http.StatusUnauthorized {
		t.Errorf("another client's first password: %d", code)
	}
	if code := get("10.0.0.1:1", ""); code != http.StatusUnauthorized {
		t.Errorf("no password: %d", code)
	}
}
