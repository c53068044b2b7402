package core

// journal remembers which jobs changed, in order, so that whoever keeps a copy of the view can bring it up to date
// without looking at every job.
type journal struct {
	jobs    []JobID
	dropped int // entries forgotten before jobs[0]
}

// journalLength is how many changes are kept at least.
const journalLength = 1 << 16

func (l *journal) add(id JobID) {
	if len(l.jobs) == 2*journalLength {
		l.dropped += journalLength
		l.jobs = l.jobs[:copy(l.jobs, l.jobs[journalLength:])]
	}
	l.jobs = append(l.jobs, id)
}

// ChangesSince lists the jobs whose state changed since a cursor, oldest first and possibly more than once, and the
// cursor for the next time; 0 is the beginning. It is not complete when the journal no longer reaches back so far: then
// any job may have changed. The list is valid during the call of the stage.
func (v *View) ChangesSince(cursor int) (changed []JobID, next int, complete bool) {
	next = v.journal.dropped + len(v.journal.jobs)
	if cursor < v.journal.dropped || cursor > next {
		return nil, next, false
	}
	return v.journal.jobs[cursor-v.journal.dropped:], next, true
}

// NoteChange records that the state of a job changed, in a view that is made by hand: whoever keeps a copy of it learns so
// from ChangesSince.
func (v *View) NoteChange(id JobID) { v.journal.add(id) }
