package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// DefaultKubelet is where a kubelet with its default root directory serves its pods,
// from Kubernetes 1.37 on.
const DefaultKubelet = "/var/lib/kubelet/pods-api/pods-api.sock"

const (
	kubeletInterval = 10 * time.Second
	kubeletTimeout  = 5 * time.Second
)

// kubelet lists the node's pods by the kubelet's own API. Its watch is not used: the
// kubelet drops events for which it has no room, and a list repairs everything.
type kubelet struct {
	w      *Watcher
	conn   *grpc.ClientConn
	client pods.PodsClient
	// instead ends the list of the API server when the kubelet has served its own.
	instead context.CancelFunc

	// Guarded by Watcher.mu.
	progress
	absent bool // there is no such API
	served bool // there was
}

func newKubelet(w *Watcher) (*kubelet, error) {
	conn, err := grpc.NewClient("unix:"+w.opts.Kubelet,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithIdleTimeout(0),
		// run decides when to try again. ResetConnectBackoff races with a new connection.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: shortest / 4, MaxDelay: shortest / 4}, MinConnectTimeout: longest}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("pod metadata: %w", err)
	}
	return &kubelet{w: w, conn: conn, client: pods.NewPodsClient(conn), instead: func() {}}, nil
}

// run lists until ctx is done.
func (k *kubelet) run(ctx context.Context) {
	defer k.conn.Close()
	for failures := 0; ; {
		wait := kubeletInterval
		if failures++; k.list(ctx) == nil {
			failures = 0
		} else {
			wait = min(wait, pause(failures))
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// list replaces the known pods. A pod comes with its environment; what is not kept is
// not decoded.
func (k *kubelet) list(ctx context.Context) error {
	var list []document
	err := k.call(ctx, func(ctx context.Context) error {
		resp, err := k.client.ListPods(ctx, &pods.ListPodsRequest{})
		for _, pod := range resp.GetPods() {
			d, bad := readPod(pod, k.w.opts.Node)
			if list = append(list, d); bad != nil {
				return bad
			}
		}
		return err
	})
	if ctx.Err() != nil {
		return err
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.ended, k.failed = true, ""
	k.absent = errors.Is(err, fs.ErrNotExist) || status.Code(err) == codes.Unimplemented
	if err != nil {
		k.failed = k.w.client.describe(fmt.Errorf("list pods of %s: %w", k.w.opts.Kubelet, err))
		return err
	}
	k.known, k.served, k.heard = true, true, time.Now()
	k.w.pods.replace(list, k.heard)
	k.w.dirty = true
	k.instead()
	return nil
}

// call makes a call if there is a socket.
func (k *kubelet) call(ctx context.Context, do func(context.Context) error) error {
	if _, err := os.Stat(k.w.opts.Kubelet); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	return do(ctx)
}

// Ready reports whether the kubelet has received its pods from every source since it
// started. known is false where it does not report that: before 1.37, and where its
// socket is not mounted.
func (w *Watcher) Ready(ctx context.Context) (ready, known bool) {
	if w.kubelet == nil {
		return false, false
	}
	err := w.kubelet.call(ctx, func(ctx context.Context) error {
		_, err := w.kubelet.client.GetPod(ctx, &pods.GetPodRequest{PodUID: "none"})
		return err
	})
	code := status.Code(err)
	ready = code == codes.OK || code == codes.NotFound
	return ready, ready || code == codes.FailedPrecondition
}
