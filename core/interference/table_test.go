package interference

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
)

func TestTable(t *testing.T) {
	table := core.NewPairTable([]core.Pair{
		{Accelerator: "v100", Applications: [2]string{"x", "y"}, Replicas: 1, Parts: [2]float64{0.8, 0.6}},
		{Accelerator: "v100", Applications: [2]string{"x", "z"}, Replicas: 1, Parts: [2]float64{0, 0}},
		{Accelerator: "v100", Applications: [2]string{"x", "x"}, Replicas: 1, Parts: [2]float64{0.5, 0.5}},
		{Accelerator: "v100", Applications: [2]string{"x", "y"}, Replicas: 2, Parts: [2]float64{0.9, 0.7}},
	})
	job := func(application string, replicas int) *core.JobSpec {
		return &core.JobSpec{Application: application, Requested: replicas, Weight: 1, Pairs: table}
	}
	for name, tc := range map[string]struct {
		self   *core.JobSpec
		others []*core.JobSpec
		on     string
		want   float64
	}{
		"one of a pair":           {job("x", 1), []*core.JobSpec{job("y", 1)}, "v100", 0.8},
		"the other":               {job("y", 1), []*core.JobSpec{job("x", 1)}, "v100", 0.6},
		"with more replicas":      {job("x", 2), []*core.JobSpec{job("y", 2)}, "v100", 0.9},
		"two of a kind":           {job("x", 1), []*core.JobSpec{job("x", 1)}, "v100", 0.5},
		"they do not fit":         {job("x", 1), []*core.JobSpec{job("z", 1)}, "v100", 0},
		"beside two":              {job("x", 1), []*core.JobSpec{job("x", 1), job("y", 1)}, "v100", 0.4},
		"another type":            {job("x", 1), []*core.JobSpec{job("y", 1)}, "k80", 0.5},
		"other replicas":          {job("x", 1), []*core.JobSpec{job("y", 2)}, "v100", 0.5},
		"a pair nobody measured":  {job("y", 1), []*core.JobSpec{job("z", 1)}, "v100", 0.5},
		"one of two not measured": {job("y", 1), []*core.JobSpec{job("x", 1), job("z", 1)}, "v100", 1. / 3},
		"no table":                {&core.JobSpec{Weight: 1}, []*core.JobSpec{{Weight: 1}}, "v100", 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Table{Unknown: Turns{}}).Rate(tc.self, tc.others, tc.on); got != tc.want {
				t.Errorf("rate %v, want %v", got, tc.want)
			}
		})
	}
}
