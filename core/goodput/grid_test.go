package goodput

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// settingsOf lists the settings of a grid for r replicas as passes × batch of a device.
func settingsOf(limits core.BatchSpec, r int) [][2]int {
	var list [][2]int
	for _, s := range NewGrid(limits, r).settings[r-1] {
		list = append(list, [2]int{int(s.accumulation) + 1, int(s.perDevice)})
	}
	return list
}

// Every batch is tried once, by ascending size, within the bounds of a device, the bounds among them.
func TestGridSettings(t *testing.T) {
	cases := map[string]struct {
		limits   core.BatchSpec
		replicas int
		want     [][2]int
	}{
		"one replica accumulates beyond the initial batch": {
			core.BatchSpec{Initial: 4, Max: 8, MinPerDevice: 1, MaxPerDevice: 8},
			1,
			[][2]int{{1, 4}, {2, 3}, {2, 4}},
		},
		"two": {
			core.BatchSpec{Initial: 4, Max: 8, MinPerDevice: 1, MaxPerDevice: 8},
			2,
			[][2]int{{1, 2}, {1, 3}, {1, 4}},
		},
		"two beyond what a device holds": {
			core.BatchSpec{Initial: 4, Max: 8, MinPerDevice: 1, MaxPerDevice: 3},
			2,
			[][2]int{{1, 2}, {1, 3}, {2, 2}},
		},
		"the least of a device": {
			core.BatchSpec{Initial: 4, Max: 10, MinPerDevice: 3, MaxPerDevice: 5},
			2,
			[][2]int{{1, 3}, {1, 4}, {1, 5}},
		},
		"passes below the least of a device are left out": {
			core.BatchSpec{Initial: 10, Max: 24, MinPerDevice: 5, MaxPerDevice: 6},
			2,
			[][2]int{{1, 5}, {1, 6}, {2, 5}, {2, 6}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, settingsOf(tc.limits, tc.replicas)); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

// The limits are tried as they are, however large: a power of ten of their logarithm would miss them.
func TestGridEndsAtTheLimits(t *testing.T) {
	for i := range 200 {
		low, high := 400_000_000+14*i, 900_000_000+22*i
		list := settingsOf(core.BatchSpec{Initial: low, Max: high, MinPerDevice: 1, MaxPerDevice: high}, 2)
		if first, last := 2*list[0][1], 2*list[len(list)-1][1]; first != low || last != high {
			t.Fatalf("from %d to %d, want %d to %d", first, last, low, high)
		}
	}
}

// Settings that are best under no statistics are left out; what is as good but for rounding stays.
func TestLowerHull(t *testing.T) {
	cases := map[string]struct {
		scales, seconds []float64
		want            []int32
	}{
		"none":                    {nil, nil, nil},
		"one":                     {[]float64{1}, []float64{1}, []int32{0}},
		"larger and slower":       {[]float64{1, 2}, []float64{1, 1.5}, []int32{0, 1}},
		"larger and quicker":      {[]float64{1, 2, 4}, []float64{4, 5, 3}, []int32{2}},
		"larger and as quick":     {[]float64{1, 2}, []float64{1, 1}, []int32{0, 1}},
		"slower for each sample":  {[]float64{1, 2, 4}, []float64{1, 3, 2}, []int32{0, 2}},
		"as slow for each sample": {[]float64{1, 2}, []float64{1, 2}, []int32{0, 1}},
		"above the line between":  {[]float64{1, 1.5, 4}, []float64{1, 1.4, 1.6}, []int32{0, 2}},
		"below the line between":  {[]float64{1, 2, 4}, []float64{1, 1.1, 2}, []int32{0, 1, 2}},
		"on the line between":     {[]float64{1, 2, 4}, []float64{1, 1.5, 2}, []int32{0, 1, 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var settings []setting
			for _, scale := range tc.scales {
				settings = append(settings, setting{scale: scale})
			}
			if diff := cmp.Diff(tc.want, lowerHull(nil, settings, tc.seconds)); diff != "" {
				t.Errorf("hull (-want +got):\n%s", diff)
			}
		})
	}
}

var gridLimits = core.BatchSpec{Initial: 10, Max: 80, MinPerDevice: 5, MaxPerDevice: 20}

// A batch that teaches nothing is none, neither at first nor after statistics under which there was one.
func TestNothingToLearn(t *testing.T) {
	m := Model{Performance: Performance{1, 0.1, 4, 0.5, 2, 0.25, 1.5}, Gradients: Gradients{SquaredNorm: 1, Variance: -1}, Limits: gridLimits}
	if got := m.Best(1, 4); got != (Choice{}) {
		t.Errorf("the best batch is %+v", got)
	}
	curves := NewCurves(NewGrid(gridLimits, 4), m.Performance, Gradients{SquaredNorm: 1, Variance: 1}, 4)
	if curves.Goodput[OneNode][3] <= 0 {
		t.Error("nothing to learn with four replicas")
	}
	curves.Update(m.Gradients)
	if got := curves.Choices[OneNode][3]; got != (Choice{}) || curves.Goodput[OneNode][3] != 0 {
		t.Errorf("after an update: %+v, %v", got, curves.Goodput[OneNode][3])
	}
}

// Remembered corners make the curves that there are without a memory, for jobs of whatever limits, models and replicas.
func TestMemoryMakesTheSameCurves(t *testing.T) {
	gradients := Gradients{SquaredNorm: 1, Variance: 5}
	models := []Performance{{1, 0.1, 4, 0.5, 2, 0.25, 1.5}, {2, 0.3, 1, 0.5, 1, 0.25, 2}}
	larger := gridLimits
	larger.Max *= 2
	for range 2 {
		for _, g := range []*Grid{NewGrid(gridLimits, 4), NewGrid(gridLimits, 6), NewGrid(larger, 4)} {
			for _, p := range models {
				for _, most := range []int{3, 4, 9} {
					got, want := NewCurves(g, p, gradients, most), newCurves(g, newCorners(g, p, min(most, g.Most())), gradients)
					if diff := cmp.Diff(want.Choices, got.Choices); diff != "" {
						t.Errorf("choices (-without +with a memory):\n%s", diff)
					}
				}
			}
		}
	}
	g := NewGrid(gridLimits, 4)
	if a, b := NewCurves(g, models[0], gradients, 4), NewCurves(NewGrid(gridLimits, 4), models[0], gradients, 9); a.corners != b.corners {
		t.Error("makes what it remembers")
	}
}

// A fixed grid holds the one split of its batch, from the least batch of all replicas to the largest; beyond that nothing.
func TestFixedGridSettings(t *testing.T) {
	limits := core.BatchSpec{Initial: 8, Max: 40, MinPerDevice: 4, MaxPerDevice: 6}
	cases := map[string]struct {
		total, replicas int
		want            []setting
	}{
		"at once":                          {10, 2, []setting{{5, 0, 10, 1.25}}},
		"rounded up":                       {11, 2, []setting{{6, 0, 12, 1.5}}},
		"accumulated":                      {24, 2, []setting{{6, 1, 24, 3}}},
		"one replica beyond its batch":     {9, 1, []setting{{5, 1, 10, 1.25}}},
		"raised to the least of each":      {10, 5, []setting{{4, 0, 20, 2.5}}},
		"not above the largest":            {40, 7, []setting{{5, 0, 35, 4.375}}},
		"the least of each is the largest": {10, 10, []setting{{4, 0, 40, 5}}},
		"the least of each is above that":  {10, 11, nil},
		"two passes of the least":          {39, 5, []setting{{4, 1, 40, 5}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := limits
			of.Requested = tc.total
			got := NewFixedGrid(of, tc.replicas).settings[tc.replicas-1]
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(setting{})); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

// A batch is split within all bounds wherever they can be kept, and as core.SplitBatch does wherever that keeps them.
func TestSplitWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least, replicas := rapid.IntRange(0, 8).Draw(t, "least"), rapid.IntRange(1, 12).Draw(t, "replicas")
		most := rapid.OneOf(rapid.Just(0), rapid.IntRange(max(least, 1), 20)).Draw(t, "most")
		limits := core.BatchSpec{Initial: rapid.IntRange(1, 40).Draw(t, "initial"), MinPerDevice: least, MaxPerDevice: most}
		limits.Max = rapid.IntRange(limits.Initial, 400).Draw(t, "max")
		total := rapid.IntRange(limits.Initial, limits.Max).Draw(t, "total")
		b, s := SplitWithin(total, replicas, limits)
		if limits.Max < replicas*max(least, 1) {
			if b >= max(least, 1) {
				t.Fatalf("%d passes of %d on %d replicas exceed %d", s+1, b, replicas, limits.Max)
			}
			return
		}
		if b < max(least, 1) || most > 0 && b > most || replicas*b*(s+1) > limits.Max {
			t.Fatalf("%d is split into %d passes of %d, outside the bounds", total, s+1, b)
		}
		pb, ps := SplitBatch(total, replicas, limits)
		if pb >= max(least, 1) && (b != pb || s != ps) {
			t.Fatalf("%d is split into %d passes of %d, want %d of %d", total, s+1, b, ps+1, pb)
		}
	})
}

func TestGeometricBatches(t *testing.T) {
	for name, tc := range map[string]struct {
		spec core.BatchSpec
		want []int
	}{
		"one batch":         {core.BatchSpec{Initial: 20, Max: 20}, []int{20}},
		"every whole one":   {core.BatchSpec{Initial: 1, Max: 4}, []int{1, 2, 3, 4}},
		"yolov3 on devices": {core.BatchSpec{Initial: 8, Max: 80}, []int{8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 22, 23, 25, 26, 28, 29, 31, 33, 35, 37, 39, 42, 44, 47, 50, 53, 56, 60, 63, 67, 71, 75, 80}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := GeometricBatches(tc.spec); !slices.Equal(got, tc.want) {
				t.Errorf("batches %v, want %v", got, tc.want)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		b := core.BatchSpec{Initial: rapid.IntRange(1, 1e6).Draw(t, "initial")}
		b.Max = rapid.IntRange(b.Initial, 1e6).Draw(t, "max")
		got := GeometricBatches(b)
		if got[0] != b.Initial || got[len(got)-1] != b.Max || len(got) > 40 {
			t.Fatalf("%d batches from %d to %d", len(got), got[0], got[len(got)-1])
		}
		for i := 1; i < len(got); i++ {
			if got[i] <= got[i-1] {
				t.Fatalf("%d after %d", got[i], got[i-1])
			}
		}
	})
}
