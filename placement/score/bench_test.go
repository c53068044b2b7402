package score_test

import (
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

func newCrowd(scorer func(*score.Typical) score.Scorer) *crowd {
	c := &crowd{random: rand.New(rand.NewPCG(5, 6))}
	for range 1000 {
		c.tasks = append(c.tasks, score.Task{
			CPU: 1000 * int64(1+c.random.IntN(12)), Memory: 1 << 12, Devices: 1, Milli: []int32{110, 230, 320, 470, 470, 650, 810, 810, 1000, 1000}[c.random.IntN(10)],
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
			c := newCrowd(scorer)
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
		b.Run(name, func(b *testing.B) {
			c := newCrowd(scorer)
			b.ReportAllocs()
			for b.Loop() {
				c.leave()
				c.arrive()
			}
		})
	}
}
