package inflation_test

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/placement/score"
	"github.com/quartet-sched/quartet/placement/score/inflation"
	"pgregory.net/rapid"
)

func small(tasks ...inflation.Task) *inflation.Trace {
	return inflation.NewTrace(tasks, []inflation.Node{
		{Name: "b", CPU: 8000, Memory: 100, Devices: 1}, {Name: "a", CPU: 8000, Memory: 100, Devices: 1},
	}, score.OfAll)
}

func task(name string, devices, milli int32) inflation.Task {
	return inflation.Task{Name: name, Task: score.Task{CPU: 1000, Devices: devices, Milli: milli}}
}

// By hand: half of a device arrives, a half, a whole one, and a half that fits nowhere; points in between have no event.
func TestRunOfFourTasks(t *testing.T) {
	d := small(task("t", 1, 500)).Draw(1, 0)
	half, whole := task("half", 1, 500), task("whole", 1, 1000)
	d.Arrivals = []inflation.Arrival{{Task: &half, Clone: -1}, {Task: &half, Clone: 3}, {Task: &whole, Clone: -1}, {Task: &half, Clone: 4}}
	var names []string
	got := d.Run(score.BestFit{}, func(a inflation.Arrival, p inflation.Placement) {
		names = append(names, a.Name()+" "+strconv.FormatBool(p.Fits)+" "+d.Nodes[p.Node].Name+" "+inflation.Devices(p.Devices))
	})
	first := d.Nodes[0].Name
	want := []string{"half true " + first + " 0", "half-tuned-3 true " + first + " 0", "whole true " + d.Nodes[1].Name + " 0", "half-tuned-4 false " + first + " "}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("placements (-want +got):\n%s", diff)
	}
	points := inflation.Curves{Allocated: make([]float64, 126), Fragments: make([]float64, 126)}
	for x := range points.Allocated {
		points.Allocated[x], points.Fragments[x] = math.NaN(), math.NaN()
	}
	for x, allocated := range map[int]float64{25: 25, 50: 50, 100: 100, 125: 100} {
		points.Allocated[x], points.Fragments[x] = allocated, 0
	}
	if diff := cmp.Diff(points, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("curves (-want +got):\n%s", diff)
	}
}

// A draw asks for as much as it is told to, less than a task; the order of the lists does not matter; every node is there once.
func TestDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tasks []inflation.Task
		for i := range rapid.IntRange(1, 30).Draw(t, "tasks") {
			tasks = append(tasks, task("t"+strconv.Itoa(i), 1, rapid.Int32Range(1, 1000).Draw(t, "milli")))
		}
		var nodes []inflation.Node
		capacity := 0
		for i := range rapid.IntRange(1, 9).Draw(t, "nodes") {
			n := inflation.Node{Name: "n" + strconv.Itoa(i), Devices: rapid.IntRange(0, 8).Draw(t, "devices")}
			nodes = append(nodes, n)
			capacity += 1000 * n.Devices
		}
		percent, seed := rapid.IntRange(0, 200).Draw(t, "percent"), rapid.Int64().Draw(t, "seed")
		d := inflation.NewTrace(tasks, nodes, score.OfAll).Draw(seed, percent)
		asked, target := 0, capacity*percent/100
		for _, a := range d.Arrivals {
			asked += int(a.Task.Milli)
		}
		if asked > target || asked <= target-1000 && slices.ContainsFunc(d.Arrivals, func(a inflation.Arrival) bool { return a.Clone >= 0 }) {
			t.Errorf("%d are asked for, want %d", asked, target)
		}
		names := map[string]bool{}
		for _, n := range d.Nodes {
			names[n.Name] = true
		}
		if len(names) != len(nodes) || len(d.Nodes) != len(nodes) {
			t.Errorf("nodes %v of %v", d.Nodes, nodes)
		}
		slices.Reverse(tasks)
		slices.Reverse(nodes)
		again := inflation.NewTrace(tasks, nodes, score.OfAll).Draw(seed, percent)
		if diff := cmp.Diff(d.Nodes, again.Nodes); diff != "" || !slices.EqualFunc(d.Arrivals, again.Arrivals, func(a, b inflation.Arrival) bool { return a.Name() == b.Name() }) {
			t.Errorf("another draw from lists in another order: nodes\n%s", diff)
		}
	})
}

// The last clone may go beyond what is asked for with all its devices but the first; then nothing is taken away.
func TestDrawOfTasksWithSeveralDevices(t *testing.T) {
	d := inflation.NewTrace([]inflation.Task{task("t", 4, 1000)}, []inflation.Node{{Name: "n", Devices: 6}}, score.OfAll).Draw(7, 100)
	if len(d.Arrivals) != 2 {
		t.Errorf("%d arrivals, want 2: after the first, 4,000 of 6,000 thousandths are asked for", len(d.Arrivals))
	}
}

func TestDevices(t *testing.T) {
	for set, want := range map[core.DeviceSet]string{0: "", 1: "0", 0b101001: "0-3-5"} {
		if got := inflation.Devices(set); got != want {
			t.Errorf("devices %b are %q, want %q", set, got, want)
		}
	}
}

// Nothing asks for devices, or there are none: no clones without end.
func TestDrawOfNothing(t *testing.T) {
	for name, trace := range map[string]*inflation.Trace{
		"no task has devices": small(task("t", 0, 0)),
		"no tasks":            small(),
		"no nodes":            inflation.NewTrace([]inflation.Task{task("t", 1, 10)}, nil, score.OfAll),
	} {
		t.Run(name, func(t *testing.T) {
			d := trace.Draw(1, 130)
			d.Run(score.NewFGD(trace.Typical()), nil)
			if len(d.Arrivals) > 1 {
				t.Errorf("%d arrivals", len(d.Arrivals))
			}
		})
	}
}
