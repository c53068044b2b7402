// Package synthesizer chooses between compositions while a run goes on: a composition of compositions.
//
// With twin, every so many rounds each candidate is simulated from the present state over a horizon, in the same worlds for all. The best of them is simulated
// once more in other worlds, beside the one in force, and takes over where it gains in these: the interval of the paired ratios leaves out 1,
// and the gain exceeds a margin, where the look before found a better one too: of a hundred looks, some find what is not there. Nothing is tested by the worlds that chose it. A candidate that takes over in a simulation restarts
// there what it would restart in the run, so that the costs of a switch are part of what is compared.
//
// With bandit, what became of jobs is credited to the candidates under which they were there: see bandit.go.
//
// A switch is taken back where its forecast does not hold: see held.go.
//
// Source: the idea is Blox's (EuroSys '24, 5); the test, the second draws and the way back are not.
package synthesizer

import (
	"context"
	"fmt"
	"log/slog"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/twin"
)

// Method is how candidates are compared.
type Method string

// The methods of choosing between candidates.
const (
	Twin   Method = "twin"
	Bandit Method = "bandit"
)

// Settings say when and how candidates are compared.
type Settings struct {
	Method         Method    // how candidates are compared
	EveryRounds    int       // from one look to the next
	PauseSeconds   float64   // from one look to the next, at least
	HorizonSeconds float64   // how far futures are simulated
	Draws          int       // 2 or more
	Objective      Objective // what is better
	MarginRatio    float64   // that a switch must gain
	Seed           uint64    // of what is drawn
	// Background has looks taken beside the rounds, on half of the processors: a round does not wait for one, and what comes of it holds from
	// the round after. A look that has not ended when the next is due is given up.
	Background bool
}

// residence is the part of the horizon that a candidate stays at least.
const residence = 0.25

// level is that of the interval by which a switch is judged.
const level = 0.95

// Candidate is one of the compositions.
type Candidate struct {
	Name     string                            // as the config has it
	Policies twin.Policies                     // of a future; Same is set as needed
	Compose  func() (*core.Composition, error) // makes it, to take over
}

// WorkloadModel draws the worlds in which candidates are simulated; twin.WorkloadModel is one.
type WorkloadModel interface {
	// Draw draws a world by what the state of a run tells: the same one for the same seed and number of the draw. It reaches horizonSeconds ahead.
	Draw(v *core.View, seed uint64, draw int, horizonSeconds float64) *twin.World
}

// Synthesizer chooses. It is the chooser of a pipeline and an observer of it.
type Synthesizer struct {
	settings   Settings
	candidates []Candidate
	beliefs    WorkloadModel
	log        *slog.Logger
	future     simulate

	is       standing
	deciding int // index of the candidate whose stages decide
	lastLook mark
	proposed int      // what the last look found; -1 for nothing
	pending  *pending // a look in the background; nil for none
	leaving  *pending // one that was given up and has not ended yet; nil for none
	since    []ended  // since the last look in the background began
	bandit   bandit
	repeated []ended // in rounds that an earlier scheduler held
}

// simulate is RunSnapshot.Future, or what a test has in its place.
type simulate func(ctx context.Context, s *twin.RunSnapshot, p twin.Policies, w *twin.World, seconds float64) (*twin.Future, error)

// mark is a moment between two rounds.
type mark struct {
	round   int
	seconds float64
}

var (
	_ core.Chooser     = (*Synthesizer)(nil)
	_ core.Snapshotter = (*Synthesizer)(nil)
	_ core.Observer    = (*Synthesizer)(nil)
)

// New chooses between candidates, of which the first decides already. A nil log discards.
func New(s Settings, candidates []Candidate, b WorkloadModel, log *slog.Logger) *Synthesizer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Synthesizer{
		settings: s, candidates: candidates, beliefs: b, log: log,
		future: func(ctx context.Context, still *twin.RunSnapshot, p twin.Policies, w *twin.World, seconds float64) (*twin.Future, error) {
			return still.Future(ctx, p, w, seconds)
		},
		is:     newStanding(len(candidates)),
		bandit: newBandit(len(candidates)), proposed: -1,
	}
}

// Choose looks ahead when it is due, and returns the candidate that is to take over.
func (s *Synthesizer) Choose(ctx context.Context, p *core.Pipeline) (*core.Composition, error) {
	v := p.View()
	if s.deciding != s.is.InForce { // the run was left, and goes on
		return s.goOn(v)
	}
	if s.pending != nil {
		if c, over := s.arrived(v); over {
			return c, nil
		}
	}
	if v.Round == 0 || v.Round-s.lastLook.round < s.settings.EveryRounds || v.NowSeconds-s.lastLook.seconds < s.settings.PauseSeconds {
		return nil, nil
	}
	s.lastLook = mark{v.Round, v.NowSeconds}
	if back, why := s.is.broken(v, s.settings.HorizonSeconds); back {
		return s.takeBack(v, why), nil
	}
	if s.is.Switches() > 0 && v.NowSeconds-s.is.Since < residence*s.settings.HorizonSeconds {
		return nil, nil
	}
	if s.settings.Method == Bandit {
		return s.play(v), nil
	}
	if s.settings.Background {
		s.lookBeside(ctx, p)
		return nil, nil
	}
	found, err := s.newLook(p).take(ctx, s.beliefs)
	if err != nil {
		return nil, err
	}
	return s.follow(v, found), nil
}

