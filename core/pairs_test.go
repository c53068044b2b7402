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
