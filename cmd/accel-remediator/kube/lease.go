package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// ErrLost: another process has the lease, or may have it.
var ErrLost = errors.New("the lease was lost")

// errTaken: another process has the lease.
var errTaken = errors.New("another process has the lease")

const (
	// leaseTerm is how long others wait after the holder has renewed last.
	leaseTerm = 15 * time.Second
	// leaseHold is how long the holder relies on that, by its own clock. What it
	// still has under way then has the rest of the term to arrive.
	leaseHold = 10 * time.Second
	// leasePace is the time between two attempts to take or renew it.
	leasePace = 2 * time.Second
	// leaseTimeout bounds one of its requests.
	leaseTimeout = 5 * time.Second
)

// Lease lets one of several processes act: who stands in an object of
// coordination.k8s.io and renews it. Clocks of machines are not compared: who
// waits takes the lease when it has not seen it change for a term.
//
// client-go has the same in tools/leaderelection, with every type that
// Kubernetes has, and gives the lease back while the work under it goes on.
type Lease struct {
	client          rest.Interface
	path            string // of the collection
	name, identity  string
	log             *slog.Logger
	version         string    // of the object as it was seen last
	since           time.Time // when it was first seen so
	mu              sync.Mutex
	until, untilDay time.Time // by the monotonic clock and by the calendar
}

// NewLease returns a lease that is not held. No two processes may have the same
// identity; one that is started again may have that of its former life.
func NewLease(client rest.Interface, namespace, name, identity string, log *slog.Logger) *Lease {
	return &Lease{client: client, path: "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases", name: name, identity: identity, log: log}
}

// Held returns until when this process may act, or ErrLost. A process that was
// stopped for a while finds out by this, before it does more of what it was
// about to do.
func (l *Lease) Held() (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The monotonic clock stands still while a machine sleeps, the other may be
	// set: the lease is held by both.
	if now := time.Now(); !now.Before(l.until) || !now.Round(0).Before(l.untilDay) {
		return time.Time{}, ErrLost
	}
	return l.until, nil
}

// Run waits for the lease and calls act while it is held. When ctx is done it
// waits until act has returned, and gives the lease back. The error is ErrLost
// where the lease was lost before.
func (l *Lease) Run(ctx context.Context, act func(context.Context)) error {
	for {
		err := l.take(ctx)
		if err == nil {
			break
		}
		if second := apierrors.IsConflict(err) || existed(err) || errors.Is(err, errTaken); !second && ctx.Err() == nil {
			l.log.Warn("The lease cannot be taken", "err", err)
		}
		if !pause(ctx) {
			return nil
		}
	}
	acting, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); act(acting) }()
	err := l.keep(ctx)
	stop()
	<-done
	if err == nil {
		l.release()
	}
	return err
}

// keep renews the lease until ctx is done, or it is lost.
func (l *Lease) keep(ctx context.Context) error {
	for pause(ctx) {
		err := l.take(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if _, late := l.Held(); late != nil || errors.Is(err, errTaken) {
			return fmt.Errorf("%w: %w", ErrLost, err)
		}
		l.log.Warn("The lease cannot be renewed", "err", err)
	}
	return nil
}

// pause waits until the next attempt; it is false where ctx is done first.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(leasePace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// take takes the lease, or renews it.
func (l *Lease) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	sent := time.Now()
	is, err := l.read(ctx)
	if err != nil {
		return err
	}
	spec, now := &is.Spec, metav1.NewMicroTime(sent)
	if holder := text(spec.HolderIdentity); holder != l.identity {
		if holder != "" && !l.expired(is, sent) {
			return errTaken
		}
		transitions := int32(1)
		if spec.LeaseTransitions != nil {
			transitions += *spec.LeaseTransitions
		}
		spec.HolderIdentity, spec.AcquireTime, spec.LeaseTransitions = &l.identity, &now, &transitions
	}
	term := int32(leaseTerm / time.Second)
	spec.RenewTime, spec.LeaseDurationSeconds = &now, &term
	if err := l.write(ctx, is); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = sent.Add(leaseHold)
	l.untilDay = l.until.Round(0)
	return nil
}

// expired reports whether the lease has not changed for its term.
func (l *Lease) expired(is *coordinationv1.Lease, now time.Time) bool {
	if is.ResourceVersion != l.version {
		l.version, l.since = is.ResourceVersion, now
	}
	term := leaseTerm
	if s := is.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		term = time.Duration(*s) * time.Second
	}
	return now.Sub(l.since) > term
}

// read returns the lease, an empty one where there is none yet.
func (l *Lease) read(ctx context.Context) (*coordinationv1.Lease, error) {
	is := new(coordinationv1.Lease)
	err := decode(l.client.Get().AbsPath(l.path).Name(l.name).MaxRetries(0).Do(ctx), is)
	if apierrors.IsNotFound(err) {
		is.TypeMeta = metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"}
		is.Name = l.name
		return is, nil
	}
	return is, err
}

// write makes the lease, or changes it where it is still as it was read.
func (l *Lease) write(ctx context.Context, is *coordinationv1.Lease) error {
	request := l.client.Post().AbsPath(l.path)
	if is.ResourceVersion != "" {
		request = l.client.Put().AbsPath(l.path).Name(l.name)
	}
	data, err := json.Marshal(is)
	if err != nil {
		return err
	}
	return request.MaxRetries(0).Body(data).Do(ctx).Error()
}

// release gives the lease back, so that the next need not wait.
func (l *Lease) release() {
	l.mu.Lock()
	l.until = time.Time{}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), leaseTimeout)
	defer cancel()
	is, err := l.read(ctx)
	if err == nil && text(is.Spec.HolderIdentity) == l.identity {
		is.Spec.HolderIdentity = nil
		err = l.write(ctx, is)
	}
	if err != nil {
		l.log.Warn("The lease cannot be given back; another takes it when it is over", "err", err)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