// name is that of a candidate.
func (s *Synthesizer) name(i int) string { return s.candidates[i].Name }

// compose makes the stages of a candidate. One that cannot be made is not chosen for a while: nil.
func (s *Synthesizer) compose(v *core.View, to int, why string) *core.Composition {
	c, err := s.candidates[to].Compose()
	if err != nil {
		s.log.Error("a candidate could not be made, and does not take over", "candidate", s.name(to), "error", err)
		s.is.bar(to, v.NowSeconds, s.settings.HorizonSeconds)
		return nil
	}
	c.Why = why
	return c
}

// replace has a candidate take over; nil where it cannot be made, and nothing has changed but that it is barred.
func (s *Synthesizer) replace(v *core.View, to int, l metrics.Switch) *core.Composition {
	c := s.compose(v, to, l.Why)
	if c == nil {
		return nil
	}
	s.is.change(v, to, l, s.candidates)
	s.deciding = to
	return c
}

// goOn has the candidate decide that did when the run was left. Where it cannot be made, the one stays that the run began with.
func (s *Synthesizer) goOn(v *core.View) (*core.Composition, error) {
	was, nothing := s.is.InForce, metrics.Number(math.NaN())
	c := s.compose(v, was, fmt.Sprintf("%q decided when the run was left", s.name(was)))
	if c == nil {
		why := fmt.Sprintf("%q decided when the run was left, and could not be made again", s.name(was))
		s.is.change(v, s.deciding, metrics.Switch{Why: why, GainRatio: nothing, LowRatio: nothing, HighRatio: nothing}, s.candidates)
		return nil, nil
	}
	s.deciding = was
	return c, nil
}

// follow does what a look found.
func (s *Synthesizer) follow(v *core.View, f *finding) *core.Composition {
	s.is.Looks++
	for _, why := range f.failed {
		s.log.Warn("a candidate could not be simulated", "why", why)
	}
	proposed := s.proposed
	if s.proposed = f.to; f.to < 0 || proposed < 0 { // several may be as good, and another of them be found
		return nil
	}
	s.proposed = -1
	why := fmt.Sprintf("%q is expected to take %.1f %% less than %q (%.1f to %.1f %%)",
		s.name(f.to), 100*f.gain, s.name(s.is.InForce), 100*f.low, 100*f.high)
	c := s.replace(v, f.to, metrics.Switch{Why: why, GainRatio: metrics.Number(f.gain), LowRatio: metrics.Number(f.low), HighRatio: metrics.Number(f.high)})
	if c != nil {
		s.is.Promise = f.promise
		s.is.note(s.since) // the promise is of the moment at which the look began
	}
	return c
}

// takeBack returns to the candidate before. Where that cannot be made, the one in force stays.
func (s *Synthesizer) takeBack(v *core.View, why string) *core.Composition {
	s.giveUp() // what it would find is of the one in force
	s.proposed = -1
	failed, to := s.is.InForce, s.is.Promise.From
	s.is.Promise = nil
	why = fmt.Sprintf("%q did not do as expected: %s", s.name(failed), why)
	nothing := metrics.Number(math.NaN())
	c := s.replace(v, to, metrics.Switch{Why: why, TakenBack: true, GainRatio: nothing, LowRatio: nothing, HighRatio: nothing})
	if c != nil {
		s.is.bar(failed, v.NowSeconds, s.settings.HorizonSeconds)
	}
	return c
}

// ObserveRound notes what became of jobs.
func (s *Synthesizer) ObserveRound(r *core.Report) error {
	if r.Repeated {
		s.repeated = append(s.repeated, endsOf(r)...)
		return nil
	}
	list := endsOf(r)
	s.is.note(list)
	if s.pending != nil {
		s.since = append(s.since, list...)
	}
	if s.settings.Method == Bandit {
		s.bandit.observe(r, s.is.InForce, s.settings.HorizonSeconds)
	}
	return nil
}

// Close ends a look in the background, and waits until it has ended.
func (s *Synthesizer) Close() {
	s.giveUp()
	if s.leaving != nil {
		<-s.leaving.done
		s.leaving = nil
	}
}

// Summary is what it came to up to a moment.
func (s *Synthesizer) Summary(endSeconds float64) *metrics.Synthesizer {
	m := &metrics.Synthesizer{Method: string(s.settings.Method), Looks: s.is.Looks, Switches: s.is.Switches(), Log: append([]metrics.Switch{}, s.is.Log...)}
	for _, l := range s.is.Log {
		if l.TakenBack {
			m.TakenBack++
		}
	}
	for i := range s.candidates {
		seconds := s.is.Seconds[i]
		if i == s.is.InForce {
			seconds += max(0, endSeconds-s.is.Since)
		}
		m.InForce = append(m.InForce, metrics.InForce{Name: s.name(i), Seconds: metrics.Number(seconds)})
	}
	return m
}
