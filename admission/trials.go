package admission

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/stopping"
)

// What the policies have in common that stop trials of a search early: each experiment has a rule of its own, which is told what its trials report.

// The values of the setting goal.
const (
	goalAuto     = "auto"
	goalMinimize = "minimize"
	goalMaximize = "maximize"
)

// settlesAfter is the default of patience.
const settlesAfter = 10 * time.Second

// quietExperiments is how many experiments without a trial are remembered: their next trials may be yet to come.
const quietExperiments = 256

// trials is a policy that holds the trials of each experiment to a rule. Jobs of no experiment are let alone.
type trials struct {
	metrics  []string
	goal     string
	patience time.Duration // for which nothing is to happen in an experiment before those that wait are settled
	settings string        // what the rules are made of; a snapshot of others is of no use
	rule     func() stopping.Rule
	until    float64 // when the next experiment of which all wait is settled

	groups   []*group // in the order of their first trials
	byName   map[string]*group
	next     core.JobID // the first that was not looked for
	fresh    []fresh
	verdicts []core.Verdict
}

// group is an experiment.
type group struct {
	name   string
	metric string // empty before the first report
	rule   stopping.Rule
	live   []live  // by job
	quiet  int     // rounds up to that in which its last trial ended, in order to forget the first; 0 while there is one
	news   int     // round in which anything became of it last
	at     float64 // moment of that round
}

// live is a trial that has not ended.
type live struct {
	job  core.JobID
	step float64 // told last
	end  ending
}

type ending uint8

const (
	goesOn ending = iota
	ended
	endedLost
)

// fresh is a report that rules are yet to be told.
type fresh struct {
	core.Point
	group *group
	job   core.JobID
}

func newTrials(metrics []string, goal string, patience time.Duration, settings string, rule func() stopping.Rule) *trials {
	return &trials{metrics: metrics, goal: goal, patience: patience, settings: settings, rule: rule, until: math.Inf(1), byName: map[string]*group{}}
}

// happened notes that something became of the experiment.
func (g *group) happened(v *core.View) { g.news, g.at = v.Round, v.NowSeconds }

// Standing is until an experiment of which all trials wait is to be settled. All else changes by events only.
func (p *trials) Standing() core.Standing { return core.Standing{UntilSeconds: p.until} }

// look finds the moment of Standing. That of an experiment whose time is up is settled by the next Review, whatever brings it about.
func (p *trials) look(v *core.View) {
	p.until = math.Inf(1)
	for _, g := range p.groups {
		if at := g.settlesAt(p.patience); at > v.NowSeconds && at < p.until && g.stuck(v) {
			p.until = at
		}
	}
}

// settlesAt is the moment from which trials that wait are settled.
func (g *group) settlesAt(patience time.Duration) float64 { return g.at + patience.Seconds() }

// checkMetrics refuses a list without metrics, by which nobody could be judged, and metrics of which goal: auto cannot tell what is better.
func checkMetrics(metrics []string, goal string) (problems core.Diagnostics) {
	if len(metrics) == 0 {
		problems = append(problems, core.Diagnostic{Path: "metrics", Summary: "is empty: no trial could be judged", Hint: "name what trials report, such as [loss]"})
	}
	for i, metric := range metrics {
		if goal == goalAuto && direction(metric) == "" {
			problems = append(problems, core.Diagnostic{
				Path: fmt.Sprintf("metrics[%d]", i), Summary: fmt.Sprintf("which values of %q are better does not follow from its name", metric),
				Hint: fmt.Sprintf("set goal to %s or %s", goalMinimize, goalMaximize),
			})
		}
	}
	return problems
}

// checkRungs refuses rungs that nobody comes to, and some that are no rungs.
func checkRungs(first, most float64) (problems core.Diagnostics) {
	if first == 0 {
		problems = append(problems, core.Diagnostic{Path: "first", Summary: "is 0, and each rung is a multiple of it", Hint: "set it to the step at which trials are judged first, such as 1"})
	}
	if most > 0 && most < first {
		problems = append(problems, core.Diagnostic{Path: "max_step", Summary: fmt.Sprintf("%g is before the first rung, at %g", most, first), Hint: "no trial would be judged"})
	}
	return problems
}

