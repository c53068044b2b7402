package operate

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/core/twin"
)

// What never happens, is not known or is nothing is worded, too.
func TestWhatIfTables(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	cluster := &core.Cluster{Nodes: []core.Node{{Name: "a"}, {Name: "b"}}}
	on := func(node core.NodeID) []core.Seat { return []core.Seat{{Node: node, Devices: 3}} }
	w := &quartet.WhatIf{
		NowSeconds: 100, ToSeconds: inf, Without: quartet.Outlook{Cluster: cluster}, With: quartet.Outlook{Cluster: cluster},
		Moves: []quartet.Move{
			{Name: "moves", Before: on(0), With: &core.Change{Action: core.Move, Seats: on(1)}},
			{Name: "stays", Before: on(1), Without: &core.Change{Action: core.Stop, Reason: core.PreemptedByPriority}},
			{Name: "alike", Same: true, Without: &core.Change{Action: core.Start, Seats: on(0)}, With: &core.Change{Action: core.Start, Seats: on(0)}},
		},
		Measures: []quartet.Measured{
			{Name: quartet.MeasureJCT, Without: 60, With: 90, Change: 30, Interval: stats.Interval{Low: -10, High: 70}},
			{Name: quartet.MeasureUtilization, Without: 0.5, With: 0.25, Change: -0.25, Interval: stats.Interval{Low: -0.3, High: -0.2}},
			{Name: quartet.MeasureMakespan, Without: 60, With: nan, Change: nan, Interval: stats.Unknown()},
			{Name: quartet.MeasureRestarts, With: 1, Change: 1, Interval: stats.Unknown()},
			{Name: quartet.MeasureRejected},
			{Name: quartet.MeasureRejected, Without: 1, With: 0, Change: -1, Interval: stats.Unknown()},
		},
		Shifts: []quartet.Shift{
			{Name: "later", StartWithout: 50, StartWith: 160, EndWithout: 220, EndWith: 280, Later: twin.Band{Low: 30, Median: 60, High: 90}},
			{Name: "never", StartWithout: 160, StartWith: inf, EndWithout: 220, EndWith: inf, Later: twin.Band{Low: inf, Median: inf, High: inf}},
			{Name: "after all", StartWithout: inf, StartWith: 160, EndWithout: inf, EndWith: 220, Later: twin.Band{Low: -inf, Median: -inf, High: 0}},
			{Name: "let in", RejectedWithout: true, StartWithout: inf, StartWith: 160, EndWithout: inf, EndWith: 220, Later: twin.Band{Low: -inf, Median: -inf, High: -inf}},
			{Name: "mine", Submitted: true, StartWithout: inf, StartWith: 160, EndWithout: inf, EndWith: 220, Later: twin.Band{Low: nan, Median: nan, High: nan}},
			{Name: "huge", Submitted: true, Rejected: true, StartWithout: inf, StartWith: inf, EndWithout: inf, EndWith: inf, Later: twin.Band{Low: nan, Median: nan, High: nan}},
		},
	}
	var got bytes.Buffer
	for _, table := range []render.Table{movesTable(w), measureTable(w), shiftTable(w, w.Shifts)} {
		if err := table.Write(&got, render.CSV); err != nil {
			t.Fatal(err)
		}
	}
	want := `job,holds,next_round,with_the_change
moves,"a:0,1",as it is,"move b:0,1"
stays,"b:0,1",stop (preempted_by_priority),as it is
measure,without,with,change,between
mean_jct,1m 00s,1m 30s,~ +30.0 s,-10.0 s to +1m 10s
utilization,50.0 %,25.0 %,-25.0 points,-30.0 points to -20.0 points
makespan,1m 00s,-,-,
restarts,0.0,1.0,+1.0,
rejected,1.0,0.0,-1.0,
job,start,start_with,end,end_with,later,later_between
later,,in 1m 00s,in 2m 00s,in 3m 00s,+1m 00s,+30.0 s to +1m 30s
never,in 1m 00s,unknown,in 2m 00s,unknown,never,"never, with this change"
after all,unknown,in 1m 00s,unknown,in 2m 00s,only with it,only with it to 0 s
let in,,in 1m 00s,rejected,in 2m 00s,only with it,only with this change
mine,,in 1m 00s,,in 2m 00s,,
huge,,,,rejected,,
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
	names := ""
	for _, s := range w.Most(1) {
		names += s.Name + " "
	}
	if want := "mine huge never "; names != want {
		t.Errorf("those that change most: %s, want %s", names, want)
	}
	got.Reset()
	if err := render.Document(&got, whatIfDocument("drain a", w)); err != nil {
		t.Fatal(err) // infinite numbers are no JSON
	}
}
