package queue

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Rank is the place of a candidate in an order: ascending key, ties by JobID.
type Rank struct {
	// Key is what is ordered by, ascending.
	Key float64
	// Job breaks ties, ascending.
	Job   core.JobID
	Index int32 // among the candidates

	moves bool // its key changes though nothing happens to the job: it runs
}

func (r Rank) before(o Rank) bool { return r.Key < o.Key || r.Key == o.Key && r.Job < o.Job }

func compareRanks(a, b Rank) int {
	if c := cmp.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return cmp.Compare(a.Job, b.Job)
}

// Order sorts candidates by a key that changes little from round to round: it starts from the order of the round
// before, so that a round costs O(candidates) when few of them change places. The zero value is an order of nobody.
type Order struct {
	// Drifts says that the keys of jobs that wait change, too, as time passes or as others do: ArrangeChanged then asks about all.
	Drifts bool

	last  glance
	ranks []Rank
	// slots, by JobID, is the index of the job among the candidates of this round, or its complement once the job
	// was recalled from the round before.
	slots []int32
	ids   []core.JobID // of the candidates of this round
	anew  []Rank       // of those asked about again
	asked []int        // by JobID, the round in which it was
	// For merge.
	room   []Rank
	begins []int
}

// glance is what an order remembers of the view that it saw last.
type glance struct {
	view                  *core.View
	round, cursor, health int
	whole                 bool // all active jobs were candidates, as they are in the first question of a round
}

// Arrange returns the candidates in ascending order of key. A key that is not a number counts as +Inf. The list is the
// order's own, until the next call.
func (o *Order) Arrange(candidates []core.Candidate, key func(*core.Candidate) float64) []Rank {
	o.last = glance{}
	return o.arrange(candidates, key)
}

// ArrangeChanged is Arrange that asks about a job again only when something happened to it, while it runs, and when the health of nodes changed,
// but for an order that Drifts.
func (o *Order) ArrangeChanged(v *core.View, candidates []core.Candidate, key func(*core.Candidate) float64) []Rank {
	last := o.last
	changed, next, complete := v.ChangesSince(last.cursor)
	o.last = glance{view: v, round: v.Round, cursor: next, health: v.HealthChanges, whole: len(candidates) == len(v.Active)}
	o.last.whole = o.last.whole && (v != last.view || v.Round != last.round)
	if o.last.whole && last.whole && complete && v == last.view && v.HealthChanges == last.health && !o.Drifts && o.update(v, changed, candidates, key) {
		return o.ranks
	}
	return o.arrange(candidates, key)
}

// arrange asks about all candidates.
func (o *Order) arrange(candidates []core.Candidate, key func(*core.Candidate) float64) []Rank {
	o.recall(candidates)
	for i := range o.ranks {
		r := &o.ranks[i]
		*r = ranked(&candidates[r.Index], r.Index, key)
	}
	if !inserted(o.ranks) {
		o.merge()
	}
	return o.ranks
}

// ranked is the rank of a candidate at an index.
func ranked(c *core.Candidate, index int32, key func(*core.Candidate) float64) Rank {
	r := Rank{Key: key(c), Job: c.ID, Index: index, moves: c.State == core.Running || c.ProgressRate != 0}
	if r.Key != r.Key {
		r.Key = math.Inf(1)
	}
	return r
}

// update takes jobs that changed or run out of the order of the round before, and enters them anew. It reports false where they are not all that differs.
func (o *Order) update(v *core.View, changed []core.JobID, candidates []core.Candidate, key func(*core.Candidate) float64) bool {
	if n := len(v.Active); n > 0 {
		o.slots, o.asked = Grown(o.slots, v.Active[n-1]), Grown(o.asked, v.Active[n-1])
	}
	for i, id := range v.Active {
		o.slots[id] = int32(i)
	}
	active := func(id core.JobID) bool {
		return int(id) < len(o.slots) && uint(o.slots[id]) < uint(len(v.Active)) && v.Active[o.slots[id]] == id
	}
	o.anew = o.anew[:0]
	for _, id := range changed {
		if active(id) && o.asked[id] != v.Round {
			o.asked[id] = v.Round
			o.anew = append(o.anew, ranked(&candidates[o.slots[id]], o.slots[id], key))
		}
	}
	kept := o.ranks[:0]
	for _, r := range o.ranks {
		switch {
		case !active(r.Job) || o.asked[r.Job] == v.Round: // ended, or entered anew
		case r.moves:
			o.anew = append(o.anew, ranked(&candidates[o.slots[r.Job]], o.slots[r.Job], key))
		default:
			r.Index = o.slots[r.Job]
			kept = append(kept, r)
		}
	}
	SortRanks(o.anew)
	o.ranks = append(kept, o.anew...)
	o.mergeRuns(0, len(kept), len(o.ranks))
	return len(o.ranks) == len(candidates)
}

