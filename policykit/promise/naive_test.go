package promise

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// naive plans as Fill is to: by trying, from moment to moment of the grid.
type naive struct {
	now, grid, origin, overhead float64
	devices                     int
	taken                       []Piece // by others
}

// free is the devices that nobody has at a moment.
func (n *naive) free(at float64) int {
	free := n.devices
	for _, x := range n.taken {
		if max(x.From, n.now) <= at && at < x.To {
			free -= x.Replicas
		}
	}
	return free
}

// after is the first moment of the grid from a moment on.
func (n *naive) after(at float64) float64 {
	if n.grid == 0 {
		return at
	}
	k := math.Floor((at-n.origin)/n.grid) - 1
	for n.origin+k*n.grid < at-1e-6 {
		k++
	}
	return n.origin + k*n.grid
}

// moments are now and those of the grid, up to the first that is not before the end.
func (n *naive) moments(end float64) []float64 {
	list := []float64{n.now}
	for at := n.after(n.now); list[len(list)-1] < end; at += n.grid {
		if at > n.now {
			list = append(list, at)
		}
	}
	return list
}

// search tries all levels from the lowest on, and of each all moments from the latest on; nil when none will do.
func (n *naive) search(j *Job) Plan {
	if !(j.Left > 0) || !(j.Levels[0].Rate > 0) {
		return nil
	}
	moments := n.moments(j.Deadline)
	for level := range j.Levels {
		for over := range slices.Backward(moments) {
			if plan := n.try(j, level, moments, over); len(plan) > 1 && j.Pinned {
				return n.steadily(j)
			} else if plan != nil {
				return plan
			}
		}
	}
	return nil
}

// steadily is the plan on the lowest level that a job can keep from now on until it is done.
func (n *naive) steadily(j *Job) Plan {
	for _, l := range j.Levels {
		if plan := n.steady(j, l.Replicas); plan != nil {
			return plan
		}
	}
	return nil
}

// steady is the plan with so many replicas from now on; nil when it misses the deadline, or as many are not free.
func (n *naive) steady(j *Job, replicas int) Plan {
	plan := Plan{{n.now, n.now, replicas}}
	for _, l := range j.Levels {
		if ready := n.now + n.overhead; l.Replicas == replicas {
			if replicas == j.Held {
				ready = j.Ready
			}
			plan[0].To = n.after(ready + j.Left/l.Rate)
		}
	}
	for _, at := range n.moments(plan[0].To) {
		if at < plan[0].To && n.free(at) < replicas {
			return nil
		}
	}
	if n.fault(j, plan) != "" {
		return nil
	}
	return plan
}

// try is the plan that goes over to a level at a moment, from the one below; nil when it misses the deadline.
func (n *naive) try(j *Job, level int, moments []float64, over int) Plan {
	var plan Plan
	held, ready, left := j.Held, j.Ready, j.Left
	for i, at := range moments[:len(moments)-1] {
		next, allowed := moments[i+1], j.Levels[:level+1]
		if i < over {
			allowed = j.Levels[:level]
		}
		var runs Level
		for _, l := range allowed {
			if l.Replicas <= n.free(at) {
				runs = l
			}
		}
		if runs.Replicas != held {
			held, ready = runs.Replicas, at+n.overhead
		}
		if held == 0 {
			continue
		}
		left -= runs.Rate * max(min(next, j.Deadline)-max(at, ready), 0)
		if last := len(plan) - 1; last >= 0 && plan[last].To == at && plan[last].Replicas == held {
			plan[last].To = next
		} else {
			plan = append(plan, Piece{at, next, held})
		}
		if left <= j.Left*1e-9 {
			return plan
		}
	}
	return nil
}

// earliest is when a job is done that takes all that is free, from moment to moment.
func (n *naive) earliest(j *Job) float64 {
	moments := n.moments(n.now + 1000)
	held, ready, left := j.Held, j.Ready, j.Left
	for i, at := range moments[:len(moments)-1] {
		var runs Level
		for _, l := range j.Levels {
			if l.Replicas <= n.free(at) {
				runs = l
			}
		}
		if runs.Replicas != held {
			held, ready = runs.Replicas, at+n.overhead
		}
		if held == 0 {
			continue
		}
		if done := max(at, ready) + left/runs.Rate; done <= moments[i+1] {
			return done
		}
		left -= runs.Rate * max(moments[i+1]-max(at, ready), 0)
	}
	return math.Inf(1)
}

