package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core/grid"
)

// Stages is a composition: one component for each slot, admission a list that must agree.
type Stages struct {
	Admission  []Component[Admitter]    // all must admit a job
	Allocation Component[Allocator]     // decides which jobs get how many devices
	Placement  Component[Placer]        // decides which devices these are
	Elasticity Component[Elasticity]    // says what jobs do with devices, and tunes their batches
	Scaler     Component[ClusterScaler] // Policy nil for none
}

// RoundOptions says when rounds happen.
type RoundOptions struct {
	IntervalSeconds float64  // 0 for none
	OnEvents        bool     // a round at each event, besides those of the interval
	Settle          Settling // what is done about grants that find no devices
}

// StageNames names the timed steps of a round.
var StageNames = [...]string{"respond", "admit", "allocate", "place", "tune"}

// Report is what happened in one round. It is valid until the observer returns.
type Report struct {
	View     *View     // after the changes
	Events   []Event   // what happened since the round before, in order of time
	Ended    []*Job    // jobs that ended since the round before, by JobID
	Verdicts []Verdict // those that differ from the last ones of the job
	Changes  []Change  // what the round decided, applied by the backend already
	// StageTime is the time each of StageNames took. Nothing else in a report depends on the machine.
	StageTime   [len(StageNames)]time.Duration
	DevicesUsed int // devices held after the changes, a shared one once
	// Repeated says that an earlier scheduler held the round.
	Repeated bool
	// Resumed says how the stages took over from others in this round; nil in all others.
	Resumed *Resumed
	// Promises reports whether admission admits jobs with deadlines only if these will be met.
	Promises bool
	// Guarantees are what the allocator guarantees jobs by tier; the usual ones where it declares none.
	Guarantees Guarantees
	// Scaled are the sizes of pools that the backend was given, by the id of the scaler in ScaledBy, which is "pipeline" where the scaler has no
	// opinion on pools with fewer nodes than their least. Where a number of nodes was cut
	// to the bounds of the only pool, Clamped is what would have been its size; nil otherwise.
	Scaled   []PoolTarget
	ScaledBy string         // id of the scaler, or "pipeline"; empty where there is no scaler
	Clamped  *ClampedTarget // number of nodes that the bounds did not allow; nil for none
	// GapRatio is what the allocator certified of its answer; NaN when it was not asked, or did not know.
	GapRatio float64
}

// Observer sees each round after its changes were applied.
type Observer interface {
	// ObserveRound is called once a round. The report is valid until it returns; an error ends the run.
	ObserveRound(r *Report) error
}

// Pipeline walks one cluster through its rounds. It owns the state of every job: stages see it through the View, and
// the backend learns of decisions through Changes only.
type Pipeline struct {
	stages    Stages
	rounds    RoundOptions
	observers []Observer
	stopwatch func() time.Duration
	state     state
	plan      Plan
	standing  Standing // of the answers of the last round together; IfSeated is the allocator's

	chooser       Chooser
	scaling       Scaling
	keepsDevices  bool
	reseat        func(*View, []Grant, Seating) Seating
	wakeOnReports bool
	retryBackend  func(ctx context.Context, failures int, trouble error) error

	settler    settler
	resumption resumption
	inherited  *inheritance // of a fork: what its stages take up
}

// PipelineOptions is everything that a pipeline is made of besides its cluster and its stages. The zero value holds a round at each
// call of Round, and nobody observes it.
type PipelineOptions struct {
	Rounds RoundOptions // when rounds are held
	// Stopwatch measures how long stages take, from any fixed moment; it reaches no decision. nil measures nothing.
	Stopwatch func() time.Duration
	// Observers see each round after its changes were applied, in their order.
	Observers []Observer
	// Watchers make observers that also look at the pipeline, between two rounds. They see a round after Observers do.
	Watchers []func(*Pipeline) Observer
	// Chooser may replace the composition that decides, between two rounds; nil for none.
	Chooser Chooser
	// Scaling carries out what the scaler decides; nil where nobody does.
	Scaling Scaling
	// KeepDevices lets jobs that stay on a node keep their devices there: see DeviceKeeper.
	KeepDevices bool
	// Reseat corrects an answer of the placer by what only the backend knows of nodes, before it is checked; nil leaves it as it is.
	Reseat func(*View, []Grant, Seating) Seating
	// WakeOnReports has what jobs report wake the pipeline, for an observer that decides by it.
	WakeOnReports bool
	// Memory keeps what the stages learn, and is what the pipeline resumes from; nil for none.
	Memory Memory
	// NewStages makes the stages anew when those that there are decided otherwise than Memory has recorded. nil makes that an error.
	NewStages func(context.Context) (Stages, error)
	// RetryBackend waits before a backend is called again that returned Unavailable: failures counts how often in a row it did. It is
	// called once with 0 when the backend is available again. An error of it ends the run. nil takes Unavailable for any other error.
	RetryBackend func(ctx context.Context, failures int, trouble error) error
}

