package matching

import (
	"encoding/json"
	"errors"

	"github.com/quartet-sched/quartet/core"
)

// What no fact of a job tells: since when arrivals are counted.

var _ core.Snapshotter = (*allocator)(nil)

// learnedArrivals is what a matching hands to the next.
type learnedArrivals struct {
	Begun      bool
	First, Now float64 // seconds
	Count      int
	Last       core.JobID
}

// Snapshot is the arrivals.
func (p *allocator) Snapshot() ([]byte, error) {
	a := &p.arrivals
	return json.Marshal(learnedArrivals{a.begun, a.first, a.now, a.count, a.last})
}

// Restore goes on counting.
func (p *allocator) Restore(learned []byte) error {
	var l learnedArrivals
	if err := json.Unmarshal(learned, &l); err != nil {
		return err
	}
	if l.Count < 0 || l.Now < l.First {
		return errors.New("the arrivals are of no run")
	}
	p.arrivals = arrivals{l.Begun, l.First, l.Now, l.Count, l.Last}
	return nil
}
