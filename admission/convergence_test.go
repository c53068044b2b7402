package admission

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

func TestConvergence(t *testing.T) {
	series := func(metric string, values ...float64) core.Series {
		s := core.Series{Metric: metric}
		for i, v := range values {
			s.Points = append(s.Points, core.Point{Step: float64(i), Value: v})
		}
		return s
	}
	for name, tc := range map[string]struct {
		config   ConvergenceConfig
		reported []core.Series
		want     bool
	}{
		"as many reports in a row that stand still": {ConvergenceConfig{[]string{"loss"}, 0.02, 2}, []core.Series{series("loss", 2, 1, 1.01, 1)}, true},
		"one less":                            {ConvergenceConfig{[]string{"loss"}, 0.01, 3}, []core.Series{series("loss", 2, 1, 1.01, 1)}, false},
		"one report is compared with nothing": {ConvergenceConfig{[]string{"loss"}, 1, 1}, []core.Series{series("loss", 1)}, false},
		"one in the row moves":                {ConvergenceConfig{[]string{"loss"}, 0.01, 3}, []core.Series{series("loss", 1, 1, 1.02, 1.02)}, false},
		"what moved before does not matter":   {ConvergenceConfig{[]string{"loss"}, 0, 2}, []core.Series{series("loss", 9, 5, 5, 5)}, true},
		"it gets worse":                       {ConvergenceConfig{[]string{"loss"}, 0.01, 1}, []core.Series{series("loss", 1, 2)}, false},
		"below zero":                          {ConvergenceConfig{[]string{"reward"}, 0.1, 1}, []core.Series{series("reward", -10, -9.5)}, true},
		"it diverged":                         {ConvergenceConfig{[]string{"loss"}, 1, 2}, []core.Series{series("loss", 1, math.NaN(), math.NaN(), math.NaN())}, false},
		"it diverges":                         {ConvergenceConfig{[]string{"loss"}, 1, 1}, []core.Series{series("loss", 1, math.NaN())}, false},
		"it is finite again":                  {ConvergenceConfig{[]string{"loss"}, 1, 1}, []core.Series{series("loss", math.NaN(), 1)}, false},
		"at zero":                             {ConvergenceConfig{[]string{"loss"}, 0.1, 2}, []core.Series{series("loss", 0, 0, 0)}, true},
		"another metric":                      {ConvergenceConfig{[]string{"loss"}, 1, 1}, []core.Series{series("accuracy", 1, 1)}, false},
		"the first metric of the list is what counts":  {ConvergenceConfig{[]string{"loss", "accuracy"}, 0.01, 1}, []core.Series{series("accuracy", 1, 1), series("loss", 1, 2)}, false},
		"the next one for a job that reports no other": {ConvergenceConfig{[]string{"loss", "accuracy"}, 0.01, 1}, []core.Series{series("accuracy", 1, 1)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := NewConvergence().New(&tc.config, core.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			j := core.NewJob(&core.JobSpec{ID: 3, Name: "a"})
			j.Reported = tc.reported
			got, err := p.(core.Reviewer).Review(t.Context(), nil, []*core.Job{j})
			if err != nil {
				t.Fatal(err)
			}
			ends := len(got) == 1 && got[0].Job == 3 && got[0].Code == core.End && got[0].Reason == core.Converged && got[0].Message != ""
			if ends != tc.want || !ends && len(got) > 0 {
				t.Errorf("got %v, want it ended: %v", got, tc.want)
			}
		})
	}
}
