package outcome

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// Print writes what the run came to: summary.json as it is, its numbers as a list, or a table for people.
func Print(a *cli.App, r *quartet.Result, config *configs.Config) error {
	switch a.Format {
	case render.JSON:
		_, err := a.Stdout.Write(r.Text)
		return err
	case render.CSV:
		return PrintNumbers(a, r.Text)
	}
	if err := facts(r.Summary, config.Round.Interval).Write(a.Stdout, a.Format); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Stdout); err != nil {
		return err
	}
	tables := []render.Table{spans(r.Summary)}
	if len(r.Summary.Accelerators) > 0 {
		tables = append(tables, accelerators(r.Summary))
	}
	if len(r.Summary.Pools) > 0 {
		tables = append(tables, pools(r.Summary))
	}
	if s := r.Summary.Synthesizer; s != nil && len(s.Log) > 0 {
		tables = append(tables, switches(s))
	}
	for i := range tables {
		if i > 0 {
			if _, err := fmt.Fprintln(a.Stdout); err != nil {
				return err
			}
		}
		if err := tables[i].Write(a.Stdout, a.Format); err != nil {
			return err
		}
	}
	return nil
}

// switches says which composition took over when, and why.
func switches(s *metrics.Synthesizer) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "after"}, {Name: "round", Numeric: true}, {Name: "from"}, {Name: "to"}, {Name: "why"}}}
	for i := range s.Log {
		l := &s.Log[i]
		t.Rows = append(t.Rows, []any{render.Span(float64(l.AtSeconds)), l.Round, l.From, l.To, l.Why})
	}
	return t
}

// pools says what each pool was, and what it cost.
func pools(s *metrics.Summary) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "pool"}}}
	for _, name := range []string{"most nodes", "node hours", "idle", "cost", "idle cost"} {
		t.Columns = append(t.Columns, render.Column{Name: name, Numeric: true})
	}
	for i := range s.Pools {
		p := &s.Pools[i]
		t.Rows = append(t.Rows, []any{
			p.Pool, p.MostNodes, fmt.Sprintf("%.1f", float64(p.NodeHours)), fmt.Sprintf("%.1f", float64(p.IdleNodeHours)),
			fmt.Sprintf("%.2f", float64(p.Cost)), fmt.Sprintf("%.2f", float64(p.IdleCost)),
		})
	}
	return t
}

// PrintNumbers writes the leaves of a JSON document as a list.
func PrintNumbers(a *cli.App, document []byte) error {
	rows, err := flatten(document)
	if err != nil {
		return err
	}
	return render.Table{Columns: []render.Column{{Name: "metric"}, {Name: "value"}}, Rows: rows}.Write(a.Stdout, a.Format)
}

// facts are what a person wants to see first of a run with rounds at an interval.
func facts(s *metrics.Summary, interval time.Duration) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "run"}, {Name: s.Name}}}
	add := func(name, format string, args ...any) {
		t.Rows = append(t.Rows, []any{name, fmt.Sprintf(format, args...)})
	}
	addPolicies(s, add)
	add("jobs", "%s", countJobs(s.Jobs))
	addPromises(s, add)
	addTrials(s, add)
	if e := s.EndedEarly; e != nil {
		add("ended early", "%d converged, %d pruned", e.Converged, e.Pruned)
	}
	add("makespan", "%s", render.Span(float64(s.MakespanSeconds)))
	add("utilisation", "%s", render.Percent(float64(s.UtilizationRatio)))
	add("GPU time", "%s", render.DeviceTime(float64(s.GPUHours)*3600))
	add("restarts", "%d (%s a job), %d preemptions", s.Restarts.Total, render.Decimal(float64(s.Restarts.Mean), 2, ""), s.Preemptions)
	addFairness(s, interval, add)
	add("rounds", "%d, %s to decide on average", s.Rounds, render.Span(float64(s.DecisionSeconds.Mean)))
	for _, t := range s.Plugins {
		if t.Fallback {
			add("plugin failed", "%s, and its fallback took over", t.Component)
		} else {
			add("plugin failed", "%s, restarts: %d", t.Component, t.Restarts)
		}
	}
	add("wall time", "%s", render.Span(float64(s.WallSeconds)))
	return t
}

// addFact adds a row to a table of facts; its name is empty where it goes with the row above.
type addFact func(name, format string, args ...any)

