package score_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/placement/score"
)

// node is one of CPUs in thousandths and what its devices have left.
func node(cpu int64, left ...int32) score.Node {
	return score.Node{CPU: cpu, Memory: 1 << 20, Left: left}
}

func whole(cpu int64, devices int32) score.Task {
	return score.Task{CPU: cpu, Devices: devices, Milli: score.Whole}
}

func part(cpu int64, milli int32) score.Task { return score.Task{CPU: cpu, Devices: 1, Milli: milli} }

// scoreOf is the score of a node after some tasks took its lowest devices.
func scoreOf(t *testing.T, s score.Scorer, n score.Node, running []score.Task, task score.Task) (int32, core.DeviceSet) {
	t.Helper()
	p := score.NewPlacer([]score.Node{n}, s)
	for _, r := range running {
		if !p.Take(&r, core.Seat{Devices: core.FirstDevices(int(r.Devices))}) {
			t.Fatalf("%+v does not fit", r)
		}
	}
	own := &p.Nodes()[0]
	return s.Score(own, &task), s.Devices(own, &task)
}

// Numbers are worked out by hand from the formulas of FGD (ATC'23) and its baselines.
func TestScores(t *testing.T) {
	// Half of the tasks take 500 of a device and 4 CPUs, a quarter a whole one and 8, a quarter 10 CPUs only.
	half, one, none := part(4000, 500), whole(8000, 1), score.Task{CPU: 10_000}
	typical := score.NewTypical([]score.Task{half, half, one, none}, nil, score.OfAll)
	fgd := score.NewFGD(typical)
	cases := map[string]struct {
		scorer  score.Scorer
		node    score.Node
		running []score.Task
		task    score.Task
		want    int32
		devices core.DeviceSet
	}{
		"fgd, a gradient of 0": {fgd, node(90_000, 1000, 500), nil, score.Task{CPU: 1000}, 50, 0},
		// Before: the task without devices leaves 1500/4, that with a whole one 500/4: 500. After, 1000/4 on the second device; on the first
		// 1000/4 + 1000/4. Logistic of 0.25: 56.2.
		"fgd, not the whole device": {fgd, node(90_000, 1000, 500), nil, half, 56, 0b10},
		// The same.
		"fgd, the piece that fits": {fgd, node(90_000, 500, 1000), nil, half, 56, 0b01},
		// Before 2000/4 = 500, after 2000 - 1000 over 4: 250.
		"fgd, a whole device": {fgd, node(90_000, 1000, 1000), nil, one, 56, 0b01},
		// Before 1000/4 = 250; after, only 3 CPUs are left, of use to nobody: 1000. Logistic of -0.75: 32.08.
		"fgd, no CPUs left": {fgd, node(93_000, 1000), nil, score.Task{CPU: 90_000}, 32, 0},
		// 1 - (96 - 32)/256 - (8000 - 2000)/16000 = 0.375
		"best fit": {score.BestFit{}, node(96_000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000), nil, whole(32_000, 2), 37, 0b11},
		// 1 - (128/128 · 64/128)/2 - (1500/8000 · 500/8000)/2 = 0.744
		"dot product":                        {score.DotProduct{}, node(128_000, 1000, 500), nil, part(64_000, 500), 74, 0b10},
		"packing, an idle node of 2":         {score.Packing{}, node(90_000, 1000, 1000), nil, whole(1, 1), 31, 0b01},
		"packing, an idle node of 24":        {score.Packing{}, node(90_000, manyIdle(24)...), nil, whole(1, 1), 24, 0b01},
		"packing, idle devices of a node":    {score.Packing{}, node(90_000, 400, 1000, 1000), nil, whole(1, 2), 48, 0b110},
		"packing, a device that is shared":   {score.Packing{}, node(90_000, 1000, 389, 500), nil, part(1, 300), 97, 0b010},
		"packing, no device":                 {score.Packing{}, node(90_000, 1000), nil, score.Task{CPU: 1}, 0, 0},
		"clustering, an empty node":          {score.Clustering{}, node(90_000, 1000, 1000), nil, whole(1, 1), 25 + 18, 0b01},
		"clustering, with its kind only":     {score.Clustering{}, node(90_000, 1000, 1000), []score.Task{part(1, 500)}, part(1, 400), 75 + 20, 0b01},
		"clustering, with another kind only": {score.Clustering{}, node(90_000, 1000, 1000), []score.Task{whole(1, 1)}, part(1, 400), 25 * 7000 / 8000, 0b10},
		"clustering, with another too":       {score.Clustering{}, node(90_000, 1000, 1000, 1000, 1000), []score.Task{whole(1, 1), whole(1, 1)}, whole(1, 2), 18, 0b1100},
		"clustering, no device":              {score.Clustering{}, node(90_000, 1000), nil, score.Task{CPU: 1}, 0, 0},
	}
	// Two tasks cannot take the same device.
	mixed := cases["clustering, with another too"]
	mixed.running = []score.Task{whole(1, 2)}
	mixed.want = 25*6000/8000 + 75
	cases["clustering, its kind of two"] = mixed
	delete(cases, "clustering, with another too")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, devices := scoreOf(t, tc.scorer, tc.node, tc.running, tc.task)
			if got != tc.want || devices != tc.devices {
				t.Errorf("score %d on devices %s, want %d on %s", got, devices, tc.want, tc.devices)
			}
		})
	}
}

