package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/twin"
)

// Twin is a run as it stands, and what was learned of it: what may become of it can be simulated, and nothing that runs is touched.
type Twin struct {
	Snapshot   *twin.RunSnapshot     // run after its last round
	Model      *twin.WorkloadModel   // what the run taught
	Forecaster *twin.Forecaster      // knows how good earlier forecasts were
	Round      int                   // the last one
	NowSeconds float64               // moment of that round, in seconds of the run
	Cluster    *core.Cluster         // after that round
	Names      map[core.JobID]string // of the jobs that were submitted

	composition *Composition
	simulating  func()
	notes       []string // what is not known of the run
	deciding    int      // the alternative that does, where the config has several

	// The run before its last round, what the backend reported in the round, and the run with that, before anything was decided.
	before      *twin.RunSnapshot
	modelBefore *twin.WorkloadModel
	seen        core.Observation
	known       *core.View
}

// Forecasting says how forecasts are made.
type Forecasting struct {
	Model twin.WorkloadModelOptions // what is assumed of jobs and machines
	Draws int                       // 0 for as many as are worth their time
	// Rehearsals is how many forecasts are made of earlier moments of a simulation, so that bands are calibrated by what became of them. Of a run on real machines, of which it is
	// not known how long it is, the moments are farther and farther apart: each four times this part later than the one before.
	Rehearsals int
	// Simulating is called when a simulation of a future begins, by any goroutine. It may be nil.
	Simulating func()
}

