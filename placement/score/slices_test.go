package score_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/mig"
	"github.com/quartet-sched/quartet/placement/score"
)

// sliced is a task of a profile.
func sliced(cpu int64, p mig.Profile, devices int32) score.Task {
	t := score.Task{CPU: cpu, Devices: devices}
	t.Slice, t.Milli = score.SliceOf(p)
	return t
}

// layouts is a node whose devices have these slices taken.
func layouts(cpu int64, of ...mig.Layout) score.Node {
	return score.Node{CPU: cpu, Memory: 1 << 20, Slices: of}
}

// held is a task with the slices that it has, device by device.
type held struct {
	task   score.Task
	seat   core.Seat
	starts []uint8
}

// wrong says what is wrong with the slices of a device; "" for nothing. Left is what the node says of it.
func wrong(on []held, n core.NodeID, device int, layout mig.Layout, left int32) string {
	taken, compute, free := [mig.Slices]bool{}, 0, int32(mig.Slices)
	for _, h := range on {
		k := slices.Index(h.seat.Devices.List(), device)
		if h.seat.Node != n || k < 0 {
			continue
		}
		p := mig.Profile(h.task.Slice - 1) //nolint:gosec // there are 5
		if compute += mig.Of(p).Compute; !slices.Contains(mig.Of(p).Starts, int(h.starts[k])) {
			return "a slice begins where none of its profile may"
		}
		for i := range mig.Of(p).Memory {
			if at := int(h.starts[k]) + i; taken[at] {
				return "two tasks have one slice"
			} else {
				taken[at] = true
			}
			free--
		}
	}
	for i, is := range taken {
		if is != (layout>>i&1 == 1) {
			return "the layout is not what tasks have"
		}
	}
	if compute > mig.ComputeSlices || left != 125*free {
		return "it has more compute than there is, or less left than is free"
	}
	return ""
}

// Ten thousand tasks come to few devices, and go: every slice is legal and nobody else's, one who finds no seat finds no device with a place, and once all are
// gone the nodes are empty.
func TestStreamsOfSlices(t *testing.T) {
	for name, scorer := range scorers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, 8)) //nolint:gosec // a test
			var tasks []score.Task
			for _, p := range mig.Profiles() {
				for devices := range int32(2) {
					tasks = append(tasks, sliced(1000, p, 1+devices), sliced(9000, p, 1+devices), sliced(1000, p, 1))
				}
			}
			tasks = append(tasks, score.Task{CPU: 2000})
			p := score.NewPlacer([]score.Node{layouts(64_000, 0, 0, 0), layouts(32_000, 0, 0xff), layouts(8000, 0, 0)}, scorer(score.NewTypical(tasks, nil, score.OfAll)))
			var on []held
			refused := 0
			leave := func(i int) {
				h := on[i]
				if !p.ReleaseSlices(&h.task, h.seat, h.starts) {
					t.Fatalf("%+v is not taken back", h)
				}
				on = slices.Delete(on, i, i+1)
			}
			for range 10_000 {
				if len(on) > 0 && random.IntN(2) == 0 {
					leave(random.IntN(len(on)))
				}
				task := tasks[random.IntN(len(tasks))]
				seat, found := p.Choose(&task)
				if want := slices.ContainsFunc(p.Nodes(), func(n score.Node) bool { return hasPlaces(&n, &task) }); found != want {
					t.Fatalf("%+v is seated %t, want %t: %+v", task, found, want, p.Nodes())
				}
				if !found {
					refused++
					continue
				}
				starts := p.Starts(nil, &task, seat)
				if !p.Take(&task, seat) || seat.Devices.Count() != int(task.Devices) {
					t.Fatalf("%+v gets %v", task, seat)
				}
				on = append(on, held{task, seat, starts})
				for i, n := range p.Nodes() {
					for device, layout := range n.Slices {
						if i == 1 && device == 1 {
							continue // nobody's
						}
						if fault := wrong(on, core.NodeID(i), device, layout, n.Left[device]); fault != "" { //nolint:gosec // few
							t.Fatalf("device %d of node %d: %s: %08b", device, i, fault, layout)
						}
					}
				}
			}
			if refused < 1000 || refused > 9000 {
				t.Errorf("%d of 10,000 were refused: too few or too many to tell", refused)
			}
			for len(on) > 0 {
				leave(len(on) - 1)
			}
			for i, n := range p.Nodes() {
				if want := []int64{64_000, 32_000, 8000}[i]; n.CPU != want || n.Slices[0] != 0 || n.Left[0] != score.Whole {
					t.Errorf("node %d when all have left: %+v", i, n)
				}
			}
		})
	}
}

