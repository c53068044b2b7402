package lead

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
)

// Options say what to lead.
type Options struct {
	Client    *kubeclient.Client // of the API server
	Namespace string             // of the Lease and of the state
	Name      string             // of the Lease
	State     string             // ConfigMap whose epoch a Lease that was deleted goes on from
	Identity  string             // of this process, for people; made unique for each Run

	Lease time.Duration // after which a term that is not renewed may be taken over; whole seconds
	Renew time.Duration // after which a term that was not renewed is no longer valid; less than Lease
	Retry time.Duration // time between two attempts to renew the term

	Clock Clock // of this machine
	// ReleaseOnCancel gives the Lease up when the context ends, so that the next need not wait. Nothing may be written then.
	ReleaseOnCancel bool
	// Problem gets what keeps the Lease from being read or renewed, if set. It is not called because another replica holds it.
	Problem func(error)
}

// The durations of a scheduler: another leads at most 6.3 s after it was killed.
const (
	DefaultLease = 6 * time.Second
	DefaultRenew = 4 * time.Second
	DefaultRetry = time.Second
)

// looks is how often a candidate looks in a retry period.
const looks = 4

func (o *Options) check() error {
	switch {
	case o.Client == nil || o.Clock == nil || o.Namespace == "" || o.Name == "" || o.State == "" || o.Identity == "":
		return errors.New("lead: a client, a clock, a namespace, a lease, a state and an identity are needed")
	case o.Lease < time.Second || o.Lease%time.Second != 0:
		return fmt.Errorf("lead: the lease must be whole seconds, got %v", o.Lease)
	case o.Retry <= 0 || o.Renew <= o.Retry || o.Lease <= o.Renew:
		return fmt.Errorf("lead: retry, renew and lease must ascend, got %v, %v and %v", o.Retry, o.Renew, o.Lease)
	}
	return nil
}

// candidate is a process that leads or would like to.
type candidate struct {
	Options
	identity string

	lease    *coordination.Lease // as last seen; nil for none
	seen     bool                // the Lease was looked for
	observed time.Time           // since when it has been like that
	contact  time.Time           // when it was last read
	highest  int64               // number of transitions, or epoch of the state, that was seen
	unsure   bool                // whether the Lease was taken: the answer got lost
}

// Run waits until this process leads, and returns its term, which is renewed until the context ends or the term is over. The
// error is that of the context, or says that the options make no sense.
func Run(ctx context.Context, o Options) (*Term, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &candidate{Options: o, identity: o.Identity + "_" + rand.Text()}
	for {
		term, wait, err := c.try(ctx)
		if term != nil {
			return term, nil
		}
		if ctx.Err() == nil {
			c.reportProblem(err)
			select {
			case <-ctx.Done():
			case <-c.Clock.After(wait):
				continue
			}
		}
		if c.ReleaseOnCancel && c.unsure {
			c.reportProblem(c.release(context.WithoutCancel(ctx)))
		}
		return nil, context.Cause(ctx)
	}
}

func (c *candidate) reportProblem(err error) {
	if err != nil && c.Problem != nil {
		c.Problem(err)
	}
}

// request bounds a request: one that hangs must leave time for another within a term.
func (c *candidate) request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.Renew/2)
}

// try takes the Lease if nobody holds it. Otherwise it says how long to wait.
func (c *candidate) try(ctx context.Context) (*Term, time.Duration, error) {
	pause := c.Retry / looks
	if err := c.look(ctx); err != nil {
		return nil, pause, err
	}
	left, err := c.left(ctx)
	if err != nil {
		return nil, pause, err
	}
	if left > 0 {
		return nil, min(left, pause), nil
	}
	if holder(c.lease) != c.identity {
		if err := c.above(ctx); err != nil {
			return nil, pause, err
		}
	}
	sent := c.Clock.Now()
	lease, err := c.take(ctx, sent)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err):
		return nil, pause, nil // somebody was faster
	case err != nil:
		c.unsure = true
		return nil, pause, fmt.Errorf("take the lease %s: %w", c.Name, err)
	}
	c.lease = lease
	done := make(chan struct{})
	term := &Term{
		Epoch: transitions(lease), Identity: c.identity, Done: done, clock: c.Clock, renew: c.Renew, renewed: sent,
	}
	go func() {
		defer close(done)
		c.keep(ctx, term)
	}()
	return term, 0, nil
}

// look reads the Lease, and notes since when it has been as it is.
func (c *candidate) look(ctx context.Context) error {
	asked, cancel := c.request(ctx)
	defer cancel()
	lease, err := c.Client.Leases(c.Namespace).Get(asked, c.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("read the lease %s: %w", c.Name, err)
	}
	now := c.Clock.Now()
	// Who could not look for a while does not know whether its holder could renew it: it gets its time again.
	blind := c.seen && now.Sub(c.contact) > c.Renew
	if !c.seen || blind || !same(lease, c.lease) {
		c.observed = now
	}
	c.lease, c.contact, c.seen = lease, now, true
	c.highest = max(c.highest, transitions(lease))
	return nil
}