func manyIdle(n int) []int32 {
	left := make([]int32, n)
	for i := range left {
		left[i] = score.Whole
	}
	return left
}

// By hand, from the definition: F_n(m) weighted by how typical m is.
func TestFragments(t *testing.T) {
	tasks := []score.Task{part(4000, 500), part(4000, 500), whole(8000, 1), {CPU: 1000, Devices: 1, Milli: score.Whole, Types: 1 << 1}}
	typical := score.NewTypical(tasks, nil, score.OfAll)
	cases := map[string]struct {
		node score.Node
		want float64
	}{
		// the pieces below 500 are lost to half of the tasks, those below 1000 to a quarter, and all to the last, which needs another type
		"pieces":         {node(9000, 1000, 600, 300), 0.5*300 + 0.25*900 + 0.25*1900},
		"too few CPUs":   {node(5000, 1000, 600, 300), 0.5*300 + 0.25*1900 + 0.25*1900},
		"no CPUs":        {node(0, 1000, 600), 1600},
		"the other type": {score.Node{CPU: 9000, Left: []int32{1000, 250}, Accelerator: 1}, 0.5*250 + 0.25*250 + 0.25*250},
		"nothing left":   {node(9000, 0, 0), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := score.NewPlacer([]score.Node{tc.node}, score.BestFit{})
			for range 2 { // fresh, and remembered
				if got := typical.Fragments(&p.Nodes()[0]); math.Abs(got-tc.want) > 1e-9 {
					t.Errorf("fragments %g, want %g", got, tc.want)
				}
			}
		})
	}
}

// The most frequent tasks that cover 95 % count, whatever their memory; 19 of 20 do.
func TestTypicalTasksCover95Percent(t *testing.T) {
	var tasks []score.Task
	for i := range 20 {
		task := whole(1000, 1)
		task.Memory = int64(i)
		if i == 0 {
			task.Milli = 100
		}
		tasks = append(tasks, task)
	}
	p := score.NewPlacer([]score.Node{node(5000, 50)}, score.BestFit{})
	rare := append(tasks, tasks[0], tasks[0]) // 3 of 22 ask for a tenth
	for name, tc := range map[string]struct {
		tasks []score.Task
		left  int32
		want  float64
	}{
		"one in twenty is left out": {tasks, 100, 100},
		"three in 22 are not":       {rare, 100, 100 * 19.0 / 22},
	} {
		t.Run(name, func(t *testing.T) {
			p = score.NewPlacer([]score.Node{node(5000, tc.left)}, score.BestFit{})
			if got := score.NewTypical(tc.tasks, nil, score.OfAll).Fragments(&p.Nodes()[0]); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("fragments %g, want %g", got, tc.want)
			}
		})
	}
}

