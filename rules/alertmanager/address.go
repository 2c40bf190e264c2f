package alertmanager

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

const urlForm = "accepted is the address of an Alertmanager, such as https://alertmanager.example:9093 or https://example.com/alertmanager"

// CheckURL checks the address of an endpoint: http or https, a host, optionally
// a port and a path. A user, a password, a query or a fragment are refused.
// The error does not show the address, which may contain a password.
func CheckURL(address string) error {
	_, err := parseURL(address)
	return err
}

// parseURL returns the address in the form of logs and labels: scheme, host,
// and a path without a trailing slash.
func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return nil, errors.New("found no address; " + urlForm)
	case len(address) > maxText:
		return nil, fmt.Errorf("found an address of %d bytes; accepted are at most %d", len(address), maxText)
	case err != nil:
		return nil, errors.New("found an invalid URL; " + urlForm)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("found an address that begins neither with http:// nor with https://; " + urlForm)
	case u.User != nil:
		return nil, errors.New("found a user or a password in the address; use basic_auth, with the password in a file")
	case u.Hostname() == "":
		return nil, errors.New("found an address without a host; " + urlForm)
	case strings.ContainsAny(address, "?#"): // also an empty one
		return nil, errors.New("found an address with a query or a fragment; " + urlForm)
	case u.RawPath != "" || strings.ContainsAny(u.Path, "{}%@") || strings.ContainsFunc(u.Path, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("found an address whose path has characters that need escaping; " + urlForm)
	}
	path := strings.TrimRight(u.Path, "/")
	if strings.HasSuffix(path, "/api/v2") || strings.HasSuffix(path, "/api/v2/alerts") {
		return nil, errors.New("found an address that ends in the path of the API, which is added to it; " + urlForm)
	}
	return &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: path}, nil
}

func sameURL(a, b string) bool {
	x, err1 := parseURL(a)
	y, err2 := parseURL(b)
	return err1 == nil && err2 == nil && *x == *y
}
