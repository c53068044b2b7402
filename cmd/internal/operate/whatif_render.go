package operate

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
)

// shownShifts is how many jobs are shown whose ends change most.
const shownShifts = 10

// writeWhatIf writes tables for people, one document, or the rows of the jobs.
func (a *app) writeWhatIf(t *quartet.Twin, change string, w *quartet.WhatIf) error {
	switch a.Format {
	case render.JSON:
		return render.Document(a.Stdout, whatIfDocument(change, w))
	case render.CSV:
		return shiftTable(w, w.Shifts).Write(a.Stdout, a.Format)
	}
	until := "Each future runs until all jobs that are here now have ended."
	if !math.IsInf(w.ToSeconds, 1) {
		until = "Each future runs for " + render.Span(w.ToSeconds-w.NowSeconds) + "."
	}
	moment := fmt.Sprintf("round %d, at %s", w.Round, render.Span(w.NowSeconds))
	if a.ByCalendar {
		moment = "the next round of a scheduler that takes over now"
	}
	a.Note("%s, without and with the change: %s", moment, change)
	a.Note("Means of %s with 95 %% confidence intervals; times are medians.", render.Count(w.Draws, "simulated future"))
	a.Note("%s", until)
	for _, n := range w.Notes {
		a.Note("%s", n)
	}
	var parts []func(io.Writer) error
	table := func(t render.Table) { parts = append(parts, func(to io.Writer) error { return t.Write(to, a.Format) }) }
	if moves := movesTable(w); len(moves.Rows) > 0 {
		table(moves)
	} else {
		parts = append(parts, render.Lines([]string{"the next round decides the same of every job"}))
	}
	table(measureTable(w))
	most := shownShifts
	if a.Format == render.Wide {
		most = len(w.Shifts)
	}
	if shifts := shiftTable(w, w.Most(most)); len(shifts.Rows) > 0 {
		table(shifts)
	} else {
		parts = append(parts, render.Lines([]string{"no job ends at another time, as far as the middle of the futures shows"}))
	}
	return render.WriteApart(a.Stdout, parts)
}

// movesTable lists the jobs of which the next round decides otherwise.
func movesTable(w *quartet.WhatIf) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "job"}, {Name: "holds"}, {Name: "next_round"}, {Name: "with_the_change"}}}
	for i := range w.Moves {
		m := &w.Moves[i]
		if m.Same {
			continue
		}
		t.Rows = append(t.Rows, []any{m.Name, seatsText(w.With.Cluster, m.Before), decisionText(w.Without.Cluster, m.Without), decisionText(w.With.Cluster, m.With)})
	}
	return t
}

// decisionText words what is decided of a job.
func decisionText(c *core.Cluster, d *core.Change) string {
	if d == nil {
		return "as it is"
	}
	text := d.Action.String()
	if len(d.Seats) > 0 {
		text += " " + seatsText(c, d.Seats)
	}
	if d.Reason != core.NoReason {
		text += " (" + d.Reason.String() + ")"
	}
	return text
}

// measureTable compares the futures.
func measureTable(w *quartet.WhatIf) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "measure"}, {Name: "without"}, {Name: "with"}, {Name: "change"}, {Name: "between"}}}
	for i := range w.Measures {
		m := &w.Measures[i]
		if m.Name == quartet.MeasureRejected && m.Without == 0 && m.With == 0 {
			continue
		}
		in, difference := measureUnit(m.Name)
		change := moreOrLess(m.Change, difference)
		between := ""
		if m.Interval.Known() {
			between = moreOrLess(m.Interval.Low, difference) + " to " + moreOrLess(m.Interval.High, difference)
			if m.Interval.Contains(0) && m.Interval.Width() > 0 {
				change = "~ " + change
			}
		}
		t.Rows = append(t.Rows, []any{measureName(m.Name), in(m.Without), in(m.With), change, between})
	}
	return t
}

