package admission

import (
	"context"
	"fmt"
	"math"

	"github.com/quartet-sched/quartet/core"
)

// ConvergenceConfig configures NewConvergence.
type ConvergenceConfig struct {
	// Metrics are names of metrics; the first that is reported is the one that counts.
	Metrics []string `config:"metrics" doc:"a job is judged by the first of these that it reports"`
	// Change is the largest relative difference between two reports at which a job stands still.
	Change float64 `config:"change" doc:"it stands still while each report differs from the one before by at most this part of that" min:"0" max:"1"`
	// Reports is how many reports in a row must stand still.
	Reports int `config:"reports" doc:"how many reports in a row must show no improvement" min:"1" max:"1000"`
}

// NewConvergence ends jobs that hardly get better any more: owners ask for more epochs than their jobs need.
//
// Source: Blox (EuroSys'24), loss-based termination, which states neither the part nor how many reports; here it is 0.001 and 5. A job that was
// thrown back to a checkpoint is judged by what it reports since. A job that reports none of the metrics runs to its end. O(reports) a report.
func NewConvergence() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "convergence",
		Summary: "ends jobs whose loss or accuracy stands still",
		Description: "Admits every job. One that reports is ended, and counts as completed, once so many reports in a row each differ from the one before by at most a part of that. " +
			"A job that reports none of the metrics runs to its end. It needs a backend whose jobs report: docs/reports-of-jobs.md.",
		Source: "Blox, EuroSys'24: loss-based termination",
	}, ConvergenceConfig{Metrics: []string{"loss", "accuracy"}, Change: 0.001, Reports: 5}, func(c ConvergenceConfig, _ core.Settings) (core.Admitter, error) {
		return &convergence{config: c}, nil
	})
}

// Validate refuses a list without metrics, by which nobody could be judged.
func (c *ConvergenceConfig) Validate() error {
	if len(c.Metrics) == 0 {
		return core.Diagnostics{{Path: "metrics", Summary: "is empty: no job could be judged", Hint: "name what jobs report, such as [loss]"}}
	}
	return nil
}

type convergence struct {
	onEvents
	config   ConvergenceConfig
	verdicts []core.Verdict
}

func (p *convergence) Admit(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) {
	return nil, nil
}

func (p *convergence) Review(_ context.Context, _ *core.View, reported []*core.Job) ([]core.Verdict, error) {
	p.verdicts = p.verdicts[:0]
	for _, j := range reported {
		for _, metric := range p.config.Metrics {
			s := j.Series(metric)
			if s == nil {
				continue
			}
			if latest, _ := s.Latest(); p.stands(s.Points) {
				p.verdicts = append(p.verdicts, core.Verdict{
					Job: j.ID, Code: core.End, Reason: core.Converged,
					Message: fmt.Sprintf("%s is %g at step %g, and changed by at most %g of itself in each of %d reports", metric, latest.Value, latest.Step, p.config.Change, p.config.Reports),
				})
			}
			break
		}
	}
	return p.verdicts, nil
}

// stands reports whether the latest points each differ little from the one before.
func (p *convergence) stands(points []core.Point) bool {
	n := len(points)
	if n <= p.config.Reports {
		return false
	}
	for i := n - p.config.Reports; i < n; i++ {
		if before := points[i-1].Value; !(math.Abs(points[i].Value-before) <= p.config.Change*math.Abs(before)) {
			return false
		}
	}
	return true
}
