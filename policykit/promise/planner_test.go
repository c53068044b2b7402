package promise

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// two is a job that runs at rate 1 on one device and 1.5 on two.
func two(deadline, left float64) Job {
	return Job{Deadline: deadline, Left: left, Levels: []Level{{1, 1}, {2, 1.5}}}
}

func TestFill(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job      Job
		devices  int
		overhead float64
		grid     float64
		taken    Plan
		want     Plan // nil where the deadline cannot be met
	}{
		"as late as possible":                     {job: two(100, 30), devices: 2, want: Plan{{70, 100, 1}}},
		"just in time":                            {job: two(100, 100), devices: 2, want: Plan{{0, 100, 1}}},
		"the lower level first":                   {job: two(100, 125), devices: 2, want: Plan{{0, 50, 1}, {50, 100, 2}}},
		"all of it on the higher level":           {job: two(100, 150), devices: 2, want: Plan{{0, 100, 2}}},
		"too much":                                {job: two(100, 151), devices: 2},
		"too few devices":                         {job: two(100, 125), devices: 1},
		"no devices":                              {job: two(100, 1), devices: 0},
		"its deadline is now":                     {job: two(0, 1), devices: 2},
		"no deadline":                             {job: two(math.Inf(1), 0), devices: 2},
		"unknown length":                          {job: two(100, math.NaN()), devices: 2},
		"around what others have":                 {job: two(100, 60), devices: 2, taken: Plan{{60, 80, 2}}, want: Plan{{20, 60, 1}, {80, 100, 1}}},
		"beside what others have":                 {job: two(100, 110), devices: 2, taken: Plan{{0, 80, 1}}, want: Plan{{0, 80, 1}, {80, 100, 2}}},
		"beside less":                             {job: two(100, 111), devices: 2, taken: Plan{{0, 80, 1}}},
		"a start costs":                           {job: two(100, 30), devices: 2, overhead: 10, want: Plan{{60, 100, 1}}},
		"each change costs":                       {job: two(100, 110), devices: 2, overhead: 10, want: Plan{{0, 30, 1}, {30, 100, 2}}},
		"nothing to change":                       {job: func() Job { j := two(100, 100); j.Held = 1; return j }(), devices: 2, overhead: 10, want: Plan{{0, 100, 1}}},
		"it does not work yet":                    {job: func() Job { j := two(100, 95); j.Held, j.Ready = 1, 5; return j }(), devices: 1, overhead: 10, want: Plan{{0, 100, 1}}},
		"it does not work for too long":           {job: func() Job { j := two(100, 95); j.Held, j.Ready = 1, 6; return j }(), devices: 1, overhead: 10},
		"changes fall on the grid":                {job: two(100, 30), devices: 2, grid: 60, want: Plan{{60, 120, 1}}},
		"a pause costs another start":             {job: steep(120), devices: 2, overhead: 10, taken: Plan{{0, 20, 1}, {20, 30, 2}}, want: Plan{{0, 20, 1}, {30, 60, 1}, {60, 100, 2}}},
		"less at last":                            {job: holding(1, 0, steep(140)), devices: 2, overhead: 10, taken: Plan{{60, 100, 1}}, want: Plan{{0, 20, 1}, {20, 60, 2}, {60, 100, 1}}},
		"a change before it works":                {job: holding(1, 30, steep(261)), devices: 2, overhead: 10, want: Plan{{0, 3, 1}, {3, 100, 2}}},
		"on with what it holds":                   {job: holding(1, 0, two(100, 80)), devices: 2, overhead: 10, taken: Plan{{50, 60, 2}}, want: Plan{{0, 50, 1}, {60, 100, 1}}},
		"it gives back what it holds":             {job: holding(1, 0, two(100, 50)), devices: 2, overhead: 10, taken: Plan{{50, 60, 2}}, want: Plan{{20, 50, 1}, {60, 100, 1}}},
		"a change too late for the grid":          {job: two(100, 50), devices: 2, grid: 60, want: Plan{{0, 60, 1}}},
		"the rest of a cell of the grid is taken": {job: two(500, 10), devices: 1, grid: 60, want: Plan{{480, 540, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Planner{Overhead: tc.overhead, Grid: tc.grid}
			p.Begin(0, tc.devices)
			p.Take(tc.taken)
			plan, met := p.Fill(&tc.job)
			if met != (tc.want != nil) {
				t.Fatalf("met: %v, plan %v, want %v", met, plan, tc.want)
			}
			if diff := cmp.Diff(tc.want, plan); met && diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		plan                      Plan
		now                       int
		nextChange, deviceSeconds float64
	}{
		"none":                    {nil, 0, math.Inf(1), 0},
		"to its end":              {Plan{{0, 30, 2}}, 2, math.Inf(1), 60},
		"begun before":            {Plan{{-5, 30, 2}}, 2, math.Inf(1), 70},
		"later":                   {Plan{{20, 30, 2}}, 0, 20, 20},
		"later, and then another": {Plan{{20, 30, 2}, {30, 50, 1}}, 0, 20, 40},
		"one after the other":     {Plan{{0, 30, 1}, {30, 40, 4}}, 1, 30, 70},
		"with a pause":            {Plan{{0, 30, 1}, {35, 40, 1}}, 1, 30, 35},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.plan.Now(0); got != tc.now {
				t.Errorf("%d replicas now, want %d", got, tc.now)
			}
			if got := tc.plan.NextChange(0); got != tc.nextChange {
				t.Errorf("next change at %v, want %v", got, tc.nextChange)
			}
			if got := tc.plan.DeviceSeconds(); got != tc.deviceSeconds {
				t.Errorf("%v device-seconds, want %v", got, tc.deviceSeconds)
			}
		})
	}
}

