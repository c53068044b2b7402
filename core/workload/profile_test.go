package workload

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPackShape(t *testing.T) {
	cases := map[string]struct {
		shape []int
		want  uint64
	}{
		"one node":           {[]int{4}, 0x4},
		"smallest rotation":  {[]int{4, 1, 3}, 0x010304},
		"reflection differs": {[]int{4, 3, 1}, 0x010403},
		"equal nodes":        {[]int{4, 4, 4, 4}, 0x04040404},
		"empty nodes":        {[]int{0, 2, 0, 1, 0}, 0x0102},
		"as many as fit":     {[]int{2, 1, 1, 1, 1, 1, 1, 1}, 0x0101010101010102},
		"too many nodes":     {[]int{1, 1, 1, 1, 1, 1, 1, 1, 1}, 0},
		"too many replicas":  {[]int{256}, 0},
		"nothing":            {nil, 0},
		"negative":           {[]int{-1}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := packShape(tc.shape); got != tc.want {
				t.Errorf("packShape(%v) = %#x, want %#x", tc.shape, got, tc.want)
			}
		})
	}
}

func TestPackShapeIsSmallestRotation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 255), 1, maxPackedNodes).Draw(t, "shape")
		smallest := slices.Clone(shape)
		for i := range shape {
			if rotation := slices.Concat(shape[i:], shape[:i]); slices.Compare(rotation, smallest) < 0 {
				smallest = rotation
			}
		}
		want := uint64(0)
		for _, n := range smallest {
			want = want<<8 | uint64(n)
		}
		if got := packShape(shape); got != want {
			t.Errorf("packShape(%v) = %#x, want %#x", shape, got, want)
		}
	})
}

// Interpolation over any triangulation reproduces an affine function exactly, inside only.
func TestTriangulationReproducesAffineFunctions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var low, high vector
		var slope [4]float64
		for axis := range low {
			low[axis] = rapid.Int64Range(0, 50).Draw(t, "low")
			high[axis] = low[axis] + rapid.Int64Range(1, 50).Draw(t, "size")
			slope[axis] = rapid.Float64Range(-3, 3).Draw(t, "slope")
		}
		affine := func(p vector) float64 {
			return 1000 + slope[0]*float64(p[0]) + slope[1]*float64(p[1]) + slope[2]*float64(p[2])
		}
		box := &triangulation{known: map[vector]located{}}
		for corner := range 8 {
			at := low
			for axis := range at {
				if corner&(1<<axis) != 0 {
					at[axis] = high[axis]
				}
			}
			box.points = append(box.points, measuredPoint{at: at, time: stepTime{step: affine(at), sync: 1}})
		}
		for _, corners := range [][4]int{{0, 1, 3, 7}, {0, 1, 5, 7}, {0, 2, 3, 7}, {0, 2, 6, 7}, {0, 4, 5, 7}, {0, 4, 6, 7}, {0, 1, 2, 3}} {
			box.add(corners)
		}
		if len(box.tetrahedra) != 6 {
			t.Fatalf("%d tetrahedra are not flat", len(box.tetrahedra))
		}
		var p vector
		inside := true
		for axis := range p {
			p[axis] = rapid.Int64Range(low[axis]-2, high[axis]+2).Draw(t, "at")
			inside = inside && low[axis] <= p[axis] && p[axis] <= high[axis]
		}
		for range 2 { // found, then known
			got, ok := box.at(p)
			if ok != inside {
				t.Fatalf("%v inside %v..%v is %v", p, low, high, ok)
			}
			if inside && (math.Abs(got.step-affine(p)) > 1e-9 || math.Abs(got.sync-1) > 1e-12) {
				t.Errorf("at %v: %+v, want %v", p, got, affine(p))
			}
		}
	})
}

// Where tetrahedra disagree, on a face between them, the first in file order decides.
func TestTriangulationPrefersTheFirst(t *testing.T) {
	division := &triangulation{known: map[vector]located{}, points: []measuredPoint{
		{vector{0, 0, 0}, stepTime{1, 0}},
		{vector{0, 2, 0}, stepTime{1, 0}},
		{vector{0, 0, 2}, stepTime{1, 0}},
		{vector{2, 0, 0}, stepTime{5, 0}},
		{vector{0, 2, 2}, stepTime{9, 0}},
		{vector{2, 2, 2}, stepTime{1, 0}},
	}}
	division.add([4]int{0, 1, 2, 3})
	division.add([4]int{0, 1, 4, 3}) // overlaps the first
	if got, ok := division.at(vector{0, 1, 1}); !ok || got.step != 1 {
		t.Errorf("%+v, %v; want the first tetrahedron's 1", got, ok)
	}
	if got, ok := division.at(vector{0, 1, 2}); ok {
		t.Errorf("%+v lies outside both", got)
	}
}

func TestStepCurve(t *testing.T) {
	c := stepCurve{batches: []int{2, 4, 8}, times: []stepTime{{1, 0.5}, {2, 0.5}, {8, 1}}}
	cases := map[string]struct {
		batch  int
		want   stepTime
		wantOK bool
	}{
		"measured":       {4, stepTime{2, 0.5}, true},
		"first":          {2, stepTime{1, 0.5}, true},
		"last":           {8, stepTime{8, 1}, true},
		"in between":     {5, stepTime{3.5, 0.625}, true},
		"below the rest": {1, stepTime{}, false},
		"above the rest": {9, stepTime{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, ok := c.at(tc.batch); got != tc.want || ok != tc.wantOK {
				t.Errorf("at(%d) = %+v, %v; want %+v, %v", tc.batch, got, ok, tc.want, tc.wantOK)
			}
		})
	}
}

func TestGainOfVanishingGradients(t *testing.T) {
	p := &profile{trainings: []training{{batch: 10, epochs: []epochRecord{{}}}, {batch: 20, epochs: []epochRecord{{}}}}}
	p.batch.Initial = 10
	if got := p.gain(20, 0); got != 1 {
		t.Errorf("gain is %v, want 1", got)
	}
}
