package pollux

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// What no fact of a job tells: when the job list changed last.

var _ core.Snapshotter = (*allocator)(nil)

// learnedHorizon is what a pollux hands to the next.
type learnedHorizon struct {
	Times []float64 // seconds
	Known core.JobID
}

// Snapshot is the times of the last changes.
func (p *allocator) Snapshot() ([]byte, error) {
	return json.Marshal(learnedHorizon{p.horizon.times, p.horizon.known})
}

// Restore goes on from them.
func (p *allocator) Restore(learned []byte) error {
	var l learnedHorizon
	if err := json.Unmarshal(learned, &l); err != nil {
		return err
	}
	if l.Known < 0 || len(l.Times) > horizonChanges || !slices.IsSorted(l.Times) {
		return errors.New("the changes of the job list are of no run")
	}
	p.horizon = horizon{l.Times, l.Known}
	return nil
}
