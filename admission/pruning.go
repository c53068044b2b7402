package admission

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stopping"
)

// comparing is what all rules of early stopping are configured with.
type comparing struct {
	Metrics []string `config:"metrics" doc:"the trials of a search are compared by the first of these that one of them reports"`
	Goal    string   `config:"goal" doc:"which values are better; auto: high ones of accuracy, score, reward and f1, low ones of loss, error and perplexity" enum:"auto|minimize|maximize"`
}

// waiting is what rules are configured with that have trials wait for others.
type waiting struct {
	Patience time.Duration `config:"patience" doc:"how long those wait that wait for others while none of their search runs or is to run; then they are decided about by what there is" min:"0s"`
}

const (
	goalAuto     = "auto"
	goalMinimize = "minimize"
	goalMaximize = "maximize"
)

// The default of what trials are compared by, and for how long they wait for nobody.
var usualComparing = comparing{Metrics: []string{"accuracy", "loss"}, Goal: goalAuto}

const usualPatience = time.Minute

// goalOf is which values of a metric are better; false where the name does not say.
func goalOf(metric string) (core.Goal, bool) {
	name := strings.ToLower(metric)
	for _, part := range []string{"loss", "error", "perplexity"} {
		if strings.Contains(name, part) {
			return core.Minimize, true
		}
	}
	for _, part := range []string{"acc", "score", "reward", "f1"} {
		if strings.Contains(name, part) {
			return core.Maximize, true
		}
	}
	return core.Minimize, false
}

func (c *comparing) goal(metric string) core.Goal {
	switch c.Goal {
	case goalMinimize:
		return core.Minimize
	case goalMaximize:
		return core.Maximize
	}
	g, _ := goalOf(metric)
	return g
}

func (c *comparing) check() (found core.Diagnostics) {
	if len(c.Metrics) == 0 {
		found = append(found, core.Diagnostic{Path: "metrics", Summary: "is empty: trials could not be compared", Hint: "name what they report, such as [accuracy]"})
	}
	if c.Goal == goalAuto {
		for i, metric := range c.Metrics {
			if _, known := goalOf(metric); !known {
				found = append(found, core.Diagnostic{
					Path: fmt.Sprintf("metrics[%d]", i), Summary: fmt.Sprintf("the name %q does not say which values are better", metric), Hint: "set goal: minimize, or goal: maximize",
				})
			}
		}
	}
	return found
}

// checkRungs refuses rungs that no trial could reach.
func checkRungs(first, eta, most float64) (found core.Diagnostics) {
	if most > 0 && first >= most {
		found = append(found, core.Diagnostic{Path: "first", Summary: fmt.Sprintf("the first rung %g is not below most, %g: no trial would be compared", first, most)})
	}
	if eta <= 1 {
		found = append(found, core.Diagnostic{Path: "eta", Summary: fmt.Sprintf("is %g: rungs would not grow", eta), Hint: "one of eta trials goes on: 3 and 4 are usual"})
	}
	return found
}

// rungs are those of a config, in which 0 stands for no end.
func rungs(first, eta, most float64) stopping.Rungs {
	if most == 0 {
		most = math.Inf(1)
	}
	return stopping.Rungs{First: first, Eta: eta, Most: most}
}

// pruning ends trials, and holds them back, as a rule says. Each search has a rule of its own; jobs that are no trials are let alone.
//
// It costs O(trials of the search) in a round in which one of it reports, and while trials are held back.
type pruning struct {
	comparing comparing
	patience  float64
	rule      func(core.Goal) stopping.Rule

	searches []*pruned
	by       map[string]*pruned // by experiment
	until    float64            // moment at which the patience of one is over
	verdicts []core.Verdict
}

// pruned is a search and its trials.
type pruned struct {
	metric string        // that its trials are compared by; empty until one reports
	rule   stopping.Rule // nil until then
	trials []trial       // that have not ended, by JobID
	idle   float64       // moment since which none of them runs or is to run; NaN while one does
}

type trial struct {
	id   core.JobID
	seen core.Point // the point that was told the rule last; its moment is negative before
}

func newPruning(c comparing, patience time.Duration, rule func(core.Goal) stopping.Rule) *pruning {
	return &pruning{comparing: c, patience: patience.Seconds(), rule: rule, by: map[string]*pruned{}, until: math.Inf(1)}
}

// Standing is until the patience with a search is over in which all wait.
func (p *pruning) Standing() core.Standing { return core.Standing{UntilSeconds: p.until} }

