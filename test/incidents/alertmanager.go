package incidents

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/test/stack"
)

// receiver is a webhook of Alertmanager's that notes what arrives.
type receiver struct {
	server   *http.Server
	url      string
	mu       sync.Mutex
	arrivals []received
	arrived  chan struct{} // has room for one
}

type received struct {
	Arrival
	at time.Time
}

// maxNotification is the size in bytes of the largest notification.
const maxNotification = 16 << 20

func newReceiver() (*receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + l.Addr().String() + "/", arrived: make(chan struct{}, 1)}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: stack.Patience}
	go r.server.Serve(l)
	return r, nil
}

// ServeHTTP takes a notification in Alertmanager's format, version 4.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	now := time.Now()
	var body struct {
		Alerts []struct {
			Status      string            `json:"status"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"alerts"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxNotification)).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	for _, a := range body.Alerts {
		r.arrivals = append(r.arrivals, received{Arrival{Resolved: a.Status == "resolved", Labels: a.Labels, Annotations: a.Annotations}, now})
	}
	r.mu.Unlock()
	select {
	case r.arrived <- struct{}{}:
	default:
	}
}

// since returns what has arrived, in the time of a play that began at zero.
func (r *receiver) since(zero time.Time) []Arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Arrival
	for _, a := range r.arrivals {
		a.At = a.at.Sub(zero)
		out = append(out, a.Arrival)
	}
	slices.SortStableFunc(out, func(a, b Arrival) int { return int(a.At - b.At) })
	return out
}

// Every alert is a group of its own and is sent on at once.
const alertmanagerConfig = `route: {receiver: play, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 24h}
receivers:
  - name: play
    webhook_configs: [{url: %q, send_resolved: true}]
`
