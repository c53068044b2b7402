package synthesizer

import (
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// bandit knows what became of jobs under each candidate. The cost of a job that completes is the logarithm of its slowdown, the time that it was there over the time that
// its device-seconds take on what it asks for. Candidates have their parts of it by how long they were in force while the job was there. What is known
// fades with the horizon. The candidate of the least lower confidence bound is tried, as by UCB1 (Auer, Cesa-Bianchi and Fischer, 2002) with
// discounts (Garivier and Moulines, 2011), after the least stay of the one in force.
type bandit struct {
	Weight  []float64 `json:"weight"` // by candidate
	Sum     []float64 `json:"sum"`
	Squares []float64 `json:"squares"`
	AsOf    float64   `json:"as_of"`
	InForce []stay    `json:"in_force"` // in order of time
}

// stay is that a candidate was in force from a moment on.
type stay struct {
	From float64 `json:"from"`
	Of   int     `json:"of"`
}

func newBandit(n int) bandit {
	return bandit{Weight: make([]float64, n), Sum: make([]float64, n), Squares: make([]float64, n)}
}

// of reports whether it is of so many candidates.
func (b *bandit) of(n int) bool {
	for _, s := range b.InForce {
		if s.Of < 0 || s.Of >= n {
			return false
		}
	}
	return len(b.Weight) == n && len(b.Sum) == n && len(b.Squares) == n
}

// observe credits the jobs that ended.
func (b *bandit) observe(r *core.Report, inForce int, horizon float64) {
	now := r.View.NowSeconds
	keep := math.Exp((b.AsOf - now) / horizon)
	for i := range b.Weight {
		b.Weight[i] *= keep
		b.Sum[i] *= keep
		b.Squares[i] *= keep
	}
	b.AsOf = now
	if n := len(b.InForce); n == 0 || b.InForce[n-1].Of != inForce {
		b.InForce = append(b.InForce, stay{now, inForce})
		b.forget(r)
	}
	for _, j := range r.Ended {
		if j.State == core.Completed {
			b.credit(j)
		}
	}
}

// forget drops stays that were over before any job came that may yet be credited.
func (b *bandit) forget(r *core.Report) {
	first := r.View.NowSeconds
	for _, jobs := range [...][]*core.Job{r.View.Jobs, r.Ended} {
		for _, j := range jobs {
			if j != nil {
				first = min(first, j.SubmitSeconds)
			}
		}
	}
	over := 0
	for over+1 < len(b.InForce) && b.InForce[over+1].From <= first {
		over++
	}
	b.InForce = slices.Delete(b.InForce, 0, over)
}

// credit gives the cost of a job to those who were in force while it was there.
func (b *bandit) credit(j *core.Job) {
	there := j.FinishSeconds - j.SubmitSeconds
	needs := j.Attained / float64(max(j.Requested, 1))
	if there <= 0 || needs <= 0 {
		return
	}
	cost := math.Log(max(1, there/needs))
	for i := range b.InForce {
		from, to := max(b.InForce[i].From, j.SubmitSeconds), j.FinishSeconds
		if i == 0 {
			from = j.SubmitSeconds
		}
		if i+1 < len(b.InForce) {
			to = min(to, b.InForce[i+1].From)
		}
		if to > from {
			of, part := b.InForce[i].Of, (to-from)/there
			b.Weight[of] += part
			b.Sum[of] += part * cost
			b.Squares[of] += part * cost * cost
		}
	}
}

// bound is the lower confidence bound of the mean cost of a candidate.
func (b *bandit) bound(i int) float64 {
	const least = 0.5 // jobs, below which nothing is known
	if b.Weight[i] < least {
		return math.Inf(-1)
	}
	all, mean := 0.0, b.Sum[i]/b.Weight[i]
	for _, w := range b.Weight {
		all += w
	}
	variance := max(0, b.Squares[i]/b.Weight[i]-mean*mean)
	return mean - math.Sqrt(variance*2*math.Log(max(all, 1))/b.Weight[i])
}

// giveUp is that jobs are there and none completes under a candidate: it counts as e times as slow as the worst that is known.
func (b *bandit) giveUp(i int) {
	worst := 0.0
	for k, w := range b.Weight {
		if w > 0 {
			worst = max(worst, b.Sum[k]/w)
		}
	}
	worst++
	b.Weight[i], b.Sum[i], b.Squares[i] = 1, worst, worst*worst
}

// play has the candidate of the least bound take over, the first of several.
func (s *Synthesizer) play(v *core.View) *core.Composition {
	s.is.Looks++
	best := s.is.InForce
	if s.bandit.Weight[best] < 1 {
		if v.NowSeconds-s.is.Since < s.settings.HorizonSeconds || len(v.Active) == 0 {
			return nil // of the one in force nothing is known yet
		}
		s.bandit.giveUp(best)
	}
	for i := range s.candidates {
		if !s.is.barred(i, v.NowSeconds) && s.bandit.bound(i) < s.bandit.bound(best)+math.Log1p(-s.settings.MarginRatio) {
			best = i
		}
	}
	if best == s.is.InForce {
		return nil
	}
	why := fmt.Sprintf("of %q too little is known", s.name(best))
	if bound := s.bandit.bound(best); !math.IsInf(bound, -1) {
		why = fmt.Sprintf("jobs may take %.2f times what they need under %q, and %.2f times under %q",
			math.Exp(bound), s.name(best), math.Exp(s.bandit.bound(s.is.InForce)), s.name(s.is.InForce))
	}
	nothing := metrics.Number(math.NaN())
	return s.replace(v, best, metrics.Switch{Why: why, GainRatio: nothing, LowRatio: nothing, HighRatio: nothing})
}
