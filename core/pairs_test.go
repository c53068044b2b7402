package core

import "testing"

func TestPairTablesEqual(t *testing.T) {
	pair := Pair{Accelerator: "a", Applications: [2]string{"x", "y"}, Replicas: 1, Parts: [2]float64{0.5, 0.6}}
	other := pair
	other.Parts[1] = 0.7
	of := func(pairs ...Pair) *PairTable { return NewPairTable(pairs) }
	for name, tc := range map[string]struct {
		a, b *PairTable
		want bool
	}{
		"none and none":         {nil, nil, true},
		"none and an empty one": {nil, of(), true},
		"none and one":          {nil, of(pair), false},
		"one and none":          {of(pair), nil, false},
		"the same":              {of(pair), of(pair), true},
		"another part":          {of(pair), of(other), false},
		"the last counts":       {of(other), of(pair, other), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.Equal(tc.b); got != tc.want {
				t.Errorf("equal: %v, want %v", got, tc.want)
			}
		})
	}
}

// Two jobs are known by the table that each has: on a type that the cluster has, of as many replicas, and not a job beside itself.
func TestKnowsAny(t *testing.T) {
	table := NewPairTable([]Pair{
		{Accelerator: "v100", Applications: [2]string{"x", "y"}, Replicas: 1, Parts: [2]float64{0.8, 0.6}}, {Accelerator: "v100", Applications: [2]string{"z", "z"}, Replicas: 2, Parts: [2]float64{0, 0}},
	})
	job := func(application string, replicas int, pairs *PairTable) *JobSpec {
		return &JobSpec{Application: application, Requested: replicas, Pairs: pairs}
	}
	for name, tc := range map[string]struct {
		jobs []*JobSpec
		on   []string
		want bool
	}{
		"a pair":                {[]*JobSpec{job("x", 1, table), job("y", 1, table)}, []string{"t4", "v100"}, true},
		"far apart":             {[]*JobSpec{job("x", 1, table), job("z", 1, table), job("x", 1, table), job("x", 1, table), job("y", 1, table)}, []string{"v100"}, true},
		"on another type":       {[]*JobSpec{job("x", 1, table), job("y", 1, table)}, []string{"t4"}, false},
		"of other replicas":     {[]*JobSpec{job("x", 2, table), job("y", 1, table)}, []string{"v100"}, false},
		"two of a kind":         {[]*JobSpec{job("z", 2, table), job("x", 1, table), job("z", 2, table)}, []string{"v100"}, true},
		"one of a kind":         {[]*JobSpec{job("z", 2, table), job("x", 1, table)}, []string{"v100"}, false},
		"a kind with no pair":   {[]*JobSpec{job("x", 1, table), job("x", 1, table)}, []string{"v100"}, false},
		"no table":              {[]*JobSpec{job("x", 1, nil), job("y", 1, nil)}, []string{"v100"}, false},
		"an empty table":        {[]*JobSpec{job("x", 1, NewPairTable(nil)), job("y", 1, NewPairTable(nil))}, []string{"v100"}, false},
		"nobody, and no device": {nil, nil, false},
	} {
		if got := KnowsAny(tc.jobs, tc.on); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
