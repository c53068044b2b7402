package quartet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/twin"
)

// Twin is a run as it stands, and what was learned of it: what may become of it can be simulated, and nothing that runs is touched.
type Twin struct {
	Still      *twin.Still
	Beliefs    *twin.Beliefs
	Forecaster *twin.Forecaster
	Round      int // the last one
	NowSeconds float64
	Cluster    *core.Cluster
	Names      map[core.JobID]string

	composition *Composition
}

// Forecasting says how forecasts are made.
type Forecasting struct {
	Beliefs twin.BeliefOptions
	Draws   int // 0 for as many as are worth their time
	// Rehearsals is how many forecasts are made of earlier moments of the run, so that bands are calibrated by what became of them.
	Rehearsals int
}

// Twin repeats the rounds of a run whose scheduler wrote a snapshot, as Plan does, and holds the next one: the twin is the run after it.
func (c *Composition) Twin(ctx context.Context, snapshot string, o Forecasting) (*Twin, error) {
	t := c.newTwin(o)
	_, err := c.foresee(ctx, snapshot, func(p *core.Pipeline) core.Observer { return t.rehearsing(p, o, 0) }, func(p *Plan, pipeline *core.Pipeline) {
		t.Names = p.Names
		t.take(pipeline)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// errReached ends a simulation at the moment of its twin.
var errReached = errors.New("the moment is reached")

// TwinAt simulates the composition up to its first round at or after a moment.
func (c *Composition) TwinAt(ctx context.Context, at time.Duration, o Forecasting) (*Twin, error) {
	t := c.newTwin(o)
	t.Names = map[core.JobID]string{}
	silent := *c
	silent.Dir, silent.Keep, silent.Brief = "", false, true
	silent.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
		rehearsing := t.rehearsing(p, o, at.Seconds())
		return observerFunc(func(r *core.Report) error {
			if err := rehearsing.ObserveRound(r); err != nil {
				return err
			}
			for i := range r.Events {
				if e := &r.Events[i]; e.Kind == core.JobSubmitted {
					t.Names[e.Job] = e.Spec.Name
				}
			}
			if r.View.NowSeconds < at.Seconds() {
				return nil
			}
			t.take(p)
			return errReached
		})
	}
	_, err := silent.Simulate(ctx)
	switch {
	case t.Still != nil && (err == nil || errors.Is(err, errReached)):
		return t, nil
	case err != nil:
		return nil, err
	}
	return nil, problem("--at", fmt.Sprintf("the simulation has ended by %v", at), "name an earlier moment")
}

func (c *Composition) newTwin(o Forecasting) *Twin {
	if o.Beliefs.Config == nil {
		if config, simulated := c.Backend.Config.(*sim.Config); simulated {
			o.Beliefs.Config = config
		}
	}
	return &Twin{Beliefs: twin.NewBeliefs(o.Beliefs), Forecaster: twin.NewForecaster(c.Seed), composition: c}
}

// rehearsing observes a run, and forecasts it at some moments before another; of a run that is repeated it is not known how long it is, and they are further and further apart.
func (t *Twin) rehearsing(p *core.Pipeline, o Forecasting, until float64) core.Observer {
	judge := &twin.Judge{Beliefs: t.Beliefs, Forecaster: t.Forecaster, Policies: t.Policies(), Draws: o.Draws, Pipeline: p}
	judge.Next = func(seconds float64) float64 {
		switch {
		case o.Rehearsals == 0:
			return math.Inf(1)
		case until > 0:
			return seconds + until/float64(o.Rehearsals+1)
		}
		return seconds*1.25 + 60
	}
	if o.Rehearsals == 0 {
		judge.Never()
	}
	return judge
}

func (t *Twin) take(p *core.Pipeline) {
	t.Still = twin.Take(p)
	v := t.Still.View()
	t.Round, t.NowSeconds, t.Cluster = v.Round, v.NowSeconds, v.Cluster
}

// Policies are second instances of those of the run.
func (t *Twin) Policies() twin.Policies { return PoliciesOf(t.composition.Config, true) }

// PoliciesOf are second instances of the policies of a config, which keep nothing of what they learn.
func PoliciesOf(c *configs.Config, same bool) twin.Policies {
	return twin.Policies{
		Make: func() (core.Stages, error) { return BuildStages(c, nil) },
		End:  discardStages, Options: c.Round.Options(), Same: same,
	}
}

// Forecast is what is expected of the run.
func (t *Twin) Forecast(ctx context.Context, draws int) (*twin.Forecast, error) {
	return t.Forecaster.Forecast(ctx, t.Still, t.Policies(), t.Beliefs, draws)
}

type observerFunc func(*core.Report) error

func (f observerFunc) ObserveRound(r *core.Report) error { return f(r) }
