package twin

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// ForecastEvaluator forecasts a run again and again while it goes on, so that it is known in the end how good forecasts of it are. It observes the run, which waits for it.
// It remembers the latest mostJudged forecasts of starts of which it is known how they were, and as many of ends; those of a job until it ends.
type ForecastEvaluator struct {
	Model      *WorkloadModel                // of the run, which the evaluator keeps up to date
	Forecaster *Forecaster                   // makes the forecasts, and calibrates them
	Policies   Policies                      // of the futures
	Draws      int                           // 0 for as many as DrawsFor says
	Next       func(seconds float64) float64 // when to forecast next, after a forecast at a moment
	Pipeline   *core.Pipeline                // of the run that is observed
	Context    context.Context               // of the run, which ends its forecasts; nil for none

	due       float64
	Forecasts int // made so far

	open         map[core.JobID]*awaited
	starts, ends []judgement
}

// awaited are the forecasts of a job that is not known to have started or ended since.
type awaited struct {
	starts, ends []forecastBand
}

// forecastBand is a band and when it was shown.
type forecastBand struct {
	at   float64
	band Band
}

// judgement is how a forecast was.
type judgement struct {
	lead   float64 // seconds from the forecast to its median
	error  float64 // of the median, over the time that it really took
	whole  float64 // the same, over the time since the submission
	inside bool
}

// ObserveRound learns from the round, and forecasts when it is time.
func (j *ForecastEvaluator) ObserveRound(r *core.Report) error {
	if err := j.Model.ObserveRound(r); err != nil {
		return err
	}
	if err := j.Forecaster.ObserveRound(r); err != nil {
		return err
	}
	j.judge(r)
	if r.View.NowSeconds < j.due {
		return nil
	}
	j.due = j.Next(r.View.NowSeconds)
	j.Forecasts++
	ctx := j.Context
	if ctx == nil {
		ctx = context.Background()
	}
	f, err := j.Forecaster.Forecast(ctx, Take(j.Pipeline), j.Policies, j.Model, j.Draws)
	if err != nil {
		return fmt.Errorf("forecast at %v s: %w", r.View.NowSeconds, err)
	}
	j.await(f)
	return nil
}

// Never has the judge only learn.
func (j *ForecastEvaluator) Never() { j.due = math.Inf(1) }

// Calibration is how well the forecasts held, as the forecaster reports it.
func (j *ForecastEvaluator) Calibration() Calibration { return j.Forecaster.Calibration() }

// await keeps the bands of a forecast.
func (j *ForecastEvaluator) await(f *Forecast) {
	if j.open == nil {
		j.open = map[core.JobID]*awaited{}
	}
	for i := range f.Jobs {
		of := &f.Jobs[i]
		a := j.open[of.ID]
		if a == nil {
			a = &awaited{}
			j.open[of.ID] = a
		}
		if !of.Running {
			a.starts = append(a.starts, forecastBand{f.AtSeconds, of.Start})
		}
		a.ends = append(a.ends, forecastBand{f.AtSeconds, of.End})
	}
}

// judge judges the forecasts of what happened in a round.
func (j *ForecastEvaluator) judge(r *core.Report) {
	for i := range r.Changes {
		if c := &r.Changes[i]; c.Action == core.Start {
			if a := j.open[c.Job]; a != nil {
				j.starts = judge(j.starts, a.starts, r.View.NowSeconds, r.View.Jobs[c.Job].SubmitSeconds)
				a.starts = a.starts[:0]
			}
		}
	}
	for _, of := range r.Ended {
		if a := j.open[of.ID]; a != nil && (of.State == core.Completed || of.State == core.Failed) {
			j.ends = judge(j.ends, a.ends, of.FinishSeconds, of.SubmitSeconds)
		}
		delete(j.open, of.ID)
	}
}

// mostJudged bounds the judgements that are kept: more than a simulation of a year of many jobs comes to, and some tens of megabytes.
const mostJudged = 500_000

func judge(to []judgement, bands []forecastBand, seconds, submitted float64) []judgement {
	for _, f := range bands {
		off := math.Abs(f.band.Median - seconds)
		to = append(to, judgement{f.band.Median - f.at, off / max(seconds-f.at, 1), off / max(seconds-submitted, 1), f.band.Holds(seconds)})
	}
	if excess := len(to) - mostJudged; excess > mostJudged/10 { // seldom, so that what is copied is little for each
		to = slices.Delete(to, 0, excess)
	}
	return to
}

// Held is how forecasts were.
type Held struct {
	Forecasts   int     // whose moment is known
	Inside      int     // of these, in their band
	ErrorRatio  float64 // median of how far the median of a band was off, over the time that it really took from the forecast on; NaN of no forecasts
	WholeRatio  float64 // median of how far the median of a band was off, over the time that it really took from the submission on, which is the wait of starts; NaN of no forecasts
	LeadSeconds float64 // seconds from the forecast to the median of the band, at most
}

// Ratio is the part that held; NaN of none.
func (h *Held) Ratio() float64 { return float64(h.Inside) / float64(h.Forecasts) }

// deciles is how many parts ForecastEvaluator tells of.
const deciles = 10

// Starts are how all forecasts of starts were that it is known of, and, by how far ahead they looked, each tenth of them.
func (j *ForecastEvaluator) Starts() (all Held, tenths []Held) { return held(j.starts) }

// Ends are how forecasts of ends were.
func (j *ForecastEvaluator) Ends() (all Held, tenths []Held) { return held(j.ends) }

func held(list []judgement) (all Held, tenths []Held) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b judgement) int { return cmp.Compare(a.lead, b.lead) })
	for d := range deciles {
		if part := list[len(list)*d/deciles : len(list)*(d+1)/deciles]; len(part) > 0 {
			tenths = append(tenths, heldOf(part))
		}
	}
	return heldOf(list), tenths
}

// heldOf is how some forecasts were, in order of their lead.
func heldOf(list []judgement) Held {
	h := Held{Forecasts: len(list), ErrorRatio: math.NaN(), WholeRatio: math.NaN()}
	errors, wholes := make([]float64, len(list)), make([]float64, len(list))
	for i, of := range list {
		if errors[i], wholes[i] = of.error, of.whole; of.inside {
			h.Inside++
		}
	}
	if len(list) > 0 {
		slices.Sort(errors)
		slices.Sort(wholes)
		h.ErrorRatio, h.WholeRatio, h.LeadSeconds = quantile(errors, 0.5), quantile(wholes, 0.5), list[len(list)-1].lead
	}
	return h
}
