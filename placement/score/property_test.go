package score_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/placement/score"
	"pgregory.net/rapid"
)

var scorers = map[string]func(*score.Typical) score.Scorer{
	"fgd":           func(y *score.Typical) score.Scorer { return score.NewFGD(y) },
	"fragmentation": func(y *score.Typical) score.Scorer { return score.NewFragmentation(y) },
	"best fit":      func(*score.Typical) score.Scorer { return score.BestFit{} },
	"dot product":   func(*score.Typical) score.Scorer { return score.DotProduct{} },
	"packing":       func(*score.Typical) score.Scorer { return score.Packing{} },
	"clustering":    func(*score.Typical) score.Scorer { return score.Clustering{} },
	"random":        func(*score.Typical) score.Scorer { return score.NewRandom(rand.New(rand.NewPCG(1, 2))) },
}

func drawTask(t *rapid.T) score.Task {
	task := score.Task{
		CPU: rapid.Int64Range(0, 12).Draw(t, "cpu") * 1000, Memory: rapid.Int64Range(0, 20).Draw(t, "memory"),
		Types: score.TypeSet(rapid.Uint64Range(0, 7).Draw(t, "types")),
	}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
	case 1:
		task.Devices, task.Milli = rapid.Int32Range(1, 8).Draw(t, "devices"), score.Whole
	default:
		task.Devices, task.Milli = 1, 10*rapid.Int32Range(1, 100).Draw(t, "milli")
	}
	return task
}

func drawNodes(t *rapid.T) []score.Node {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) score.Node {
		return score.Node{
			CPU: rapid.Int64Range(0, 60).Draw(t, "cpu") * 1000, Memory: rapid.Int64Range(0, 100).Draw(t, "memory"),
			Left: manyIdle(rapid.IntRange(0, 9).Draw(t, "devices")), Accelerator: core.AcceleratorID(rapid.IntRange(0, 2).Draw(t, "type")),
		}
	}), 1, 7).Draw(t, "nodes")
}

// fits is the definition, over the whole node.
func fits(n *score.Node, t *score.Task) bool {
	enough := int32(0)
	for _, left := range n.Left {
		if left >= t.Milli {
			enough++
		}
	}
	return t.CPU <= n.CPU && t.Memory <= n.Memory && (t.Types == 0 || t.Types>>n.Accelerator&1 == 1) && (t.Devices == 0 || enough >= t.Devices)
}

// naive is the first of the best nodes, scored afresh by a scorer that remembers nothing; -1 for none.
func naive(nodes []score.Node, s score.Scorer, t *score.Task) core.NodeID {
	best, highest := core.NodeID(-1), int32(-1)
	for i := range nodes {
		if fits(&nodes[i], t) {
			if x := s.Score(&nodes[i], t); x > highest {
				best, highest = core.NodeID(i), x
			}
		}
	}
	return best
}

type run struct {
	task score.Task
	seat core.Seat
}

// Tasks come and go: nothing is above capacity, the best node of all is taken, and when all are gone the nodes are as they were.
func TestStreams(t *testing.T) {
	for name, scorer := range scorers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				nodes := drawNodes(t)
				before := clone(nodes)
				tasks := rapid.SliceOfN(rapid.Custom(drawTask), 1, 12).Draw(t, "tasks")
				typical := score.NewTypical(tasks, nil, score.OfAll)
				p := score.NewPlacer(nodes, scorer(typical))
				var running []run
				for range rapid.IntRange(1, 60).Draw(t, "events") {
					if len(running) > 0 && rapid.IntRange(0, 2).Draw(t, "leaves") == 0 {
						i := rapid.IntRange(0, len(running)-1).Draw(t, "who")
						leave(t, p, &running, i)
						continue
					}
					task := rapid.SampledFrom(tasks).Draw(t, "task")
					seat, found := p.Choose(&task)
					want := naive(p.Nodes(), scorer(score.NewTypical(tasks, nil, score.OfAll)), &task)
					if found != (want >= 0) || found && name != "random" && seat.Node != want {
						t.Fatalf("node %d, %t; want %d", seat.Node, found, want)
					}
					if found {
						arrive(t, p, &task, seat)
						running = append(running, run{task, seat})
					}
				}
				for len(running) > 0 {
					leave(t, p, &running, len(running)-1)
				}
				if diff := cmp.Diff(before, p.Nodes(), cmpopts.IgnoreUnexported(score.Node{})); diff != "" {
					t.Fatalf("nodes when all have left (-want +got):\n%s", diff)
				}
				fresh := score.NewPlacer(clone(before), scorer(typical))
				for _, task := range tasks {
					got, one := p.Choose(&task)
					want, other := fresh.Choose(&task)
					if name != "random" && got != want || one != other {
						t.Fatalf("%+v goes to %v when all have left, to %v at first", task, got, want)
					}
				}
			})
		})
	}
}