func TestGridAfter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ grid, origin, at, want float64 }{
		"no grid":                     {0, 3, 7.5, 7.5},
		"between":                     {10, 0, 7.5, 10},
		"on it":                       {10, 0, 20, 20},
		"from another origin":         {10, 3, 7.5, 13},
		"on it, from another origin":  {10, 3, 13, 13},
		"just behind it":              {10, 3, 14, 23},
		"before its origin":           {10, 30, 7.5, 10},
		"behind it by rounding":       {10, 3, 13 + 1e-14, 13},
		"behind it by more than that": {10, 3, 13 + 1e-9, 23},
		"behind it by what is rounding where moments are coarse": {10, 3, 1e9 + 3 + 1e-6, 1e9 + 3},
		"for ever": {10, 3, math.Inf(1), math.Inf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Planner{Grid: tc.grid, Origin: tc.origin}
			if got := p.gridAfter(tc.at); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// Devices are free again at the first moment of the grid at which the job is done, and never before the next one.
func TestEndsAt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		grid       float64 // from 7 s on
		events     bool
		from, done float64
		want       float64
	}{
		"between":                      {10, false, 17, 20, 27},
		"intervals later":              {10, false, 17, 40, 47},
		"at once, on the grid":         {10, false, 17, 17, 27},
		"at once, between":             {10, false, 20, 20, 27},
		"before it begins":             {10, false, 17, 8, 27},
		"without a grid":               {0, false, 17, 20, 20},
		"without a grid, at once":      {0, false, 17, 17, 17},
		"without a grid, before that":  {0, false, 17, 8, 17},
		"at once, which is an event":   {10, true, 17, 17, math.Nextafter(17, 18)},
		"between, and events":          {10, true, 17, 20, 27},
		"before it begins, and events": {10, true, 17, 8, math.Nextafter(17, 18)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Planner{Grid: tc.grid, Origin: 7, Events: tc.events}
			if got := p.endsAt(tc.from, tc.done); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestFree(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		taken Plan
		until float64
		now   int
		want  float64
	}{
		"all":                      {nil, 100, 4, 320},
		"beside others":            {Plan{{30, 50, 3}}, 100, 4, 260},
		"beside others from now":   {Plan{{10, 50, 3}}, 100, 1, 230},
		"beside others for ever":   {Plan{{30, math.Inf(1), 3}}, 100, 4, 110},
		"until others end":         {Plan{{30, 50, 3}}, 40, 4, 50},
		"before others begin":      {Plan{{30, 50, 3}}, 25, 4, 20},
		"never more than there is": {Plan{{30, 50, 6}}, 60, 4, 80},
		"until now":                {nil, 20, 4, 0},
		"until before":             {nil, 5, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p Planner
			p.Begin(20, 4)
			p.Take(tc.taken)
			if got := p.FreeNow(); got != tc.now {
				t.Errorf("%d devices free now, want %d", got, tc.now)
			}
			if got := p.Free(tc.until); got != tc.want {
				t.Errorf("%v device-seconds free, want %v", got, tc.want)
			}
		})
	}
}

func TestMeets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job      Job
		overhead float64
		taken    Plan
		plan     Plan
		want     bool
	}{
		"just in time":                        {job: two(100, 50), plan: Plan{{50, 100, 1}}, want: true},
		"a little late":                       {job: two(100, 51), plan: Plan{{50, 100, 1}}},
		"what is behind the deadline":         {job: two(100, 51), plan: Plan{{50, 120, 1}}},
		"what is done":                        {job: two(100, 50), plan: Plan{{-10, 40, 1}}},
		"nothing is planned":                  {job: two(100, 50)},
		"replicas of no level":                {job: two(100, 50), plan: Plan{{0, 100, 3}}},
		"fewer replicas than the lowest":      {job: Job{Deadline: 100, Left: 1, Levels: []Level{{2, 1}}}, plan: Plan{{0, 100, 1}}},
		"a start":                             {job: two(100, 50), overhead: 10, plan: Plan{{40, 100, 1}}, want: true},
		"a start too late":                    {job: two(100, 50), overhead: 10, plan: Plan{{41, 100, 1}}},
		"it holds it":                         {job: holding(1, 5, two(100, 95)), overhead: 10, plan: Plan{{0, 100, 1}}, want: true},
		"it holds less":                       {job: holding(1, 5, two(100, 135)), overhead: 10, plan: Plan{{0, 100, 2}}, want: true},
		"it holds less, and has more to do":   {job: holding(1, 5, two(100, 136)), overhead: 10, plan: Plan{{0, 100, 2}}},
		"it stops, and starts again":          {job: holding(1, 0, two(100, 90)), overhead: 10, plan: Plan{{1, 100, 1}}},
		"no change between two pieces":        {job: two(100, 90), overhead: 10, plan: Plan{{0, 50, 1}, {50, 100, 1}}, want: true},
		"a pause between two pieces":          {job: two(100, 79), overhead: 10, plan: Plan{{0, 50, 1}, {51, 100, 1}}, want: true},
		"a pause, and more to do":             {job: two(100, 80), overhead: 10, plan: Plan{{0, 50, 1}, {51, 100, 1}}},
		"a change between two pieces":         {job: two(100, 100), overhead: 10, plan: Plan{{0, 50, 1}, {50, 100, 2}}, want: true},
		"a change, and more to do":            {job: two(100, 101), overhead: 10, plan: Plan{{0, 50, 1}, {50, 100, 2}}},
		"a piece shorter than the start":      {job: two(100, 40), overhead: 10, plan: Plan{{0, 5, 2}, {50, 100, 1}}, want: true},
		"devices that are free before others": {job: two(100, 50), taken: Plan{{50, 60, 2}}, plan: Plan{{0, 50, 1}}, want: true},
		"devices that are free after others":  {job: two(100, 50), taken: Plan{{40, 50, 2}}, plan: Plan{{50, 100, 1}}, want: true},
		"devices that others have meanwhile":  {job: two(100, 50), taken: Plan{{60, 70, 2}}, plan: Plan{{50, 100, 1}}},
		"devices that others have at first":   {job: two(100, 50), taken: Plan{{40, 51, 2}}, plan: Plan{{50, 100, 1}}},
		"devices that others have at last":    {job: two(100, 50), taken: Plan{{99, 110, 2}}, plan: Plan{{50, 100, 1}}},
		"devices beside others":               {job: two(100, 50), taken: Plan{{60, 70, 1}}, plan: Plan{{50, 100, 1}}, want: true},
		"an empty piece":                      {job: holding(1, 0, two(100, 100)), overhead: 10, plan: Plan{{0, 0, 2}, {0, 100, 1}}, want: true},
		"a piece that is over":                {job: holding(1, 0, two(100, 100)), overhead: 10, plan: Plan{{-9, -4, 2}, {0, 100, 1}}, want: true},
		"nothing is left":                     {job: two(100, 0), want: true},
		"nothing is left, and it is late":     {job: two(-5, 0), plan: Plan{{-20, 10, 2}}, want: true},
		"late, and replicas of no level":      {job: two(-5, 0), plan: Plan{{-20, 10, 3}}},
		"replicas of no level behind the end": {job: two(100, 50), plan: Plan{{50, 100, 1}, {100, 110, 3}}},
		"devices that others have behind it":  {job: two(100, 50), taken: Plan{{100, 110, 2}}, plan: Plan{{50, 100, 1}, {100, 120, 1}}},
		"more devices than there are":         {job: Job{Deadline: 100, Left: 1, Levels: []Level{{4, 1}}}, plan: Plan{{0, 100, 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Planner{Overhead: tc.overhead}
			p.Begin(0, 2)
			p.Take(tc.taken)
			if got := p.Meets(&tc.job, tc.plan); got != tc.want {
				t.Errorf("meets %v, want %v", got, tc.want)
			}
		})
	}
}

