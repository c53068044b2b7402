package synergy_test

import (
	"math"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
	. "github.com/quartet-sched/quartet/core/synergy"
)

// Keys at 100 s on 10 devices, 20 CPUs and 100 GB, by hand.
func TestKeys(t *testing.T) {
	t.Parallel()
	state := State{ArrivalSeconds: 40, RemainingSeconds: 30, AttainedSeconds: 20, DurationSeconds: 60, Devices: 2, Demand: core.Resources{CPUs: 8, MemoryGB: 10}}
	of := Capacity{10, core.Resources{CPUs: 20, MemoryGB: 100}}
	for name, tc := range map[string]struct {
		order Order
		want  float64
	}{
		"by arrival":                      {FIFO, 40},
		"by what remains":                 {SRTF, 30},
		"by device-seconds":               {LAS, 40},
		"by finish-time fairness":         {FTF, -1.5},
		"the best off first, as the slip": {MisreadFTF, 1.5},
		"by the dominant share":           {DRF, 0.4},
		"by work in all resources":        {Tetris, 30 * 0.7},
	} {
		if got := tc.order(&state, 100, of); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	uncounted := Capacity{Devices: 10}
	if drf, tetris := DRF(&state, 100, uncounted), Tetris(&state, 100, uncounted); math.Abs(drf-0.2) > 1e-12 || math.Abs(tetris-6) > 1e-12 {
		t.Errorf("where CPUs and memory are not counted the keys are %v and %v, want 0.2 and 6", drf, tetris)
	}
}

func TestReckoned(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode       Mode
		last, best float64
		want       float64
	}{
		"fair":                      {Fair, 1, 3, 1},
		"did not run":               {Tune, 0, 3, 3},
		"ran at proportional share": {Tune, 1, 3, 1},
		"ran at its demand":         {Greedy, 3, 3, 3},
	} {
		if got := Reckoned(tc.mode, tc.last, tc.best); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestFilling(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		of      Capacity
		tenants []Tenant
		want    []int
	}{
		// Section 4.1 of the paper: 9 CPUs and 18 GB; A's tasks take 1 and 4, B's 3 and 1.
		"the example of the paper": {Capacity{100, core.Resources{CPUs: 9, MemoryGB: 18}}, []Tenant{
			{1, 9, 0, core.Resources{CPUs: 1, MemoryGB: 4}}, {1, 9, 0, core.Resources{CPUs: 3, MemoryGB: 1}},
		}, []int{3, 2}},
		"weights": {Capacity{9, core.Resources{CPUs: 9, MemoryGB: 9}}, []Tenant{
			{2, 9, 1, core.Resources{}}, {1, 9, 1, core.Resources{}},
		}, []int{6, 3}},
		"what one does not want is the other's": {Capacity{9, core.Resources{CPUs: 9, MemoryGB: 9}}, []Tenant{
			{1, 2, 1, core.Resources{}}, {1, 9, 1, core.Resources{}},
		}, []int{2, 7}},
		"equal shares go to the first": {Capacity{3, core.Resources{CPUs: 9, MemoryGB: 9}}, []Tenant{
			{1, 9, 1, core.Resources{}}, {1, 9, 1, core.Resources{}},
		}, []int{2, 1}},
		// 0.3 less 0.1 twice is less than 0.1 by rounding.
		"all of the CPUs":   {Capacity{9, core.Resources{CPUs: 0.3, MemoryGB: 9}}, []Tenant{{1, 9, 1, core.Resources{CPUs: 0.1}}}, []int{3}},
		"all of the memory": {Capacity{9, core.Resources{CPUs: 9, MemoryGB: 0.3}}, []Tenant{{1, 9, 1, core.Resources{MemoryGB: 0.1}}}, []int{3}},
		"nobody":            {Capacity{9, core.Resources{CPUs: 9, MemoryGB: 9}}, nil, nil},
	} {
		if got := Filling(nil, tc.of, tc.tenants); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestTetrisPlacement(t *testing.T) {
	t.Parallel()
	capacity := Server{Devices: 8, Resources: core.Resources{CPUs: 16, MemoryGB: 100}}
	empty := Alignment(2, core.Resources{CPUs: 8, MemoryGB: 10}, capacity, capacity)
	half := Alignment(2, core.Resources{CPUs: 8, MemoryGB: 10}, Server{Devices: 4, Resources: capacity.Times(0.5)}, capacity)
	if math.Abs(empty-0.85) > 1e-12 || math.Abs(half-0.425) > 1e-12 {
		t.Errorf("alignment %v and %v, want 0.85 and 0.425", empty, half)
	}
	if got := Alignment(2, core.Resources{CPUs: 8}, Server{}, Server{}); got != 0 {
		t.Errorf("alignment with a server without anything is %v", got)
	}
	if got := Combined(0.85, 50, 0.5, 100); math.Abs(got-0.6) > 1e-12 {
		t.Errorf("score %v, want 0.6", got)
	}
	if got := Combined(0.85, 0, 0.5, 0); got != 0.85 {
		t.Errorf("score %v where nobody has work left, want the alignment 0.85", got)
	}
	for knob, want := range map[float64]int{0: 8, 0.25: 6, 0.9: 1, 1: 1} {
		if got := Furthest(8, knob); got != want {
			t.Errorf("knob %v: %d jobs, want %d", knob, got, want)
		}
	}
	if got := Furthest(0, 0.5); got != 0 {
		t.Errorf("%d jobs of none", got)
	}
}