func clone(nodes []score.Node) []score.Node {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i].Left = slices.Clone(nodes[i].Left)
	}
	return nodes
}

// arrive takes a seat, which must be one the task can have.
func arrive(t *rapid.T, p *score.Placer, task *score.Task, seat core.Seat) {
	n := &p.Nodes()[seat.Node]
	if !fits(n, task) || seat.Devices.Count() != int(task.Devices) {
		t.Fatalf("%+v gets %v of %+v", *task, seat, *n)
	}
	for _, d := range seat.Devices.List() {
		if d >= len(n.Left) || n.Left[d] < task.Milli {
			t.Fatalf("%+v gets device %d of %v", *task, d, n.Left)
		}
	}
	cpu, left := n.CPU, slices.Clone(n.Left)
	if !p.Take(task, seat) {
		t.Fatalf("%v is refused", seat)
	}
	for d := range left {
		if seat.Devices&(1<<d) != 0 {
			left[d] -= task.Milli
		}
	}
	if n.CPU != cpu-task.CPU || !slices.Equal(n.Left, left) {
		t.Fatalf("%+v is left, want %d and %v", *n, cpu-task.CPU, left)
	}
}

func leave(t *rapid.T, p *score.Placer, running *[]run, i int) {
	r := (*running)[i]
	if !p.Release(&r.task, r.seat) {
		t.Fatalf("%v is not taken back", r.seat)
	}
	*running = slices.Delete(*running, i, i+1)
}

// A score of Fragmentation is what its description says, to a step: typical tasks, places and devices are tried one by one.
func TestFragmentationByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.SliceOfN(rapid.Custom(drawTask), 1, 19).Draw(t, "tasks") // so few that each is typical
		typical := score.NewTypical(tasks, nil, score.OfAll)
		n := score.Node{CPU: rapid.Int64Range(0, 30).Draw(t, "cpu") * 1000, Memory: 1 << 20, Accelerator: core.AcceleratorID(rapid.IntRange(0, 2).Draw(t, "type"))}
		for range rapid.IntRange(0, 5).Draw(t, "devices") {
			n.Left = append(n.Left, 10*rapid.Int32Range(0, 100).Draw(t, "left"))
		}
		task := rapid.SampledFrom(tasks).Draw(t, "task")
		if !fits(&n, &task) {
			t.Skip("the draw is a task that the node has no room for: it is not scored")
		}
		before, best := outlook(typical, tasks, n), math.Inf(-1)
		for _, after := range places(n, &task) {
			gain := before - outlook(typical, tasks, after)
			for _, left := range after.Left {
				gain -= 0.015 * float64(left)
			}
			best = max(best, gain)
		}
		own := score.NewPlacer(clone([]score.Node{n}), score.BestFit{}).Nodes()
		got := score.NewFragmentation(typical).Score(&own[0], &task) - 1<<20
		if math.Abs(float64(got)+0.5-best/10) > 0.5+1e-6 {
			t.Errorf("score %d, want the floor of %g", got, best/10)
		}
	})
}

// outlook is the fragments of a node, and half those after the next task.
func outlook(typical *score.Typical, tasks []score.Task, n score.Node) float64 {
	fragments := func(n score.Node) float64 {
		return typical.Fragments(&score.NewPlacer(clone([]score.Node{n}), score.BestFit{}).Nodes()[0])
	}
	now, ahead := fragments(n), 0.0
	for _, next := range tasks {
		next.Memory = 0
		least := now
		if fits(&n, &next) {
			least = math.Inf(1)
			for _, after := range places(n, &next) {
				least = min(least, fragments(after))
			}
		}
		ahead += least / float64(len(tasks))
	}
	return now + 0.5*ahead
}

// places is the node with a task on each device that it can share, or on the lowest that it takes whole.
func places(n score.Node, task *score.Task) []score.Node {
	n.CPU -= task.CPU
	var all []score.Node
	if task.Devices == 1 && task.Milli < score.Whole {
		for i, left := range n.Left {
			if left >= task.Milli {
				after := clone([]score.Node{n})[0]
				after.Left[i] -= task.Milli
				all = append(all, after)
			}
		}
		return all
	}
	after, missing := clone([]score.Node{n})[0], task.Devices
	for i, left := range after.Left {
		if missing > 0 && left >= task.Milli {
			after.Left[i] -= task.Milli
			missing--
		}
	}
	return []score.Node{after}
}
