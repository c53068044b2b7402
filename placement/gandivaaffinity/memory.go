package gandivaaffinity

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// What no fact of a job tells: where those that hold no devices ran last.

var _ core.Snapshotter = (*gandivaAffinity)(nil)

// lastSeats is where a job was seated last.
type lastSeats struct {
	Job   core.JobID
	Seats []core.Seat
}

// Snapshot is where jobs ran last, by JobID.
func (p *gandivaAffinity) Snapshot() ([]byte, error) {
	list := make([]lastSeats, 0, len(p.last))
	for _, id := range slices.Sorted(maps.Keys(p.last)) {
		list = append(list, lastSeats{id, p.last[id]})
	}
	return json.Marshal(list)
}

// Restore takes that up. Seats that there are no more are of no use to their jobs.
func (p *gandivaAffinity) Restore(learned []byte) error {
	var list []lastSeats
	if err := json.Unmarshal(learned, &list); err != nil {
		return fmt.Errorf("read where jobs ran last: %w", err)
	}
	clear(p.last)
	for _, l := range list {
		p.last[l.Job] = l.Seats
	}
	return nil
}