// hasPlaces reports whether a node has room, looking for places one by one.
func hasPlaces(n *score.Node, t *score.Task) bool {
	enough := int32(0)
	for _, l := range n.Slices {
		if t.Slice > 0 && slices.ContainsFunc([]int{0, 1, 2, 3, 4, 5, 6, 7}, func(s int) bool { return l.Fits(mig.Profile(t.Slice-1), s) }) { //nolint:gosec // there are 5
			enough++
		}
	}
	return t.CPU <= n.CPU && enough >= t.Devices
}

// fragmentsOf is the definition: of each device the memory slices that are in no place of a task's profile, and all of the node where a task does not fit.
func fragmentsOf(n *score.Node, tasks []score.Task) float64 {
	all := 0.0
	for _, t := range tasks {
		free, useless := 0, 0
		for _, l := range n.Slices {
			useful := mig.Layout(0)
			for start := range mig.Slices {
				if t.Slice > 0 && l.Fits(mig.Profile(t.Slice-1), start) { //nolint:gosec // there are 5
					useful |= mig.At(mig.Profile(t.Slice-1), start) //nolint:gosec // there are 5
				}
			}
			free += l.Free()
			useless += (l | useful).Free()
		}
		if t.Slice == 0 || !hasPlaces(n, &t) {
			useless = free
		}
		all += float64(useless) * 125 / float64(len(tasks))
	}
	return all
}

// FGD on slices is what its description says: fragments by definition, and the device whose gradient is highest, the lowest of such.
func TestFGDOnSlicesByDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	for range 300 {
		var tasks []score.Task
		for range 1 + random.IntN(12) {
			tasks = append(tasks, sliced(1000*random.Int64N(9), mig.Profile(random.IntN(5)), 1+random.Int32N(2)))
		}
		tasks = append(tasks, score.Task{CPU: 3000})
		typical := score.NewTypical(tasks, nil, score.OfAll)
		scorer := score.NewFGD(typical)
		n := layouts(1000 * random.Int64N(12))
		for range 1 + random.IntN(4) {
			l := mig.Layout(0)
			for range random.IntN(5) {
				p := mig.Profile(random.IntN(5))
				if start, room := l.Place(p); room {
					l |= mig.At(p, start)
				}
			}
			n.Slices = append(n.Slices, l)
		}
		before := fragmentsOf(&n, tasks)
		own := &score.NewPlacer([]score.Node{n}, scorer).Nodes()[0]
		if got := typical.Fragments(own); math.Abs(got-before) > 1e-9 {
			t.Fatalf("%v of %08b in fragments, want %v", got, n.Slices, before)
		}
		task := tasks[random.IntN(len(tasks)-1)]
		if !hasPlaces(&n, &task) || task.Devices > 1 {
			continue
		}
		best, device := math.Inf(-1), -1
		for i, l := range n.Slices {
			start, room := l.Place(mig.Profile(task.Slice - 1)) //nolint:gosec // there are 5
			if !room {
				continue
			}
			after := layouts(n.CPU-task.CPU, slices.Clone(n.Slices)...)
			after.Slices[i] |= mig.At(mig.Profile(task.Slice-1), start)                                                                                             //nolint:gosec // there are 5
			if s := math.Floor(100 / (1 + math.Exp(-(before-fragmentsOf(&after, tasks))/1000)) * (1 + 1e-12)); task.Milli < score.Whole && s > best || device < 0 { // a whole device: the lowest
				best, device = s, i
			}
		}
		if got, devices := scorer.Score(own, &task), scorer.Devices(own, &task); math.Abs(float64(got)-best) > 1 || got == int32(best) && devices.First() != device {
			t.Fatalf("score %d on %s, want %v on %d of %08b", got, devices, best, device, n.Slices)
		}
	}
}

