package workload

import (
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
	p := &learning{trainings: []training{{batch: 10, epochs: []epochRecord{{}}}, {batch: 20, epochs: []epochRecord{{}}}}}
	if got := p.gain(20, 0); got != 1 {
		t.Errorf("gain is %v, want 1", got)
	}
}