// steep is a job that runs at rate 1 on one device and 3 on two.
func steep(left float64) Job { return Job{Deadline: 100, Left: left, Levels: []Level{{1, 1}, {2, 3}}} }

// holding is a job that holds devices and works with them from a moment on.
func holding(held int, ready float64, j Job) Job {
	j.Held, j.Ready = held, ready
	return j
}

// On a grid the plan is the one with the lowest level, and of these the latest, that is found by trying them all; off it no plan on
// whole seconds has a lower level or, on the lowest, a later start.
func TestFillAgainstTrying(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := &naive{
			grid: 10, origin: float64(rapid.SampledFrom([]int{0, 3, 200}).Draw(t, "origin")), devices: rapid.IntRange(1, 8).Draw(t, "devices"),
			overhead: rapid.SampledFrom([]float64{0, 1, 7, 12}).Draw(t, "overhead"),
		}
		n.now = n.after(float64(rapid.SampledFrom([]int{0, 50}).Draw(t, "now"))) + float64(rapid.SampledFrom([]int{0, 0, 4}).Draw(t, "off the grid"))
		p := Planner{Overhead: n.overhead, Grid: n.grid, Origin: n.origin}
		p.Begin(n.now, n.devices)
		for range rapid.IntRange(0, 6).Draw(t, "others") {
			from := n.after(n.now) + 10*float64(rapid.IntRange(-1, 9).Draw(t, "from"))
			piece := Piece{max(from, n.now), from + 10*float64(rapid.IntRange(2, 6).Draw(t, "cells")), rapid.IntRange(1, 3).Draw(t, "taken")}
			n.taken = append(n.taken, piece)
			p.Take(Plan{piece})
		}
		j := Job{Deadline: n.now + float64(rapid.IntRange(-1, 140).Draw(t, "deadline")), Left: float64(rapid.IntRange(1, 250).Draw(t, "left")), Ready: n.now}
		rate := 0.0
		for k := 1; k <= 8; k *= 2 {
			if rapid.IntRange(0, 3).Draw(t, "level") > 0 || k == 8 {
				rate += float64(rapid.IntRange(1, 8).Draw(t, "faster")) / 2
				j.Levels = append(j.Levels, Level{k, rate})
			}
		}
		if rapid.Bool().Draw(t, "runs") {
			j.Held = rapid.SampledFrom([]int{1, 2, 3, 4, 8}).Draw(t, "held")
			j.Ready += n.overhead * float64(rapid.IntRange(0, 4).Draw(t, "quarters of the change left")) / 4
		}
		if rapid.IntRange(0, 2).Draw(t, "no grid") == 0 {
			p.Grid, n.grid, n.origin = 0, 1, math.Floor(n.origin)
			plan, met := p.Fill(&j)
			want := n.search(&j)
			if want != nil && !met {
				t.Fatalf("no plan, want %+v", want)
			}
			if n.grid = 0; met {
				if fault := n.fault(&j, plan); fault != "" {
					t.Fatalf("%s: %+v", fault, plan)
				}
			}
			if want != nil && most(plan) > most(want) || want != nil && most(want) == j.Levels[0].Replicas && plan[0].From < want[0].From-1e-6 {
				t.Fatalf("%+v, want %+v or better", plan, want)
			}
			return
		}
		if got, want := p.Earliest(&j), n.earliest(&j); got != want && math.Abs(got-want) > 1e-6 {
			t.Fatalf("earliest %v, want %v", got, want)
		}
		plan, _ := p.Fill(&j)
		if diff := cmp.Diff(n.search(&j), plan, cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1e-6)); diff != "" {
			t.Fatalf("%+v on %+v, -want +got:\n%s", j, p.spans, diff)
		}
	})
}