func (p *trials) Admit(_ context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	p.verdicts = p.verdicts[:0]
	p.observe(v)
	for _, j := range waiting {
		g := p.byName[j.Experiment]
		if g == nil {
			continue
		}
		if d := g.rule.Decide(stopping.Trial(j.ID)); d.Action != stopping.GoOn { // Review ends those that are to stop
			p.verdicts = append(p.verdicts, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.AwaitingResults, Message: p.explain(g, d)})
		}
	}
	p.look(v)
	return p.verdicts, nil
}

// Ended takes in what trials reported before they ended, and how they did.
func (p *trials) Ended(_ context.Context, v *core.View, jobs []*core.Job) error {
	for _, j := range jobs {
		if j.Experiment == "" {
			continue
		}
		g, l := p.enter(j, v)
		p.gather(g, l, j)
		l.end = ended
		if j.State != core.Completed {
			l.end = endedLost
		}
	}
	for _, g := range p.groups { // reports are told by time, whoever made them, and now: neither Review nor Admit need follow
		for i := range g.live {
			if j := v.Job(g.live[i].job); j != nil && j.Experiment == g.name {
				p.gather(g, &g.live[i], j)
			}
		}
	}
	p.observe(v)
	return nil
}

func (p *trials) Review(_ context.Context, v *core.View, jobs []*core.Job) ([]core.Verdict, error) {
	p.verdicts = p.verdicts[:0]
	for _, j := range jobs {
		if j.Experiment != "" {
			g, l := p.enter(j, v)
			p.gather(g, l, j)
		}
	}
	p.observe(v)
	for _, g := range p.groups {
		if g.at = min(g.at, v.NowSeconds); g.news != v.Round && v.NowSeconds >= g.settlesAt(p.patience) {
			g.settle(v)
		}
	}
	p.look(v) // Admit is not asked when those that wait are suspended
	for _, j := range jobs {
		g := p.byName[j.Experiment]
		if g == nil {
			continue
		}
		switch d := g.rule.Decide(stopping.Trial(j.ID)); {
		case d.Action == stopping.Stop:
			p.verdicts = append(p.verdicts, core.Verdict{Job: j.ID, Code: core.End, Reason: core.Pruned, Message: p.explain(g, d)})
		case d.Action == stopping.Wait && j.State != core.Pending && !j.Pinned:
			p.verdicts = append(p.verdicts, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.AwaitingResults, Message: p.explain(g, d)})
		}
	}
	return p.verdicts, nil
}

// enter is the experiment of a job and the job in it, both of them new perhaps.
func (p *trials) enter(j *core.Job, v *core.View) (*group, *live) {
	g := p.byName[j.Experiment]
	if g == nil {
		g = &group{name: j.Experiment, rule: p.rule()}
		p.groups, p.byName[g.name] = append(p.groups, g), g
	}
	at, found := slices.BinarySearchFunc(g.live, j.ID, func(l live, id core.JobID) int { return cmp.Compare(l.job, id) })
	if !found {
		g.live = slices.Insert(g.live, at, live{job: j.ID, step: -1})
		g.rule.Enter(stopping.Trial(j.ID))
		g.quiet = 0
		g.happened(v)
	}
	return g, &g.live[at]
}

// gather takes in what a trial reported since the last time. An experiment is judged by the first metric of the list that its trials reported first.
func (p *trials) gather(g *group, l *live, j *core.Job) {
	for _, metric := range p.metrics {
		if g.metric == "" && len(j.Reported) > 0 {
			if _, some := j.Series(metric).Latest(); some {
				g.metric = metric
			}
		}
	}
	s := j.Series(g.metric)
	if s == nil {
		return
	}
	last := l.step
	for i := len(s.Points) - 1; i >= 0 && s.Points[i].Step > last; i-- {
		p.fresh = append(p.fresh, fresh{s.Points[i], g, j.ID})
		l.step = max(l.step, s.Points[i].Step)
	}
}

