package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// serviceAccount is where a pod finds its credentials for the API server.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// Bounds of Options.Labels: the number of patterns, and the bytes of a pattern,
// as many as the longest key can have.
const (
	maxPatterns = 32
	maxLabelKey = 253 + 1 + 63
)

const (
	// watchLasts is the least duration of a watch before another one replaces
	// it. Up to twice that is requested, so that the nodes of a cluster do not
	// reconnect at once.
	watchLasts = 5 * time.Minute
	linger     = 10 * time.Minute // how long a deleted pod is kept
	expire     = time.Hour        // how long pods are kept while the API server does not answer
	maxBody    = 64 << 20         // bytes of a page of a list
	maxObject  = 4 << 20          // bytes of a pod or slice; the API server's store takes 1.5 MiB
)

// Options configure a Watcher. A zero value stands for the default of each
// option, unless noted.
type Options struct {
	// Server is the API server as https://HOST:PORT. Over http no token is
	// sent: with a TokenFile it is refused. It has no default.
	Server string
	// TokenFile contains the bearer token. It is read before every request,
	// since it changes while the program runs. Without it no token is sent.
	TokenFile string
	// CAFile contains the certificate authorities of the server as PEM. It is
	// read before every request too. Without it the system's are used.
	CAFile string
	// Node is the name of the node, as in a pod's spec.nodeName. It has no
	// default.
	Node string
	// Labels are the pod labels to keep: keys, or patterns of path.Match,
	// whose * stops at a slash; at most 32. If a pod has more than 32 matching
	// labels, the labels of the earlier patterns are kept.
	Labels []string
	// Contexts are the pod annotations that may contain a trace context, at
	// most 8 keys. The first one present is kept.
	Contexts []string
	// Slices: watch the node's ResourceSlices too, and read the ResourceClaims
	// that Watcher.AdminAccess is called with.
	Slices bool

	// Timeout is the time for a page of a list, and for a watch to begin; 30 s.
	Timeout time.Duration
	// Dial connects to the server; TCP by default. No proxy is used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// InCluster returns the Options for a pod: host and port are the values of
// KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
func InCluster(host, port string) Options {
	o := Options{TokenFile: serviceAccount + "/token", CAFile: serviceAccount + "/ca.crt"}
	if host != "" && port != "" {
		o.Server = "https://" + net.JoinHostPort(host, port)
	}
	return o
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	o.Server = strings.TrimSuffix(o.Server, "/")
	o.Labels, o.Contexts = slices.Clone(o.Labels), slices.Clone(o.Contexts)
	return o
}

// check returns the mistakes in o.
func (o *Options) check() error {
	return errors.Join(o.checkServer(), checkNode(o.Node), CheckLabels(o.Labels), CheckContexts(o.Contexts))
}

func (o *Options) checkServer() error {
	if o.Server == "" {
		return errors.New("no API server is given; in a pod its address is in the environment")
	}
	u, err := url.Parse(o.Server)
	switch {
	case err != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		// The address may have been given with a password in it.
		return errors.New("the API server's address is not of the form https://HOST:PORT")
	case u.Scheme == "https", u.Scheme == "http" && o.TokenFile == "":
		return nil
	}
	return fmt.Errorf("the API server's address begins with %q; accepted is https, and http where there is no token", u.Scheme)
}

// checkNode: the name becomes part of a selector.
func checkNode(node string) error {
	ok := node != "" && len(node) <= 253 && !strings.ContainsFunc(node, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
	})
	if !ok {
		return fmt.Errorf("node %q; accepted is the name of a node: lower case, digits, dashes and dots", node)
	}
	return nil
}

// maxContexts bounds Options.Contexts.
const maxContexts = 8

// CheckContexts returns the mistakes in keys for Options.Contexts.
func CheckContexts(keys []string) error {
	if len(keys) > maxContexts {
		return fmt.Errorf("%d annotations; accepted are at most %d", len(keys), maxContexts)
	}
	for _, k := range keys {
		if k == "" || len(k) > maxLabelKey {
			return fmt.Errorf("an annotation's key of %d bytes; accepted are 1 to %d", len(k), maxLabelKey)
		}
		if strings.Trim(k, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") != "" {
			return fmt.Errorf("annotation %.60q; accepted is a key such as traceparent or example.com/traceparent", k)
		}
	}
	return nil
}

// CheckLabels returns the mistakes in patterns for Options.Labels.
func CheckLabels(patterns []string) error {
	if len(patterns) > maxPatterns {
		return fmt.Errorf("%d patterns of labels; accepted are at most %d", len(patterns), maxPatterns)
	}
	for _, p := range patterns {
		if p == "" || len(p) > maxLabelKey {
			return fmt.Errorf("a pattern of labels of %d bytes; accepted are 1 to %d", len(p), maxLabelKey)
		}
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("pattern of labels %q: %w", p, err)
		}
	}
	return nil
}