// NewPipeline returns a pipeline over a cluster, whose Health fields it takes over.
func NewPipeline(c *Cluster, s Stages, o PipelineOptions) *Pipeline {
	p := &Pipeline{stages: s.withAbilities(), rounds: o.Rounds, observers: o.Observers, stopwatch: o.Stopwatch, standing: Standing{UntilSeconds: math.Inf(1)}}
	if p.stopwatch == nil {
		p.stopwatch = func() time.Duration { return 0 }
	}
	p.resumption.memory, p.resumption.newStages = o.Memory, o.NewStages
	p.wakeOnReports, p.chooser, p.retryBackend = o.WakeOnReports, o.Chooser, o.RetryBackend
	p.scaling, p.keepsDevices, p.reseat = o.Scaling, o.KeepDevices, o.Reseat
	p.state.init(c, o.Rounds)
	p.state.decideBy(&p.stages)
	p.watchBy(o.Watchers)
	return p
}

// watchBy adds the observers that look at the pipeline.
func (p *Pipeline) watchBy(watchers []func(*Pipeline) Observer) {
	p.observers = slices.Clip(p.observers)
	for _, watch := range watchers {
		p.observers = append(p.observers, watch(p))
	}
}

// Run holds rounds until the backend has nothing more to report, the context ends, or a component malfunctions.
func (p *Pipeline) Run(ctx context.Context, b Backend) error {
	p.resumption.open()
	defer p.resumption.end()
	for {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, p.keep())
		}
		seen, err := p.next(ctx, b)
		if errors.Is(err, io.EOF) {
			return p.keep()
		}
		if errors.Is(err, ErrFenced) {
			return err // what was learned is kept by the one that took over
		}
		if err != nil {
			err = errors.Join(err, p.keep())
			return fmt.Errorf("wait for round %d: %w", p.state.view.Round+1, err)
		}
		if err := p.Round(ctx, seen, b); err != nil {
			return err
		}
	}
}

// NowSeconds is the moment of the last round.
func (p *Pipeline) NowSeconds() float64 { return p.state.view.NowSeconds }

// CurrentComponent is the id of the component that is being asked, empty between two questions, and the round: whoever recovers from its panic can name it.
func (p *Pipeline) CurrentComponent() (component string, round int) {
	return p.state.asking, p.state.view.Round
}

