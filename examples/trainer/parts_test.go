package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRing(t *testing.T) {
	for _, replicas := range []int{1, 2, 3, 5} {
		for _, length := range []int{1, 4, 7, 20_000} {
			folder := meeting(t)
			want := make([]int64, length)
			vectors := make([][]int64, replicas)
			for rank := range vectors {
				r := rand.New(rand.NewPCG(uint64(rank), uint64(length)))
				vectors[rank] = make([]int64, length)
				for i := range want {
					vectors[rank][i] = r.Int64() >> 4
					want[i] += vectors[rank][i]
				}
			}
			ended := make(chan error)
			for rank, vector := range vectors {
				go func() {
					r, err := joinRing(t.Context(), folder, rank, replicas)
					if err == nil {
						err = r.sum(vector)
						r.close()
					}
					ended <- err
				}()
			}
			for range vectors {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			for rank, vector := range vectors {
				if !cmp.Equal(vector, want) {
					t.Errorf("%d numbers, %d replicas: replica %d has another sum", length, replicas, rank)
				}
			}
		}
	}
}

// The sum is the same in any order, and that of the numbers but for rounding.
func TestExactSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1000, 1000), 1, 200).Draw(t, "values")
		add := func(values []float64) int64 {
			sum := []int64{0}
			for _, x := range values {
				if err := addExact(sum, []float64{x}, len(values)); err != nil {
					t.Fatal(err)
				}
			}
			return sum[0]
		}
		got, plain := add(values), 0.0
		for _, x := range values {
			plain += x
		}
		if again := add(rapid.Permutation(values).Draw(t, "order")); again != got {
			t.Errorf("%d in one order, %d in another", got, again)
		}
		mean1 := []float64{0}
		mean(mean1, []int64{got}, len(values))
		if off := math.Abs(mean1[0] - plain/float64(len(values))); off > unit {
			t.Errorf("the mean is off by %v", off)
		}
	})
}

func TestWhatDoesNotFit(t *testing.T) {
	for name, x := range map[string]float64{"large": largest, "infinite": math.Inf(-1), "no number": math.NaN()} {
		if err := addExact([]int64{0}, []float64{x}, 2); err == nil || !strings.Contains(err.Error(), "diverged") {
			t.Errorf("%s: %v", name, err)
		}
	}
	sum := []int64{0}
	for range 2 {
		if err := addExact(sum, []float64{largest / 2}, 2); err != nil {
			t.Error(err)
		}
	}
	if sum[0] != 1<<62 {
		t.Errorf("sum %d", sum[0])
	}
}

// The slope of the loss is that of differences.
func TestModelGradient(t *testing.T) {
	for _, name := range []string{modelSoftmax, modelMLP} {
		o := testOptions(t, "-model", name, "-samples", "3", "-features", "4", "-hidden", "5", "-classes", "3")
		m, d := newModel(&o.task), makeData(&o.task)
		p := m.start(o.Seed)
		gradient := make([]float64, len(p))
		for i, x := range d.features {
			m.gradient(p, x, d.labels[i], gradient)
			for j, at := range p {
				const h = 1e-6
				p[j] = at + h
				up := m.loss(p, x, d.labels[i])
				p[j] = at - h
				down := m.loss(p, x, d.labels[i])
				p[j] = at
				if slope := (up - down) / (2 * h); math.Abs(slope-gradient[j]) > 1e-7 {
					t.Errorf("%s, parameter %d: slope %v, by differences %v", name, j, gradient[j], slope)
				}
			}
		}
	}
}

// Every sample comes once in an epoch, in another order in the next.
func TestOrder(t *testing.T) {
	o := testOptions(t, "-samples", "50")
	order := order{data: makeData(&o.task)}
	var epochs [2][]int
	for n := range uint64(100) {
		epochs[n/50] = append(epochs[n/50], order.at(n))
	}
	for _, epoch := range epochs {
		seen := make(map[int]bool)
		for _, i := range epoch {
			seen[i] = true
		}
		if len(seen) != 50 {
			t.Errorf("%d samples of 50", len(seen))
		}
	}
	if cmp.Equal(epochs[0], epochs[1]) {
		t.Error("two epochs in the same order")
	}
	if again := order.at(0); again != epochs[0][0] {
		t.Errorf("first sample %d, then %d", epochs[0][0], again)
	}
}

// However samples are split, as many stand for them.
func TestStandIns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, each := rapid.Uint64Range(0, 1000).Draw(t, "first"), rapid.IntRange(1, 20).Draw(t, "each")
		shares := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 5).Draw(t, "shares")
		at, split, one := first, 0, 0
		for _, n := range shares {
			split += standIns(at, n, each)
			at += uint64(n)
		}
		for n := first; n < at; n++ {
			if n%uint64(each) == 0 {
				one++
			}
		}
		if split != one || standIns(first, sum(shares), each) != one {
			t.Errorf("%d in shares, %d together, want %d", split, standIns(first, sum(shares), each), one)
		}
	})
}

// Whatever the shares, norms as they are expected give back the statistics that they come from.
func TestScatterHasNoBias(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const initialBatch = 32
		s := setting{
			shares: rapid.SliceOfN(rapid.IntRange(0, 100), 1, 6).Draw(t, "shares"),
			passes: rapid.IntRange(1, 3).Draw(t, "passes"),
		}
		square, perSample := rapid.Float64Range(0.1, 10).Draw(t, "square"), rapid.Float64Range(0.1, 1000).Draw(t, "variance of a sample")
		localSum, parts := 0.0, 0
		for _, b := range s.shares {
			if b > 0 {
				parts += s.passes
				localSum += float64(s.passes) * float64(b) * (square + perSample/float64(b))
			}
		}
		if parts < 2 {
			t.Skip("the draw has one part, which tells nothing of covariance")
		}
		g, ok := s.scatter(localSum/float64(s.batch()), square+perSample/float64(s.batch()), initialBatch).Estimate()
		if want := perSample / initialBatch; !ok || math.Abs(g.SquaredNorm/square-1) > 1e-6 || math.Abs(g.Variance/want-1) > 1e-6 {
			t.Errorf("%+v: estimate %+v, want %v and %v", s, g, square, want)
		}
	})
}