// left is for how long the Lease is another's.
func (c *candidate) left(ctx context.Context) (time.Duration, error) {
	since := c.Clock.Now().Sub(c.observed)
	if c.lease == nil {
		if c.highest == 0 {
			if err := c.above(ctx); err != nil {
				return 0, err
			}
		}
		if c.highest == 0 {
			return 0, nil // nobody ever led
		}
		return c.Lease - since, nil // it was deleted under somebody, who may not know yet
	}
	switch holder := holder(c.lease); {
	case holder == "":
		return 0, nil
	case holder == c.identity:
		return 0, nil // the answer to a request that took it got lost
	}
	lasts := c.Lease
	if s := c.lease.Spec.LeaseDurationSeconds; s != nil {
		lasts = time.Duration(*s) * time.Second
	}
	return lasts - since, nil
}

// above makes sure that the next epoch is above that of the state, whatever became of the Lease.
func (c *candidate) above(ctx context.Context) error {
	asked, cancel := c.request(ctx)
	defer cancel()
	m, err := c.Client.ConfigMaps(c.Namespace).Get(asked, c.State, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the state %s: %w", c.State, err)
	}
	kept, err := read(m)
	c.highest = max(c.highest, kept.Epoch)
	return err
}

// take writes that this process holds the Lease, if it still is as it was seen.
func (c *candidate) take(ctx context.Context, now time.Time) (*coordination.Lease, error) {
	asked, cancel := c.request(ctx)
	defer cancel()
	leases := c.Client.Leases(c.Namespace)
	epoch := c.highest + 1
	if c.lease == nil {
		lease := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace}}
		c.write(lease, epoch, now)
		return leases.Create(asked, lease, metav1.CreateOptions{})
	}
	if holder(c.lease) == c.identity {
		epoch = transitions(c.lease)
	}
	lease := c.lease.DeepCopy()
	c.write(lease, epoch, now)
	return c.put(ctx, lease)
}

func (c *candidate) write(lease *coordination.Lease, epoch int64, now time.Time) {
	seconds, count, at := int32(c.Lease/time.Second), int32(epoch), metav1.NewMicroTime(now)
	if holder(lease) != c.identity {
		lease.Spec.AcquireTime = &at
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.LeaseTransitions, lease.Spec.RenewTime = &c.identity, &seconds, &count, &at
}

// keep renews the term until it is over.
func (c *candidate) keep(ctx context.Context, t *Term) {
	for {
		select {
		case <-ctx.Done():
			t.end(context.Cause(ctx))
			if c.ReleaseOnCancel {
				c.reportProblem(c.release(context.WithoutCancel(ctx)))
			}
			return
		case <-c.Clock.After(c.Retry):
		}
		if err := c.renew(ctx, t); errors.Is(err, errLost) {
			t.end(err)
			return
		} else if ctx.Err() == nil {
			c.reportProblem(err)
		}
	}
}

// errLost is of a Lease that this process does not hold.
var errLost = errors.New("the lease is lost")

// tries is how often a write is sent that others, who did not take the Lease, make stale.
const tries = 3

// renew renews the term.
func (c *candidate) renew(ctx context.Context, t *Term) error {
	var sent time.Time
	err := c.update(ctx, func(lease *coordination.Lease) {
		sent = c.Clock.Now()
		c.write(lease, t.Epoch, sent)
	})
	if err != nil {
		return fmt.Errorf("renew the lease %s: %w", c.Name, err)
	}
	t.renewedAt(sent)
	return nil
}

// release lets the next lead at once, if the Lease is still this process's own.
func (c *candidate) release(ctx context.Context) error {
	err := c.update(ctx, func(lease *coordination.Lease) {
		nobody, at := "", metav1.NewMicroTime(c.Clock.Now())
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &nobody, &at
	})
	if err != nil && !errors.Is(err, errLost) {
		return fmt.Errorf("release the lease %s: %w", c.Name, err)
	}
	return nil
}

// update changes the Lease as this process last wrote it. When it is another by now, it looks who holds it: a request whose
// answer got lost changed it too.
func (c *candidate) update(ctx context.Context, change func(*coordination.Lease)) error {
	var err error
	for range tries {
		if holder(c.lease) == c.identity {
			lease := c.lease.DeepCopy()
			change(lease)
			if lease, err = c.put(ctx, lease); err == nil {
				c.lease = lease
				return nil
			}
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("%w: it was deleted", errLost)
			}
			if !apierrors.IsConflict(err) {
				return err
			}
		}
		was := c.lease
		if err := c.look(ctx); err != nil {
			return err
		}
		switch {
		case holder(c.lease) != c.identity:
			return fmt.Errorf("%w: %q holds it", errLost, holder(c.lease))
		case holder(was) == c.identity && (was.UID != c.lease.UID || transitions(was) != transitions(c.lease)):
			return fmt.Errorf("%w: it was made again", errLost)
		}
	}
	return err
}

func (c *candidate) put(ctx context.Context, lease *coordination.Lease) (*coordination.Lease, error) {
	asked, cancel := c.request(ctx)
	defer cancel()
	return c.Client.Leases(c.Namespace).Update(asked, lease, metav1.UpdateOptions{})
}

func holder(l *coordination.Lease) string {
	if l == nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func transitions(l *coordination.Lease) int64 {
	if l == nil || l.Spec.LeaseTransitions == nil {
		return 0
	}
	return int64(*l.Spec.LeaseTransitions)
}

// same reports whether nothing was written to a Lease.
func same(a, b *coordination.Lease) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}