// addPolicies adds which policies decided, and which did before.
func addPolicies(s *metrics.Summary, add addFact) {
	add("policies", "%s, seed %d", policies(&s.Components), s.Seed)
	if c := s.Synthesizer; c != nil {
		add("chosen by "+c.Method, "%d looks, %d switches, %d of them taken back", c.Looks, c.Switches, c.TakenBack)
		for _, in := range c.InForce {
			if in.Seconds > 0 {
				add("", "%s decided for %s", in.Name, render.Span(float64(in.Seconds)))
			}
		}
	}
	for _, e := range s.Earlier {
		if s.Synthesizer != nil {
			break // the table of switches tells
		}
		add("policies before", "%s, until round %d", policies(&e.Components), e.UntilRound)
	}
}

// addPromises adds how many deadlines and guarantees were kept.
func addPromises(s *metrics.Summary, add addFact) {
	if d := s.Deadlines; d != nil {
		broken := ""
		if d.Broken > 0 {
			broken = fmt.Sprintf(", %d promises broken", d.Broken)
		}
		add("deadlines", "%s met: %d of %d, %d missed, %d declined%s", render.Percent(float64(d.Ratio)), d.Met, d.Met+d.Missed+d.Declined, d.Missed, d.Declined, broken)
	}
	if t := s.Tiers; t != nil {
		for _, tier := range tiersOf(t) {
			add(tier.name, "%s of hours with what is guaranteed: %d of %d, %d jobs of %d in all theirs", render.Percent(float64(tier.Ratio)), tier.Met, tier.Hours, tier.JobsMet, tier.Jobs)
		}
		if t.OversoldSeconds > 0 {
			add("", "guarantees came to up to %s devices, and for %s to more than there were: not all could be kept",
				render.Decimal(float64(t.GuaranteedDevicesMax), 1, ""), render.Span(float64(t.OversoldSeconds)))
		}
	}
}

// addTrials adds what a search came to.
func addTrials(s *metrics.Summary, add addFact) {
	if t := s.Tuning; t != nil {
		add("trials", "%d of %s: %d finished, %d stopped early, %d failed, %d unfinished", t.Trials, t.Experiment, t.Finished, t.Stopped, t.Failed, t.Unfinished)
		if b := t.Best; b != nil {
			add("best trial", "%d (%s): %s %s at step %s, after %s", b.Trial, b.Job, t.Metric, render.Decimal(float64(b.Value), 4, ""), render.Decimal(float64(b.Step), 0, ""), render.Span(float64(b.AtSeconds)))
		} else if text := t.Unheard(); text != "" {
			add("", "%s", text)
		}
	}
}

// addFairness adds how jobs fared against a fair share of the cluster.
func addFairness(s *metrics.Summary, interval time.Duration, add addFact) {
	addRho := func(name string, r metrics.Rho) {
		if r.Mean.Known() {
			add(name, "rho %s mean, %s max, %s of jobs above 1", render.Decimal(float64(r.Mean), 2, ""),
				render.Decimal(float64(r.Max), 2, ""), render.Percent(float64(r.UnfairRatio)))
		}
	}
	f := &s.Fairness
	addRho("fairness", metrics.Rho{Mean: f.RhoMean, Max: f.RhoMax, UnfairRatio: f.UnfairRatio})
	addRho("fairness, Themis", f.Themis)
	if f.Sia != nil {
		addRho("fairness, Sia", *f.Sia)
	}
	if onlyRounds(s, interval) {
		add("", "no job waited longer than a round of %s: a rho above 1 comes from rounds and costs here, not from shares", render.Span(interval.Seconds()))
	}
}

// tierLine is what a person sees of a tier.
type tierLine struct {
	name string
	*metrics.TierUse
}

// tiersOf lists the tiers that some job is of and that are guaranteed something.
func tiersOf(t *metrics.Tiers) []tierLine {
	return slices.DeleteFunc([]tierLine{{core.Premium, t.Premium}, {core.Standard, t.Standard}, {core.Basic, t.Basic}}, func(l tierLine) bool {
		return l.TierUse == nil || l.Guaranteed == 0
	})
}

// onlyRounds reports whether jobs took longer than on a fair share although none waited longer than for the next round, as jobs do
// that are shorter than a round.
func onlyRounds(s *metrics.Summary, interval time.Duration) bool {
	f, longest := &s.Fairness, float64(s.QueueingSeconds.Max)
	return f.RhoMax > 1 && s.Preemptions == 0 && longest > 0 && longest <= interval.Seconds()
}

