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

// Options configure a Watcher. A zero value stands for the default of each
// option, unless noted.
type Options struct {
	// Kubelet is the socket of the kubelet's pods API; empty for none. Where it is
	// served, the pods are not read from the API server.
	Kubelet string
	// Pods: list and watch the node's pods at the API server.
	Pods bool

	// Server is the API server as https://HOST:PORT. Over http no token is
	// sent: with a TokenFile it is refused. It has no default, and is needed for Pods
	// and Slices.
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
	// whose * stops at a slash. If a pod has more than 32 matching labels, the
	// labels of the earlier patterns are kept.
	Labels []string
	// Contexts are the pod annotations that may contain a trace context. The
	// first one present is kept.
	Contexts []string
	// Slices: watch the node's ResourceSlices too, and read the ResourceClaims
	// that Watcher.AdminAccess is called with.
	Slices bool

	// Timeout is the time for a list, and for a watch to begin; 30 s.
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
	err := CheckLabels(o.Labels)
	if o.Pods || o.Slices {
		err = errors.Join(o.checkServer(), checkNode(o.Node), err)
	}
	return err
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

// CheckLabels returns the mistakes in patterns for Options.Labels.
func CheckLabels(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("pattern of labels %q; accepted is a key, or a key with wildcards such as app.kubernetes.io/*", p)
		}
	}
	return nil
}
