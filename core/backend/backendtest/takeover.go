package backendtest

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
)

// held is a round as it was told and decided.
type held struct {
	Now     float64
	Events  []string
	Changes []core.Change
}

// takesOver has another scheduler take the place of the one before: it is told the same rounds with what was decided in them,
// and then what happened meanwhile.
func takesOver(t testing.TB, h *Harness) {
	if h.Restart == nil {
		t.Skip("no scheduler takes over this backend")
	}
	s := open(t, h, Job{Seconds: 4}, Job{Seconds: 1})
	var history []held
	step := func(decide func() []core.Change) {
		s.news = nil
		s.next(onEvents)
		changes := decide()
		s.apply(changes...)
		history = append(history, held{s.now, slices.Clone(s.news), changes})
	}
	nothing := func() []core.Change { return nil }
	for started := false; !started; {
		step(func() []core.Change {
			if started = len(s.jobs) == 2; !started {
				return nil
			}
			return []core.Change{start(0, firstOfA), start(1, firstOfB)}
		})
	}
	for s.jobs[1].ended == nil {
		step(nothing)
	}
	for i := range 3 {
		s.backend = h.Restart(t, s.backend)
		s.jobs, s.lastID, s.now = nil, 0, 0
		for k := 0; ; k++ {
			s.news = nil
			seen, err := s.backend.Next(context.Background(), core.Wake{BySeconds: s.now, OnEvents: true})
			if err != nil {
				t.Fatalf("restart %d: %v", i, err)
			}
			for j := range seen.Events {
				if id := seen.Events[j].ID; id != 0 && id <= s.lastID {
					continue
				}
				s.lastID = max(s.lastID, seen.Events[j].ID)
				s.take(&seen.Events[j])
				s.note(&seen.Events[j])
				if int(seen.Events[j].Job) < len(s.jobs) {
					s.jobs[seen.Events[j].Job].started = true // as the rounds say
				}
			}
			s.now = seen.NowSeconds
			if seen.Decided == nil {
				if k != len(history) {
					t.Fatalf("restart %d: %d rounds are repeated, want %d", i, k, len(history))
				}
				s.round = len(history) + 1
				s.apply()
				history = append(history, held{s.now, s.news, nil})
				break
			}
			if k >= len(history) {
				t.Fatalf("restart %d: round %d was never held", i, k+1)
			}
			got := held{seen.NowSeconds, slices.Clone(s.news), seen.Decided.Changes}
			if diff := cmp.Diff(history[k], got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("restart %d: round %d (-want +got):\n%s", i, k+1, diff)
			}
			if err := s.backend.Apply(context.Background(), seen.Decided.Changes); err != nil {
				t.Fatal(err)
			}
		}
	}
	if e := s.end(0); e.Kind != core.JobFinished {
		t.Errorf("the job %v, want it finished", e.Kind)
	}
}
