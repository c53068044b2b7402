package promise

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

func TestPromised(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec core.JobSpec
		want bool
	}{
		"a deadline":                {core.JobSpec{DeadlineSeconds: 1}, true},
		"no deadline":               {core.JobSpec{}, false},
		"best effort":               {core.JobSpec{DeadlineSeconds: 1, BestEffort: true}, false},
		"best effort, no deadline":  {core.JobSpec{BestEffort: true}, false},
		"a deadline before its day": {core.JobSpec{DeadlineSeconds: -1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Promised(&tc.spec); got != tc.want {
				t.Errorf("promised %v, want %v", got, tc.want)
			}
		})
	}
}

// Who is pinned keeps what he holds until he is done; as long as nobody knows when, for good.
func TestPinned(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		held     int
		left     float64
		rates    []float64
		asOf     float64
		interval float64
		want     float64 // device-seconds free until 120 s, of four devices from 20 s on
	}{
		"until it is done":               {held: 2, left: 30, rates: []float64{1, 1.5}, want: 400 - 2*20},
		"after its change":               {held: 2, left: 30, rates: []float64{1, 1.5}, asOf: 25, want: 400 - 2*25},
		"to the end of the round":        {held: 2, left: 30, rates: []float64{1, 1.5}, interval: 30, want: 400 - 2*40},
		"nobody knows how fast it is":    {held: 1, left: 30, rates: []float64{0, 0}, want: 400 - 100},
		"nobody knows what is left":      {held: 2, left: math.NaN(), rates: []float64{1, 1.5}, want: 400 - 2*100},
		"it should be done":              {held: 2, left: 0, rates: []float64{1, 1.5}, want: 400 - 2*100},
		"it holds what is never planned": {held: 2, left: 30, rates: []float64{2, 1.5}, want: 400 - 2*100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := core.NewJob(&core.JobSpec{Pinned: true})
			job.State, job.Held, job.ProgressAsOf = core.Running, tc.held, tc.asOf
			response := core.Response{MinReplicas: 1, MaxReplicas: 2, Curves: []core.Curve{{OneNode: tc.rates}}, RemainingWork: tc.left}
			v := core.View{
				NowSeconds: 20, IntervalSeconds: tc.interval, Devices: 4,
				Cluster: &core.Cluster{Accelerators: []string{"gpu"}, Nodes: []core.Node{{Devices: 4}}},
			}
			l := Ledger{Levels: PowersOfTwo}
			l.Collect(&v, []core.Candidate{{Job: job, Response: &response}})
			l.Plan()
			if got := l.Free(120); got != tc.want {
				t.Errorf("%v device-seconds free, want %v", got, tc.want)
			}
		})
	}
}

// world is what a ledger collects.
type world struct {
	view       core.View
	candidates []core.Candidate
	overhead   float64
}

func drawWorld(t *rapid.T) *world {
	w := &world{overhead: rapid.SampledFrom([]float64{0, 1, 7}).Draw(t, "overhead")}
	devices := rapid.IntRange(1, 8).Draw(t, "devices")
	w.view = core.View{
		NowSeconds:      float64(rapid.SampledFrom([]int{0, 60, 64}).Draw(t, "now")),
		IntervalSeconds: float64(rapid.SampledFrom([]int{0, 10, 10}).Draw(t, "interval")),
		Devices:         devices,
		Cluster: &core.Cluster{Accelerators: []string{"gpu"}, Nodes: []core.Node{
			{ID: 0, Devices: devices}, {ID: 1, Devices: 1, Health: core.Down},
		}},
	}
	left := devices
	for i := range rapid.IntRange(1, 7).Draw(t, "jobs") {
		w.candidates = append(w.candidates, w.drawCandidate(t, core.JobID(i), &left))
	}
	return w
}

