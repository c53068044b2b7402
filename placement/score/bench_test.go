package score_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quartet-sched/quartet/placement/score"
)

// crowd is 1,250 nodes of 8 devices, on which tasks of a few kinds come and go.
type crowd struct {
	placer  *score.Placer
	random  *rand.Rand
	tasks   []score.Task
	running []run
}

// newCrowd has tasks of so many amounts of CPUs.
func newCrowd(scorer func(*score.Typical) score.Scorer, amounts int) *crowd {
	c := &crowd{random: rand.New(rand.NewPCG(5, 6))}
	for range 1000 {
		c.tasks = append(c.tasks, score.Task{
			CPU: int64(12_000 / amounts * (1 + c.random.IntN(amounts))), Memory: 1 << 12, Devices: 1, Milli: []int32{110, 230, 320, 470, 470, 650, 810, 810, 1000, 1000}[c.random.IntN(10)],
		})
	}
	var nodes []score.Node
	for range 1250 {
		nodes = append(nodes, score.Node{CPU: 96_000, Memory: 1 << 19, Left: manyIdle(8)})
	}
	c.placer = score.NewPlacer(nodes, scorer(score.NewTypical(c.tasks, nil, score.OfAll)))
	c.running = make([]run, 0, 20_000)
	for c.arrive() {
	}
	return c
}

func (c *crowd) arrive() bool {
	task := &c.tasks[c.random.IntN(len(c.tasks))]
	seat, found := c.placer.Choose(task)
	if found {
		c.placer.Take(task, seat)
		c.running = append(c.running, run{*task, seat})
	}
	return found
}

func (c *crowd) leave() {
	last, i := len(c.running)-1, c.random.IntN(len(c.running))
	r := c.running[i]
	c.placer.Release(&r.task, r.seat)
	c.running[i], c.running = c.running[last], c.running[:last]
}

func TestQuietPathAllocatesNothing(t *testing.T) {
	for name, scorer := range scorers {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(scorer, 12)
			for range 200 { // every kind of task is known
				c.leave()
				c.arrive()
			}
			for i := range c.tasks {
				c.placer.Choose(&c.tasks[i])
			}
			if n := testing.AllocsPerRun(200, func() {
				c.leave()
				c.arrive()
			}); n != 0 {
				t.Errorf("%g allocations for a task that leaves and one that arrives", n)
			}
		})
	}
}

// A departure and an arrival on 10,000 devices that are nearly full.
func BenchmarkPlacement(b *testing.B) {
	for name, scorer := range scorers {
		for _, amounts := range []int{12, 100, 300, 1000} {
			b.Run(fmt.Sprintf("%s/CPUs=%d", name, amounts), func(b *testing.B) {
				c := newCrowd(scorer, amounts)
				b.ReportAllocs()
				for b.Loop() {
					c.leave()
					c.arrive()
				}
			})
		}
	}
}
