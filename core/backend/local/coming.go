package local

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

var _ backend.Expecting = (*Backend)(nil)

// Awaited lists the jobs whose moment of submission had not come when the run ended: results tell of them too. It is for the
// goroutine of the scheduler.
func (b *Backend) Awaited() (list []*core.Job) {
	b.takeIn()
	for _, j := range b.coming {
		if !j.cancelled {
			list = append(list, core.NewJob(&j.Spec))
		}
	}
	return list
}

// Coming lists the jobs whose moment of submission has not come.
func (b *Backend) Coming(ctx context.Context) ([]backend.Coming, error) {
	var list []backend.Coming
	if err := b.wanted.Give(ctx, func() error {
		for _, j := range b.coming {
			list = append(list, backend.Coming{JobSpec: j.Spec, Cancelled: j.cancelled})
		}
		return nil
	}); err != nil {
		return nil, err // it may be carried out all the same: the list is not to be touched
	}
	return list, nil
}
