package core

import (
	"fmt"
	"testing"
)

// The journal keeps at least the last journalLength changes and never twice as many plus one; whatever it keeps, it tells in
// order, and it says so when it does not reach back far enough.
func TestJournalTellsWhatItKeeps(t *testing.T) {
	for _, added := range []int{0, 1, journalLength, 2*journalLength - 1, 2 * journalLength, 2*journalLength + 1, 3*journalLength + 7, 5 * journalLength} {
		t.Run(fmt.Sprint(added), func(t *testing.T) {
			l := &journal{}
			for i := range added {
				l.add(JobID(i))
				if n := len(l.jobs); n > 2*journalLength || n < min(i+1, journalLength) {
					t.Fatalf("after %d changes it keeps %d", i+1, n)
				}
			}
			v := &View{journal: *l}
			oldest := added - len(l.jobs)
			for cursor, complete := range map[int]bool{
				oldest - 1: false, oldest: true, oldest + 1: oldest < added, added - 1: added > oldest, added: true, added + 1: false,
			} {
				if cursor < 0 {
					continue
				}
				changed, next, got := v.ChangesSince(cursor)
				if got != complete || next != added {
					t.Errorf("since %d of %d..%d: complete %v, next %d; want %v, %d", cursor, oldest, added, got, next, complete, added)
				}
				if !complete {
					if len(changed) > 0 {
						t.Errorf("since %d: %d changes of a list that is not complete", cursor, len(changed))
					}
					continue
				}
				if len(changed) != added-cursor {
					t.Errorf("since %d: %d changes, want %d", cursor, len(changed), added-cursor)
				}
				for i, id := range changed {
					if int(id) != cursor+i {
						t.Fatalf("since %d: change %d is of job %d, want %d", cursor, i, id, cursor+i)
					}
				}
			}
		})
	}
}