func (w *world) drawCandidate(t *rapid.T, id core.JobID, left *int) core.Candidate {
	now := w.view.NowSeconds
	spec := &core.JobSpec{
		ID: id, SubmitSeconds: now - 3, DeadlineSeconds: 10 * float64(rapid.SampledFrom([]int{0, 1, 2, 4, 5, 6, 8, 8, 12}).Draw(t, "deadline")),
		BestEffort: rapid.IntRange(0, 9).Draw(t, "best effort") == 0,
		Pinned:     rapid.IntRange(0, 4).Draw(t, "pinned") == 0,
	}
	rates, rate := make([]float64, 8), 0.0
	for i := range rates {
		rate += float64(rapid.IntRange(0, 3).Draw(t, "faster")) / 2
		rates[i] = rate
	}
	c := core.Candidate{Job: core.NewJob(spec), Response: &core.Response{
		MinReplicas: 1, MaxReplicas: 8, Curves: []core.Curve{{OneNode: rates, ManyNodes: rates}}, RemainingWork: float64(rapid.IntRange(5, 120).Draw(t, "work")),
	}}
	switch rapid.IntRange(0, 19).Draw(t, "known") {
	case 0:
		c.Response.RemainingWork = 0
	case 1:
		c.Response.RemainingWork = math.NaN()
	}
	if held := rapid.SampledFrom([]int{0, 0, 1, 2, 3, 4}).Draw(t, "held"); held > 0 && held <= *left {
		*left -= held
		c.State, c.Held = core.Running, held
		c.ProgressAsOf = now + w.overhead*float64(rapid.IntRange(-2, 4).Draw(t, "quarters of the change left"))/4
	}
	return c
}

func (w *world) ledger() *Ledger {
	l := &Ledger{Planner: Planner{Overhead: w.overhead}, Levels: PowersOfTwo}
	l.Collect(&w.view, w.candidates)
	return l
}

// naive is the devices beside those who are pinned, and the jobs with deadlines, each with its index.
func (w *world) naive() (*naive, []*Entry) {
	n := &naive{now: w.view.NowSeconds, grid: w.view.IntervalSeconds, overhead: w.overhead, devices: w.view.Devices}
	var jobs []*Entry
	for i := range w.candidates {
		c := &w.candidates[i]
		j, _ := NewJob(c, w.view.Cluster, core.AnyAccelerator, n.now, w.view.Devices, w.view.Devices, PowersOfTwo, nil)
		switch {
		case c.Pinned && c.Held > 0:
			piece := Piece{n.now, math.Inf(1), c.Held}
			for _, l := range j.Levels {
				if l.Replicas == c.Held && j.Left > 0 && l.Rate > 0 {
					piece.To = n.after(j.Ready + j.Left/l.Rate)
				}
			}
			n.taken = append(n.taken, piece)
		case c.DeadlineSeconds > 0 && !c.BestEffort:
			jobs = append(jobs, &Entry{Job: j, Index: i})
		}
	}
	slices.SortStableFunc(jobs, func(a, b *Entry) int { return int(a.Deadline - b.Deadline) })
	return n, jobs
}

// beside is the devices that a job finds beside the plans of the others.
func (n *naive) beside(jobs []*Entry, e *Entry) *naive {
	others := *n
	others.taken = slices.Clone(n.taken)
	for _, o := range jobs {
		if o != e {
			others.taken = append(others.taken, o.Plan...)
		}
	}
	return &others
}

// faultless holds that all plans of a ledger keep their promises beside each other, and that it knows what they leave free.
func faultless(t *rapid.T, n *naive, l *Ledger) {
	t.Helper()
	for _, e := range l.Jobs() {
		if len(e.Plan) == 0 {
			continue
		}
		if fault := n.beside(l.Jobs(), e).fault(&e.Job, e.Plan); fault != "" {
			t.Fatalf("job %d: %s: %+v of %+v", e.ID, fault, e.Plan, e.Job)
		}
	}
	all := n.beside(l.Jobs(), nil)
	for at := n.now; at < n.now+200; at += 0.25 {
		if got := l.spans[l.next(at)-1].free; got != all.free(at) {
			t.Fatalf("%d devices free at %v, want %d", got, at, all.free(at))
		}
	}
}

// state is the jobs of a ledger and their plans.
func state(l *Ledger) []Entry {
	var list []Entry
	for _, e := range l.Jobs() {
		list = append(list, Entry{Job: e.Job, Index: e.Index, Kept: e.Kept, Plan: slices.Clip(append(Plan{}, e.Plan...))})
	}
	return list
}

var asStates = []cmp.Option{
	cmp.AllowUnexported(Entry{}),
	cmp.Comparer(func(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-6 || math.IsNaN(a) && math.IsNaN(b) }),
}