// most is the most replicas of a plan.
func most(plan Plan) int {
	return slices.MaxFunc(plan, func(a, b Piece) int { return a.Replicas - b.Replicas }).Replicas
}

// count counts what a property draws, and of that what has a plan.
type count struct{ drawn, planned int }

func (c *count) add(planned bool) {
	c.drawn++
	if planned {
		c.planned++
	}
}

// check fails where hardly anything has a plan, for who plans nothing breaks no promise. A few draws may all be hopeless.
func (c *count) check(t *testing.T) {
	t.Helper()
	t.Logf("%d of %d have a plan", c.planned, c.drawn)
	if c.drawn >= 40 && c.planned*20 < c.drawn {
		t.Errorf("%d of %d have a plan, want at least a twentieth", c.planned, c.drawn)
	}
}

// What was taken and given back is free as before, and never more is taken than there is.
func TestTakeAndReturn(t *testing.T) {
	t.Parallel()
	var found count
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		before := p.planner.Free(200)
		plan, met := p.planner.Fill(&p.job)
		if found.add(met); !met {
			return
		}
		plan = slices.Clone(plan)
		p.planner.Take(plan)
		if took := before - p.planner.Free(200); math.Abs(took-plan.DeviceSeconds()) > 1e-6 {
			t.Fatalf("took %v device-seconds of a plan of %v", took, plan.DeviceSeconds())
		}
		for _, s := range p.planner.spans {
			if s.free < 0 || s.free > p.devices {
				t.Fatalf("%d devices free of %d: %+v", s.free, p.devices, p.planner.spans)
			}
		}
		p.planner.Return(plan)
		if after := p.planner.Free(200); math.Abs(after-before) > 1e-6 {
			t.Fatalf("%v device-seconds free before, %v after", before, after)
		}
	})
	found.check(t)
}

