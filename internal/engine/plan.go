package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// Plan is what the next round of a run would do.
type Plan struct {
	Round      int
	NowSeconds float64 // moment of the round
	Cluster    *core.Cluster
	Changes    []core.Change
	Names      map[core.JobID]string       // of the jobs that were submitted until then
	Verdicts   map[core.JobID]core.Verdict // last told of each job
	Unfinished []*core.Job
}

// Plan holds the next round of a run whose scheduler wrote a snapshot, or the first round when the name of the snapshot is
// empty, and changes nothing. That of a simulation is its first round that knows of a job, at its own time.
func (c *Composition) Plan(ctx context.Context, snapshot string) (*Plan, error) {
	return c.foresee(ctx, snapshot, foreseeing{})
}

// foreseeing is who looks at a plan while it is made; each may be nil.
type foreseeing struct {
	opened func(backend.Preview)                  // what is planned on, before the first round
	watch  func(*core.Pipeline) core.Observer     // one more observer of the rounds
	next   func(*core.Pipeline, core.Observation) // before the next round, with what it is told
	done   func(*Plan, *core.Pipeline)            // after it
}

// foresee is Plan with somebody who looks on.
func (c *Composition) foresee(ctx context.Context, snapshot string, by foreseeing) (*Plan, error) {
	log := c.logger()
	jobs, err := LoadWorkload(ctx, c.Config, log)
	if err != nil {
		return nil, err
	}
	cluster := c.BuildCluster()
	if snapshot == "" {
		if err := c.checkFit(ctx, cluster, jobs.Foreseen()); err != nil {
			return nil, err
		}
	}
	stages, err := BuildStages(c.Config, log)
	if err != nil {
		return nil, err
	}
	world, simulated, err := c.preview(ctx, snapshot, cluster, jobs)
	if err != nil {
		return nil, errors.Join(err, discardStages(&stages))
	}
	defer closeReacting(world)
	if by.opened != nil {
		by.opened(world)
	}
	p := &Plan{Cluster: cluster, Verdicts: map[core.JobID]core.Verdict{}, Names: map[core.JobID]string{}}
	pipeline := core.NewPipeline(cluster, stages, c.Round.Options(), nil, foreseen{p})
	if keeping, may := world.(core.Keeping); may && keeping.KeepsDevices() {
		pipeline.KeepDevices()
	}
	if by.watch != nil {
		pipeline.Tell(by.watch(pipeline))
	}
	var seen core.Backend = world
	if memory, remembers := world.(core.Memory); remembers { // of a run that goes on
		pipeline.Remember(memory, nil)
	} else if snapshot == "" && !simulated {
		seen = Late(world, FirstRoundSeconds)
	}
	if by.next != nil {
		seen = overheard{Backend: seen, told: func(o core.Observation) {
			if o.Decided == nil {
				by.next(pipeline, o)
			}
		}}
	}
	err = pipeline.Run(ctx, seen)
	if err == nil && by.done != nil {
		by.done(p, pipeline)
	}
	if err := errors.Join(err, discardStages(&stages)); err != nil {
		return nil, err
	}
	p.NowSeconds, p.Changes, p.Unfinished = pipeline.NowSeconds(), world.Changes(), pipeline.Unfinished()
	return p, nil
}

// preview opens the backend without starting anything. That of a simulation knows of submissions at their own time.
func (c *Composition) preview(
	ctx context.Context, snapshot string, cluster *core.Cluster, jobs *workload.Workload,
) (world backend.Preview, simulated bool, err error) {
	opener, err := c.Backend.New(c.Seed, c.logger())
	if err != nil {
		return nil, false, err
	}
	durable, real := opener.(backend.Durable)
	if real {
		if err := settle(durable, c.Config, jobs, "", nil, false); err != nil {
			return nil, false, err
		}
	}
	if planner, ok := opener.(backend.Planner); ok {
		world, err = planner.Preview(ctx, snapshot, cluster, jobs)
		return world, !real, err
	}
	return nil, false, problem("backend.type", fmt.Sprintf("%q has no state to plan on", c.Backend.ID), "")
}

// foreseen notes what is told in a round.
type foreseen struct{ *Plan }

// ObserveRound notes what a plan needs.
func (s foreseen) ObserveRound(r *core.Report) error {
	s.Round = r.View.Round
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == core.JobSubmitted {
			s.Names[e.Job] = e.Spec.Name
		}
	}
	for _, v := range r.Verdicts {
		s.Verdicts[v.Job] = v
	}
	return nil
}

// FirstRoundSeconds is about when the first round of a run is: no job is told of at the very moment of its submission.
const FirstRoundSeconds = 0.01

// Late is a backend whose rounds come so many seconds after what they are told of.
func Late(b core.Backend, seconds float64) core.Backend { return late{b, seconds} }

type late struct {
	core.Backend
	seconds float64
}

func (l late) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	o, err := l.Backend.Next(ctx, w)
	o.NowSeconds += l.seconds
	return o, err
}
