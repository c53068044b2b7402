package wire

import (
	"errors"
	"sort"

	"github.com/quartet-sched/quartet/core"
)

// Sender encodes a list of items, at most one for each job, as an edit of the list before. Lists that break this rule are
// sent all the same, so that whoever checks them sees them. The zero Sender has sent the empty list.
type Sender[T any] struct {
	Job   func(*T) core.JobID // Job returns the job that an item is about.
	Equal func(a, b *T) bool  // Equal reports whether two items are the same.
	Clone func(T) T           // Clone copies an item and what it refers to, so that the sender can keep it.

	old, next []T
	at        []int32 // by job: 1 + index in old, 0 for none
	from      []int32 // by new item: index in old of the equal item, -1 for none
	steps     []uint32
	inserted  []T
	tails     []int32 // scratch of keepOrder
	before    []int32
}

// Reset forgets what was sent.
func (s *Sender[T]) Reset() {
	for i := range s.old {
		if job := s.Job(&s.old[i]); known(job) {
			s.at[job] = 0
		}
	}
	s.old = s.old[:0]
}

// known reports whether there can be such a job.
func known(job core.JobID) bool { return job >= 0 && job < maxJobs }

// Encode returns the steps of an Edit that turns the list before into list, and the items to insert. Both are valid until
// the next call.
func (s *Sender[T]) Encode(list []T) (steps []uint32, inserted []T) {
	s.match(list)
	s.keepOrder()
	s.next, s.inserted, s.steps = s.next[:0], s.inserted[:0], s.steps[:0]
	read := int32(0)
	for i := 0; i < len(list); {
		var drop, kept, fresh uint32
		if s.from[i] >= 0 {
			drop = uint32(s.from[i] - read)
			read = s.from[i]
		}
		for ; i < len(list) && s.from[i] == read && int(read) < len(s.old); i++ {
			s.next = append(s.next, s.old[read])
			kept++
			read++
		}
		for ; i < len(list) && s.from[i] < 0; i++ {
			item := s.Clone(list[i])
			s.next = append(s.next, item)
			s.inserted = append(s.inserted, item)
			fresh++
		}
		s.steps = append(s.steps, drop, kept, fresh)
	}
	s.Reset()
	s.old, s.next = s.next, s.old
	for i := range s.old {
		if job := s.Job(&s.old[i]); known(job) {
			s.at[job] = int32(i) + 1
		}
	}
	return s.steps, s.inserted
}

// match finds for each new item the equal old one.
func (s *Sender[T]) match(list []T) {
	s.from = s.from[:0]
	for i := range list {
		job := s.Job(&list[i])
		if !known(job) {
			s.from = append(s.from, -1)
			continue
		}
		if missing := int(job) + 1 - len(s.at); missing > 0 {
			s.at = append(s.at, make([]int32, missing)...)
		}
		at := s.at[job] - 1
		if at >= 0 && !s.Equal(&s.old[at], &list[i]) {
			at = -1
		}
		s.from = append(s.from, at)
	}
}

// keepOrder leaves of the matches a longest increasing sequence: an edit takes old items over in their order.
func (s *Sender[T]) keepOrder() {
	ordered, last := true, int32(-1)
	for _, at := range s.from {
		if at < 0 {
			continue
		}
		if at <= last {
			ordered = false
			break
		}
		last = at
	}
	if ordered {
		return
	}
	// tails[k] is the new item that ends the lowest increasing sequence of k+1 matches; before links each to the item
	// that comes before it there.
	s.tails, s.before = s.tails[:0], s.before[:0]
	for i, at := range s.from {
		s.before = append(s.before, -1)
		if at < 0 {
			continue
		}
		k := len(s.tails)
		if k > 0 && s.from[s.tails[k-1]] >= at { // most items are in order
			k = sort.Search(k, func(k int) bool { return s.from[s.tails[k]] >= at })
		}
		if k > 0 {
			s.before[i] = s.tails[k-1]
		}
		if k == len(s.tails) {
			s.tails = append(s.tails, int32(i))
		} else {
			s.tails[k] = int32(i)
		}
	}
	keep := s.tails[len(s.tails)-1]
	for i := int32(len(s.from)) - 1; i >= 0; i-- {
		if i == keep {
			keep = s.before[i]
		} else {
			s.from[i] = -1
		}
	}
}

// Receiver is the list at the other end. The zero Receiver holds the empty list.
type Receiver[T any] struct{ list, next []T }

// Reset empties the list.
func (r *Receiver[T]) Reset() { r.list = r.list[:0] }

var errEdit = errors.New("an edit does not fit the list that it is for")

// Apply edits the list and returns it; it is valid until the next call.
func (r *Receiver[T]) Apply(steps []uint32, inserted []T) ([]T, error) {
	if len(steps)%3 != 0 {
		return nil, errEdit
	}
	r.next = r.next[:0]
	read := 0
	for ; len(steps) > 0; steps = steps[3:] {
		drop, kept, fresh := int(steps[0]), int(steps[1]), int(steps[2])
		if drop > len(r.list)-read || kept > len(r.list)-read-drop || fresh > len(inserted) {
			return nil, errEdit
		}
		read += drop
		r.next = append(r.next, r.list[read:read+kept]...)
		read += kept
		r.next = append(r.next, inserted[:fresh]...)
		inserted = inserted[fresh:]
	}
	if len(inserted) > 0 {
		return nil, errEdit
	}
	r.list, r.next = r.next, r.list
	return r.list, nil
}
