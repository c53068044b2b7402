package inflation_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core/mig"
	"github.com/quartet-sched/quartet/placement/score"
	"github.com/quartet-sched/quartet/placement/score/inflation"
)

// many is a trace of twenty nodes of four devices.
func many(tasks ...inflation.Task) *inflation.Trace {
	var nodes []inflation.Node
	for i := range 20 {
		nodes = append(nodes, inflation.Node{Name: fmt.Sprintf("n%02d", i), CPU: 1 << 30, Memory: 1 << 30, Devices: 4})
	}
	return inflation.NewTrace(tasks, nodes, score.OfAll)
}

// What is asked for is either lost or allocated, on average; where there is room nothing is lost, and never more is allocated than there is.
func TestTurnover(t *testing.T) {
	parts := []inflation.Task{task("a", 1, 500), task("b", 1, 300), task("c", 1, 1000), task("d", 2, 1000)}
	for name, tc := range map[string]struct {
		trace                *inflation.Trace
		percent              int
		lost, allocated, off float64
	}{
		"room for all":                           {many(parts...), 30, 0, 30, 4},
		"halves, more than there is":             {many(task("a", 1, 500)), 200, 50, 100, 2},
		"wholes, twice what there is":            {many(task("a", 1, 1000)), 200, 50, 100, 2},
		"what is left of three fifths":           {many(task("a", 1, 600)), 300, 80, 60, 2},
		"on slices, half is the largest but one": {many(task("a", 1, 500)).Sliced(score.OfAll), 400, 75 + 12.5, 50, 2},
		"nobody asks":                            {many(), 100, 0, 0, 0},
		"nothing is there":                       {inflation.NewTrace(parts, nil, score.OfAll), 100, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := tc.trace.Draw(3, 0)
			got := d.Turnover(score.BestFit{}, 3, tc.percent, 40)
			if math.Abs(got.Lost-tc.lost) > tc.off || math.Abs(got.Allocated-tc.allocated) > tc.off || got.Allocated > 100 || got.Fragments > 100-got.Allocated+1e-9 {
				t.Errorf("%+v, want %v lost and %v allocated", got, tc.lost, tc.allocated)
			}
			if again := d.Turnover(score.BestFit{}, 3, tc.percent, 40); again != got {
				t.Errorf("%+v, and %+v again", got, again)
			}
			if other := d.Turnover(score.BestFit{}, 4, tc.percent, 40); tc.off > 0 && other == got {
				t.Errorf("another seed comes to the same: %+v", got)
			}
		})
	}
}

// A part of a device becomes the smallest slice with as much compute, and tasks without devices stay so.
func TestSliced(t *testing.T) {
	d := many(task("a", 1, 143), task("b", 2, 1000), task("c", 0, 0)).Sliced(score.OfAll).Draw(1, 100)
	for _, a := range d.Arrivals {
		want, milli := score.Slice(0), int32(0)
		switch a.Task.Name {
		case "a":
			want, milli = score.SliceOf(mig.TwoG)
		case "b":
			want, milli = score.SliceOf(mig.SevenG)
		}
		if a.Task.Slice != want || a.Task.Milli != milli {
			t.Errorf("%s has slice %d and %d thousandths, want %d and %d", a.Task.Name, a.Task.Slice, a.Task.Milli, want, milli)
		}
	}
	if curves := d.Run(score.BestFit{}, nil); curves.Allocated[100] < 90 {
		t.Errorf("%v %% is allocated", curves.Allocated[100])
	}
}