// measureName is a measure without its unit.
func measureName(name string) string {
	for _, unit := range [...]string{"_seconds", "_ratio", "_jobs"} {
		name = strings.TrimSuffix(name, unit)
	}
	return name
}

// measureUnit words a figure, and a difference, in the unit that its name says.
func measureUnit(name string) (figure, difference func(float64) string) {
	switch {
	case strings.HasSuffix(name, "_seconds"):
		return render.Span, render.Span
	case strings.HasSuffix(name, "_ratio"):
		return render.Percent, func(x float64) string { return render.Decimal(x*100, 1, " points") }
	}
	count := func(x float64) string { return render.Decimal(x, 1, "") }
	return count, count
}

// moreOrLess words a difference.
func moreOrLess(x float64, in func(float64) string) string {
	switch zero := in(0); {
	case math.IsNaN(x):
		return in(x)
	case in(math.Abs(x)) == zero:
		return zero
	case x < 0:
		return "-" + in(-x)
	}
	return "+" + in(x)
}

// shiftTable lists jobs with their ends in both futures.
func shiftTable(w *quartet.WhatIf, shifts []quartet.Shift) render.Table {
	t := render.Table{Columns: []render.Column{
		{Name: "job"}, {Name: "start", Drop: 2}, {Name: "start_with", Drop: 1}, {Name: "end"}, {Name: "end_with"}, {Name: "later"}, {Name: "later_between"},
	}}
	for i := range shifts {
		s := &shifts[i]
		start, end := startText(s.StartWithout, w.NowSeconds), inText(s.EndWithout-w.NowSeconds)
		startWith, endWith := startText(s.StartWith, w.NowSeconds), inText(s.EndWith-w.NowSeconds)
		if s.RejectedWithout {
			start, end = "", "rejected"
		}
		if s.Submitted {
			start, end = "", ""
		}
		if s.Rejected {
			startWith, endWith = "", "rejected"
		}
		t.Rows = append(t.Rows, []any{s.Name, start, startWith, end, endWith, laterText(s.Later.Median), laterBandText(s)})
	}
	return t
}

// startText is nothing for a job that has what it runs on.
func startText(seconds, now float64) string {
	if seconds < now {
		return ""
	}
	return inText(seconds - now)
}

// laterText words how much later a job ends with the change: never, or only with it, are possible.
func laterText(seconds float64) string {
	switch {
	case math.IsNaN(seconds):
		return ""
	case math.IsInf(seconds, 1):
		return "never"
	case math.IsInf(seconds, -1):
		return "only with it"
	}
	return moreOrLess(seconds, render.Span)
}

func laterBandText(s *quartet.Shift) string {
	if math.IsNaN(s.Later.Low) {
		return ""
	}
	switch low, high := s.Later.Low, s.Later.High; {
	case math.IsInf(low, 1) && math.IsInf(high, 1):
		return "never, with this change"
	case math.IsInf(low, -1) && math.IsInf(high, -1):
		return "only with this change"
	}
	return laterText(s.Later.Low) + " to " + laterText(s.Later.High)
}

// whatIfSchema names the form of what plan writes as JSON of a change.
const whatIfSchema = "quartet.whatif/v1"

// WhatIfFile is what a change would do, as JSON.
type WhatIfFile struct {
	Schema    string          `json:"schema"`     // form of the document and its version
	Change    string          `json:"change"`     // the change in words
	Round     int             `json:"round"`      // number of the next round
	AtSeconds float64         `json:"at_seconds"` // moment of the change, in seconds since the start of the run
	ToSeconds *float64        `json:"to_seconds"` // null for until the jobs that are there have ended
	Draws     int             `json:"draws"`      // simulated pairs of futures
	BandRatio float64         `json:"band_ratio"` // part of the futures that is inside a band, 0 to 1
	Notes     []string        `json:"notes"`      // what the comparison rests on
	NextRound []moveFile      `json:"next_round"` // jobs about which the next round decides otherwise
	Measures  []measureFile   `json:"measures"`   // measures of both futures
	Jobs      []WhatIfJobFile `json:"jobs"`       // jobs that start or end at other times
}

