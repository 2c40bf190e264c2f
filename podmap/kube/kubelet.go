package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// DefaultKubelet is where a kubelet with its default root directory serves its pods,
// from Kubernetes 1.37 on.
const DefaultKubelet = "/var/lib/kubelet/pods-api/pods-api.sock"

// kubelet follows the node's pods by the kubelet's own API. An event has a whole pod with
// its environment; what is not kept is not decoded.
type kubelet struct {
	w      *Watcher
	conn   *grpc.ClientConn
	client pods.PodsClient
	// instead ends the list of the API server when the kubelet has served its own.
	instead context.CancelFunc

	// Guarded by Watcher.mu.
	progress
	open   bool // a watch is open and complete
	absent bool // there is no such API
}

func newKubelet(w *Watcher) (*kubelet, error) {
	conn, err := grpc.NewClient("unix:"+w.opts.Kubelet,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, err
	}
	return &kubelet{w: w, conn: conn, client: pods.NewPodsClient(conn), instead: func() {}}, nil
}

// run watches until ctx is done.
func (k *kubelet) run(ctx context.Context) {
	defer k.conn.Close()
	for failures := 0; ; {
		began := time.Now()
		err := k.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		k.note(err)
		switch failures++; {
		case time.Since(began) >= steady, status.Code(err) == codes.FailedPrecondition:
			failures = 1 // the kubelet is starting
		}
		k.conn.ResetConnectBackoff()
		if !sleep(ctx, pause(failures)) {
			return
		}
	}
}

// note records why a watch ended.
func (k *kubelet) note(err error) {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.absent = errors.Is(err, fs.ErrNotExist) || status.Code(err) == codes.Unimplemented
	k.ended, k.open, k.failed = true, false, k.w.client.describe(fmt.Errorf("watch pods of %s: %w", k.w.opts.Kubelet, err))
}

// watch takes in every pod, then every change, until the watch ends.
func (k *kubelet) watch(ctx context.Context) error {
	if _, err := os.Stat(k.w.opts.Kubelet); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := k.client.WatchPods(ctx, &pods.WatchPodsRequest{})
	if err != nil {
		return err
	}
	var first []document // until the list is complete
	for synced := false; ; {
		e, err := stream.Recv()
		if err != nil {
			return err
		}
		d, err := readPod(e.GetPod(), k.w.opts.Node)
		if err != nil {
			return fmt.Errorf("a pod that cannot be decoded: %w", err)
		}
		switch gone := e.GetType() == pods.EventType_DELETED; {
		case e.GetType() == pods.EventType_INITIAL_SYNC_COMPLETE:
			k.take(func(now time.Time) { k.w.pods.replace(first, now) })
			synced, first = true, nil
		case synced && gone:
			k.take(func(now time.Time) { k.w.pods.retire(d.Metadata.UID, now) })
		case synced:
			k.take(func(time.Time) { k.w.pods.put(&d) })
		default:
			first = slices.DeleteFunc(first, func(was document) bool { return was.Metadata.UID == d.Metadata.UID })
			if !gone {
				first = append(first, d)
			}
		}
	}
}

// take changes the pods.
func (k *kubelet) take(change func(now time.Time)) {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	now := time.Now()
	change(now)
	k.ended, k.failed, k.known, k.heard, k.open, k.absent = true, "", true, now, true, false
	k.w.dirty = true
	k.instead()
}

// Ready reports whether the kubelet has received its pods from every source since it
// started, and false for known if it does not tell: a kubelet before 1.37, or one whose
// socket is not mounted.
func (w *Watcher) Ready(ctx context.Context) (ready, known bool) {
	k := w.kubelet
	if k == nil {
		return false, false
	}
	if _, err := os.Stat(w.opts.Kubelet); errors.Is(err, fs.ErrNotExist) {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	_, err := k.client.GetPod(ctx, &pods.GetPodRequest{PodUID: "none"})
	switch status.Code(err) {
	case codes.OK, codes.NotFound:
		return true, true
	case codes.FailedPrecondition:
		return false, true
	}
	return false, false
}

const readyTimeout = 5 * time.Second