// fault is what is wrong with a plan of a job; empty for nothing. The job is watched from one change to the next.
func (n *naive) fault(j *Job, plan Plan) string {
	changes := []float64{n.now, j.Deadline}
	if j.Pinned && len(plan) > 1 {
		return "it changes though it is pinned"
	}
	for i, x := range plan {
		switch {
		case x.From < n.now || x.To <= x.From || i > 0 && x.From < plan[i-1].To:
			return "its pieces are out of order"
		case x.From != n.now && math.Abs(n.after(x.From)-x.From) > 1e-6 || math.Abs(n.after(x.To)-x.To) > 1e-6:
			return "it changes off the grid"
		case !slices.ContainsFunc(j.Levels, func(l Level) bool { return l.Replicas == x.Replicas }):
			return "it has replicas of no level"
		}
		changes = append(changes, x.From, x.To)
	}
	for _, x := range n.taken {
		changes = append(changes, max(x.From, n.now), x.To)
	}
	slices.Sort(changes)
	held, ready, done := j.Held, j.Ready, 0.0
	for i, at := range changes[:len(changes)-1] {
		next := changes[i+1]
		if at == next {
			continue
		}
		replicas := 0
		for _, x := range plan {
			if x.From <= at && at < x.To {
				replicas = x.Replicas
			}
		}
		if replicas > 0 && replicas > n.free(at) {
			return "it holds more than is free"
		}
		if replicas != held {
			held, ready = replicas, at+n.overhead
		}
		for _, l := range j.Levels {
			if l.Replicas == replicas {
				done += l.Rate * max(min(next, j.Deadline)-max(at, ready), 0)
			}
		}
	}
	if done < j.Left*(1-1e-8) {
		return "it misses the deadline"
	}
	return ""
}

// problem is a random planner with plans of others, and a job.
type problem struct {
	planner Planner
	devices int
	others  []Plan
	job     Job
}

func drawProblem(t *rapid.T) *problem {
	p := &problem{devices: rapid.IntRange(1, 8).Draw(t, "devices")}
	p.planner.Overhead = rapid.SampledFrom([]float64{0, 0, 1, 7}).Draw(t, "overhead")
	p.planner.Grid = rapid.SampledFrom([]float64{0, 10}).Draw(t, "grid")
	p.planner.Begin(0, p.devices)
	for range rapid.IntRange(0, 5).Draw(t, "others") {
		from := 10 * float64(rapid.IntRange(0, 9).Draw(t, "from"))
		piece := Piece{from, from + 10*float64(rapid.IntRange(1, 5).Draw(t, "cells")), rapid.IntRange(1, 3).Draw(t, "taken")}
		if slices.ContainsFunc(p.planner.spans[max(p.planner.next(piece.From)-1, 0):], func(s span) bool { return s.from < piece.To && s.free < piece.Replicas }) {
			continue
		}
		p.others = append(p.others, Plan{piece})
		p.planner.Take(Plan{piece})
	}
	rate := 0.0
	p.job = Job{Deadline: float64(rapid.IntRange(1, 140).Draw(t, "deadline")), Left: float64(rapid.IntRange(1, 250).Draw(t, "left"))}
	for k := 1; k <= 8; k *= 2 {
		if rapid.IntRange(0, 3).Draw(t, "level") > 0 || k == 1 {
			rate += float64(rapid.IntRange(1, 4).Draw(t, "faster")) / 2
			p.job.Levels = append(p.job.Levels, Level{k, rate})
		}
	}
	if rapid.Bool().Draw(t, "runs") {
		p.job.Held = rapid.SampledFrom(p.job.Levels).Draw(t, "held").Replicas
		p.job.Ready = p.planner.Overhead * float64(rapid.IntRange(0, 4).Draw(t, "quarters of the change left")) / 4
	}
	return p
}

// brute is whether a job meets its deadline with a level from some moment of a fine raster on, and the level below before.
func (p *problem) brute(level int, raster float64) bool {
	for over := 0.0; over <= p.job.Deadline; over += raster {
		if p.work(level, over) >= p.job.Left*(1-tolerance) {
			return true
		}
	}
	return false
}

// work is what a job does by its deadline that goes over to a level at a moment, reckoned in steps of half a second.
func (p *problem) work(level int, over float64) float64 {
	const step = 0.5
	held, ready, done := p.job.Held, p.job.Ready, 0.0
	for at := 0.0; at < p.job.Deadline; at += step {
		free := p.planner.spans[max(p.planner.next(at)-1, 0)].free
		k := p.job.within(level, free)
		if at < over {
			k = p.job.within(level-1, free)
		}
		if k < 0 {
			held = 0
			continue
		}
		if l := p.job.Levels[k]; l.Replicas != held {
			held, ready = l.Replicas, at+p.planner.Overhead
		}
		if at >= ready {
			done += p.job.Levels[k].Rate * step
		}
	}
	return done
}

// A plan keeps the deadline on devices that are free, and where none is found, no change of level on the raster would keep it.
func TestFillAgainstBruteForce(t *testing.T) {
	t.Parallel()
	var found count
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		plan, met := p.planner.Fill(&p.job)
		found.add(met)
		if met {
			if !p.planner.Meets(&p.job, plan) {
				t.Fatalf("%+v of %+v on %+v misses the deadline or devices", plan, p.job, p.planner.spans)
			}
			for i, x := range plan {
				if x.To <= x.From || i > 0 && x.From < plan[i-1].To {
					t.Fatalf("pieces out of order: %+v", plan)
				}
			}
			return
		}
		raster := max(p.planner.Grid, 0.5)
		for level := range p.job.Levels {
			if p.brute(level, raster) {
				t.Fatalf("%+v on %+v: level %d meets the deadline", p.job, p.planner.spans, level)
			}
		}
	})
	found.check(t)
}
