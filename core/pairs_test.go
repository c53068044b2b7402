package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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

// All that was measured comes back in order, each pair once, with the parts of each.
func TestPairs(t *testing.T) {
	pair := func(on, first, second string, replicas int, parts ...float64) Pair {
		return Pair{Accelerator: on, Applications: [2]string{first, second}, Replicas: replicas, Parts: [2]float64(parts)}
	}
	want := []Pair{
		pair("t4", "x", "y", 2, 0.3, 0.4), pair("v100", "w", "z", 1, 0.7, 0.5), pair("v100", "x", "x", 1, 0.5, 0.5), pair("v100", "x", "y", 1, 0.8, 0.6), pair("v100", "x", "y", 2, 0.9, 0.7),
	}
	got := NewPairTable([]Pair{
		pair("v100", "x", "x", 1, 0.5, 0.5), pair("v100", "y", "x", 2, 0.7, 0.9), pair("v100", "x", "y", 1, 0.8, 0.6), pair("t4", "y", "x", 2, 0.4, 0.3), pair("v100", "z", "w", 1, 0.5, 0.7),
	}).Pairs()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pairs (-want +got):\n%s", diff)
	}
	if none := NewPairTable(nil).Pairs(); none != nil {
		t.Errorf("an empty table has %v", none)
	}
}

func TestPart(t *testing.T) {
	table := NewPairTable([]Pair{{Accelerator: "v100", Applications: [2]string{"x", "x"}, Replicas: 1, Parts: [2]float64{0.5, 0.5}}})
	job := func(application string, replicas int) *JobSpec {
		return &JobSpec{Application: application, Requested: replicas}
	}
	for name, tc := range map[string]struct {
		table       *PairTable
		on          string
		self, other *JobSpec
		want        float64
		known       bool
	}{
		"measured":             {table, "v100", job("x", 1), job("x", 1), 0.5, true},
		"another type":         {table, "t4", job("x", 1), job("x", 1), 0, false},
		"it is not known":      {table, "v100", job("q", 1), job("x", 1), 0, false},
		"the other is not":     {table, "v100", job("x", 1), job("q", 1), 0, false},
		"neither is known":     {table, "v100", job("q", 1), job("q", 1), 0, false},
		"of other replicas":    {table, "v100", job("x", 2), job("x", 2), 0, false},
		"of unlike replicas":   {table, "v100", job("x", 1), job("x", 2), 0, false},
		"nothing was measured": {nil, "v100", job("x", 1), job("x", 1), 0, false},
	} {
		if got, known := tc.table.Part(tc.on, tc.self, tc.other); got != tc.want || known != tc.known {
			t.Errorf("%s: %v, known %t; want %v, %t", name, got, known, tc.want, tc.known)
		}
	}
}