// join takes in a job, if it is a trial.
func (p *pruning) join(j *core.Job) *pruned {
	if j.Experiment == "" {
		return nil
	}
	s := p.by[j.Experiment]
	if s == nil {
		s = &pruned{idle: math.NaN()}
		p.by[j.Experiment] = s
		p.searches = append(p.searches, s)
	}
	at, known := slices.BinarySearchFunc(s.trials, j.ID, func(t trial, id core.JobID) int { return cmp.Compare(t.id, id) })
	if !known {
		s.trials = slices.Insert(s.trials, at, trial{id: j.ID, seen: core.Point{AtSeconds: -1}})
		s.idle = math.NaN()
		if s.rule != nil {
			s.rule.Join(int(j.ID))
		}
	}
	return s
}

// Admit holds those back that wait for others of their search.
func (p *pruning) Admit(_ context.Context, _ *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	p.verdicts = p.verdicts[:0]
	for _, j := range waiting {
		s := p.join(j)
		if s == nil || s.rule == nil {
			continue
		}
		if decision, why := s.rule.Decision(int(j.ID)); decision != stopping.Go {
			p.verdicts = append(p.verdicts, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.AwaitingResults, Message: why})
		}
	}
	return p.verdicts, nil
}

// Review tells the rules what happened, and carries out what they decide.
func (p *pruning) Review(_ context.Context, v *core.View, reported []*core.Job) ([]core.Verdict, error) {
	p.verdicts, p.until = p.verdicts[:0], math.Inf(1)
	for _, j := range reported {
		if s := p.join(j); s != nil {
			p.listen(s, j)
		}
	}
	for _, s := range p.searches {
		s.forgetEnded(v)
		if s.rule == nil {
			continue
		}
		for settled := false; ; settled = true {
			if !p.decide(v, s) || settled || !p.outOfPatience(v, s) {
				break
			}
			s.rule.Settle()
			p.verdicts = slices.DeleteFunc(p.verdicts, func(x core.Verdict) bool { return s.has(x.Job) })
		}
	}
	slices.SortFunc(p.verdicts, func(a, b core.Verdict) int { return cmp.Compare(a.Job, b.Job) })
	return p.verdicts, nil
}

// listen tells the rule of a search what one of its trials reported.
func (p *pruning) listen(s *pruned, j *core.Job) {
	if s.rule == nil {
		for _, metric := range p.comparing.Metrics {
			if j.Series(metric) != nil {
				s.metric, s.rule = metric, p.rule(p.comparing.goal(metric))
				break
			}
		}
		if s.rule == nil {
			return
		}
		for _, t := range s.trials {
			s.rule.Join(int(t.id))
		}
	}
	series := j.Series(s.metric)
	if series == nil {
		return
	}
	at, _ := slices.BinarySearchFunc(s.trials, j.ID, func(t trial, id core.JobID) int { return cmp.Compare(t.id, id) })
	t := &s.trials[at]
	for _, point := range series.Points {
		if point.AtSeconds > t.seen.AtSeconds || point.AtSeconds == t.seen.AtSeconds && point.Step > t.seen.Step {
			s.rule.Report(int(j.ID), point.Step, point.Value)
			t.seen = point
		}
	}
}

// forgetEnded tells the rule who ended.
func (s *pruned) forgetEnded(v *core.View) {
	s.trials = slices.DeleteFunc(s.trials, func(t trial) bool {
		j := v.Job(t.id)
		gone := j == nil || j.State.Ended()
		if gone && s.rule != nil {
			s.rule.Leave(int(t.id))
		}
		return gone
	})
}

func (s *pruned) has(id core.JobID) bool {
	return slices.ContainsFunc(s.trials, func(t trial) bool { return t.id == id })
}

// decide answers for the trials of a search. It reports whether some are held back.
func (p *pruning) decide(v *core.View, s *pruned) (held bool) {
	for _, t := range s.trials {
		j := v.Job(t.id)
		decision, why := s.rule.Decision(int(t.id))
		switch {
		case decision == stopping.Stop && (j.State != core.Pending || j.WaitingReason == core.AwaitingResults):
			p.verdicts = append(p.verdicts, core.Verdict{Job: t.id, Code: core.End, Reason: core.Pruned, Message: why})
		case decision == stopping.Wait:
			held = true
			if j.State != core.Pending {
				p.verdicts = append(p.verdicts, core.Verdict{Job: t.id, Code: core.Defer, Reason: core.AwaitingResults, Message: why})
			}
		}
	}
	return held
}

// outOfPatience reports whether all trials of a search have waited for long enough, and notes until when they may wait otherwise.
func (p *pruning) outOfPatience(v *core.View, s *pruned) bool {
	for _, t := range s.trials {
		if decision, _ := s.rule.Decision(int(t.id)); decision == stopping.Go {
			s.idle = math.NaN()
			return false
		}
	}
	if math.IsNaN(s.idle) {
		s.idle = v.NowSeconds
	}
	if over := s.idle + p.patience; v.NowSeconds < over {
		p.until = min(p.until, over)
		return false
	}
	return true
}