type moveFile struct {
	Job     string        `json:"job"`
	Holds   string        `json:"holds"`
	Without *decisionFile `json:"without"` // null for nothing
	With    *decisionFile `json:"with"`
	Same    bool          `json:"same"`
}

type decisionFile struct {
	Action   string `json:"action"`
	Replicas int    `json:"replicas"`
	On       string `json:"on"`
	Reason   string `json:"reason"`
	By       string `json:"by"`
}

type measureFile struct {
	Measure  string     `json:"measure"`
	Without  *float64   `json:"without"` // null where it is unknown
	With     *float64   `json:"with"`
	Change   *float64   `json:"change"`
	Interval []*float64 `json:"interval"` // null where there are too few draws
}

// WhatIfJobFile is what a change would do to a job.
type WhatIfJobFile struct {
	Job             string    `json:"job"`                   // name of the job
	Submitted       bool      `json:"submitted"`             // the change submits it
	Rejected        bool      `json:"rejected"`              // with the change
	RejectedWithout bool      `json:"rejected_without"`      // it
	StartWithout    *float64  `json:"start_without_seconds"` // median start without the change, in seconds since the start of the run
	StartWith       *float64  `json:"start_with_seconds"`    // median start with it, in seconds
	EndWithout      *float64  `json:"end_without_seconds"`   // median end without the change, in seconds
	EndWith         *float64  `json:"end_with_seconds"`      // median end with it, in seconds
	Later           *BandFile `json:"later"`                 // how much later it ends with the change, in seconds
}

func whatIfDocument(change string, w *quartet.WhatIf) WhatIfFile {
	d := WhatIfFile{
		Schema: whatIfSchema, Change: change, Round: w.Round, AtSeconds: w.NowSeconds, ToSeconds: finite(w.ToSeconds), Draws: w.Draws, BandRatio: 0.8,
		Notes: append([]string{}, w.Notes...), NextRound: []moveFile{}, Measures: []measureFile{}, Jobs: []WhatIfJobFile{},
	}
	decision := func(c *core.Cluster, of *core.Change) *decisionFile {
		if of == nil {
			return nil
		}
		f := &decisionFile{Action: of.Action.String(), Replicas: core.Replicas(of.Seats), On: seatsText(c, of.Seats), By: of.By}
		if of.Reason != core.NoReason {
			f.Reason = of.Reason.String()
		}
		return f
	}
	for i := range w.Moves {
		m := &w.Moves[i]
		d.NextRound = append(d.NextRound, moveFile{
			m.Name, seatsText(w.With.Cluster, m.Before), decision(w.Without.Cluster, m.Without), decision(w.With.Cluster, m.With), m.Same,
		})
	}
	for i := range w.Measures {
		m := &w.Measures[i]
		f := measureFile{m.Name, finite(m.Without), finite(m.With), finite(m.Change), nil}
		if m.Interval.Known() {
			f.Interval = []*float64{finite(m.Interval.Low), finite(m.Interval.High)}
		}
		d.Measures = append(d.Measures, f)
	}
	for i := range w.Shifts {
		s := &w.Shifts[i]
		d.Jobs = append(d.Jobs, WhatIfJobFile{
			s.Name, s.Submitted, s.Rejected, s.RejectedWithout, finite(s.StartWithout), finite(s.StartWith), finite(s.EndWithout), finite(s.EndWith), bandDocument(s.Later),
		})
	}
	slices.SortStableFunc(d.NextRound, func(a, b moveFile) int {
		return map[bool]int{true: 1, false: 0}[a.Same] - map[bool]int{true: 1, false: 0}[b.Same]
	})
	return d
}
