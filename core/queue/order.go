package queue

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Rank is the place of a candidate in an order: ascending key, ties by JobID.
type Rank struct {
	Key   float64
	Job   core.JobID
	Index int32 // among the candidates
}

func compareRanks(a, b Rank) int {
	if c := cmp.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return cmp.Compare(a.Job, b.Job)
}

// Order sorts candidates by a key that changes little from round to round: it starts from the order of the round
// before, so that a round costs O(candidates) when few of them change places. The zero value is an order of nobody.
type Order struct {
	ranks []Rank
	// slots, by JobID, is the index of the job among the candidates of this round, or its complement once the job
	// was recalled from the round before.
	slots []int32
}

// Arrange returns the candidates in ascending order of key. A key that is not a number counts as +Inf. The list is the
// order's own, until the next call.
func (o *Order) Arrange(candidates []core.Candidate, key func(*core.Candidate) float64) []Rank {
	o.recall(candidates)
	for i := range o.ranks {
		r := &o.ranks[i]
		if r.Key = key(&candidates[r.Index]); r.Key != r.Key {
			r.Key = math.Inf(1)
		}
	}
	SortRanks(o.ranks)
	return o.ranks
}

// recall lists those of the round before that are still candidates, in its order, and then the new ones by JobID.
func (o *Order) recall(candidates []core.Candidate) {
	for i := range candidates {
		id := candidates[i].ID
		o.slots = Grown(o.slots, id)
		o.slots[id] = int32(i)
	}
	kept := o.ranks[:0]
	for _, r := range o.ranks {
		at := o.slots[r.Job]
		if at < 0 || int(at) >= len(candidates) || candidates[at].ID != r.Job {
			continue // ended
		}
		o.slots[r.Job] = ^at
		r.Index = at
		kept = append(kept, r)
	}
	for i := range candidates {
		if id := candidates[i].ID; o.slots[id] >= 0 {
			kept = append(kept, Rank{Job: id, Index: int32(i)})
			o.slots[id] = ^int32(i)
		}
	}
	o.ranks = kept
}

// SortRanks sorts ranks that are nearly in order: it inserts each rank into those before it, and gives up for a general sort when too many are far off.
func SortRanks(ranks []Rank) {
	budget := 8 * len(ranks)
	for i := 1; i < len(ranks); i++ {
		r, k := ranks[i], i
		for k > 0 && (r.Key < ranks[k-1].Key || r.Key == ranks[k-1].Key && r.Job < ranks[k-1].Job) {
			ranks[k] = ranks[k-1]
			k--
		}
		ranks[k] = r
		if budget -= i - k; budget < 0 {
			slices.SortFunc(ranks, compareRanks)
			return
		}
	}
}

// Grown extends a table by JobID so that it has an entry for id.
func Grown[T any](table []T, id core.JobID) []T {
	if missing := int(id) + 1 - len(table); missing > 0 {
		table = append(table, make([]T, missing)...)
	}
	return table
}