// On a grid every plan is the one that is found by trying, and off it none breaks a promise or takes what is not there. What was
// collected before is forgotten.
func TestPlanAgainstTrying(t *testing.T) {
	t.Parallel()
	var found count
	rapid.Check(t, func(t *rapid.T) {
		before, w := drawWorld(t), drawWorld(t)
		l := before.ledger()
		l.Plan()
		l.Overhead = w.overhead
		l.Collect(&w.view, w.candidates)
		n, jobs := w.naive()
		want := make([]Entry, 0, len(jobs))
		for _, e := range jobs {
			want = append(want, Entry{Job: e.Job, Index: e.Index, Plan: Plan{}})
		}
		if diff := cmp.Diff(want, append([]Entry{}, state(l)...), asStates...); diff != "" {
			t.Fatalf("collected, -want +got:\n%s", diff)
		}
		l.Plan()
		faultless(t, n, l)
		if n.grid == 0 { // and no plans to compare with
			for _, e := range l.Jobs() {
				found.add(len(e.Plan) > 0)
			}
			return
		}
		for i, e := range jobs {
			plan := n.search(&e.Job)
			n.taken = append(n.taken, plan...)
			want[i].Plan = append(Plan{}, plan...)
		}
		if diff := cmp.Diff(want, append([]Entry{}, state(l)...), asStates...); diff != "" {
			t.Fatalf("planned, -want +got:\n%s", diff)
		}
	})
	found.check(t)
}

// All that are to be kept are kept if planning finds a plan for each of them, and the plans are then the same.
func TestKeeps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		l, keeps := w.ledger(), w.ledger()
		want := true
		l.Plan()
		for i, e := range l.Jobs() {
			e.Kept = rapid.Bool().Draw(t, "kept")
			keeps.Jobs()[i].Kept = e.Kept
			want = want && (!e.Kept || len(e.Plan) > 0)
		}
		if rapid.Bool().Draw(t, "again") {
			keeps.Keeps()
		}
		if got := keeps.Keeps(); got != want {
			t.Fatalf("keeps %v, want %v: %+v", got, want, state(l))
		}
		if diff := cmp.Diff(state(l), state(keeps), asStates...); want && diff != "" {
			t.Fatalf("-planned +kept:\n%s", diff)
		}
	})
}

// Whoever applies stands in the order of deadlines, and once he has withdrawn everything is as it was.
func TestApplyAndWithdraw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		l := w.ledger()
		l.Plan()
		before, jobs := state(l), slices.Clone(l.Jobs())
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			var applied []*Entry
			for k := range rapid.IntRange(1, 3).Draw(t, "applying") {
				left := 0
				c := w.drawCandidate(t, core.JobID(rapid.IntRange(0, 9).Draw(t, "rank")), &left)
				e := l.Apply(&w.view, &c, 20+k)
				if !e.Kept || !e.Asks || e.Index != 20+k || e.ID != c.ID || len(e.Plan) > 0 || slices.Contains(applied, e) || slices.Contains(jobs, e) {
					t.Fatalf("applied: %+v", e)
				}
				j, _ := NewJob(&c, w.view.Cluster, core.AnyAccelerator, w.view.NowSeconds, w.view.Devices, w.view.Devices, PowersOfTwo, nil)
				j.Asks = true
				if cmp.Diff(j, e.Job, asStates...) != "" {
					t.Fatalf("applied %+v, want %+v", e.Job, j)
				}
				applied = append(applied, e)
				if !slices.IsSortedFunc(l.Jobs(), func(a, b *Entry) int { return Compare(&a.Job, &b.Job) }) || !slices.Contains(l.Jobs(), e) {
					t.Fatalf("out of order: %+v", state(l))
				}
			}
			if got := len(l.Jobs()); got != len(jobs)+len(applied) {
				t.Fatalf("%d jobs, want %d", got, len(jobs)+len(applied))
			}
			for _, i := range rapid.Permutation([]int{0, 1, 2}).Draw(t, "order") {
				if i < len(applied) {
					l.Withdraw(applied[i])
				}
			}
			if !slices.Equal(l.Jobs(), jobs) {
				t.Fatalf("%+v", state(l))
			}
			if diff := cmp.Diff(before, state(l), asStates...); diff != "" {
				t.Fatalf("-before +after:\n%s", diff)
			}
			if got, most := len(l.spare), 3; got > most {
				t.Fatalf("%d entries to spare after %d at a time", got, most)
			}
		}
		l.Plan()
		if diff := cmp.Diff(before, state(l), asStates...); diff != "" {
			t.Fatalf("planned again, -before +after:\n%s", diff)
		}
	})
}

