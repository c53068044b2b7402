package optim

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// bestBundles tries every selection.
func bestBundles(left [2]float64, menus [][]Bundle) float64 {
	if len(menus) == 0 {
		return 0
	}
	most := math.Inf(-1)
	for _, b := range menus[0] {
		after := [2]float64{left[0] - b.Uses[0], left[1] - b.Uses[1]}
		if after[0] >= 0 && after[1] >= 0 {
			most = math.Max(most, b.Value+bestBundles(after, menus[1:]))
		}
	}
	return most
}

func TestBundlesAgainstAllSelections(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		menus := make([][]Bundle, 1+rng.IntN(6))
		var capacity [2]float64
		for i := range menus {
			for c := range 1 + rng.IntN(5) {
				b := Bundle{[2]float64{float64(rng.IntN(8)), float64(rng.IntN(8))}, float64(rng.IntN(40))}
				if c == 0 { // those that fit together
					capacity[0] += b.Uses[0]
					capacity[1] += b.Uses[1]
				}
				menus[i] = append(menus[i], b)
			}
		}
		var k Bundles
		s, err := k.Solve(context.Background(), capacity, menus)
		if err != nil {
			t.Fatal(err)
		}
		first, value, bound, left := 0.0, 0.0, s.Prices[0]*capacity[0]+s.Prices[1]*capacity[1], capacity
		for i, pick := range s.Picks {
			first += menus[i][0].Value
			value += menus[i][pick].Value
			most := math.Inf(-1)
			for _, b := range menus[i] {
				most = math.Max(most, b.Value-s.Prices[0]*b.Uses[0]-s.Prices[1]*b.Uses[1])
			}
			bound += most
			left[0] -= menus[i][pick].Uses[0]
			left[1] -= menus[i][pick].Uses[1]
		}
		best := bestBundles(capacity, menus)
		if left[0] < 0 || left[1] < 0 || value != s.Value || value < first || value > best || s.Bound < best-1e-6 || math.Abs(math.Max(bound, value)-s.Bound) > 1e-6 {
			t.Fatalf("%+v: worth %v and %v left, first %v, best %v, prices prove %v", s, value, left, first, best, bound)
		}
	})
}

func TestBundlesRefuse(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, tc := range map[string]struct {
		ctx      context.Context
		capacity [2]float64
		menus    [][]Bundle
		want     error // nil for any
	}{
		"no bundle":          {context.Background(), [2]float64{1, 1}, [][]Bundle{{}}, nil},
		"negative use":       {context.Background(), [2]float64{1, 1}, [][]Bundle{{{Uses: [2]float64{-1, 0}}}}, nil},
		"value not a number": {context.Background(), [2]float64{1, 1}, [][]Bundle{{{Value: math.NaN()}}}, nil},
		"negative capacity":  {context.Background(), [2]float64{1, -1}, [][]Bundle{{{}}}, nil},
		"nothing fits":       {context.Background(), [2]float64{1, 1}, [][]Bundle{{{Uses: [2]float64{2, 0}}}}, ErrKnapsackInfeasible},
		"cancelled":          {cancelled, [2]float64{1, 1}, [][]Bundle{{{}}}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			var k Bundles
			if s, err := k.Solve(tc.ctx, tc.capacity, tc.menus); err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("%+v, error %v, want %v", s, err, tc.want)
			}
		})
	}
}
