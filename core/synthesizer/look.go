package synthesizer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/core/twin"
)

// look is a comparison of candidates from a moment on. It reads nothing of the run.
type look struct {
	settings   Settings
	candidates []Candidate
	inForce    int
	barred     []bool
	still      *twin.RunSnapshot
	worlds     []*twin.World // first those that choose, then those that test
	rulers     []*ruler      // of the worlds
	future     simulate
	workers    int
}

// finding is what came of a look.
type finding struct {
	to              int      // candidate that is to take over; -1 for none
	gain, low, high float64  // part of the objective that it is expected to gain, and the interval
	promise         *promise // by which it will be measured
	failed          []string // why candidates could not be simulated
}

// newLook takes the run as it stands. O(jobs).
func (s *Synthesizer) newLook(p *core.Pipeline) *look {
	l := &look{
		settings: s.settings, candidates: s.candidates, inForce: s.is.InForce, still: twin.Take(p), future: s.future, workers: runtime.GOMAXPROCS(0),
	}
	v := l.still.View()
	l.barred = make([]bool, len(s.candidates))
	for i := range l.barred {
		l.barred[i] = s.is.barred(i, v.NowSeconds)
	}
	if s.settings.Background {
		l.workers = max(1, l.workers/2)
	}
	return l
}

// draw draws the worlds. O(jobs) for each.
func (l *look) draw(ctx context.Context, b WorkloadModel) {
	v, horizon := l.still.View(), l.settings.HorizonSeconds
	seed := core.NewRand(l.settings.Seed, fmt.Sprintf("synthesizer/%d", v.Round)).Uint64() // other worlds at each look
	for draw := 0; draw < 2*l.settings.Draws && ctx.Err() == nil; draw++ {
		w := b.Draw(v, seed, draw+1, horizon)
		l.worlds, l.rulers = append(l.worlds, w), append(l.rulers, newRuler(v, w, horizon))
	}
}

// outcome is a candidate in a world.
type outcome struct {
	cost float64
	// present is until when each job that was there at the beginning was there, in seconds from then on, up to the horizon.
	present []float64
	err     error
}

// take simulates the candidates in worlds that are drawn, and finds whether one of them is to take over.
func (l *look) take(ctx context.Context, b WorkloadModel) (*finding, error) {
	f := &finding{to: -1}
	if l.draw(ctx, b); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	draws, all := l.settings.Draws, make([]int, len(l.candidates))
	if l.rulers[0].empty() {
		return f, nil
	}
	for i := range all {
		all[i] = i
	}
	chosen := l.simulate(ctx, all, 0, draws)
	if err := errors.Join(ctx.Err(), failure(chosen[l.inForce])); err != nil {
		return f, l.survive(ctx, f, err)
	}
	best, least := -1, 0.0
	for i := range l.candidates {
		if err := failure(chosen[i]); err != nil {
			f.failed = append(f.failed, fmt.Sprintf("%q: %v", l.candidates[i].Name, err))
			continue
		}
		if ratio := mean(logRatios(chosen[i], chosen[l.inForce])); i != l.inForce && !l.barred[i] && ratio < least {
			best, least = i, ratio
		}
	}
	if best < 0 || -math.Expm1(least) <= l.settings.MarginRatio {
		return f, nil
	}
	tested := l.simulate(ctx, []int{best, l.inForce}, draws, 2*draws)
	if err := errors.Join(ctx.Err(), failure(tested[0]), failure(tested[1])); err != nil {
		return f, l.survive(ctx, f, err)
	}
	ratios := logRatios(tested[0], tested[1])
	interval := stats.T(ratios, level)
	f.gain, f.low, f.high = -math.Expm1(mean(ratios)), -math.Expm1(interval.High), -math.Expm1(interval.Low)
	if f.low > 0 && f.gain > l.settings.MarginRatio {
		f.to, f.promise = best, newPromise(l, tested[0], tested[1])
	}
	return f, nil
}

