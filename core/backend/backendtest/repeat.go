package backendtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Repeat makes a backend deliver events again at random, as after a watch was set up anew, and applies changes twice, as by
// a scheduler that was restarted. To who drives it that makes no difference.
func Repeat(b core.Backend, r *rand.Rand) core.Backend { return &repeater{Backend: b, rand: r} }

type repeater struct {
	core.Backend
	rand *rand.Rand
	told []core.Event
}

// Next returns some of what it returned before, what is new, and some of that again.
func (r *repeater) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	seen, err := r.Backend.Next(ctx, w)
	if err != nil {
		return seen, err
	}
	fresh := slices.Clone(seen.Events)
	for i := range fresh {
		fresh[i].ID = uint64(len(r.told) + i + 1)
	}
	seen.Events = nil
	if r.rand.IntN(2) == 0 {
		seen.Events = append(seen.Events, r.some(r.told)...)
	}
	for i := range fresh {
		seen.Events = append(seen.Events, fresh[i])
		if r.rand.IntN(4) == 0 {
			seen.Events = append(seen.Events, r.some(fresh[:i+1])...)
		}
	}
	r.told = append(r.told, fresh...)
	return seen, nil
}

// some is a run of a few events.
func (r *repeater) some(events []core.Event) []core.Event {
	from := r.rand.IntN(len(events) + 1)
	return events[from:min(from+1+r.rand.IntN(8), len(events))]
}

// Apply passes changes on, and some of them again.
func (r *repeater) Apply(ctx context.Context, changes []core.Change) error {
	err := r.Backend.Apply(ctx, slices.Clone(changes))
	for range r.rand.IntN(3) {
		err = errors.Join(err, r.Backend.Apply(ctx, r.part(changes)))
	}
	return err
}

// part is the changes from some point on, as a scheduler repeats them that was killed there.
func (r *repeater) part(changes []core.Change) []core.Change {
	return slices.Clone(changes[r.rand.IntN(len(changes)+1):])
}
