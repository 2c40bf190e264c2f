package dcgm

import (
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"
)

// Networks of an Address.
const (
	tcp  = "tcp"
	unix = "unix"
)

// DefaultPort is the port of a host engine.
const DefaultPort = 5555

// Address is the endpoint of a host engine.
type Address struct {
	network string
	// target is host:port or the absolute path of a socket.
	target string
}

// String returns the address in the form that ParseAddress reads.
func (a Address) String() string {
	if a == (Address{}) {
		return ""
	}
	return a.network + "://" + a.target
}

const addressForms = "HOST:PORT, tcp://HOST:PORT, unix:///PATH or /PATH"

// maxAddress bounds an address, in bytes; the path of a socket has at most 107.
const maxAddress = 300

// ParseAddress parses an address; the default port is DefaultPort.
func ParseAddress(s string) (Address, error) {
	bad := func(why string) (Address, error) {
		return Address{}, fmt.Errorf("address %.100q: %s; accepted: %s", s, why, addressForms)
	}
	if len(s) > maxAddress || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return bad("too long, or with blanks or control characters")
	}
	network, target, found := strings.Cut(s, "://")
	switch {
	case strings.HasPrefix(s, "/"):
		network, target = unix, s
	case !found:
		network, target = tcp, s
	}
	switch network = strings.ToLower(network); network {
	case unix:
		if !path.IsAbs(target) || path.Clean(target) != target || len(target) > 107 || target == "/" {
			return bad("not the absolute path of a socket")
		}
	case tcp:
		host, port, err := splitPort(target)
		if err != nil {
			return bad(err.Error())
		}
		target = net.JoinHostPort(host, port)
	default:
		return bad("unknown scheme")
	}
	return Address{network, target}, nil
}

func splitPort(target string) (host, port string, err error) {
	if !strings.Contains(target, ":") {
		target += ":" + strconv.Itoa(DefaultPort)
	}
	host, port, err = net.SplitHostPort(target)
	if err != nil || host == "" || strings.ContainsAny(host, "/?#@") {
		return "", "", fmt.Errorf("no host and port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", fmt.Errorf("port is not 1 to 65535")
	}
	return host, port, nil
}