// Unfinished lists the jobs that were submitted and have not ended, by JobID.
func (p *Pipeline) Unfinished() []*Job {
	var jobs []*Job
	for _, j := range p.state.view.Jobs {
		if j != nil {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

func (p *Pipeline) respond(ctx context.Context) error {
	s, c := &p.state, &p.stages.Elasticity
	if err := s.reportEnded(ctx, c.ID, c.can.Historian); err != nil {
		return err
	}
	if len(s.stale) == 0 {
		return nil
	}
	return s.ask(ctx, c.ID, c.can.Recoverer, nil, func() error {
		responses, err := c.Policy.Respond(ctx, &s.view, s.stale)
		if err != nil {
			return s.malfunction(c.ID, "respond", err)
		}
		return s.takeResponses(c.ID, responses)
	})
}

func (p *Pipeline) admit(ctx context.Context) error {
	s := &p.state
	s.rejectOutgrown()
	if len(s.pending) == 0 {
		return nil
	}
	s.rejectImpossible()
	for {
		again, err := p.askAdmitters(ctx)
		if err != nil {
			return err
		}
		s.askPromises(&p.stages)
		s.admitRest()
		if !again {
			return nil
		}
		s.asked = append(s.asked[:0], s.pending...)
	}
}

// askAdmitters asks one admitter after the other about the jobs that those before it admit. They are to be asked again
// when one of them rejected a job that another one, asked before it, had counted on. Reviewers come first, so that nobody counts on a job that they hold back.
func (p *Pipeline) askAdmitters(ctx context.Context) (again bool, err error) {
	s := &p.state
	for i, c := range p.admitters() {
		if len(s.asked) == 0 {
			break
		}
		ended := len(s.report.Ended)
		if err := s.ask(ctx, c.ID, c.can.Recoverer, nil, func() error {
			verdicts, err := s.admission(ctx, c)
			if err != nil {
				return s.malfunction(c.ID, "admit", err)
			}
			if err := p.takeStanding(c.ID, &c.can, nil); err != nil {
				return err
			}
			s.expectReview(&c.can)
			return s.takeVerdicts(c.ID, verdicts)
		}); err != nil {
			return false, err
		}
		if len(s.report.Ended) > ended {
			s.forgetEnded() // the next admitter is not shown what this one rejected
			again = again || i > 0
		}
	}
	return again, nil
}

// admitters are those of the composition, reviewers first, in their order otherwise.
func (p *Pipeline) admitters() iter.Seq2[int, *Component[Admitter]] {
	return func(yield func(int, *Component[Admitter]) bool) {
		n := 0
		for _, first := range [...]bool{true, false} {
			for i := range p.stages.Admission {
				c := &p.stages.Admission[i]
				if reviews := c.can.Reviewer != nil; reviews != first {
					continue
				}
				if !yield(n, c) {
					return
				}
				n++
			}
		}
	}
}

// admission asks an admitter, by the curves of the jobs if it looks at them.
func (s *state) admission(ctx context.Context, c *Component[Admitter]) ([]Verdict, error) {
	if c.can.CurveAdmitter == nil {
		return c.Policy.Admit(ctx, &s.view, s.asked)
	}
	s.applying = s.applying[:0]
	for _, j := range s.asked {
		s.applying = append(s.applying, Candidate{Job: j, Response: s.responses[j.ID]})
	}
	return c.can.CurveAdmitter.AdmitCandidates(ctx, &s.view, s.candidates, s.applying)
}

func (p *Pipeline) allocate(ctx context.Context) error { return p.allocateTo(ctx, p.state.eligible()) }

// allocateTo asks the allocator about some of the candidates, or all.
func (p *Pipeline) allocateTo(ctx context.Context, candidates []Candidate) error {
	s, c := &p.state, &p.stages.Allocation
	p.plan.Grants, s.report.GapRatio = p.plan.Grants[:0], math.NaN()
	if len(candidates) == 0 {
		return nil
	}
	if err := s.ask(ctx, c.ID, c.can.Recoverer, (*mark).forgetGrant, func() (err error) {
		answer, err := c.can.allocate(ctx, c.Policy, &s.view, s.candidates, candidates)
		if err != nil {
			return s.malfunction(c.ID, "allocate", err)
		}
		p.plan.Grants = s.reservedFirst(s.ineligible(answer))
		if err := s.checkGrants(c.ID, p.plan.Grants); err != nil {
			return err
		}
		if err := s.takeGap(c.ID, c.can.Certifier); err != nil {
			return err
		}
		return p.takeStanding(c.ID, &c.can, answer)
	}); err != nil {
		return err
	}
	s.askGuarantees(c.can.Guarantor)
	return nil
}

func (p *Pipeline) place(ctx context.Context) error {
	if err := p.seat(ctx); err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	if p.reseat == nil { // such a backend knows which nodes a job can have, and which it had better not
		p.state.avoid(&p.plan)
	}
	return nil
}

// seat asks the placer about the grants.
func (p *Pipeline) seat(ctx context.Context) error {
	s, c := &p.state, &p.stages.Placement
	p.plan.Placements, s.unseated, s.blocked = p.plan.Placements[:0], s.unseated[:0], false
	s.occupancy.begin()
	if len(p.plan.Grants) == 0 {
		return nil
	}
	return s.ask(ctx, c.ID, c.can.Recoverer, (*mark).forgetSeats, func() error {
		seating, err := p.askPlacer(ctx)
		if err != nil {
			return s.malfunction(c.ID, "place", err)
		}
		if p.reseat != nil {
			seating = p.reseat(&s.view, p.plan.Grants, seating)
		}
		if p.keepsDevices {
			s.keepDevices(seating.Placed)
		}
		p.plan.Placements, s.unseated = seating.Placed, seating.Unseated
		if err := s.checkSeating(c.ID, p.plan.Grants, seating); err != nil {
			return err
		}
		return p.takeStanding(c.ID, &c.can, nil)
	})
}

// askPlacer asks the placer about the grants: as if nothing were reserved if the job for which devices are gets some then, and otherwise about what is left of them.
func (p *Pipeline) askPlacer(ctx context.Context) (Seating, error) {
	s, placer := &p.state, p.stages.Placement.Policy
	if of := s.view.Reserved; len(of) > 0 && p.plan.Grants[0].Job == of[0].Job {
		s.view.Reserved = nil
		seating, err := placer.Place(ctx, &s.view, p.plan.Grants)
		s.view.Reserved = of
		if err != nil || slices.ContainsFunc(seating.Placed, func(at Placement) bool { return at.Job == of[0].Job }) {
			return seating, err
		}
	}
	return placer.Place(ctx, &s.view, p.plan.Grants)
}

func (p *Pipeline) tune(ctx context.Context) error {
	s, c := &p.state, &p.stages.Elasticity
	p.plan.Tunings, p.plan.Cluster = p.plan.Tunings[:0], ClusterTarget{}
	if len(p.plan.Placements) > 0 {
		if err := s.ask(ctx, c.ID, c.can.Recoverer, (*mark).forgetTuning, func() (err error) {
			if p.plan.Tunings, err = c.Policy.Tune(ctx, &s.view, p.plan.Placements); err != nil {
				return s.malfunction(c.ID, "tune", err)
			}
			if err := s.checkTunings(c.ID, p.plan.Tunings); err != nil {
				return err
			}
			if err := p.takeStanding(c.ID, &c.can, nil); err != nil { // not after Respond, which is asked about few jobs
				return err
			}
			p.takeRevision(&c.can)
			return nil
		}); err != nil {
			return err
		}
	}
	return p.scale(ctx)
}

func (p *Pipeline) scale(ctx context.Context) error {
	s, c := &p.state, &p.stages.Scaler
	if c.Policy == nil {
		return nil
	}
	p.plan.Candidates = s.shown()
	return s.ask(ctx, c.ID, c.can.Recoverer, nil, func() (err error) {
		if p.plan.Cluster, err = c.Policy.Scale(ctx, &s.view, &p.plan); err != nil {
			return s.malfunction(c.ID, "scale", err)
		}
		if err := s.checkTarget(c.ID, p.plan.Cluster); err != nil {
			return err
		}
		return p.takeStanding(c.ID, &c.can, nil)
	})
}

// wake says when the next round is due at the latest: at the next interval, or later while every stage is steady. Without an
// interval, only the moments call for one that the elasticity named, or reviewers while jobs are held back.
func (p *Pipeline) wake() Wake {
	w := Wake{BySeconds: math.Inf(1), IntervalSeconds: p.rounds.IntervalSeconds, OnEvents: p.rounds.OnEvents, OnReports: p.onReports()}
	v, interval := &p.state.view, p.rounds.IntervalSeconds
	if len(p.state.candidates)+len(p.state.pending) == 0 {
		w.BySeconds = min(p.state.pools.again, p.state.nextReview())
		return w
	}
	if interval == 0 {
		w.BySeconds = min(p.state.reviseAt, p.state.pools.again, p.state.nextReview(), p.state.retries.next)
		if p.state.outgrown || p.state.undecided() {
			w.BySeconds = v.NowSeconds
		}
		return w
	}
	w.BySeconds = max(grid.After(v.NowSeconds, interval), grid.From(p.StandsUntil(), interval))
	return w
}

// StandsUntil is the moment up to which holding another round would change nothing while no event comes: the earliest
// of those that the stages asked in the last round named, never before that round. A stage that the round had no question
// for has no say, for it is not asked again before another one changes its answer.
func (p *Pipeline) StandsUntil() float64 {
	s := &p.state
	if s.outgrown || s.undecided() {
		return s.view.NowSeconds
	}
	for i := range s.unseated { // all others run
		if s.marks[s.unseated[i].Job].grant < p.standing.IfSeated {
			return s.view.NowSeconds
		}
	}
	return min(p.standing.UntilSeconds, s.pools.again, s.nextReview(), s.retries.next)
}
