package market

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSplit(t *testing.T) {
	cases := map[string]struct {
		batch   int
		workers []Share
		want    []int
		even    []int // of the baseline
	}{
		"nothing":                 {0, []Share{{Rate: 1}}, []int{0}, []int{0}},
		"in proportion":           {100, []Share{{Rate: 300}, {Rate: 700}}, []int{30, 70}, []int{50, 50}},
		"the rest ends first":     {10, []Share{{Rate: 1}, {Rate: 1}, {Rate: 1.5}}, []int{3, 3, 4}, []int{4, 3, 3}},
		"memory":                  {100, []Share{{Rate: 300}, {Rate: 700, Most: 40}}, []int{60, 40}, []int{60, 40}},
		"too slow to start":       {4, []Share{{Rate: 1, OverheadSeconds: 9}, {Rate: 1}}, []int{0, 4}, []int{2, 2}},
		"overheads":               {6, []Share{{Rate: 1, OverheadSeconds: 2}, {Rate: 1}}, []int{2, 4}, []int{3, 3}},
		"a worker that cannot":    {6, []Share{{}, {Rate: 2}, {Rate: 1}}, []int{0, 4, 2}, []int{0, 3, 3}},
		"full to the last sample": {5, []Share{{Rate: 9, Most: 2}, {Rate: 1, Most: 3}}, []int{2, 3}, []int{2, 3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Split(tc.batch, tc.workers)
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("split %v, error %v, want %v", got, err, tc.want)
			}
			even, err := splitEvenly(tc.batch, tc.workers)
			if err != nil || !slices.Equal(even, tc.even) {
				t.Errorf("even split %v, error %v, want %v", even, err, tc.even)
			}
		})
	}
}

// Every sample is given out within the limits; no worker could end a whole sample earlier than the last
// and still take one; moving a sample from the last to any other ends no earlier, so the end is the
// earliest there is; nor does the even split.
func TestSplitEndsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Share {
			s := Share{Rate: rapid.Float64Range(0.1, 1000).Draw(t, "rate"), OverheadSeconds: rapid.Float64Range(0, 0.2).Draw(t, "overhead")}
			if rapid.Bool().Draw(t, "limited") {
				s.Most = rapid.IntRange(1, 200).Draw(t, "most")
			}
			return s
		}), 1, 8).Draw(t, "workers")
		batch := rapid.IntRange(0, 2000).Draw(t, "batch")
		split, err := Split(batch, workers)
		room := 0
		for _, w := range workers {
			room = min(room+min(w.limit(), batch), batch)
		}
		if room < batch {
			if !errors.Is(err, ErrBatchTooLarge) {
				t.Fatalf("error %v, want %v", err, ErrBatchTooLarge)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		sum, last := 0, stepSeconds(split, workers)
		for k, samples := range split {
			sum += samples
			if samples < 0 || samples > workers[k].limit() {
				t.Errorf("worker %d takes %d of %d samples", k, samples, workers[k].limit())
			}
			if more := workers[k].OverheadSeconds + float64(samples+1)/workers[k].Rate; samples < workers[k].limit() && more < last*(1-1e-9) {
				t.Errorf("worker %d could take one more and end at %v, the last ends at %v", k, more, last)
			}
		}
		if sum != batch {
			t.Errorf("%d samples given out of %d", sum, batch)
		}
		even, err := splitEvenly(batch, workers)
		if err != nil {
			t.Fatal(err)
		}
		if stepSeconds(even, workers) < last*(1-1e-9) {
			t.Errorf("the even split ends at %v, before %v", stepSeconds(even, workers), last)
		}
	})
}

func TestSplitRefuses(t *testing.T) {
	_, err := Split(-1, []Share{{Rate: math.NaN()}, {Rate: 1, Most: -1}})
	want := `market: a batch of -1 samples is negative
market: worker 0: rate NaN, overhead of 0 s, at most 0 samples: want numbers from 0 up
market: worker 1: rate 1, overhead of 0 s, at most -1 samples: want numbers from 0 up`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %v", err, want)
	}
	if _, err := Split(3, []Share{{Rate: 1, Most: 2}}); err == nil || err.Error() != "market: the batch does not fit in the workers' memory: 3 samples, 2 fit" {
		t.Errorf("error %v", err)
	}
	if _, err := splitEvenly(3, nil); !errors.Is(err, ErrBatchTooLarge) {
		t.Errorf("error %v, want %v", err, ErrBatchTooLarge)
	}
}

// splitEvenly shares a batch out regardless of speed, as data parallelism does by default: the baseline that waits for
// its slowest worker.
func splitEvenly(batch int, workers []Share) ([]int, error) {
	even := slices.Clone(workers)
	for k := range even {
		if err := even[k].check(k); err != nil {
			return nil, err
		}
		even[k] = Share{Rate: min(1, math.Ceil(even[k].Rate)), Most: even[k].Most}
	}
	return Split(batch, even)
}

// stepSeconds is when the last worker ends with its part of the batch.
func stepSeconds(split []int, workers []Share) float64 {
	last := 0.0
	for k, samples := range split {
		if samples > 0 {
			last = max(last, workers[k].OverheadSeconds+float64(samples)/workers[k].Rate)
		}
	}
	return last
}
