package kube

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ErrLost: the lease has expired, and another process may have it.
var ErrLost = errors.New("the lease was lost")

// The times of the election are the defaults of client-go.
const (
	// leaseDuration is how long the other processes wait after a renewal.
	leaseDuration = 15 * time.Second
	// renewDeadline is how long the leader acts after a renewal. A request that it
	// sent before has the rest of leaseDuration to arrive.
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Lease elects the one process that acts.
type Lease struct {
	lock *lock
	// Taken is what was taken out within the last hour. The holder stores it here, each
	// renewal writes it into the lease, and the next holder has it from there.
	Taken atomic.Pointer[map[string]time.Time]
}

// NewLease returns a lease that this process does not have yet. The identity
// must be unique among the processes; a restarted one may keep it.
func NewLease(cfg *rest.Config, namespace, name, identity string) (*Lease, error) {
	l, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name,
		resourcelock.ResourceLockConfig{Identity: identity}, cfg, renewDeadline)
	if err != nil {
		return nil, err
	}
	lease := &Lease{lock: &lock{Interface: l}}
	election := l.(*resourcelock.LeaseLock)
	election.Client = getter{election.Client, lease}
	return lease, nil
}

// takenAnnotation of the lease is Lease.Taken as JSON. maxTaken bounds its size in bytes.
const (
	takenAnnotation = "accel.health/taken-out"
	maxTaken        = 128 << 10
)

// getter and memory add the annotation to the requests of the election.
type getter struct {
	coordinationclient.LeasesGetter
	lease *Lease
}

func (g getter) Leases(namespace string) coordinationclient.LeaseInterface {
	return memory{g.LeasesGetter.Leases(namespace), g.lease}
}

type memory struct {
	coordinationclient.LeaseInterface
	lease *Lease
}

func (m memory) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	lease, err := m.LeaseInterface.Get(ctx, name, o)
	if _, waits := m.lease.Valid(); waits != nil && err == nil {
		taken := map[string]time.Time{}
		if json.Unmarshal([]byte(lease.Annotations[takenAnnotation]), &taken) == nil {
			m.lease.Taken.Store(&taken)
		}
	}
	return lease, err
}

func (m memory) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if text, err := json.Marshal(m.lease.Taken.Load()); err == nil && len(text) <= maxTaken {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, takenAnnotation, string(text))
	}
	return m.LeaseInterface.Update(ctx, lease, o)
}

// Valid returns until when this process may act, or ErrLost. A process that was
// stopped for a while calls it before its next change.
func (l *Lease) Valid() (until time.Time, err error) { return l.lock.valid() }

// Run waits for the lease and calls act, which returns when its context is done.
// When ctx is done, Run waits for act and releases the lease. It returns ErrLost
// if the lease was lost before.
func (l *Lease) Run(ctx context.Context, act func(context.Context)) error {
	// client-go releases the lease when its context is done, even if the work
	// goes on. So the election ends after the work.
	election, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	l.lock.expire = end
	leading := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l.lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(term context.Context) { leading <- term },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); elector.Run(election) }()
	select {
	case term := <-leading:
		acting, stop := context.WithCancel(ctx)
		context.AfterFunc(term, stop)
		act(acting)
		stop()
		if ctx.Err() == nil {
			err = ErrLost
		}
	case <-ctx.Done():
	}
	end()
	<-ended
	return err
}

// lock is the lock of the election. It neither renews nor releases an expired
// lease, which another process may have by then. client-go releases a lease
// without a look at its holder.
type lock struct {
	resourcelock.Interface
	expire func() // ends the election

	mu    sync.Mutex
	until time.Time // zero before the process leads
}

func (l *lock) valid() (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The monotonic clock stops while a machine is suspended, and the wall clock
	// may be set: both must be before the end.
	if now := time.Now(); !now.Before(l.until) || !now.Round(0).Before(l.until.Round(0)) {
		return l.until, ErrLost
	}
	return l.until, nil
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, r, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, r, l.Interface.Update)
}

func (l *lock) write(ctx context.Context, r resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	if until, err := l.valid(); err != nil && !until.IsZero() {
		l.expire()
		return err
	}
	sent := time.Now()
	if err := write(ctx, r); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = sent
	if r.HolderIdentity != "" { // else it was released
		l.until = sent.Add(renewDeadline)
	}
	return nil
}