// What is planned and then kept to can be planned again at any later moment of the plan.
func TestPlansHold(t *testing.T) {
	t.Parallel()
	var found count
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		p.planner.Grid = 0
		plan, met := p.planner.Fill(&p.job)
		if found.add(met); !met {
			return
		}
		plan = slices.Clone(plan)
		now := rapid.Float64Range(0, p.job.Deadline).Draw(t, "later")
		later := p.job
		held, ready, left, end := p.job.Held, p.job.Ready, p.job.Left, 0.0
		for _, x := range plan {
			if x.From >= now {
				break
			}
			if x.Replicas != held || x.From > end {
				held, ready = x.Replicas, x.From+p.planner.Overhead
			}
			level := later.within(len(later.Levels)-1, x.Replicas)
			left -= later.Levels[level].Rate * max(min(x.To, now)-max(ready, x.From), 0)
			if end = x.To; end < now {
				held = 0
			}
		}
		if left <= 1e-6 {
			return
		}
		later.Held, later.Ready, later.Left = held, max(ready, now), left
		q := Planner{Overhead: p.planner.Overhead}
		q.Begin(now, p.devices)
		for _, other := range p.others {
			for _, x := range other {
				if x.To > now {
					q.Take(Plan{{max(x.From, now), x.To, x.Replicas}})
				}
			}
		}
		rest := Plan{}
		for _, x := range plan {
			if x.To > now {
				rest = append(rest, Piece{max(x.From, now), x.To, x.Replicas})
			}
		}
		later.Deadline += 1e-6 // rounding
		if !q.Meets(&later, rest) {
			t.Fatalf("at %v, %+v of %+v no longer holds for %+v", now, rest, plan, later)
		}
	})
	found.check(t)
}