// A job changes if it then meets its deadline beside the others and need not change again at once; otherwise nothing does.
func TestChange(t *testing.T) {
	t.Parallel()
	var found count
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		l := w.ledger()
		l.Plan()
		n, _ := w.naive()
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			planned := slices.DeleteFunc(slices.Clone(l.Jobs()), func(e *Entry) bool { return len(e.Plan) == 0 })
			if len(planned) == 0 {
				return
			}
			e := rapid.SampledFrom(planned).Draw(t, "job")
			replicas := rapid.SampledFrom(e.Levels).Draw(t, "level").Replicas
			ready := w.view.NowSeconds + rapid.SampledFrom([]float64{0, w.overhead}).Draw(t, "ready")
			before, changed, free := state(l), e.Job, n.beside(l.Jobs(), e)
			changed.Held, changed.Ready = replicas, max(ready, e.Ready)
			met := l.Change(e, replicas, ready)
			found.add(met)
			if n.grid > 0 {
				plan := free.search(&changed)
				if e.Pinned {
					plan = free.steady(&e.Job, replicas)
				}
				if want := plan != nil && (plan[0].From > n.now || plan[0].Replicas == replicas); met != want {
					t.Fatalf("changed to %d: %v, want %v with %+v", replicas, met, want, plan)
				} else if diff := cmp.Diff(plan, e.Plan, asStates...); met && diff != "" {
					t.Fatalf("-want +got:\n%s", diff)
				}
			}
			if !met {
				if diff := cmp.Diff(before, state(l), asStates...); diff != "" {
					t.Fatalf("-before +after:\n%s", diff)
				}
				continue
			}
			if e.Pinned {
				changed = e.Job
			}
			if fault := free.fault(&changed, e.Plan); fault != "" {
				t.Fatalf("%s: %+v of %+v", fault, e.Plan, changed)
			}
			if now := e.Plan.Now(n.now); now != 0 && now != replicas {
				t.Fatalf("%d at once, want %d or none", now, replicas)
			}
			all := n.beside(l.Jobs(), nil)
			for at := n.now; at < n.now+200; at += 0.25 {
				if got := l.spans[l.next(at)-1].free; got != all.free(at) {
					t.Fatalf("%d devices free at %v, want %d", got, at, all.free(at))
				}
			}
		}
	})
	found.check(t)
}

// Earlier plans come back, as far as they hold, where that keeps more deadlines. Otherwise nothing changes.
func TestRecall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		if rapid.IntRange(0, 3).Draw(t, "crowded") > 0 {
			w.crowd(t)
		}
		l := w.ledger()
		l.Plan()
		n, jobs := w.naive()
		earlier := map[core.JobID]Plan{}
		if len(jobs) > 0 { // planned in another order, or for other work
			p := Planner{Overhead: l.Overhead, Grid: l.Grid}
			p.Begin(n.now, n.devices)
			p.Take(n.taken)
			for _, e := range rapid.Permutation(jobs).Draw(t, "order") {
				j := e.Job
				if j.Left *= rapid.SampledFrom([]float64{1, 1, 1, 0.5}).Draw(t, "part of the work"); rapid.IntRange(0, 3).Draw(t, "forgotten") == 0 {
					continue
				}
				plan, _ := p.Fill(&j)
				p.Take(plan)
				plan = slices.Clone(plan)
				if len(plan) > 0 && plan[0].From == n.now {
					plan[0].From -= float64(rapid.IntRange(0, 5).Draw(t, "since"))
				}
				if rapid.Bool().Draw(t, "over") {
					plan = append(Plan{{n.now - 20, n.now - float64(rapid.SampledFrom([]int{0, 10}).Draw(t, "ago")), 1}}, plan...)
				}
				earlier[e.ID] = plan
			}
		}
		before := state(l)
		l.Recall(func(id core.JobID) (Plan, core.AcceleratorID) { return earlier[id], core.AnyAccelerator })
		faultless(t, n, l)
		if n.grid > 0 {
			want := recalled(n, before, earlier)
			if diff := cmp.Diff(want, state(l), asStates...); diff != "" {
				t.Fatalf("from %+v, -want +got:\n%s", earlier, diff)
			}
		}
		had, has := kept(before), kept(state(l))
		if has < had {
			t.Fatalf("%d deadlines kept, %d before", has, had)
		}
		if diff := cmp.Diff(before, state(l), asStates...); has == had && diff != "" {
			t.Fatalf("no more are kept, -before +after:\n%s", diff)
		}
	})
}

// crowd has the first job take nearly all that there is until shortly before the others are to be done.
func (w *world) crowd(t *rapid.T) {
	for i := range w.candidates {
		c := &w.candidates[i]
		c.Pinned, c.BestEffort, c.DeadlineSeconds = false, false, 63+float64(rapid.IntRange(0, 15).Draw(t, "later"))
		rates := c.Response.Curves[0].OneNode
		if i == 0 {
			c.DeadlineSeconds, c.Response.RemainingWork = 63, float64(rapid.IntRange(40, 60).Draw(t, "long"))*rates[w.view.Devices-1]
		}
	}
}

