package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/lead"
)

// mostConflicts is how often the status of a job is written anew that somebody changed meanwhile.
const mostConflicts = 3

var errChanges = errors.New("it changes all the time")

// write writes the status of a job as it is to be, if it is not written. What others wrote there gives way, but for a leader of a
// later epoch.
func (b *Backend) write(ctx context.Context, j *job) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	for range mostConflicts {
		j.mutex.Lock()
		j.putOutlook(b.clock.Now())
		object, status, needed := j.object, j.status.DeepCopy(), j.dirty && !j.deleted && !j.withheld
		j.mutex.Unlock()
		if !needed {
			return nil
		}
		if err := j.follows(); err != nil {
			return err
		}
		if err := b.fence(); err != nil {
			return err
		}
		call, cancel := context.WithTimeout(ctx, b.patience())
		written, err := b.clients.jobs.ReplaceStatus(call, object, status)
		cancel()
		switch {
		case err == nil:
			_ = b.trouble(nil)
			b.announcer.announce(object, status)
			j.mutex.Lock()
			j.see(written)
			j.dirty = !equality.Semantic.DeepEqual(&j.status, status)
			j.mutex.Unlock()
			b.work.add(j.uid) // it was driven before this only if an earlier answer got lost
			continue
		case apierrors.IsNotFound(err):
			return nil // the informer tells
		case !apierrors.IsConflict(err):
			return b.trouble(fmt.Errorf("write the status of %s/%s: %w", j.namespace, j.name, err))
		}
		if err := b.reread(ctx, j); err != nil {
			return err
		}
	}
	return b.trouble(fmt.Errorf("write the status of %s/%s: %w", j.namespace, j.name, errChanges))
}

// reread takes in how a job is now.
func (b *Backend) reread(ctx context.Context, j *job) error {
	call, cancel := context.WithTimeout(ctx, b.patience())
	defer cancel()
	now, err := b.clients.jobs.Of(j.namespace).Get(call, j.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && now.UID != j.uid:
		j.mutex.Lock()
		j.deleted = true
		j.mutex.Unlock()
		return nil
	case err != nil:
		return b.trouble(fmt.Errorf("read %s/%s: %w", j.namespace, j.name, err))
	}
	if d := now.Status.Decision; d != nil && d.Epoch > b.term.Epoch {
		return fmt.Errorf("%w: epoch %d decided about %s/%s", core.ErrFenced, d.Epoch, j.namespace, j.name)
	}
	j.mutex.Lock()
	j.see(now)
	j.mutex.Unlock()
	return nil
}

// fence is nil while this scheduler leads.
func (b *Backend) fence() error {
	switch err := b.term.Err(); {
	case errors.Is(err, lead.ErrFenced):
		return fmt.Errorf("%w: %w", core.ErrFenced, err)
	case err != nil:
		return &core.Unavailable{Cause: err}
	}
	return nil
}

// disbelief is for how long a scheduler that could write does not believe that it lacks rights: an API server that starts says so
// before it knows the roles.
const disbelief = time.Minute

// trouble makes what an API server may say while it restarts, or is asked for too much, one that passes. Nil says that it passed.
func (b *Backend) trouble(err error) error {
	switch {
	case err == nil:
		b.denied.Store(nil)
		return nil
	case errors.Is(err, context.Canceled), apierrors.IsInvalid(err), apierrors.IsMethodNotSupported(err):
		return err
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		now := b.clock.Now()
		since := b.denied.Load()
		if since == nil {
			since = &now
			b.denied.Store(since)
		}
		if now.Sub(*since) >= disbelief {
			return err
		}
	}
	return &core.Unavailable{Cause: err}
}
