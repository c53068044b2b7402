package allocation

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// rank is the place of a candidate in an order: ascending key, ties by JobID.
type rank struct {
	key   float64
	job   core.JobID
	index int32 // among the candidates
}

func compareRanks(a, b rank) int {
	if c := cmp.Compare(a.key, b.key); c != 0 {
		return c
	}
	return cmp.Compare(a.job, b.job)
}

// order sorts candidates by a key that changes little from round to round: it starts from the order of the round
// before, so that a round costs O(candidates) when few of them change places.
type order struct {
	ranks []rank
	// slots, by JobID, is the index of the job among the candidates of this round, or its complement once the job
	// was recalled from the round before.
	slots []int32
}

// arrange returns the candidates in ascending order of key. A key that is not a number counts as +Inf.
func (o *order) arrange(candidates []core.Candidate, key func(*core.Candidate) float64) []rank {
	o.recall(candidates)
	for i := range o.ranks {
		r := &o.ranks[i]
		if r.key = key(&candidates[r.index]); r.key != r.key {
			r.key = math.Inf(1)
		}
	}
	sortRanks(o.ranks)
	return o.ranks
}

// recall lists those of the round before that are still candidates, in its order, and then the new ones by JobID.
func (o *order) recall(candidates []core.Candidate) {
	for i := range candidates {
		id := candidates[i].ID
		o.slots = grown(o.slots, id)
		o.slots[id] = int32(i)
	}
	kept := o.ranks[:0]
	for _, r := range o.ranks {
		at := o.slots[r.job]
		if at < 0 || int(at) >= len(candidates) || candidates[at].ID != r.job {
			continue // ended
		}
		o.slots[r.job] = ^at
		r.index = at
		kept = append(kept, r)
	}
	for i := range candidates {
		if id := candidates[i].ID; o.slots[id] >= 0 {
			kept = append(kept, rank{job: id, index: int32(i)})
			o.slots[id] = ^int32(i)
		}
	}
	o.ranks = kept
}

// sortRanks inserts each rank into those before it, and gives up for a general sort when too many are far off.
func sortRanks(ranks []rank) {
	budget := 8 * len(ranks)
	for i := 1; i < len(ranks); i++ {
		r, k := ranks[i], i
		for k > 0 && (r.key < ranks[k-1].key || r.key == ranks[k-1].key && r.job < ranks[k-1].job) {
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

// grown extends a table by JobID so that it has an entry for id.
func grown[T any](table []T, id core.JobID) []T {
	if missing := int(id) + 1 - len(table); missing > 0 {
		table = append(table, make([]T, missing)...)
	}
	return table
}
