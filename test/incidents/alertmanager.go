package incidents

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/test/stack"
)

// receiver is a webhook of both Alertmanagers that notes what arrives: every
// alert from the Alertmanager that does not group, notifications from the
// Alertmanager with the shipped configuration.
type receiver struct {
	server    *http.Server
	url       string
	kubeState string

	mu       sync.Mutex
	arrivals []received
	notices  map[string][]notice // by receiver
	firing   map[string]bool     // alerts that fire for a receiver, by its path and their key
	arrived  chan struct{}       // has room for one
}

// The receivers in the shipped configuration that a person has to answer.
const (
	pager   = "pager"
	tickets = "tickets"
)

type received struct {
	Arrival
	at time.Time
}

type notice struct {
	Notice
	at time.Time
}

// maxNotification is the size in bytes of the largest notification.
const maxNotification = 16 << 20

func newReceiver(kubeState string) (*receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + l.Addr().String() + "/", kubeState: kubeState, arrived: make(chan struct{}, 1), notices: map[string][]notice{}, firing: map[string]bool{}}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: stack.Patience}
	go r.server.Serve(l)
	return r, nil
}

// ServeHTTP takes a notification in Alertmanager's format, version 4.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	now := time.Now()
	if req.Method == http.MethodGet { // Prometheus scrapes it as a healthy node
		io.WriteString(w, "accel_source_up{source=\"nvidia\",reason=\"\"} 1\n"+r.kubeState)
		return
	}
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
	defer r.mu.Unlock()
	var news []Arrival
	for _, a := range body.Alerts {
		arrival := Arrival{Resolved: a.Status == "resolved", Labels: a.Labels, Annotations: a.Annotations}
		if id := req.URL.Path + key(a.Labels); req.URL.Path == "/" {
			r.arrivals = append(r.arrivals, received{arrival, now})
		} else if r.firing[id] == arrival.Resolved {
			if r.firing[id] = !arrival.Resolved; !arrival.Resolved {
				news = append(news, arrival)
			}
		}
	}
	if len(news) > 0 {
		to := strings.TrimPrefix(req.URL.Path, "/")
		r.notices[to] = append(r.notices[to], notice{Notice{Alerts: news}, now})
	}
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

// await waits for an alert.
func (r *receiver) await(ctx context.Context, want Pattern) error {
	ctx, cancel := context.WithTimeout(ctx, stack.Patience)
	defer cancel()
	for {
		if slices.ContainsFunc(r.since(time.Time{}), func(a Arrival) bool { return want.Matches(a.Labels) }) {
			return nil
		}
		select {
		case <-r.arrived:
		case <-ctx.Done():
			return fmt.Errorf("%s did not arrive: %w", want, ctx.Err())
		}
	}
}

// noticesSince returns what reached a receiver of the shipped configuration, in the
// time of a play that began at zero.
func (r *receiver) noticesSince(zero time.Time, to string) []Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Notice
	for _, n := range r.notices[to] {
		n.At = max(n.at.Sub(zero), 0)
		out = append(out, n.Notice)
	}
	return out
}

// shippedConfig returns the Alertmanager configuration that is shipped, with the
// webhook url behind each receiver. Its intervals are divided by factor; a wait of
// seconds is not, since the exporter samples as often as ever.
func shippedConfig(data []byte, url string, factor int) ([]byte, error) {
	data, err := edit("alertmanager.yml", data, func(n *yaml.Node, key string) error {
		if key != "group_wait" && key != "group_interval" && key != "repeat_interval" {
			return nil
		}
		d, err := model.ParseDuration(n.Value)
		if time.Duration(d) >= time.Minute {
			n.Value = model.Duration(shorter(time.Duration(d), factor, time.Second)).String()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	receivers, _ := config["receivers"].([]any)
	for _, r := range receivers {
		if r, ok := r.(map[string]any); ok {
			r["webhook_configs"] = []any{map[string]any{"url": fmt.Sprint(url, r["name"])}}
		}
	}
	return yaml.Marshal(config)
}

// Every alert is a separate group and is sent on at once.
const alertmanagerConfig = `route: {receiver: play, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 24h}
receivers:
  - name: play
    webhook_configs: [{url: %q, send_resolved: true}]
`
