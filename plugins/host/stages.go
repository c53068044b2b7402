// Package host runs policies in other processes: it starts and configures them, keeps their view up to date, and represents them in
// the pipeline. A stage made here is used like a built-in.
package host

import (
	"context"
	"errors"
	"math"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// Spec says which component to reach, how, and what to do when it fails.
type Spec[S any] struct {
	ID       string  // ID of the component, such as "allocation/backfill".
	Plugin   string  // Plugin is the name of the plugin, for messages.
	Dial     Dial    // Dial connects to a process with the component, at the start and after each failure.
	Options  Options // Options for the calls.
	Fallback S       // Fallback is the built-in policy for OnFailure Fallback.
}

// Allocator reaches an allocation policy. The stage is an io.Closer: closing it ends the process.
func Allocator(ctx context.Context, s Spec[core.Allocator]) (core.Allocator, error) {
	a := &allocator{worker: newWorker(s.ID, s.Plugin, s.Dial, s.Options), fallback: s.Fallback, gap: math.NaN()}
	a.reset = func() { a.grants.Reset() }
	return a, a.start(ctx)
}

// Placer reaches a placement policy. The stage is an io.Closer: closing it ends the process.
func Placer(ctx context.Context, s Spec[core.Placer]) (core.Placer, error) {
	p := &placer{worker: newWorker(s.ID, s.Plugin, s.Dial, s.Options), fallback: s.Fallback, grants: wire.NewGrantSender()}
	p.reset = func() { p.grants.Reset(); p.placed.Reset(); p.unseated.Reset() }
	return p, p.start(ctx)
}

// Elasticity reaches an elasticity policy. The stage is an io.Closer: closing it ends the process.
func Elasticity(ctx context.Context, s Spec[core.Elasticity]) (core.Elasticity, error) {
	e := &elasticity{worker: newWorker(s.ID, s.Plugin, s.Dial, s.Options), fallback: s.Fallback, placements: wire.NewPlacementSender()}
	e.reset = func() { e.placements.Reset() }
	return e, e.start(ctx)
}

// Scaler reaches a cluster scaler. The stage is an io.Closer: closing it ends the process.
func Scaler(ctx context.Context, s Spec[core.ClusterScaler]) (core.ClusterScaler, error) {
	p := &scaler{
		worker: newWorker(s.ID, s.Plugin, s.Dial, s.Options), fallback: s.Fallback,
		grants: wire.NewGrantSender(), placements: wire.NewPlacementSender(),
	}
	p.reset = func() { p.grants.Reset(); p.placements.Reset() }
	return p, p.start(ctx)
}

func newWorker(id, name string, dial Dial, o Options) worker {
	return worker{id: id, name: name, dial: dial, options: o, standing: core.Standing{UntilSeconds: math.Inf(1)}}
}

// standingOf returns how long the last answer stands, of the policy that answers now.
func (w *worker) standingOf(fallback any) core.Standing {
	if !w.usingFallback {
		return w.standing
	}
	if steady := core.AbilitiesOf(fallback).Steady; steady != nil {
		return steady.Standing()
	}
	return core.Standing{UntilSeconds: math.Inf(-1)}
}

type allocator struct {
	worker
	fallback core.Allocator
	grants   wire.Receiver[core.Grant]
	gap      float64 // NaN for none
}

// Allocate puts the question to the process.
func (a *allocator) Allocate(ctx context.Context, v *core.View, admitted []core.Candidate) ([]core.Grant, error) {
	return a.AllocateSome(ctx, v, admitted, admitted)
}

// AllocateSome puts the question to the process, and says which of all candidates it is about.
func (a *allocator) AllocateSome(ctx context.Context, v *core.View, admitted, some []core.Candidate) (grants []core.Grant, err error) {
	withheld, narrowed := wire.Fewer(admitted, some)
	err = a.ask(ctx, v, candidates{admitted: admitted}, func(ctx context.Context, u *stagev1.ViewUpdate) (bool, *stagev1.Standing, error) {
		answer, err := stagev1.NewAllocationServiceClient(a.session.Conn).Allocate(ctx, &stagev1.AllocateRequest{View: u, Withheld: withheld, Narrowed: narrowed})
		if err != nil || answer.GetResync() {
			return answer.GetResync(), nil, err
		}
		if a.gap = math.NaN(); answer.GapRatio != nil {
			a.gap = answer.GetGapRatio()
		}
		grants, err = a.grants.Apply(answer.GetEdit().GetSteps(), wire.GrantsFrom(answer.GetGrants()))
		return false, answer.GetStanding(), err
	})
	if errors.Is(err, errUseFallback) {
		return a.fallback.Allocate(ctx, v, some)
	}
	return grants, err
}

// Standing says how long the last answer stands.
func (a *allocator) Standing() core.Standing { return a.standingOf(a.fallback) }

// GapRatio returns the certified gap of the last answer, NaN for none.
func (a *allocator) GapRatio() float64 {
	if !a.usingFallback {
		return a.gap
	}
	if certifier := core.AbilitiesOf(a.fallback).Certifier; certifier != nil {
		return certifier.GapRatio()
	}
	return math.NaN()
}

// Guarantees returns those of the policy that answers now.
func (a *allocator) Guarantees() core.Guarantees {
	var reported *core.Guarantees
	if a.usingFallback {
		reported = wire.AbilitiesOf(a.fallback).Guarantees
	} else if a.session != nil {
		reported = a.session.Guarantees
	}
	if reported == nil {
		return core.UsualGuarantees()
	}
	return *reported
}

// AskedOnce reports whether the policy that answers now is not to be asked again in a round.
func (a *allocator) AskedOnce() bool {
	return !a.able(wire.KnowsWithheld, a.fallback) || a.able(wire.AskedOnce, a.fallback)
}

// Precedes reports whether the grants of the policy that answers now come in order of precedence.
func (a *allocator) Precedes() bool { return a.able(wire.Precedes, a.fallback) }

type placer struct {
	worker
	fallback core.Placer
	grants   *wire.Sender[core.Grant]
	placed   wire.Receiver[core.Placement]
	unseated wire.Receiver[core.Verdict]
}

// Place puts the question to the process.
func (p *placer) Place(ctx context.Context, v *core.View, grants []core.Grant) (seating core.Seating, err error) {
	err = p.ask(ctx, v, candidates{}, func(ctx context.Context, u *stagev1.ViewUpdate) (bool, *stagev1.Standing, error) {
		steps, inserted := p.grants.Encode(grants)
		answer, err := stagev1.NewPlacementServiceClient(p.session.Conn).Place(ctx, &stagev1.PlaceRequest{
			View: u, Edit: &stagev1.Edit{Steps: steps}, Grants: wire.Grants(inserted), Reserved: wire.Reservations(v.Reserved),
		})
		if err != nil || answer.GetResync() {
			return answer.GetResync(), nil, err
		}
		if seating.Placed, err = p.placed.Apply(answer.GetPlacedEdit().GetSteps(), wire.PlacementsFrom(answer.GetPlaced())); err != nil {
			return false, nil, err
		}
		fresh, err := wire.VerdictsFrom(answer.GetUnseated())
		if err == nil {
			seating.Unseated, err = p.unseated.Apply(answer.GetUnseatedEdit().GetSteps(), fresh)
		}
		for i := range seating.Unseated {
			seating.Unseated[i].By = "" // the pipeline signed those taken over from the round before
		}
		return false, answer.GetStanding(), err
	})
	if errors.Is(err, errUseFallback) {
		return p.fallback.Place(ctx, v, grants)
	}
	return seating, err
}

// KeepsReserved reports whether the policy that answers now seats nobody anew on devices that are reserved.
func (p *placer) KeepsReserved() bool { return p.able(wire.KeepsReserved, p.fallback) }

// Standing says how long the last answer stands.
func (p *placer) Standing() core.Standing { return p.standingOf(p.fallback) }

type elasticity struct {
	worker
	fallback   core.Elasticity
	placements *wire.Sender[core.Placement]
	asked      []int32
}

// Ended reports to the process how jobs ended, if it learns from that.
func (e *elasticity) Ended(ctx context.Context, v *core.View, jobs []*core.Job) error {
	if !e.usingFallback && !e.able(wire.LearnsFromEnds, nil) {
		return nil
	}
	ended := wire.EndedJobs(jobs)
	err := e.ask(ctx, v, candidates{}, func(ctx context.Context, u *stagev1.ViewUpdate) (bool, *stagev1.Standing, error) {
		answer, err := stagev1.NewElasticityServiceClient(e.session.Conn).Respond(ctx, &stagev1.RespondRequest{View: u, Ended: ended})
		return answer.GetResync(), answer.GetStanding(), err
	})
	if errors.Is(err, errUseFallback) {
		if h := core.AbilitiesOf(e.fallback).Historian; h != nil {
			return h.Ended(ctx, v, jobs)
		}
		return nil
	}
	return err
}

// FollowsReports reports whether the policy that answers now does.
func (e *elasticity) FollowsReports() bool { return e.able(wire.FollowsReports, e.fallback) }

// Respond puts the question to the process.
func (e *elasticity) Respond(ctx context.Context, v *core.View, jobs []*core.Job) (responses []core.Response, err error) {
	e.asked = e.asked[:0]
	for _, j := range jobs {
		e.asked = append(e.asked, int32(j.ID))
	}
	err = e.ask(ctx, v, candidates{}, func(ctx context.Context, u *stagev1.ViewUpdate) (bool, *stagev1.Standing, error) {
		answer, err := stagev1.NewElasticityServiceClient(e.session.Conn).Respond(ctx, &stagev1.RespondRequest{View: u, Jobs: e.asked})
		if err != nil || answer.GetResync() {
			return answer.GetResync(), nil, err
		}
		responses = wire.ResponsesFrom(answer.GetResponses())
		return false, answer.GetStanding(), nil
	})
	if errors.Is(err, errUseFallback) {
		return e.fallback.Respond(ctx, v, jobs)
	}
	return responses, err
}

// Tune puts the question to the process.
func (e *elasticity) Tune(ctx context.Context, v *core.View, placements []core.Placement) (tunings []core.Tuning, err error) {
	err = e.ask(ctx, v, candidates{}, func(ctx context.Context, u *stagev1.ViewUpdate) (bool, *stagev1.Standing, error) {
		steps, inserted := e.placements.Encode(placements)
		answer, err := stagev1.NewElasticityServiceClient(e.session.Conn).Tune(ctx, &stagev1.TuneRequest{
			View: u, Edit: &stagev1.Edit{Steps: steps}, Placements: wire.Placements(inserted),
		})
		if err != nil || answer.GetResync() {
			return answer.GetResync(), nil, err
		}
		tunings = wire.TuningsFrom(answer.GetTunings())
		return false, answer.GetStanding(), nil
	})
	if errors.Is(err, errUseFallback) {
		return e.fallback.Tune(ctx, v, placements)
	}
	return tunings, err
}

// Standing says how long the last answer stands.
func (e *elasticity) Standing() core.Standing { return e.standingOf(e.fallback) }

type scaler struct {
	worker
	fallback   core.ClusterScaler
	grants     *wire.Sender[core.Grant]
	placements *wire.Sender[core.Placement]
	shown      []core.Candidate
	awaiting   []core.Candidate
}

// Scale puts the question to the process.
func (s *scaler) Scale(ctx context.Context, v *core.View, plan *core.Plan) (target core.ClusterTarget, err error) {
	sent := candidates{admitted: s.shown[:0], waiting: s.awaiting[:0]}
	for _, c := range plan.Candidates {
		if c.State == core.Pending {
			sent.waiting = append(sent.waiting, c)
		} else {
			sent.admitted = append(sent.admitted, c)
		}
	}
	s.shown, s.awaiting = sent.admitted, sent.waiting
	err = s.ask(ctx, v, sent, func(ctx context.Context, u *stagev1.ViewUpdate) (bool, *stagev1.Standing, error) {
		grantSteps, grants := s.grants.Encode(plan.Grants)
		placementSteps, placements := s.placements.Encode(plan.Placements)
		answer, err := stagev1.NewScalerServiceClient(s.session.Conn).Scale(ctx, &stagev1.ScaleRequest{
			View: u, GrantsEdit: &stagev1.Edit{Steps: grantSteps}, Grants: wire.Grants(grants),
			PlacementsEdit: &stagev1.Edit{Steps: placementSteps}, Placements: wire.Placements(placements), Tunings: wire.Tunings(plan.Tunings),
		})
		if err != nil || answer.GetResync() {
			return answer.GetResync(), nil, err
		}
		target = core.ClusterTarget{Nodes: int(answer.GetNodes()), Pools: wire.PoolTargetsFrom(answer.GetPools())}
		return false, answer.GetStanding(), nil
	})
	if errors.Is(err, errUseFallback) {
		return s.fallback.Scale(ctx, v, plan)
	}
	return target, err
}

// Standing says how long the last answer stands.
func (s *scaler) Standing() core.Standing { return s.standingOf(s.fallback) }
