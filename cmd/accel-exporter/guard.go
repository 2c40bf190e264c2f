package main

import (
	"crypto/sha256"
	"net"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
)

const (
	// passwordRate and passwordBurst limit the unknown passwords of one client
	// that are checked, per second and at once. A check takes 50 to 100 ms of
	// CPU, one at a time, and scrapes wait behind it.
	passwordRate  = 1
	passwordBurst = 5

	maxPasswords       = 64
	maxPasswordClients = 1024
)

// guard limits the checks of passwords. The web toolkit remembers a hundred
// checked passwords, which wrong ones displace.
type guard struct {
	mu       sync.Mutex
	accepted map[[sha256.Size]byte]bool // headers that the toolkit let through last
	clients  map[string]*rate.Limiter   // by address
}

// inside is the handler that the toolkit calls with authenticated requests.
func (g *guard) inside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if header := r.Header.Get("Authorization"); header != "" {
			g.accept(sha256.Sum256([]byte(header)))
		}
		next.ServeHTTP(w, r)
	})
}

// wrap puts the guard in front of the toolkit's handler. As BaseContext of an
// http.Server it is called after the toolkit has set its handler and before the
// first request.
func (g *guard) wrap(server *http.Server) {
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if header := r.Header.Get("Authorization"); header != "" && !g.admit(sha256.Sum256([]byte(header)), r.RemoteAddr) {
			w.Header().Set("Retry-After", "5")
			http.Error(w, "too many passwords to check from this address, try again later", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *guard) accept(header [sha256.Size]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.accepted == nil || len(g.accepted) >= maxPasswords {
		g.accepted = map[[sha256.Size]byte]bool{}
	}
	g.accepted[header] = true
}

// admit reports whether a request may go on to the check of its password.
func (g *guard) admit(header [sha256.Size]byte, address string) bool {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.accepted[header] {
		// Until it is accepted again: it may have been revoked.
		delete(g.accepted, header)
		return true
	}
	limit := g.clients[address]
	if limit == nil {
		if g.clients == nil || len(g.clients) >= maxPasswordClients {
			g.clients = map[string]*rate.Limiter{}
		}
		limit = rate.NewLimiter(passwordRate, passwordBurst)
		g.clients[address] = limit
	}
	return limit.Allow()
}
