package engine

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/core/twin"
)

// whatIfLevel is that of the intervals.
const whatIfLevel = 0.95

// moves joins what the next round decides in both futures.
func (w *WhatIf) moves() {
	before := w.before
	of := func(changes []core.Change, id core.JobID) *core.Change {
		at := slices.IndexFunc(changes, func(c core.Change) bool { return c.Job == id })
		if at < 0 {
			return nil
		}
		return &changes[at]
	}
	var ids []core.JobID
	for _, list := range [...][]core.Change{w.Without.Changes, w.With.Changes} {
		for i := range list {
			ids = append(ids, list[i].Job)
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		m := Move{Job: id, Without: of(w.Without.Changes, id), With: of(w.With.Changes, id)}
		if int(id) < len(before.Jobs) && before.Jobs[id] != nil {
			m.Before = before.Jobs[id].Seats
		}
		m.Name = w.names[id]
		m.Same = m.Without != nil && m.With != nil && m.Without.Action == m.With.Action && core.SameSeats(m.Without.Seats, m.With.Seats)
		w.Moves = append(w.Moves, m)
	}
}

// outcomePair is what becomes of a job in both futures of a draw.
type outcomePair struct{ without, with twin.JobOutcome }

// presence is what becomes of a job in a future.
type presence struct {
	twin.JobOutcome
	atOnce bool // the next round itself rejects or ends it
}

// present are what becomes of the jobs that are there at the beginning of a future, by JobID, with those that its next round rejects or ends.
func (w *WhatIf) present(f *twin.Future, next *Outlook) map[core.JobID]presence {
	fates := map[core.JobID]presence{}
	for i := range f.Jobs {
		if fate := &f.Jobs[i]; fate.SubmitSeconds <= f.FromSeconds {
			fates[fate.ID] = presence{JobOutcome: *fate}
		}
	}
	for i := range next.Changes {
		c := &next.Changes[i]
		if _, goesOn := fates[c.Job]; goesOn || c.Action != core.Discard && c.Action != core.Finish {
			continue
		}
		fate := twin.JobOutcome{ID: c.Job, SubmitSeconds: w.NowSeconds, StartSeconds: math.NaN(), EndSeconds: w.NowSeconds, Outcome: core.Rejected}
		if j := w.before.Job(c.Job); j != nil {
			fate.SubmitSeconds = j.SubmitSeconds
			if j.State == core.Running {
				fate.StartSeconds = j.LastChange
			}
		}
		if c.Action == core.Finish {
			fate.Outcome = core.Completed
		}
		fates[c.Job] = presence{fate, true}
	}
	return fates
}

// pairs are the jobs that are there at the beginning of both futures. One that the next round ends, or rejects, in both is of neither: the change does nothing to it.
func (w *WhatIf) pairs(f [2]*twin.Future) (list []outcomePair) {
	without, with := w.present(f[0], &w.Without), w.present(f[1], &w.With)
	for _, j := range w.before.Jobs {
		if j == nil {
			continue
		}
		a, is := without[j.ID]
		b, stays := with[j.ID]
		if is && stays && !over(&a, &b) {
			list = append(list, outcomePair{a.JobOutcome, b.JobOutcome})
		}
	}
	return list
}

// over reports whether the next round itself ends a job, in the same way in both futures.
func over(without, with *presence) bool {
	return without.atOnce && with.atOnce && without.Outcome == with.Outcome
}

// endOf is when a job completes; NaN for never: not to run it is no end.
func endOf(f *twin.JobOutcome) float64 {
	if f.Outcome != core.Completed {
		return math.NaN()
	}
	return f.EndSeconds
}

// isLost reports whether a job was rejected or failed, and never comes back.
func isLost(f *twin.JobOutcome) bool { return f.Outcome != core.Completed && !math.IsNaN(f.EndSeconds) }

// restartsOf counts the restarts of a job that the next round brought.
func restartsOf(before, after *core.View, id core.JobID) float64 {
	of := func(v *core.View) int {
		if j := v.Job(id); j != nil {
			return j.Restarts
		}
		return 0
	}
	if after.Job(id) == nil {
		return 0 // it ended in that round
	}
	return float64(of(after) - of(before))
}

// measure compares the jobs that are there, over the draws. One that does not complete, as it is rejected, counts as long as either future lasts.
func (w *WhatIf) measure(futures [][2]*twin.Future) {
	names := [...]string{MeasureJCT, MeasureWait, MeasureMakespan, MeasureUtilization, MeasureRestarts, MeasureUnfinished, MeasureRejected}
	var values [len(names)][2][]float64
	for _, f := range futures {
		list := w.pairs(f)
		for k := range f {
			for i, value := range figures(f, k, list, w.before, []*core.View{w.Without.view, w.With.view}[k]) {
				values[i][k] = append(values[i][k], value)
			}
		}
	}
	for i, name := range names {
		difference := make([]float64, len(futures))
		for d := range difference {
			difference[d] = values[i][1][d] - values[i][0][d]
		}
		w.Measures = append(w.Measures, Measured{
			Name: name, Without: mean(values[i][0]), With: mean(values[i][1]), Change: mean(difference), Interval: stats.T(difference, whatIfLevel),
		})
	}
}

// figures are those of one of two futures.
func figures(f [2]*twin.Future, which int, list []outcomePair, before, after *core.View) [7]float64 {
	of := f[which]
	until := max(f[0].ToSeconds, f[1].ToSeconds)
	var jct, wait, last, restarts, unfinished, rejected float64
	for i := range list {
		fate := &list[i].without
		if which == 1 {
			fate = &list[i].with
		}
		end, start := endOf(fate), fate.StartSeconds
		if math.IsNaN(end) {
			end = until
			unfinished++
		}
		if fate.Outcome == core.Rejected {
			rejected++
		}
		if math.IsNaN(start) {
			start = end // it never had devices
		}
		jct += end - fate.SubmitSeconds
		wait += max(start-of.FromSeconds, 0)
		if last = max(last, end-of.FromSeconds); isLost(fate) {
			last = math.NaN() // and stays it
		}
		restarts += float64(fate.Restarts) + restartsOf(before, after, fate.ID)
	}
	n := float64(max(len(list), 1))
	held := 0.0
	if span := of.ToSeconds - of.FromSeconds; span > 0 {
		held = of.DeviceSeconds / span / float64(max(after.Cluster.Devices(), 1))
	}
	return [7]float64{jct / n, wait / n, last, held, restarts, unfinished, rejected}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// shift compares each job that is there, or is submitted.
func (w *WhatIf) shift(futures [][2]*twin.Future, submitted []core.JobID) {
	found := map[core.JobID]*[2][]twin.JobOutcome{}
	for _, f := range futures {
		var both [2]map[core.JobID]presence
		for k, next := range [...]*Outlook{&w.Without, &w.With} {
			both[k] = w.present(f[k], next)
		}
		for k := range both {
			for id, p := range both[k] {
				if other, is := both[1-k][id]; is && over(&p, &other) {
					continue
				}
				if found[id] == nil {
					found[id] = &[2][]twin.JobOutcome{}
				}
				found[id][k] = append(found[id][k], p.JobOutcome)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		fates := found[id]
		s := Shift{Job: id, Name: w.names[id], Submitted: slices.Contains(submitted, id), RejectedWithout: isRejected(fates[0]), Rejected: isRejected(fates[1])}
		s.StartWithout, s.EndWithout = medians(fates[0])
		s.StartWith, s.EndWith = medians(fates[1])
		s.Later = twin.Band{Low: math.NaN(), Median: math.NaN(), High: math.NaN()}
		if n := min(len(fates[0]), len(fates[1])); n > 0 {
			later := make([]float64, n)
			for i := range later {
				later[i] = difference(&fates[0][i], &fates[1][i])
			}
			s.Later = twin.BandOf(later)
		}
		w.Shifts = append(w.Shifts, s)
	}
}

// isRejected reports whether a job is rejected in half of the draws, or more.
func isRejected(fates []twin.JobOutcome) bool {
	n := 0
	for i := range fates {
		if fates[i].Outcome == core.Rejected {
			n++
		}
	}
	return n > 0 && 2*n >= len(fates)
}

// difference is how much later a job ends; infinite where only one of the ends comes, or none does and only one of them may still.
func difference(without, with *twin.JobOutcome) float64 {
	switch a, b := endOf(without), endOf(with); {
	case !math.IsNaN(a) && !math.IsNaN(b):
		return b - a
	case math.IsNaN(a) && math.IsNaN(b) && isLost(without) == isLost(with):
		return 0
	case !math.IsNaN(a) || math.IsNaN(b) && isLost(with):
		return math.Inf(1)
	}
	return math.Inf(-1)
}

// medians of starts and ends; +Inf for never.
func medians(fates []twin.JobOutcome) (start, end float64) {
	starts, ends := make([]float64, len(fates)), make([]float64, len(fates))
	for i := range fates {
		starts[i], ends[i] = orNever(fates[i].StartSeconds), orNever(endOf(&fates[i]))
	}
	if len(fates) == 0 {
		return math.Inf(1), math.Inf(1)
	}
	return twin.BandOf(starts).Median, twin.BandOf(ends).Median
}

func orNever(seconds float64) float64 {
	if math.IsNaN(seconds) {
		return math.Inf(1)
	}
	return seconds
}

// Most lists the jobs whose ends change most, at most so many, and all that are submitted.
func (w *WhatIf) Most(n int) []Shift {
	list := slices.DeleteFunc(slices.Clone(w.Shifts), func(s Shift) bool { return !s.Submitted && (s.Later.Median == 0 || math.IsNaN(s.Later.Median)) })
	slices.SortStableFunc(list, func(a, b Shift) int {
		if a.Submitted != b.Submitted {
			return map[bool]int{true: -1, false: 1}[a.Submitted]
		}
		return -cmp.Compare(math.Abs(a.Later.Median), math.Abs(b.Later.Median))
	})
	most := 0
	for i := range list {
		if list[i].Submitted {
			most++
		}
	}
	return list[:min(len(list), most+n)]
}