// Twin repeats the rounds of a run whose scheduler wrote a snapshot, as Plan does, and holds the next one: the twin is the run after it.
func (c *Composition) Twin(ctx context.Context, snapshot string, o Forecasting) (*Twin, error) {
	t := c.newTwin(o)
	_, err := c.planNext(ctx, snapshot, planHooks{
		opened: t.recall,
		watch:  func(p *core.Pipeline) core.Observer { return t.rehearsing(ctx, p, o, 0) },
		next:   t.takeBefore,
		done: func(p *Plan, pipeline *core.Pipeline) {
			t.Names = p.Names
			t.take(pipeline)
		},
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// recall takes in what is known of a run whose rounds were not recorded.
func (t *Twin) recall(can backend.Abilities) {
	if can.Recalling == nil {
		return
	}
	ended := can.Recalling.Ended()
	t.Model.Recall(ended)
	known := "no job that ended is still there to show how long others take"
	if len(ended) > 0 {
		known = fmt.Sprintf("jobs that ended and are still there: %d; they show how long others take", len(ended))
	}
	t.notes = append(t.notes, known, "how often nodes fail, how long starts take and what jobs measured is not kept: here no node fails, and starts take as long as a simulation has them by default")
}

// errReached ends a simulation at the moment of its twin.
var errReached = errors.New("the moment is reached")

// TwinAt simulates the composition up to its first round at or after a moment; at 0 up to the first that knows of a job.
func (c *Composition) TwinAt(ctx context.Context, at time.Duration, o Forecasting) (*Twin, error) {
	t := c.newTwin(o)
	t.Names = map[core.JobID]string{}
	silent := *c
	silent.Dir, silent.Keep, silent.Brief = "", false, true
	silent.chosen = func(alternative int) { t.deciding = alternative }
	var pipeline *core.Pipeline
	silent.Attach = func(s Session) (Attachment, error) {
		return Attachment{Backend: overheard{Backend: s.Backend, at: at.Seconds(), past: new(bool), seen: func(o core.Observation) {
			if t.before == nil && o.NowSeconds >= at.Seconds() && (at > 0 || slices.ContainsFunc(o.Events, submits)) {
				t.takeBefore(pipeline, o)
			}
		}}}, nil
	}
	silent.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
		pipeline = p
		rehearsing := t.rehearsing(ctx, p, o, at.Seconds())
		return observerFunc(func(r *core.Report) error {
			if err := rehearsing.ObserveRound(r); err != nil {
				return err
			}
			for i := range r.Events {
				if e := &r.Events[i]; e.Kind == core.JobSubmitted {
					t.Names[e.Job] = e.Spec.Name
				}
			}
			if t.before == nil {
				return nil
			}
			t.take(p)
			return errReached
		})
	}
	_, err := silent.Simulate(ctx)
	switch {
	case t.Snapshot != nil && (err == nil || errors.Is(err, errReached)):
		return t, nil
	case err != nil:
		return nil, err
	}
	return nil, problem("--at", fmt.Sprintf("the simulation has ended by %v", at), "name an earlier moment")
}

func (c *Composition) newTwin(o Forecasting) *Twin {
	if o.Model.Config == nil {
		if config, simulated := c.Backend.Config.(*sim.Config); simulated {
			o.Model.Config = config
		}
	}
	return &Twin{Model: twin.NewWorkloadModel(o.Model), Forecaster: twin.NewForecaster(c.Seed), composition: c, simulating: o.Simulating}
}

// rehearsing observes a run, and forecasts it at some moments before another; of a run that is repeated it is not known how long it is, and they are further and further apart.
func (t *Twin) rehearsing(ctx context.Context, p *core.Pipeline, o Forecasting, until float64) core.Observer {
	judge := &twin.ForecastEvaluator{Context: ctx, Model: t.Model, Forecaster: t.Forecaster, Policies: t.Policies(), Draws: o.Draws, Pipeline: p}
	judge.Next = func(seconds float64) float64 {
		switch {
		case o.Rehearsals == 0:
			return math.Inf(1)
		case until > 0:
			return seconds + until/float64(o.Rehearsals+1)
		}
		return seconds*(1+4/float64(o.Rehearsals)) + 60
	}
	if o.Rehearsals == 0 {
		judge.Never()
	}
	return observerFunc(func(r *core.Report) error {
		judge.Policies = t.Policies() // another composition may have taken over
		return judge.ObserveRound(r)
	})
}

// takeBefore takes the run as it stands before the round of an observation.
func (t *Twin) takeBefore(p *core.Pipeline, seen core.Observation) {
	t.before, t.modelBefore, t.seen = twin.Take(p), t.Model.Clone(), seen
	t.seen.Events = slices.Clone(seen.Events)
	t.known, _ = t.before.ViewAfter(t.seen) // what is wrong with it the round says
}

// submits reports whether an event is that of a job that comes.
func submits(e core.Event) bool { return e.Kind == core.JobSubmitted }

// overheard is a backend that shows a function what it reports to the next round.
type overheard struct {
	core.Backend
	seen func(core.Observation)
	at   float64 // seconds: a round is held then, if none is before that; 0 for none
	past *bool   // it was
}

// Next shows it before the round is held.
func (b overheard) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if b.at > 0 && !*b.past {
		w.BySeconds = min(w.BySeconds, b.at)
	}
	o, err := b.Backend.Next(ctx, w)
	if err == nil {
		if b.at > 0 {
			*b.past = o.NowSeconds >= b.at
		}
		b.seen(o)
	}
	return o, err
}

func (t *Twin) take(p *core.Pipeline) {
	t.Snapshot = twin.Take(p)
	v := t.Snapshot.View()
	t.Round, t.NowSeconds, t.Cluster = v.Round, v.NowSeconds, v.Cluster
}

// Policies are second instances of those that decide in the run.
func (t *Twin) Policies() twin.Policies {
	p := PoliciesOf(t.inForce(), true)
	if t.simulating == nil {
		return p
	}
	second := p.NewInstances
	p.NewInstances = func() (core.Stages, error) {
		t.simulating()
		return second()
	}
	return p
}

// inForce is the config whose policies decide.
func (t *Twin) inForce() *configs.Config {
	if a := t.composition.Alternatives; len(a) > 0 {
		return a[t.deciding].Config
	}
	return t.composition.Config
}

// choiceNotes say what is not forecast of a run that chooses between compositions.
func (t *Twin) choiceNotes() []string {
	a := t.composition.Alternatives
	if len(a) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%q is taken to decide from now on: when other candidates of the synthesizer take over is not forecast", a[t.deciding].Name)}
}

// PoliciesOf are second instances of the policies of a config, which keep nothing of what they learn.
func PoliciesOf(c *configs.Config, same bool) twin.Policies {
	return twin.Policies{
		NewInstances: func() (core.Stages, error) { return BuildStages(c, nil) },
		End:          discardStages, Options: c.Round.Options(), Same: same,
	}
}

// Forecast is what is expected of the run.
func (t *Twin) Forecast(ctx context.Context, draws int) (*twin.Forecast, error) {
	f, err := t.Forecaster.Forecast(ctx, t.Snapshot, t.Policies(), t.Model, draws)
	if err == nil {
		f.Notes = append(append(f.Notes, t.notes...), t.choiceNotes()...)
	}
	return f, err
}

type observerFunc func(*core.Report) error

func (f observerFunc) ObserveRound(r *core.Report) error { return f(r) }