// Nodes whose devices are divided take tasks with slices only, others none, and what was not taken is not given back.
func TestSlicesWhereTheyAreNot(t *testing.T) {
	one := sliced(1, mig.OneG, 1)
	for name, tc := range map[string]struct {
		node   score.Node
		task   score.Task
		seat   core.Seat
		starts []uint8
		take   bool
		want   bool
	}{
		"a slice of a whole device":    {node(9, 1000), one, core.Seat{Devices: 1}, nil, true, false},
		"a part of a divided device":   {layouts(9, 0), part(1, 300), core.Seat{Devices: 1}, nil, true, false},
		"a slice":                      {layouts(9, 0), one, core.Seat{Devices: 1}, nil, true, true},
		"a slice where it was":         {layouts(9, 0), one, core.Seat{Devices: 1}, []uint8{3}, true, true},
		"a slice where none begins":    {layouts(9, 0), one, core.Seat{Devices: 1}, []uint8{7}, true, false},
		"a slice that is nowhere":      {layouts(9, 0), one, core.Seat{Devices: 1}, []uint8{core.NoSlice}, true, false},
		"a slice of another":           {layouts(9, 8), one, core.Seat{Devices: 1}, []uint8{3}, true, false},
		"more slices than devices":     {layouts(9, 0), one, core.Seat{Devices: 1}, []uint8{3, 4}, true, false},
		"nothing was taken":            {layouts(9, 8), one, core.Seat{Devices: 1}, []uint8{3}, false, false},
		"no room":                      {layouts(9, 0x7f), one, core.Seat{Devices: 1}, nil, true, false},
		"no CPUs":                      {layouts(0, 0), one, core.Seat{Devices: 1}, nil, true, false},
		"CPUs alone, of a divided one": {layouts(9, 0xff), score.Task{CPU: 1}, core.Seat{}, nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := score.NewPlacer([]score.Node{tc.node}, score.BestFit{})
			change := p.ReleaseSlices
			if tc.take {
				change = p.TakeSlices
			}
			before := p.Nodes()[0].CPU
			if got := change(&tc.task, tc.seat, tc.starts); got != tc.want || !got && p.Nodes()[0].CPU != before {
				t.Errorf("%t, want %t; CPUs left %d of %d", got, tc.want, p.Nodes()[0].CPU, before)
			}
		})
	}
	p := score.NewPlacer([]score.Node{layouts(9, 0)}, score.BestFit{})
	if !p.TakeSlices(&one, core.Seat{Devices: 1}, []uint8{3}) {
		t.Fatal("a slice is refused")
	}
	for _, starts := range [][]uint8{nil, {}, {2}, {200}} {
		if p.ReleaseSlices(&one, core.Seat{Devices: 1}, starts) {
			t.Errorf("slices at %v are taken back", starts)
		}
	}
	if !p.ReleaseSlices(&one, core.Seat{Devices: 1}, []uint8{3}) || p.Nodes()[0].Slices[0] != 0 {
		t.Error("a slice is not taken back")
	}
}

// Memory of devices adds up, but for nodes that say otherwise.
func TestMemoryOfDevices(t *testing.T) {
	for name, tc := range map[string]struct {
		fixed bool
		want  []core.NodeID // of tasks that need 10 of 16, one after the other
	}{"added up": {false, []core.NodeID{0, 0, 1, -1}}, "fixed": {true, []core.NodeID{0, 0, 0, 0}}} {
		t.Run(name, func(t *testing.T) {
			task := part(1, 200)
			task.DeviceMemory = 10
			for which, scorer := range scorers {
				if which == "random" {
					continue
				}
				p := score.NewPlacer([]score.Node{
					{CPU: 99, Left: []int32{1000, 1000}, DeviceMemory: []int64{16, 16}, FixedMemory: tc.fixed},
					{CPU: 99, Left: []int32{1000, 1000}, DeviceMemory: []int64{9, 16}, FixedMemory: tc.fixed},
				}, scorer(score.NewTypical([]score.Task{task}, nil, score.OfAll)))
				seats := []core.Seat{}
				for _, want := range tc.want {
					seat, found := p.Choose(&task)
					if !found {
						seat.Node = -1
					}
					if found && !p.Take(&task, seat) {
						t.Fatalf("%s: %v is refused", which, seat)
					}
					if seats = append(seats, seat); found != (want >= 0) || found && !tc.fixed && seat.Node == 1 && seat.Devices != 2 {
						t.Errorf("%s: a task goes to %v, want node %d", which, seat, want)
					}
				}
				for i, seat := range seats {
					if tc.want[i] >= 0 && !p.Release(&task, seat) {
						t.Errorf("%s: %v is not taken back", which, seat)
					}
				}
				if n := p.Nodes(); n[0].DeviceMemory[0] != 16 || n[0].DeviceMemory[1] != 16 || n[1].DeviceMemory[0] != 9 || n[1].DeviceMemory[1] != 16 {
					t.Errorf("%s: %v and %v left when all are gone", which, n[0].DeviceMemory, n[1].DeviceMemory)
				}
			}
		})
	}
}
