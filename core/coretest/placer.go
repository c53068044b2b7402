package coretest

import (
	"context"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// RunPlacer holds a placement policy to its contract.
func RunPlacer(t *testing.T, f core.Factory[core.Placer], opts ...Option) {
	runChecks(t, placerChecks(f, opts))
}

func placerChecks(f core.Factory[core.Placer], opts []Option) []check {
	s := placerSlot(f.Type)
	return append(checks(s, f, opts), placeOne(s, f, opts))
}

func placerSlot(policyType string) slot[core.Placer] {
	return slot[core.Placer]{
		id:      "placement/" + policyType,
		install: func(s *core.Stages, c core.Component[core.Placer]) { s.Placement = c },
		wrap:    func(tr *trial[core.Placer]) core.Placer { return judgedPlacer{tr} },
		ask: func(ctx context.Context, p core.Placer, q question) error {
			_, err := p.Place(ctx, q.View, q.Grants)
			return err
		},
	}
}

// placeOne asks for one replica on an empty cluster, which every placer has a place for.
func placeOne(s slot[core.Placer], f core.Factory[core.Placer], opts []Option) check {
	subject := subject[core.Placer]{slot: s, factory: f}
	for _, opt := range opts {
		opt(&subject.options)
	}
	return check{name: "a single replica is seated", run: func(t TB) {
		policy, _ := subject.create(t)
		v := MakeView(MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(MakeJob("only").Waiting()).Obj()
		seating, err := policy.Place(context.Background(), v, []core.Grant{{Job: 0, Accelerator: core.AnyAccelerator, Replicas: 1}})
		if err != nil || len(seating.Placed) != 1 {
			t.Errorf("one replica on an empty cluster: got %+v, error %v", seating, err)
		}
	}}
}

type judgedPlacer struct{ *trial[core.Placer] }

func (j judgedPlacer) Place(ctx context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	seating := ask(j.trial, question{View: v, inputs: inputs{Grants: grants}}, func(p core.Placer, q question) (core.Seating, error) {
		return p.Place(ctx, q.View, q.Grants)
	})
	for _, verdict := range seating.Unseated {
		fault := verdictFault(verdict)
		if verdict.Code != core.Defer {
			fault = "code " + verdict.Code.String() + " from a placer"
		}
		if fault != "" {
			j.t.Fatalf("verdict for job %d: %s", verdict.Job, fault)
		}
	}
	j.judgeSeats(v, grants, seating)
	return seating, nil
}

// judgeSeats checks that what runs stays, and that a blocking grant blocks.
func (j judgedPlacer) judgeSeats(v *core.View, grants []core.Grant, seating core.Seating) {
	seated := make(map[core.JobID][]core.Seat)
	for _, p := range seating.Placed {
		seated[p.Job] = p.Seats
	}
	kept := make(turns, len(v.Cluster.Accelerators))
	onKept := func(seat core.Seat) bool { return kept[v.Cluster.Nodes[seat.Node].Accelerator] }
	for i := range grants {
		g := &grants[i]
		job := v.Job(g.Job)
		seats, placed := seated[g.Job]
		unchanged := len(g.Proposed) == 0 && canStay(v.Cluster, job, g)
		if v.Cluster.Sharing == core.TimeSlice {
			unchanged = unchanged && stayTogether(v, grants, i)
		}
		switch {
		case placed && seatsFault(v.Cluster, job, g.Accelerator, seats) != "":
			j.t.Fatalf("seats of job %d: %s", g.Job, seatsFault(v.Cluster, job, g.Accelerator, seats))
		case placed && job.State != core.Running && slices.ContainsFunc(seats, onKept) && !joinsRunning(v, grants, i, seated):
			j.t.Fatalf("started job %d after a blocking grant that it did not seat", g.Job)
		case placed && unchanged && !j.options.evicts && !core.SameSeats(seats, job.Seats):
			j.t.Fatalf("moved job %d from %v to %v although its grant is unchanged", g.Job, job.Seats, seats)
		case !placed && unchanged && !j.options.evicts:
			j.t.Fatalf("took the devices of job %d although its grant is unchanged", g.Job)
		}
		if !placed && !seatedBeside(grants, i, seated) {
			kept.refuse(v.Cluster, job, g)
		}
	}
}

// seatedBeside reports whether another one of the group of a grant is seated.
func seatedBeside(grants []core.Grant, i int, seated map[core.JobID][]core.Seat) bool {
	return grants[i].Group != 0 && slices.ContainsFunc(grants, func(g core.Grant) bool { return g.Group == grants[i].Group && seated[g.Job] != nil })
}

// joinsRunning reports whether a job is seated beside one of its group that runs already: that takes nobody's turn.
func joinsRunning(v *core.View, grants []core.Grant, i int, seated map[core.JobID][]core.Seat) bool {
	return grants[i].Group != 0 && slices.ContainsFunc(grants, func(g core.Grant) bool {
		return g.Group == grants[i].Group && seated[g.Job] != nil && v.Job(g.Job).State == core.Running
	})
}

// turns says of each accelerator type whether a blocking grant that was not seated keeps its turn there: nothing new is seated on
// the type after it.
type turns []bool

// refuse notes that a grant is not seated.
func (kept turns) refuse(c *core.Cluster, j *core.Job, g *core.Grant) {
	for t := range kept {
		could := j.Accepts(c, core.AcceleratorID(t)) && hasMemory(c, j, core.AcceleratorID(t)) && (g.Accelerator == core.AnyAccelerator || int(g.Accelerator) == t)
		kept[t] = kept[t] || g.Blocking && could
	}
}

// canStay reports whether a running job's grant lets it keep its seats.
func canStay(c *core.Cluster, j *core.Job, g *core.Grant) bool {
	return j.State == core.Running && j.Held == g.Replicas && seatsFault(c, j, g.Accelerator, j.Seats) == ""
}
