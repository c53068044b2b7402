package twin

import (
	"context"
	"fmt"
	"math"

	"github.com/quartet-sched/quartet/core"
)

// Judge forecasts a run again and again while it goes on, so that it is known in the end how good forecasts of it are. It is an observer of the run, which waits for it.
type Judge struct {
	Beliefs    *Beliefs
	Forecaster *Forecaster
	Policies   Policies
	Draws      int                           // 0 for as many as DrawsFor says
	Next       func(seconds float64) float64 // when to forecast next, after a forecast at a moment
	Pipeline   *core.Pipeline

	due       float64
	Forecasts int
}

// ObserveRound learns from the round, and forecasts when it is time.
func (j *Judge) ObserveRound(r *core.Report) error {
	if err := j.Beliefs.ObserveRound(r); err != nil {
		return err
	}
	if err := j.Forecaster.ObserveRound(r); err != nil {
		return err
	}
	if r.View.NowSeconds < j.due {
		return nil
	}
	j.due = j.Next(r.View.NowSeconds)
	j.Forecasts++
	if _, err := j.Forecaster.Forecast(context.Background(), Take(j.Pipeline), j.Policies, j.Beliefs, j.Draws); err != nil {
		return fmt.Errorf("forecast at %v s: %w", r.View.NowSeconds, err)
	}
	return nil
}

// Never has the judge only learn.
func (j *Judge) Never() { j.due = math.Inf(1) }

// Calibration is how well the forecasts held.
func (j *Judge) Calibration() Calibration { return j.Forecaster.Calibration() }