// observe tells rules what happened: who is there, what was reported, by time, and who ended.
func (p *trials) observe(v *core.View) {
	for ; int(p.next) < len(v.Jobs); p.next++ {
		if j := v.Jobs[p.next]; j != nil && j.Experiment != "" {
			p.enter(j, v)
		}
	}
	slices.SortFunc(p.fresh, func(a, b fresh) int {
		return cmp.Or(cmp.Compare(a.AtSeconds, b.AtSeconds), cmp.Compare(a.job, b.job), cmp.Compare(a.Step, b.Step))
	})
	for _, f := range p.fresh {
		value := f.Value
		if moreIsBetter(p.goal, f.group.metric) {
			value = -value // rules make everything small
		}
		f.group.rule.Report(stopping.Trial(f.job), f.Step, value)
		f.group.happened(v)
	}
	clear(p.fresh)
	p.fresh = p.fresh[:0]
	for _, g := range p.groups {
		g.leave(v)
	}
	p.forget()
}

// leave tells the rule of the trials that ended, or became those of another experiment.
func (g *group) leave(v *core.View) {
	if len(g.live) == 0 {
		return
	}
	g.live = slices.DeleteFunc(g.live, func(l live) bool {
		j := v.Job(l.job)
		if j != nil && j.Experiment == g.name && l.end == goesOn {
			return false
		}
		g.rule.Leave(stopping.Trial(l.job), l.end == endedLost || j != nil && l.end == goesOn)
		if j != nil || l.end != goesOn {
			g.happened(v)
		} // otherwise a reviewer ended it, or admission rejected it, in the round before
		return true
	})
	if len(g.live) == 0 {
		g.quiet = v.Round
	}
}

// forget drops the experiments that have been without a trial for the longest time when there are too many.
func (p *trials) forget() {
	if len(p.groups) <= quietExperiments {
		return
	}
	quiet := slices.DeleteFunc(slices.Clone(p.groups), func(g *group) bool { return g.quiet == 0 })
	if len(quiet) <= quietExperiments {
		return
	}
	slices.SortStableFunc(quiet, func(a, b *group) int { return cmp.Compare(a.quiet, b.quiet) })
	for _, g := range quiet[:len(quiet)-quietExperiments] {
		delete(p.byName, g.name)
	}
	p.groups = slices.DeleteFunc(p.groups, func(g *group) bool { return p.byName[g.name] != g })
}

// settle has the rule decide about those that wait for each other, until one of them goes on or none waits: at several rungs for one that reported rarely.
func (g *group) settle(v *core.View) {
	for range 2 * 64 { // rungs, to be safe from a snapshot that no rule made
		if !g.stuck(v) {
			return
		}
		var waited []stopping.Trial
		for _, l := range g.live {
			if t := stopping.Trial(l.job); g.rule.Decide(t).Action == stopping.Wait {
				waited = append(waited, t)
			}
		}
		g.rule.Settle()
		if slices.ContainsFunc(waited, func(t stopping.Trial) bool { return g.rule.Decide(t).Action == stopping.GoOn }) {
			return
		}
	}
}

// stuck reports whether trials wait for each other and for nobody else: none of the experiment can report as long as they wait. One that its owner suspended, or that another
// policy has wait for results, cannot; a pinned one that is to wait runs on, and can.
func (g *group) stuck(v *core.View) (some bool) {
	for _, l := range g.live {
		j := v.Job(l.job)
		switch g.rule.Decide(stopping.Trial(l.job)).Action {
		case stopping.Wait:
			if j.Pinned && j.State != core.Pending {
				return false // it goes on all the same
			}
			some = true
		case stopping.GoOn:
			if !j.Suspended && !(j.State == core.Pending && j.WaitingReason == core.AwaitingResults) {
				return false
			}
		}
	}
	return some
}