func spans(s *metrics.Summary) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "time"}}}
	for _, name := range []string{"mean", "p50", "p90", "p99", "max"} {
		t.Columns = append(t.Columns, render.Column{Name: name, Numeric: true})
	}
	add := func(name string, d metrics.Distribution) {
		row := []any{name}
		for _, x := range []metrics.Number{d.Mean, d.P50, d.P90, d.P99, d.Max} {
			row = append(row, render.Span(float64(x)))
		}
		t.Rows = append(t.Rows, row)
	}
	add("JCT", s.JCTSeconds)
	add("queueing", s.QueueingSeconds)
	return t
}

func accelerators(s *metrics.Summary) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "accelerator"}}}
	for _, name := range []string{"devices", "utilisation", "GPU time", "jobs", "queueing", "bound jobs", "their queueing"} {
		drop := 0
		if strings.HasPrefix(name, "bound") || strings.HasPrefix(name, "their") {
			drop = 1
		}
		t.Columns = append(t.Columns, render.Column{Name: name, Numeric: true, Drop: drop})
	}
	for i := range s.Accelerators {
		u := &s.Accelerators[i]
		t.Rows = append(t.Rows, []any{
			u.Accelerator, u.Devices, render.Percent(float64(u.UtilizationRatio)), render.DeviceTime(float64(u.GPUHours) * 3600), u.Jobs,
			render.Span(float64(u.QueueingSecondsMean)), u.BoundJobs, render.Span(float64(u.BoundQueueingSecondsMean)),
		})
	}
	return t
}

// policies lists the types of the four parts.
func policies(c *metrics.Components) string {
	var names []string
	for _, id := range append(slices.Clip(c.Admission), c.Allocation, c.Placement, c.Elasticity) {
		names = append(names, path.Base(id))
	}
	return strings.Join(names, " + ")
}

// leftOver words how many jobs did not finish, and why most of those without devices wait.
func leftOver(jobs []*core.Job) string {
	counts := make([]int, len(core.Reasons()))
	for _, j := range jobs {
		if j.State != core.Running {
			counts[j.WaitingReason]++
		}
	}
	text := fmt.Sprintf("%d jobs did not finish", len(jobs))
	if len(jobs) == 1 {
		text = "1 job did not finish"
	}
	reason := core.Reason(slices.Index(counts, slices.Max(counts))) // of equally common ones, the first in precedence
	switch waiting := counts[reason]; {
	case waiting == 0:
		return text + ": they hold devices and make no progress"
	case waiting == len(jobs):
		return fmt.Sprintf("%s, for reason %q", text, reason)
	default:
		return fmt.Sprintf("%s, %d of them for reason %q", text, waiting, reason)
	}
}

func countJobs(n metrics.JobCounts) string {
	text := fmt.Sprintf("%d of %d completed", n.Completed, n.Submitted)
	for _, other := range []struct {
		count int
		what  string
	}{{n.Rejected, "rejected"}, {n.Failed, "failed"}, {n.Cancelled, "cancelled"}, {n.Unfinished, "unfinished"}} {
		if other.count > 0 {
			text += fmt.Sprintf(", %d %s", other.count, other.what)
		}
	}
	return text
}

// flatten lists the leaves of a JSON document in their order, each by its path.
func flatten(document []byte) ([][]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var rows [][]any
	var walk func(path string) error
	walk = func(path string) error {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'):
			for decoder.More() {
				key, err := decoder.Token()
				if err != nil {
					return err
				}
				if err := walk(strings.TrimPrefix(fmt.Sprintf("%s.%s", path, key), ".")); err != nil {
					return err
				}
			}
		case json.Delim('['):
			for i := 0; decoder.More(); i++ {
				if err := walk(fmt.Sprintf("%s[%d]", path, i)); err != nil {
					return err
				}
			}
		case nil:
			rows = append(rows, []any{path, math.NaN()})
			return nil
		default:
			rows = append(rows, []any{path, fmt.Sprint(token)})
			return nil
		}
		_, err = decoder.Token() // the closing delimiter
		return err
	}
	if err := walk(""); err != nil {
		return nil, fmt.Errorf("list the numbers: %w", err)
	}
	return rows, nil
}
