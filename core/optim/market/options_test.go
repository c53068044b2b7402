package market

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Seconds by size that are those of the ring change nothing.
func TestCommunicationBySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 4, 3, 3)
		in.workers.SlowestLink = 1e8
		want, err := Place(context.Background(), in.jobs, in.workers, Options{}, rand.New(rand.NewPCG(1, 1)))
		for i := range in.jobs {
			job := &in.jobs[i]
			for k := range 16 {
				size := float64(k + 1)
				job.SyncSeconds = append(job.SyncSeconds, 2*(size-1)/size*job.ModelBytes/in.workers.SlowestLink)
			}
			job.ModelBytes = 0
		}
		got, same := Place(context.Background(), in.jobs, in.workers, Options{}, rand.New(rand.NewPCG(1, 1)))
		if (err == nil) != (same == nil) || err == nil && math.Abs(got.Mean-want.Mean) > 1e-6*want.Mean {
			t.Errorf("mean %v, error %v; want %v, %v", got.Mean, same, want.Mean, err)
		}
	})
}

// A job takes no more workers than its communication is told for.
func TestSizesEndWithTheirCommunication(t *testing.T) {
	job := Job{Iterations: 1, Batch: 1, Rates: []float64{1}, SyncSeconds: []float64{0, 0.1}}
	got, err := Place(t.Context(), []Job{job}, Workers{Count: []int{4}}, Options{}, rand.New(rand.NewPCG(1, 1)))
	if err != nil || got.Counts[0][0] != 2 || math.Abs(got.Seconds[0]-0.6) > 1e-12 {
		t.Errorf("%+v, error %v, want 2 workers for 0.6 s", got, err)
	}
}

// The long job gains most from the fast worker, the short one makes more samples on it.
func TestRawRatesMatchSpeedNotGain(t *testing.T) {
	jobs := []Job{
		{Iterations: 100, Batch: 1, Rates: []float64{1, 3}, Most: 1},
		{Iterations: 1, Batch: 1, Rates: []float64{10, 40}, Most: 1},
	}
	for values, want := range map[Values][][]int{Gradient: {{0, 1}, {1, 0}}, RawRates: {{1, 0}, {0, 1}}} {
		placed, err := Place(t.Context(), jobs, Workers{Count: []int{1, 1}}, Options{Values: values}, rand.New(rand.NewPCG(1, 1)))
		if err != nil || !slices.EqualFunc(placed.Counts, want, slices.Equal) {
			t.Errorf("%s: placed %v, error %v, want %v", values, placed.Counts, err, want)
		}
		matched, err := Match(t.Context(), jobs, Workers{Count: []int{1, 1}}, []int{1, 1}, Options{Values: values})
		if err != nil || !slices.EqualFunc(matched.Counts, want, slices.Equal) {
			t.Errorf("%s: matched %v, error %v, want %v", values, matched.Counts, err, want)
		}
	}
	if _, err := Match(t.Context(), jobs, Workers{Count: []int{1, 1}}, []int{1, 1}, Options{Values: "guess"}); err == nil {
		t.Error("unknown values are taken")
	}
}

func TestFits(t *testing.T) {
	both, second := Job{Rates: []float64{1, 1}}, Job{Rates: []float64{0, 1}}
	cases := map[string]struct {
		jobs  []Job
		sizes []int
		want  []bool
	}{
		"one after the other":       {[]Job{both, both, both}, []int{3, 2, 1}, []bool{true, false, true}},
		"one makes room":            {[]Job{both, second}, []int{2, 2}, []bool{true, true}},
		"too many of its types":     {[]Job{second, both}, []int{3, 4}, []bool{false, true}},
		"nothing never fits":        {[]Job{both}, []int{0}, []bool{false}},
		"one that runs on no type":  {[]Job{{Rates: []float64{0, 0}}, both}, []int{1, 4}, []bool{false, true}},
		"more than it can use ever": {[]Job{{Rates: []float64{1, 1}, Most: 2}}, []int{3}, []bool{false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Fits(tc.jobs, Workers{Count: []int{2, 2}}, tc.sizes)
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%v, error %v, want %v", got, err, tc.want)
			}
		})
	}
	if _, err := Fits([]Job{both}, Workers{Count: []int{1, 1}}, nil); err == nil {
		t.Error("a missing size is taken")
	}
}

// What fits can be matched.
func TestWhatFitsMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 5, 3, 4)
		var sizes []int
		for i := range in.jobs {
			in.jobs[i].Least, in.jobs[i].Most = 0, 0
			sizes = append(sizes, rapid.IntRange(0, 4).Draw(t, "size"))
		}
		fits, err := Fits(in.jobs, in.workers, sizes)
		if err != nil {
			t.Fatal(err)
		}
		for i := range sizes {
			if !fits[i] {
				sizes[i] = 0
			}
		}
		if _, err := Match(context.Background(), in.jobs, in.workers, sizes, Options{}); err != nil {
			t.Errorf("%v of %v: %v", sizes, in.workers.Count, err)
		}
	})
}

// The more categories are sampled, the nearer is the best of their markets to the optimum; and a market for each of
// few is no match for exchanges.
func TestEachCategory(t *testing.T) {
	for name, generate := range generators {
		t.Run(name, func(t *testing.T) {
			last := math.Inf(1)
			for _, samples := range []int{1, 16, 64} {
				gap := 0.0
				for seed := range uint64(8) {
					in := generate(rand.New(rand.NewPCG(seed, 100)))
					best, err := Optimum(t.Context(), in.jobs, in.workers)
					if err != nil {
						t.Fatal(err)
					}
					got, err := Place(t.Context(), in.jobs, in.workers, Options{EachCategory: true, Samples: samples}, rand.New(rand.NewPCG(seed, 101)))
					if err != nil {
						t.Fatal(err)
					}
					checkAssignment(t, in, got)
					if got.Mean < best.Mean*(1-1e-9) {
						t.Errorf("seed %d: mean %v, below the optimum %v", seed, got.Mean, best.Mean)
					}
					gap += (got.Mean/best.Mean - 1) / 8
				}
				if gap >= last || gap == 0 {
					t.Errorf("gap %v of %d samples, %v of fewer", gap, samples, last)
				}
				last = gap
			}
		})
	}
}