// explain tells by which figures a trial waits or stops.
func (p *trials) explain(g *group, d stopping.Decision) string {
	value, threshold := d.Value, d.Threshold
	if moreIsBetter(p.goal, g.metric) {
		value, threshold = 0-value, 0-threshold
	}
	if math.IsNaN(value) {
		return explainDiverged(g.metric, d, threshold)
	}
	switch {
	case d.Rung < 0:
		return fmt.Sprintf("%s of at best %.6g up to step %g is worse than the median of %d others, %.6g", g.metric, value, d.Step, d.RungSize, threshold)
	case d.Action == stopping.Stop:
		return fmt.Sprintf("%s of %.6g at step %g is number %d of %d at rung %d, and the best %d continue", g.metric, value, d.Step, d.Rank, d.RungSize, d.Rung+1, d.Keep)
	default:
		return fmt.Sprintf("%s of %.6g at step %g is number %d of %d at rung %d so far", g.metric, value, d.Step, d.Rank, d.RungSize, d.Rung+1)
	}
}

// explainDiverged is explain for a trial whose metric is not finite.
func explainDiverged(metric string, d stopping.Decision, threshold float64) string {
	if d.Rung < 0 {
		return fmt.Sprintf("%s is not finite at step %g, and the median of %d others is %.6g", metric, d.Step, d.RungSize, threshold)
	}
	text := fmt.Sprintf("%s is not finite at step %g, which is number %d of %d at rung %d", metric, d.Step, d.Rank, d.RungSize, d.Rung+1)
	if d.Action == stopping.Stop {
		text += fmt.Sprintf(", and the best %d continue", d.Keep)
	}
	return text
}

// learnedTrials is what such a policy hands to the next.
type learnedTrials struct {
	Settings string
	Next     core.JobID
	Groups   []learnedGroup
}

type learnedGroup struct {
	Name, Metric string
	Quiet        int
	At           float64 // of what became of it last
	Jobs         []core.JobID
	Steps        []float64
	Rule         json.RawMessage
}

// Snapshot is the experiments, with the results of trials that ended: no job holds them.
func (p *trials) Snapshot() ([]byte, error) {
	l := learnedTrials{Settings: p.settings, Next: p.next}
	for _, g := range p.groups {
		rule, err := g.rule.Snapshot()
		if err != nil {
			return nil, err
		}
		of := learnedGroup{Name: g.name, Metric: g.metric, Quiet: g.quiet, At: g.at, Rule: rule}
		for _, t := range g.live {
			of.Jobs, of.Steps = append(of.Jobs, t.job), append(of.Steps, t.step)
		}
		l.Groups = append(l.Groups, of)
	}
	return json.Marshal(l)
}

// Restore takes the experiments up. Those of other settings are of no use.
func (p *trials) Restore(learned []byte) error {
	var l learnedTrials
	if err := json.Unmarshal(learned, &l); err != nil {
		return err
	}
	if l.Settings != p.settings {
		return fmt.Errorf("the results are those of %s", l.Settings)
	}
	restored := newTrials(p.metrics, p.goal, p.patience, p.settings, p.rule)
	for _, of := range l.Groups {
		g := &group{name: of.Name, metric: of.Metric, quiet: of.Quiet, at: of.At, rule: p.rule()}
		if restored.byName[g.name] != nil || g.name == "" || len(of.Jobs) != len(of.Steps) || !slices.IsSorted(of.Jobs) || len(of.Jobs) > 0 != (of.Quiet == 0) {
			return fmt.Errorf("experiment %q has no trials of its own", g.name)
		}
		if err := g.rule.Restore(bytes.Clone(of.Rule)); err != nil {
			return fmt.Errorf("experiment %q: %w", g.name, err)
		}
		for i, id := range of.Jobs {
			g.live = append(g.live, live{job: id, step: of.Steps[i]})
		}
		restored.groups, restored.byName[g.name] = append(restored.groups, g), g
	}
	if restored.next = l.Next; l.Next < 0 {
		return fmt.Errorf("the next job is %d", l.Next)
	}
	*p = *restored
	return nil
}

var (
	_ core.Reviewer    = (*trials)(nil)
	_ core.Historian   = (*trials)(nil)
	_ core.Snapshotter = (*trials)(nil)
	_ core.Steady      = (*trials)(nil)
)

// ladder is where rungs are, of values of which less is better.
func ladder(first, most float64, reduction int) stopping.Ladder {
	return stopping.Ladder{First: first, Eta: float64(reduction), Most: most, Goal: core.Minimize}
}
