package pollux

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// What no fact of a job tells: when the job list changed last, and the population of the genetic search.

var (
	_ core.Snapshotter = (*allocator)(nil)
	_ core.Forker      = (*allocator)(nil)
)

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

// Fork goes on from the times, and from the fronts of the genetic search. O(population × jobs) there, and O(1) for the exact one.
func (p *allocator) Fork(r *rand.Rand) any {
	f := newAllocator(p.config, r)
	f.horizon = horizon{slices.Clone(p.horizon.times), p.horizon.known}
	for _, t := range slices.Sorted(maps.Keys(p.evolution)) {
		f.evolution[t] = p.evolution[t].fork()
	}
	return f
}

// fork is a search with the same front, which is all that the next round takes from it.
func (g *geneticSearch) fork() *geneticSearch {
	f := &geneticSearch{ids: slices.Clone(g.ids), front: g.front, population: make([]*member, g.front)}
	for i, m := range g.population[:g.front] {
		f.population[i] = &member{rows: rows{slices.Clone(m.ends), slices.Clone(m.shares)}}
	}
	return f
}
