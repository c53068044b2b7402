package optim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/optim"
)

// bruteDivision tries every selection, those with fewer devices first, and of these those in which the last jobs have fewer.
func bruteDivision(capacity int, jobs [][]optim.Share) (best []int, value float64) {
	value = math.Inf(-1)
	picks := make([]int, len(jobs))
	total := 0
	var try func(j, left int, sum float64)
	try = func(j, left int, sum float64) {
		if j == len(jobs) {
			used := capacity - left
			better := sum > value+1e-9
			if equal := math.Abs(sum-value) <= 1e-9; equal && best != nil {
				reversed := func(s []int) []int {
					s = slices.Clone(s)
					slices.Reverse(s)
					return s
				}
				better = used < total || used == total && slices.Compare(reversed(picks), reversed(best)) < 0
			}
			if better {
				best, value, total = slices.Clone(picks), sum, used
			}
			return
		}
		for _, l := range jobs[j] {
			if l.Devices <= left {
				picks[j] = l.Devices
				try(j+1, left-l.Devices, sum+l.Value)
			}
		}
	}
	try(0, capacity, 0)
	return best, value
}

// Values are small whole numbers, whose sums are exact, so that many selections are worth the same.
func TestDivisionIsTheBest(t *testing.T) {
	var d optim.Division
	rapid.Check(t, func(rt *rapid.T) {
		jobs := make([][]optim.Share, rapid.IntRange(1, 5).Draw(rt, "jobs"))
		for j := range jobs {
			devices := 0
			for range rapid.IntRange(1, 5).Draw(rt, "levels") {
				devices += rapid.IntRange(1, 3).Draw(rt, "step")
				jobs[j] = append(jobs[j], optim.Share{Devices: devices, Value: float64(rapid.IntRange(-4, 20).Draw(rt, "value"))})
			}
		}
		capacity := rapid.IntRange(0, 30).Draw(rt, "capacity")
		want, value := bruteDivision(capacity, jobs)
		got, sum, ok := d.Solve(capacity, jobs)
		if ok != (want != nil) {
			rt.Fatalf("solved: %v, want %v", ok, want)
		}
		if ok && (sum != value || !slices.Equal(got, want)) {
			rt.Fatalf("got %v worth %v, want %v worth %v", got, sum, want, value)
		}
	})
}

// With fractions of any size the value is that of trying all.
func TestDivisionOfFractions(t *testing.T) {
	var d optim.Division
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		jobs := make([][]optim.Share, 1+rng.IntN(5))
		for j := range jobs {
			for k := range 1 + rng.IntN(6) {
				jobs[j] = append(jobs[j], optim.Share{Devices: k + 1, Value: rng.Float64() * float64(k+1)})
			}
		}
		capacity := rng.IntN(20)
		_, want := bruteDivision(capacity, jobs)
		got, sum, ok := d.Solve(capacity, jobs)
		if !ok {
			if !math.IsInf(want, -1) {
				t.Fatalf("none fits, want %v", want)
			}
			continue
		}
		used := 0
		for _, k := range got {
			used += k
		}
		if math.Abs(sum-want) > 1e-12 || used > capacity {
			t.Fatalf("%v on %d of %d devices is worth %v, want %v", got, used, capacity, sum, want)
		}
	}
}

func TestDivisionEdges(t *testing.T) {
	var d optim.Division
	one := []optim.Share{{Devices: 2, Value: 1}}
	for name, tc := range map[string]struct {
		capacity int
		jobs     [][]optim.Share
		want     []int
		ok       bool
	}{
		"no job":                        {4, nil, []int{}, true},
		"no room":                       {1, [][]optim.Share{one}, nil, false},
		"a job that can run on nothing": {4, [][]optim.Share{one, {}}, nil, false},
		"just room":                     {4, [][]optim.Share{one, one}, []int{2, 2}, true},
		"more devices are worth less":   {9, [][]optim.Share{{{Devices: 1, Value: 2}, {Devices: 3, Value: 1}}}, []int{1}, true},
		"past a drop":                   {9, [][]optim.Share{{{Devices: 4, Value: 4}, {Devices: 5, Value: 2}, {Devices: 9, Value: 5}}}, []int{9}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, ok := d.Solve(tc.capacity, tc.jobs)
			if ok != tc.ok || !slices.Equal(got, tc.want) {
				t.Errorf("got %v, %v, want %v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

// curveLevels are levels of 1 to most devices: concave but for a drop where a node ends.
func curveLevels(rng *rand.Rand, most int) (levels []optim.Share) {
	overhead := 0.02 + 0.2*rng.Float64()
	for k := 1; k <= most; k++ {
		v := float64(k) / (1 + overhead*float64(k-1))
		if k > 4 {
			v *= 0.6 + 0.01*float64(min(k, 40))
		}
		levels = append(levels, optim.Share{Devices: k, Value: v})
	}
	return levels
}

func BenchmarkDivision(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	linear := make([]optim.Share, 64)
	for k := range linear {
		linear[k] = optim.Share{Devices: k + 1, Value: float64(k + 1)}
	}
	for name, draw := range map[string]func() []optim.Share{
		"node_borders": func() []optim.Share { return curveLevels(rng, 64) },
		"linear":       func() []optim.Share { return linear },
	} {
		b.Run(name, func(b *testing.B) {
			jobs := make([][]optim.Share, 1000)
			for j := range jobs {
				jobs[j] = draw()
			}
			var d optim.Division
			for b.Loop() {
				if _, _, ok := d.Solve(4096, jobs); !ok {
					b.Fatal("nothing fits")
				}
			}
		})
	}
}
