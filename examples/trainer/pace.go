package main

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core/goodput"
)

// pacer holds a training to the times of a profile, so that a small machine shows what a cluster would do. Without a
// profile it holds nothing up.
type pacer struct {
	profile         *goodput.Profile
	nodes, replicas int
	speedup         float64
	least           time.Duration
	due             time.Time // when the pass before should have ended
	together        int       // steps of the profile that the step at hand is taken for
}

// plan decides how many steps of the profile the next one is taken for: at most as many as are left. All replicas decide
// alike.
func (p *pacer) plan(s *setting, left float64) {
	seconds := p.profile.Performance.StepTime(p.nodes, p.replicas, float64(slices.Max(s.shares)), s.passes-1) / p.speedup
	p.together = max(int(min(math.Ceil(p.least.Seconds()/seconds), math.Ceil(left), mostTogether)), 1)
}

const mostTogether = 1 << 20

// mostLag is how far a training may be late and still catch up.
const mostLag = time.Second

// begin is when a pass that begins now is taken to begin: when the one before should have ended, so that what one is late
// the next makes up for.
func (p *pacer) begin(now time.Time) time.Time {
	if p.profile == nil || now.Sub(p.due) > mostLag {
		return now
	}
	return p.due
}

// hurried reports whether a pass that really began at one moment, and is taken to have begun at another, made up for time
// lost: it says nothing of the profile.
func (p *pacer) hurried(began, from time.Time) bool {
	return p.profile != nil && 10*began.Sub(from) > p.due.Sub(from)
}

// pass waits until a pass over b samples that began at a moment may end.
func (p *pacer) pass(stop context.Context, from time.Time, b int) {
	if p.profile != nil {
		p.wait(stop, from, p.profile.Performance.GradTime(float64(b)))
	}
}

// step is pass for one that synchronises.
func (p *pacer) step(stop context.Context, from time.Time, b int) {
	if p.profile != nil {
		p.wait(stop, from, p.profile.Performance.StepTime(p.nodes, p.replicas, float64(b), 0))
	}
}

func (p *pacer) wait(stop context.Context, from time.Time, seconds float64) {
	p.due = from.Add(time.Duration(seconds * float64(p.together) / p.speedup * float64(time.Second)))
	timer := time.NewTimer(time.Until(p.due))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop.Done():
	}
}
