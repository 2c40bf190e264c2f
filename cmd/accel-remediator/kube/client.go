package kube

import (
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// watchTime is how long the API server keeps a list or a watch of the nodes.
	watchTime = 2 * time.Minute
	// longestRequest bounds every request on the client's side. A watch whose
	// connection is dead ends after it, and the nodes are listed again.
	longestRequest = watchTime + 30*time.Second
)

// NewClient returns a client of the API server. Its requests end after
// longestRequest at the latest and are never repeated.
func NewClient(cfg *rest.Config) (kubernetes.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = component
	cfg.QPS, cfg.Burst = 20, 40
	cfg.Timeout = longestRequest
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return once{next} })
	return kubernetes.NewForConfig(cfg)
}

// once removes Retry-After from answers, because client-go repeats a request for
// it. The next pass plans from the result instead. An eviction that a disruption
// budget refuses would use up its timeout otherwise.
type once struct{ next http.RoundTripper }

// WrappedRoundTripper lets client-go cancel a request.
func (o once) WrappedRoundTripper() http.RoundTripper { return o.next }

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(r)
	if err == nil {
		resp.Header.Del("Retry-After")
	}
	return resp, err
}