// merge sorts ranks that are few ascending runs: where those who run have fallen behind those who wait, each kind is still nearly in its order. It merges
// neighbours, of which the first is at most twice as long: O(n log runs), and O(n) where a long run follows short ones.
//
// Source: natural merging (Knuth, The Art of Computer Programming 3, 5.2.4), with a stack of runs (Buss and Knop, Strategies for stable merge sorting, SODA 2019).
func (o *Order) merge() {
	n := len(o.ranks)
	o.begins = o.begins[:0] // of the runs that are not merged
	for i := 0; i < n; {
		o.begins = append(o.begins, i)
		for i++; i < n && !o.ranks[i].before(o.ranks[i-1]); i++ {
		}
		for k := len(o.begins) - 1; k > 0 && o.begins[k]-o.begins[k-1] <= 2*(i-o.begins[k]); k-- {
			o.mergeRuns(o.begins[k-1], o.begins[k], i)
			o.begins = o.begins[:k]
		}
	}
	for k := len(o.begins) - 1; k > 0; k-- {
		o.mergeRuns(o.begins[k-1], o.begins[k], n)
	}
}

// mergeRuns makes one run of two neighbours, from first to middle and from there to end.
func (o *Order) mergeRuns(first, middle, end int) {
	ranks := o.ranks
	for first < middle && middle < end && !ranks[middle].before(ranks[first]) {
		first++ // in its place
	}
	o.room = append(o.room[:0], ranks[first:middle]...)
	at, right := first, middle
	for _, left := range o.room {
		for right < end && ranks[right].before(left) {
			ranks[at] = ranks[right]
			at, right = at+1, right+1
		}
		ranks[at] = left
		at++
	}
}

// recall lists those of the round before that are still candidates, in its order, and then the new ones by JobID.
func (o *Order) recall(candidates []core.Candidate) {
	o.ids = o.ids[:0]
	for i := range candidates {
		id := candidates[i].ID
		o.ids = append(o.ids, id)
		o.slots = Grown(o.slots, id)
		o.slots[id] = int32(i)
	}
	kept := o.ranks[:0]
	for _, r := range o.ranks {
		at := o.slots[r.Job]
		if at < 0 || int(at) >= len(o.ids) || o.ids[at] != r.Job {
			continue // ended
		}
		o.slots[r.Job] = ^at
		r.Index = at
		kept = append(kept, r)
	}
	for i, id := range o.ids {
		if o.slots[id] >= 0 {
			kept = append(kept, Rank{Job: id, Index: int32(i)})
			o.slots[id] = ^int32(i)
		}
	}
	o.ranks = kept
}

// SortRanks sorts ranks that are nearly in order.
func SortRanks(ranks []Rank) {
	if !inserted(ranks) {
		slices.SortFunc(ranks, compareRanks)
	}
}

// inserted inserts each rank into those before it. It gives up, and reports false, when too many are far off; the ranks are in no order then.
func inserted(ranks []Rank) bool {
	budget := 8 * len(ranks)
	for i := 1; i < len(ranks); i++ {
		r, k := ranks[i], i
		for k > 0 && r.before(ranks[k-1]) {
			ranks[k] = ranks[k-1]
			k--
		}
		ranks[k] = r
		if budget -= i - k; budget < 0 {
			return false
		}
	}
	return true
}

// Grown extends a table by JobID so that it has an entry for id.
func Grown[T any](table []T, id core.JobID) []T {
	if missing := int(id) + 1 - len(table); missing > 0 {
		table = append(table, make([]T, missing)...)
	}
	return table
}