// On one device, by hand: the first job takes 10 s of the 12 that there are.
func TestRecallByHand(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		earlier [3]Plan
		want    [3]Plan
		free    float64 // device-seconds until 12 s
	}{
		"two for one":       {[3]Plan{1: {{1, 7, 1}}, 2: {{7, 12, 1}}}, [3]Plan{1: {{1, 7, 1}}, 2: {{7, 12, 1}}}, 1},
		"begun before":      {[3]Plan{1: {{-3, 6, 1}}, 2: {{6, 12, 1}}}, [3]Plan{1: {{0, 6, 1}}, 2: {{6, 12, 1}}}, 0},
		"planned beside":    {[3]Plan{1: {{0, 6, 1}}}, [3]Plan{1: {{0, 6, 1}}, 2: {{7, 12, 1}}}, 1},
		"planned around":    {[3]Plan{1: {{3, 9, 1}}}, [3]Plan{1: {{3, 9, 1}}, 2: {{1, 3, 1}, {9, 12, 1}}}, 1},
		"one for one":       {[3]Plan{2: {{1, 12, 1}}}, [3]Plan{0: {{0, 10, 1}}}, 2},
		"too little":        {[3]Plan{1: {{1, 6, 1}}, 2: {{7, 11, 1}}}, [3]Plan{0: {{0, 10, 1}}}, 2},
		"over":              {[3]Plan{1: {{-8, 0, 1}}, 2: {{-9, -4, 1}}}, [3]Plan{0: {{0, 10, 1}}}, 2},
		"none":              {[3]Plan{}, [3]Plan{0: {{0, 10, 1}}}, 2},
		"more than is free": {[3]Plan{1: {{1, 7, 1}}, 2: {{6, 12, 1}}}, [3]Plan{1: {{1, 7, 1}}, 2: {{7, 12, 1}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := core.View{Devices: 1, Cluster: &core.Cluster{Accelerators: []string{"gpu"}, Nodes: []core.Node{{Devices: 1}}}}
			var candidates []core.Candidate
			for i, of := range [3]struct{ deadline, work float64 }{{10, 10}, {12, 6}, {12, 5}} {
				candidates = append(candidates, core.Candidate{
					Job:      core.NewJob(&core.JobSpec{ID: core.JobID(i), DeadlineSeconds: of.deadline}),
					Response: &core.Response{MinReplicas: 1, MaxReplicas: 1, Curves: []core.Curve{{OneNode: []float64{1}}}, RemainingWork: of.work},
				})
			}
			l := Ledger{Levels: PowersOfTwo}
			l.Collect(&v, candidates)
			for range 2 { // what was recalled once is not in the way of the next time
				l.Plan()
				l.Recall(func(id core.JobID) (Plan, core.AcceleratorID) { return tc.earlier[id], core.AnyAccelerator })
				for i, e := range l.Jobs() {
					if !slices.Equal(e.Plan, tc.want[i]) {
						t.Errorf("job %d: %v, want %v", i, e.Plan, tc.want[i])
					}
				}
				if got := l.Free(12); got != tc.free {
					t.Errorf("%v device-seconds free, want %v", got, tc.free)
				}
			}
		})
	}
}

func kept(jobs []Entry) (count int) {
	for i := range jobs {
		if len(jobs[i].Plan) > 0 {
			count++
		}
	}
	return count
}

// recalled is what Recall is to come to.
func recalled(n *naive, before []Entry, earlier map[core.JobID]Plan) []Entry {
	all, after := *n, slices.Clone(before)
	all.taken = slices.Clone(n.taken)
	for i := range after {
		after[i].Plan = Plan{}
		plan := Plan{}
		for _, x := range earlier[after[i].ID] {
			if x.To > n.now {
				plan = append(plan, Piece{max(x.From, n.now), x.To, x.Replicas})
			}
		}
		if len(plan) > 0 && all.fault(&after[i].Job, plan) == "" {
			after[i].Plan = plan
			all.taken = append(all.taken, plan...)
		}
	}
	for i := range after {
		if len(after[i].Plan) == 0 {
			after[i].Plan = append(Plan{}, all.search(&after[i].Job)...)
			all.taken = append(all.taken, after[i].Plan...)
		}
	}
	if kept(after) > kept(before) {
		return after
	}
	return before
}