// survive has the run go on without what a look failed at, unless the run ends.
func (l *look) survive(ctx context.Context, f *finding, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.failed = append(f.failed, err.Error())
	return nil
}

// simulate has each of some candidates go through some of the worlds. The answer does not depend on how many workers there are.
func (l *look) simulate(ctx context.Context, which []int, from, to int) [][]outcome {
	all, draws := make([][]outcome, len(which)), to-from
	for i := range all {
		all[i] = make([]outcome, draws)
	}
	_ = twin.Each(len(which)*draws, l.workers, func(i int) error {
		of, draw := i/draws, i%draws
		o := &all[of][draw]
		if err := twin.Caught(func() error { *o = l.one(ctx, which[of], from+draw); return nil }); err != nil {
			o.err = err // a panic: this candidate fails, and no other
		}
		return nil
	})
	return all
}

// one is a candidate in a world.
func (l *look) one(ctx context.Context, i, draw int) outcome {
	if ctx.Err() != nil {
		return outcome{err: ctx.Err()}
	}
	policies := l.candidates[i].Policies
	policies.Same = i == l.inForce
	f, err := l.future(ctx, l.still, policies, l.worlds[draw], l.settings.HorizonSeconds)
	if err != nil {
		return outcome{err: err}
	}
	cost, present := l.rulers[draw].measure(f, l.settings.Objective)
	return outcome{cost: cost, present: present}
}

func failure(of []outcome) error {
	for i := range of {
		if of[i].err != nil {
			return of[i].err
		}
	}
	return nil
}

// logRatios compare two candidates world by world.
func logRatios(a, b []outcome) []float64 {
	list := make([]float64, len(a))
	for i := range a {
		list[i] = math.Log((a[i].cost + 1) / (b[i].cost + 1)) // a second more, so that nothing over nothing is 1
	}
	return list
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// pending is a look in the background.
type pending struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when it is over
	found  *finding
	err    error
}

func (p *pending) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// lookBeside begins a look that no round waits for. One that has not ended is given up; until it has, no other begins.
func (s *Synthesizer) lookBeside(ctx context.Context, p *core.Pipeline) {
	if s.pending != nil {
		s.log.Warn("a look ahead was given up", "why", "the next one is due")
	}
	s.giveUp()
	if s.leaving != nil {
		if !s.leaving.over() {
			return
		}
		s.leaving = nil
	}
	within, cancel := context.WithTimeout(ctx, time.Duration(s.dueSeconds(p.View())*float64(time.Second)))
	l, begun := s.newLook(p), &pending{cancel: cancel, done: make(chan struct{})}
	b := s.beliefs
	if learning, may := b.(interface{ Clone() *twin.WorkloadModel }); may { // rounds teach it more meanwhile
		b = learning.Clone()
	}
	s.pending, s.since = begun, nil
	go func() {
		defer close(begun.done)
		begun.err = twin.Caught(func() (err error) {
			begun.found, err = l.take(within, b)
			return err
		})
	}()
}

// dueSeconds is how long it is until the next look is due; rounds between may bring it forward, where there is no pause.
func (s *Synthesizer) dueSeconds(v *core.View) float64 {
	return max(s.settings.PauseSeconds, float64(s.settings.EveryRounds)*v.IntervalSeconds, 1)
}

// giveUp ends the look in the background, and waits for nothing: there is one at most that has yet to end.
func (s *Synthesizer) giveUp() {
	if s.pending != nil {
		s.pending.cancel()
		s.leaving, s.pending = s.pending, nil
	}
}

// arrived takes what came of a look in the background; over says that a candidate takes over.
func (s *Synthesizer) arrived(v *core.View) (c *core.Composition, over bool) {
	if !s.pending.over() {
		return nil, false
	}
	was := s.pending
	was.cancel()
	s.pending = nil
	if was.err != nil {
		s.log.Warn("a look ahead was given up", "why", was.err)
		return nil, false
	}
	c = s.follow(v, was.found)
	return c, c != nil
}
