package quartet

import (
	"cmp"
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

// pairOfFates is what becomes of a job in both futures of a draw.
type pairOfFates struct{ without, with twin.Fate }

// pairs are the jobs that are there at the beginning of both futures.
func pairs(f [2]*twin.Future) (list []pairOfFates) {
	with := map[core.JobID]*twin.Fate{}
	for i := range f[1].Jobs {
		with[f[1].Jobs[i].ID] = &f[1].Jobs[i]
	}
	for i := range f[0].Jobs {
		a := &f[0].Jobs[i]
		if b := with[a.ID]; b != nil && a.SubmitSeconds <= f[0].FromSeconds && b.SubmitSeconds == a.SubmitSeconds {
			list = append(list, pairOfFates{*a, *b})
		}
	}
	return list
}

// restartsOf counts the restarts of a job that the next round brought.
func restartsOf(before, after *core.View, id core.JobID) float64 {
	of := func(v *core.View) int {
		if int(id) < len(v.Jobs) && v.Jobs[id] != nil {
			return v.Jobs[id].Restarts
		}
		return 0
	}
	return float64(of(after) - of(before))
}

// measure compares the jobs that are there, over the draws. One that does not end counts as long as either future lasts.
func (w *WhatIf) measure(futures [][2]*twin.Future) {
	names := [...]string{MeasureJCT, MeasureWait, MeasureMakespan, MeasureUtilization, MeasureRestarts, MeasureUnfinished}
	var values [len(names)][2][]float64
	for _, f := range futures {
		list := pairs(f)
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
func figures(f [2]*twin.Future, which int, list []pairOfFates, before, after *core.View) [6]float64 {
	of := f[which]
	until := max(f[0].ToSeconds, f[1].ToSeconds)
	var jct, wait, last, restarts, unfinished float64
	for i := range list {
		fate := &list[i].without
		if which == 1 {
			fate = &list[i].with
		}
		end, start := fate.EndSeconds, fate.StartSeconds
		if math.IsNaN(end) {
			end = until
			unfinished++
		}
		if math.IsNaN(start) {
			start = end // it never had devices
		}
		jct += end - fate.SubmitSeconds
		wait += max(start-of.FromSeconds, 0)
		last = max(last, end-of.FromSeconds)
		restarts += float64(fate.Restarts) + restartsOf(before, after, fate.ID)
	}
	n := float64(max(len(list), 1))
	held := 0.0
	if span := of.ToSeconds - of.FromSeconds; span > 0 {
		held = of.DeviceSeconds / span / float64(max(after.Cluster.Devices(), 1))
	}
	return [6]float64{jct / n, wait / n, last, held, restarts, unfinished}
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
	found := map[core.JobID]*[2][]twin.Fate{}
	for _, f := range futures {
		for k := range f {
			for _, fate := range f[k].Jobs {
				if fate.SubmitSeconds > f[k].FromSeconds {
					continue
				}
				if found[fate.ID] == nil {
					found[fate.ID] = &[2][]twin.Fate{}
				}
				found[fate.ID][k] = append(found[fate.ID][k], fate)
			}
		}
	}
	ids := slices.Clone(submitted) // those that were rejected, too
	for id := range found {
		if !slices.Contains(submitted, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		fates := found[id]
		if fates == nil {
			fates = &[2][]twin.Fate{}
		}
		s := Shift{Job: id, Name: w.names[id], Submitted: slices.Contains(submitted, id), Rejected: len(fates[1]) == 0}
		s.StartWithout, s.EndWithout = medians(fates[0])
		s.StartWith, s.EndWith = medians(fates[1])
		s.Later = twin.Band{Low: math.NaN(), Median: math.NaN(), High: math.NaN()}
		if n := min(len(fates[0]), len(fates[1])); n > 0 {
			later := make([]float64, n)
			for i := range later {
				later[i] = difference(fates[0][i].EndSeconds, fates[1][i].EndSeconds)
			}
			s.Later = twin.BandOf(later)
		}
		w.Shifts = append(w.Shifts, s)
	}
}

// difference is how much later an end is; infinite where only one of them never comes.
func difference(without, with float64) float64 {
	switch a, b := math.IsNaN(without), math.IsNaN(with); {
	case a && b:
		return 0
	case a:
		return math.Inf(-1)
	case b:
		return math.Inf(1)
	}
	return with - without
}

// medians of starts and ends; +Inf for never.
func medians(fates []twin.Fate) (start, end float64) {
	starts, ends := make([]float64, len(fates)), make([]float64, len(fates))
	for i := range fates {
		starts[i], ends[i] = orNever(fates[i].StartSeconds), orNever(fates[i].EndSeconds)
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