func TestHopeful(t *testing.T) {
	t.Parallel()
	levels := []Level{{1, 1}, {2, 1.5}}
	for name, tc := range map[string]struct {
		job  Job
		want bool
	}{
		"in time":                             {Job{Left: 30, Levels: levels, Deadline: 29, Ready: 5}, true},
		"just too late":                       {Job{Left: 30, Levels: levels, Deadline: 28.9, Ready: 5}, false},
		"too late by what nobody counts":      {Job{Left: 30, Levels: levels, Deadline: 29 - 1e-8, Ready: 5}, true},
		"too late by more than that":          {Job{Left: 30, Levels: levels, Deadline: 29 - 2e-8, Ready: 5}, false},
		"who asks is forgiven rounding":       {Job{Left: 30, Levels: levels, Deadline: 29 - 1e-14, Ready: 5, Asks: true}, true},
		"and no more":                         {Job{Left: 30, Levels: levels, Deadline: 29 - 1e-8, Ready: 5, Asks: true}, false},
		"by another change at once":           {Job{Left: 30, Levels: levels, Deadline: 29, Held: 1, Ready: 9}, true},
		"by what it holds":                    {Job{Left: 30, Levels: levels, Deadline: 26, Held: 2, Ready: 6}, true},
		"of unknown length":                   {Job{Left: math.NaN(), Levels: levels, Deadline: 1000, Ready: 5}, false},
		"without anything that it can run on": {Job{Left: 30, Deadline: math.Inf(1), Ready: 5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Planner{Overhead: 4}
			p.Begin(5, 1)
			if got := p.Hopeful(&tc.job); got != tc.want {
				t.Errorf("hopeful %t, want %t", got, tc.want)
			}
		})
	}
}

func TestEarliest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job      Job
		overhead float64
		taken    Plan
		want     float64
	}{
		"alone":          {two(10, 30), 0, nil, 20},
		"with a start":   {two(10, 30), 5, nil, 25},
		"behind another": {two(10, 30), 0, Plan{{0, 100, 2}}, 120},
		"beside another": {two(10, 30), 0, Plan{{0, 10, 1}}, 10 + 20/1.5},
		"never":          {two(10, 30), 0, Plan{{0, math.Inf(1), 2}}, math.Inf(1)},
		"unknown":        {two(10, math.NaN()), 0, nil, math.Inf(1)},
		"just before":    {two(10, 30), 0, Plan{{20, 100, 2}}, 20},
		"with a pause":   {two(10, 30), 5, Plan{{10, 20, 2}}, 40},
		"on what it has": {holding(2, 3, two(10, 30)), 5, nil, 23},
		"a short start":  {two(10, 30), 5, Plan{{3, 10, 2}}, 35},
		"held, at first": {holding(2, 0, two(10, 30)), 5, Plan{{10, 20, 1}}, 10 + 5 + 5 + 5 + 10/1.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Planner{Overhead: tc.overhead}
			p.Begin(0, 2)
			p.Take(tc.taken)
			if got := p.Earliest(&tc.job); math.Abs(got-tc.want) > 1e-9 && got != tc.want {
				t.Errorf("earliest %v, want %v", got, tc.want)
			}
		})
	}
}