// Ties go to the lowest node; closed nodes take nothing; a task that fits nowhere is told.
func TestChoose(t *testing.T) {
	p := score.NewPlacer([]score.Node{node(1000, 1000), node(9000, 1000, 1000), node(9000, 1000, 1000)}, score.Packing{})
	task := whole(2000, 1)
	var got []core.Seat
	for range 3 {
		seat, fits := p.Choose(&task)
		if !fits || !p.Take(&task, seat) {
			t.Fatalf("no seat after %v", got)
		}
		got = append(got, seat)
	}
	want := []core.Seat{{Node: 1, Devices: 1}, {Node: 1, Devices: 2}, {Node: 2, Devices: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seats (-want +got):\n%s", diff)
	}
	p.Close(2)
	if seat, fits := p.Choose(&task); fits {
		t.Errorf("%v is on a closed node, or full", seat)
	}
	if p.Open(2); !fitsOn(p, task, 2) {
		t.Error("does not fit on the node that is open again")
	}
	if p.Release(&task, got[0]); !fitsOn(p, task, 1) {
		t.Error("does not fit where a task left")
	}
}

func fitsOn(p *score.Placer, task score.Task, node core.NodeID) bool {
	seat, fits := p.Choose(&task)
	return fits && seat.Node == node
}

// More distinct tasks than are remembered at once: what is forgotten is found again, the same.
func TestManyDistinctTasks(t *testing.T) {
	tasks := make([]score.Task, 5000)
	for i := range tasks {
		tasks[i] = part(int64(i%977), int32(1+i%1000))
	}
	nodes := []score.Node{node(4000, 1000, 900), node(3000, 500, 500, 500), node(5000, 700)}
	p := score.NewPlacer(nodes, score.BestFit{})
	for round := range 2 {
		for i := range tasks {
			want := naive(p.Nodes(), score.BestFit{}, &tasks[i])
			if seat, fits := p.Choose(&tasks[i]); fits != (want >= 0) || fits && seat.Node != want {
				t.Fatalf("round %d, task %d: %v, %t, want node %d", round, i, seat, fits, want)
			}
			if i%500 == 0 { // the nodes change in between
				if seat, fits := p.Choose(&tasks[i]); fits {
					p.Take(&tasks[i], seat)
				}
			}
		}
	}
}

// What cannot be is refused and changes nothing.
func TestImpossibleChanges(t *testing.T) {
	task, light := part(1000, 600), score.Task{CPU: 500}
	for name, change := range map[string]func(*score.Placer) bool{
		"no such node":             func(p *score.Placer) bool { return p.Take(&task, core.Seat{Node: 1, Devices: 1}) },
		"a node below 0":           func(p *score.Placer) bool { return p.Take(&task, core.Seat{Node: -1, Devices: 1}) },
		"no such device":           func(p *score.Placer) bool { return p.Take(&task, core.Seat{Devices: 1 << 2}) },
		"too many devices":         func(p *score.Placer) bool { return p.Take(&task, core.Seat{Devices: 3}) },
		"no device":                func(p *score.Placer) bool { return p.Take(&task, core.Seat{}) },
		"a device nobody needs":    func(p *score.Placer) bool { return p.Take(&light, core.Seat{Devices: 1}) },
		"a device with too little": func(p *score.Placer) bool { return p.Take(&task, core.Seat{Devices: 2}) },
		"too few CPUs":             func(p *score.Placer) bool { return p.Take(&score.Task{CPU: 5001}, core.Seat{}) },
		"what nobody took":         func(p *score.Placer) bool { return p.Release(&task, core.Seat{Devices: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			p := score.NewPlacer([]score.Node{node(5000, 1000, 300)}, score.BestFit{})
			if change(p) {
				t.Error("was done")
			}
			if n := p.Nodes()[0]; n.CPU != 5000 || n.Left[0] != 1000 || n.Left[1] != 300 {
				t.Errorf("changed the node to %+v", n)
			}
		})
	}
}

// Random takes every node and every set of devices that fits, and no other.
func TestRandomDrawsAll(t *testing.T) {
	p := score.NewPlacer([]score.Node{node(9, 1000, 1000, 1000), node(0, 1000, 1000), node(9, 1000, 400, 1000)}, score.NewRandom(rand.New(rand.NewPCG(3, 4))))
	task, drawn := whole(1, 2), map[core.Seat]int{}
	for range 4000 {
		seat, _ := p.Choose(&task)
		drawn[seat]++
	}
	want := map[core.Seat]float64{{Node: 0, Devices: 0b011}: 1. / 6, {Node: 0, Devices: 0b101}: 1. / 6, {Node: 0, Devices: 0b110}: 1. / 6, {Node: 2, Devices: 0b101}: 1. / 2}
	for seat, part := range want {
		if got := float64(drawn[seat]) / 4000; math.Abs(got-part) > 0.03 {
			t.Errorf("%v is drawn %.3f of the time, want %.3f", seat, got, part)
		}
	}
	if len(drawn) != len(want) {
		t.Errorf("drawn %v", drawn)
	}
}

// What a scorer remembers of a node is of its CPUs, too, before a task and after it: it gives what one without a memory gives.
func TestScoresAreRememberedByCPU(t *testing.T) {
	tasks := []score.Task{part(4000, 500), whole(8000, 1), {CPU: 10_000}}
	typical := score.NewTypical(tasks, nil, score.OfAll)
	for name, fresh := range map[string]func() score.Scorer{
		"fgd":           func() score.Scorer { return score.NewFGD(typical) },
		"fragmentation": func() score.Scorer { return score.NewFragmentation(typical) },
	} {
		t.Run(name, func(t *testing.T) {
			remembers := fresh()
			for _, task := range []score.Task{{CPU: 1000}, {CPU: 5000}, {CPU: 9000}, part(1000, 500), part(5000, 500)} {
				for cpu := task.CPU; cpu <= 24_000; cpu += 1000 {
					n := score.NewPlacer([]score.Node{node(cpu, 1000, 500)}, remembers).Nodes()[0]
					if got, want := remembers.Score(&n, &task), fresh().Score(&n, &task); got != want {
						t.Errorf("%+v on %d CPUs: %d, without a memory %d", task, cpu/1000, got, want)
					}
				}
			}
		})
	}
}

// Of devices on which the score is the same, a task that takes a part takes the fullest.
func TestFragmentationTakesTheFullestOfEqualDevices(t *testing.T) {
	s := score.NewFragmentation(score.NewTypical([]score.Task{{CPU: 1000}}, nil, score.OfAll)) // which needs no device: all that is left is a fragment
	for _, tc := range []struct {
		left []int32
		want core.DeviceSet
	}{
		{[]int32{1000, 500, 700}, 0b010},
		{[]int32{500, 1000, 700}, 0b001},
		{[]int32{700, 1000, 500}, 0b100},
		{[]int32{300, 500, 1000}, 0b010}, // the first is too full
	} {
		n := score.NewPlacer([]score.Node{node(90_000, tc.left...)}, s).Nodes()[0]
		task := part(1000, 400)
		if got := s.Devices(&n, &task); got != tc.want {
			t.Errorf("%v: device %b, want %b", tc.left, got, tc.want)
		}
	}
}
