package main

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// auditor keeps books of its own about every job, from events and changes alone.
type auditor struct {
	t        *rapid.T
	held     map[core.JobID]int
	since    map[core.JobID]float64
	attained map[core.JobID]float64
	ended    map[core.JobID]core.JobState
	seen     map[core.JobID]bool
	lossless bool // no job ends before its work is done
}

func newAuditor(t *rapid.T, s *scenario) *auditor {
	return &auditor{
		t: t, held: map[core.JobID]int{}, since: map[core.JobID]float64{}, attained: map[core.JobID]float64{},
		ended: map[core.JobID]core.JobState{}, seen: map[core.JobID]bool{},
		lossless: s.world.Publication.EpochEnds != "whole_seconds",
	}
}

func (a *auditor) hold(id core.JobID, devices int, now float64) {
	a.attained[id] += float64(a.held[id]) * (now - a.since[id])
	a.held[id], a.since[id] = devices, now
}

func (a *auditor) ObserveRound(r *core.Report) error {
	for _, e := range r.Events {
		switch e.Kind {
		case core.JobSubmitted:
			a.seen[e.Job] = true
		case core.JobFinished, core.JobFailed, core.JobInterrupted:
			a.hold(e.Job, 0, e.AtSeconds)
		}
	}
	for _, c := range r.Changes {
		switch c.Action {
		case core.Stop:
			a.hold(c.Job, 0, r.View.NowSeconds)
		case core.Start, core.Move:
			a.hold(c.Job, core.Replicas(c.Seats), r.View.NowSeconds)
		}
	}
	for _, j := range r.Ended {
		if state, again := a.ended[j.ID]; again {
			a.t.Errorf("job %q ended twice: %v, then %v", j.Name, state, j.State)
		}
		a.ended[j.ID] = j.State
		if math.Abs(j.Attained-a.attained[j.ID]) > 1e-6 {
			a.t.Errorf("job %q attained %v device-seconds, the books say %v", j.Name, j.Attained, a.attained[j.ID])
		}
		// A device does at most a second of work in a second; costs, penalties and failures only add to that. What a
		// training job does in a second depends on its batch.
		if work := j.TotalWork * float64(j.Requested); a.lossless && j.Batch.Initial == 0 && j.State == core.Completed && j.Attained < work*(1-1e-9) {
			a.t.Errorf("job %q completed %v device-seconds of work in %v", j.Name, work, j.Attained)
		}
	}
	var taken core.Ledger
	taken.Reset(r.View.Cluster)
	for _, j := range r.View.Jobs {
		if j == nil || j.State != core.Running {
			continue
		}
		if j.Held != a.held[j.ID] || j.Held != core.Replicas(j.Seats) {
			a.t.Errorf("job %q holds %d devices, the books say %d", j.Name, j.Held, a.held[j.ID])
		}
		if j.Held < j.MinReplicas || j.Held > j.MaxReplicas {
			a.t.Errorf("job %q holds %d devices, can use %d to %d", j.Name, j.Held, j.MinReplicas, j.MaxReplicas)
		}
		for _, seat := range j.Seats {
			if !j.CanRunOn(r.View.Cluster, r.View.Cluster.Nodes[seat.Node].Accelerator) {
				a.t.Errorf("job %q sits on node %d, whose type it cannot run on", j.Name, seat.Node)
			}
		}
		if !taken.Occupy(j.Seats) {
			a.t.Errorf("round %d: job %q sits on devices that are not free", r.View.Round, j.Name)
		}
	}
	return nil
}

func TestEveryCompositionKeepsTheInvariants(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		audit, counts := newAuditor(t, s), &roundUse{}
		files, err := s.run(dir, s.rows, audit, counts)
		if err != nil {
			t.Fatal(err)
		}
		if len(audit.seen) != s.jobs() {
			t.Errorf("%d jobs submitted, want %d", len(audit.seen), s.jobs())
		}
		if rows := strings.Count(files[0], "\n") - 1; rows != s.jobs() {
			t.Errorf("jobs.csv has %d rows, want %d", rows, s.jobs())
		}
		if !s.mayStarve && len(audit.ended) != s.jobs() {
			t.Errorf("%d jobs ended, want %d\n%s\n%s\n%s", len(audit.ended), s.jobs(), files[0], files[1], files[2])
		}
		checkTimeline(t, files[0], [4]string(files[3:]), core.Exclusive)
		counts.check(t, files[5])
		permuted, err := s.run(dir, rapid.Permutation(s.rows).Draw(t, "permutation"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(files, permuted); diff != "" {
			t.Errorf("permuting the rows of the workload changes the run (-as drawn +permuted):\n%s", diff)
		}
	})
}