// A job that has just the time that it needs is planned, and its plan stands, whenever that is and whatever its moments are rounded to.
func TestJustInTimeWhenever(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.Float64Range(0, 1e11).Draw(t, "now")
		seconds := rapid.Float64Range(1, 1e5).Draw(t, "seconds")
		rate := rapid.SampledFrom([]float64{1, 1. / 3, 1e6}).Draw(t, "rate")
		j := Job{Deadline: now + seconds, Left: seconds * rate, Levels: []Level{{1, rate}}, Ready: now}
		p := Planner{}
		p.Begin(now, 1)
		plan, met := p.Fill(&j)
		if !met || !p.Hopeful(&j) {
			t.Fatalf("met: %v, hopeful: %v", met, p.Hopeful(&j))
		}
		if !p.Meets(&j, slices.Clone(plan)) {
			t.Fatalf("the plan %v does not meet the deadline", plan)
		}
		late := j
		late.Deadline -= 0.5
		if _, met := p.Fill(&late); met || p.Hopeful(&late) {
			t.Fatal("half a second less is enough, too")
		}
	})
}

// Who is done but for rounding keeps what it holds until it is, also at its deadline, and leaves the interval that begins to those that were to have its
// devices then.
func TestDoneButForRounding(t *testing.T) {
	t.Parallel()
	one := []Level{{1, 1}}
	for name, tc := range map[string]struct {
		job    Job
		now    float64
		free   int
		events bool
		want   Plan
	}{
		"at its deadline":                        {Job{Deadline: 360, Left: 1e-13, Levels: one, Held: 1}, 360, 1, true, Plan{{360, 360 + 1e-13, 1}}},
		"just behind it":                         {Job{Deadline: 360 - 1e-13, Left: 1e-13, Levels: one, Held: 1}, 360, 1, true, Plan{{360, 360 + 1e-13, 1}}},
		"off the grid":                           {Job{Deadline: 361, Left: 1e-13, Levels: one, Held: 1}, 361, 1, true, Plan{{361, 361 + 1e-13, 1}}},
		"before it":                              {Job{Deadline: 600, Left: 1e-13, Levels: one, Held: 1}, 360, 1, true, Plan{{360, 360 + 1e-13, 1}}},
		"what many sums may be off":              {Job{Deadline: 360, Left: 1e-8, Levels: one, Held: 1}, 360, 1, true, Plan{{360, 360 + 1e-8, 1}}},
		"where no round is held when it ends":    {Job{Deadline: 360, Left: 1e-13, Levels: one, Held: 1}, 360, 1, false, Plan{{360, 420, 1}}},
		"not nearly done":                        {Job{Deadline: 360, Left: 1e-6, Levels: one, Held: 1}, 360, 1, true, nil},
		"late already":                           {Job{Deadline: 359, Left: 1e-13, Levels: one, Held: 1}, 360, 1, true, nil},
		"another has its devices":                {Job{Deadline: 360, Left: 1e-13, Levels: one, Held: 1}, 360, 0, true, nil},
		"it holds nothing":                       {Job{Deadline: 360, Left: 1e-13, Levels: one}, 360, 1, true, nil},
		"on a number that is none of its levels": {Job{Deadline: 360, Left: 1e-13, Levels: one, Held: 2}, 360, 2, true, nil},
		"a change to what it holds is under way": {Job{Deadline: 360, Left: 1e-13, Levels: one, Held: 1, Ready: 361}, 360, 1, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Planner{Grid: 60, Events: tc.events}
			p.Begin(tc.now, tc.free)
			plan, met := p.Fill(&tc.job)
			if met != (tc.want != nil) || !slices.Equal(plan, tc.want) {
				t.Errorf("met %t, %v, want %v", met, plan, tc.want)
			}
		})
	}
}
