package incidents

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
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
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: patience}
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

// assets is where Debian's Alertmanager has its templates.
const assets = "/usr/share/prometheus/alertmanager"

// startAlertmanager starts the program, which tells hook, with its files in
// dir.
func startAlertmanager(ctx context.Context, program, dir, hook string) (p *process, url string, err error) {
	config := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, alertmanagerConfig, hook), 0o644); err != nil {
		return nil, "", err
	}
	args := []string{
		program, "--config.file=" + config, "--storage.path=" + filepath.Join(dir, "alertmanager"),
		"--web.listen-address=127.0.0.1:0", "--cluster.listen-address=",
	}
	if share, ok := unpacked(program); ok {
		args = append([]string{"unshare", "--map-root-user", "--mount", "sh", "-c", `mount --bind "$0" /usr/share && exec "$@"`, share}, args...)
	}
	p, err = start(filepath.Join(dir, "alertmanager.log"), nil, args[0], args[1:]...)
	if err != nil {
		return nil, "", err
	}
	address, err := p.address(ctx)
	if err != nil {
		p.stop()
		return nil, "", err
	}
	return p, "http://" + address, nil
}

// unpacked reports whether the program stands in a package of Debian's that
// was unpacked and not installed. It finds its templates at a fixed path, so it
// is shown the package's /usr/share in a mount namespace of its own.
func unpacked(program string) (share string, ok bool) {
	if _, err := os.Stat(assets); err == nil {
		return "", false
	}
	usr := filepath.Dir(filepath.Dir(program))
	_, err := os.Stat(filepath.Join(usr, "share", "prometheus", "alertmanager"))
	return filepath.Join(usr, "share"), err == nil
}
