package metrics

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// sharedWorld is jobs that come and go on devices, each told in a report.
type sharedWorld struct {
	t    *rapid.T
	view *core.View
	live []core.JobID
	// held is every stay so far, by job: on which devices, from when to when.
	held map[core.JobID][]heldDevice
	// slowed is by how much each job is slowed down from when on, until a later one.
	slowed map[core.JobID][]slowdown
}

type heldDevice struct {
	node     core.NodeID
	device   int
	from, to float64 // to is NaN while it is held
}

type slowdown struct{ at, from, by float64 }

func (w *sharedWorld) drawSeats() []core.Seat {
	var seats []core.Seat
	for node := range core.NodeID(2) {
		if devices := core.DeviceSet(rapid.IntRange(0, 7).Draw(w.t, "devices")); devices != 0 {
			seats = append(seats, core.Seat{Node: node, Devices: devices})
		}
	}
	return seats
}

func (w *sharedWorld) release(id core.JobID, at float64) {
	for i := range w.held[id] {
		if h := &w.held[id][i]; math.IsNaN(h.to) {
			h.to = at
		}
	}
}

func (w *sharedWorld) take(id core.JobID, seats []core.Seat, at float64) {
	w.release(id, at)
	if s := w.view.Jobs[id].Share; s != nil && s.Milli == 0 {
		return
	}
	for _, s := range seats {
		for _, d := range s.Devices.List() {
			w.held[id] = append(w.held[id], heldDevice{s.Node, d, at, math.NaN()})
		}
	}
}

// step is a round in which some jobs end, some are stopped, some move, and some come.
func (w *sharedWorld) step() *core.Report {
	t, v := w.t, w.view
	before := v.NowSeconds
	v.Round++
	v.NowSeconds += float64(rapid.SampledFrom([]int{0, 1, 7}).Draw(t, "seconds"))
	r := &core.Report{View: v}
	for i := 0; i < len(w.live); i++ {
		id := w.live[i]
		at := before + (v.NowSeconds-before)/2
		switch rapid.IntRange(0, 5).Draw(t, "fate") {
		case 0:
			kind := rapid.SampledFrom([]core.EventKind{core.JobFinished, core.JobFailed, core.JobCancelled}).Draw(t, "end")
			r.Events = append(r.Events, core.Event{Kind: kind, Job: id, AtSeconds: at})
			ended := v.Jobs[id].EndedAt(core.Completed, at)
			r.Ended, v.Jobs[id] = append(r.Ended, ended), nil
			w.release(id, at)
			w.slowed[id] = append(w.slowed[id], slowdown{at, at, 0})
			w.live = slices.Delete(w.live, i, i+1)
			i--
		case 1:
			if v.Jobs[id].Held == 0 || v.Jobs[id].Part() == 0 {
				continue // it shares nothing
			}
			by := rapid.SampledFrom([]float64{0, 0.25, 0.5}).Draw(t, "slowed")
			r.Events = append(r.Events, core.Event{Kind: core.JobProgressed, Job: id, AtSeconds: at, FromSeconds: at, Slowed: by})
			w.slowed[id] = append(w.slowed[id], slowdown{at, at, by})
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "submitted") {
		spec := &core.JobSpec{ID: core.JobID(len(v.Jobs)), Name: "j", Requested: 1, SubmitSeconds: v.NowSeconds}
		if rapid.IntRange(0, 4).Draw(t, "on CPUs") == 0 {
			spec.Share = &core.Share{}
		}
		v.Jobs = append(v.Jobs, core.NewJob(spec))
		w.live = append(w.live, spec.ID)
		r.Events = append(r.Events, core.Event{Kind: core.JobSubmitted, Job: spec.ID, Spec: spec, AtSeconds: v.NowSeconds})
	}
	for _, id := range w.live {
		if rapid.Bool().Draw(t, "stays") {
			continue
		}
		j := v.Jobs[id]
		j.Seats = w.drawSeats()
		j.Held, j.FirstStart = core.Replicas(j.Seats), min(j.FirstStart, v.NowSeconds)
		if math.IsNaN(j.FirstStart) && j.Held > 0 {
			j.FirstStart = v.NowSeconds
		}
		w.take(id, j.Seats, v.NowSeconds)
		action := core.Move
		if j.Held == 0 {
			action = core.Stop
			w.slowed[id] = append(w.slowed[id], slowdown{v.NowSeconds, v.NowSeconds, 0})
		}
		r.Changes = append(r.Changes, core.Change{Action: action, Job: id, Seats: j.Seats})
	}
	return r
}

// with is who is on devices of a job now.
func (w *sharedWorld) with(id core.JobID) (others []core.JobID) {
	for other, held := range w.held {
		if other != id && slices.ContainsFunc(held, func(o heldDevice) bool {
			return math.IsNaN(o.to) && slices.ContainsFunc(w.held[id], func(h heldDevice) bool {
				return math.IsNaN(h.to) && h.node == o.node && h.device == o.device
			})
		}) {
			others = append(others, other)
		}
	}
	slices.Sort(others)
	return others
}

// company is for how long others were on devices of a job, by looking at every moment at which something changed.
func (w *sharedWorld) company(id core.JobID) (seconds float64) {
	var moments []float64
	for _, held := range w.held {
		for _, h := range held {
			moments = append(moments, h.from, h.to)
		}
	}
	slices.Sort(moments)
	is := func(h heldDevice, from, to float64) bool { return h.from <= from && h.to >= to }
	for i := 1; i < len(moments); i++ {
		from, to := moments[i-1], moments[i]
		together := false
		for other, held := range w.held {
			for _, o := range held {
				together = together || other != id && is(o, from, to) && slices.ContainsFunc(w.held[id], func(h heldDevice) bool {
					return is(h, from, to) && h.node == o.node && h.device == o.device
				})
			}
		}
		if together {
			seconds += to - from
		}
	}
	return seconds
}

func (w *sharedWorld) lost(id core.JobID) (seconds float64) {
	for i, s := range w.slowed[id] {
		if i+1 < len(w.slowed[id]) {
			seconds += s.by * (w.slowed[id][i+1].at - s.from)
		}
	}
	return seconds
}

// Whoever comes and goes, the books say who is with whom, for how long, and what that cost.
func TestSharingBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := coretest.MakeCluster().Nodes(2, "t4", 3).Obj()
		cluster.Sharing = core.Fractional
		w := &sharedWorld{t: t, view: coretest.MakeView(cluster).Obj(), held: map[core.JobID][]heldDevice{}, slowed: map[core.JobID][]slowdown{}}
		c := NewCollector(Components{}, Outputs{})
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			if err := c.ObserveRound(w.step()); err != nil {
				t.Fatal(err)
			}
			for id := range w.view.Jobs {
				if got, want := c.sharing.with(core.JobID(id)), w.with(core.JobID(id)); !slices.Equal(got, want) {
					t.Fatalf("job %d is with %v, want %v", id, got, want)
				}
			}
		}
		var unfinished []*core.Job
		for _, id := range w.live {
			unfinished = append(unfinished, w.view.Jobs[id])
			w.release(id, w.view.NowSeconds)
			w.slowed[id] = append(w.slowed[id], slowdown{w.view.NowSeconds, w.view.NowSeconds, 0})
		}
		early := c.clone(unfinished)
		early.close(unfinished, w.view.NowSeconds)
		if _, err := c.Finish(unfinished, w.view.NowSeconds); err != nil {
			t.Fatal(err)
		}
		for i := range c.records {
			r, id := &c.records[i], core.JobID(i)
			for _, of := range []*Collector{c, early} {
				company, lost := of.sharing.companySeconds(r), of.sharing.lostSeconds(r)
				if !r.started() {
					if !math.IsNaN(company) || !math.IsNaN(lost) {
						t.Fatalf("job %d never started, and had company for %v s and lost %v s", id, company, lost)
					}
					continue
				}
				if math.Abs(company-w.company(id)) > 1e-9 || math.Abs(lost-w.lost(id)) > 1e-9 {
					t.Fatalf("job %d had company for %v s and lost %v s, want %v and %v", id, company, lost, w.company(id), w.lost(id))
				}
			}
		}
	})
}

// What jobs.csv and decisions.jsonl tell of shared devices, and that they tell nothing of it where none is shared.
func TestSharedOutputs(t *testing.T) {
	for name, tc := range map[string]struct {
		sharing   core.Sharing
		slowed    float64
		jobs      string
		decisions string
	}{
		"none": {core.Exclusive, 0.5, "outcome\n0,a,,0,0,,,0,2,0,200,unfinished\n1,b,,0,0,,,0,1,0,100,unfinished\n", ""},
		"parts": {
			core.Fractional, 0.5,
			"outcome,share_milli,shared_s,lost_s\n0,a,,0,0,,,0,2,0,50,unfinished,250,100,45\n1,b,,0,0,,,0,1,0,100,unfinished,,100,0\n",
			`"share_milli":250,"with":["b"]`,
		},
		"parts, nothing is lost": {
			core.Fractional, 0, "outcome,share_milli,shared_s\n0,a,,0,0,,,0,2,0,50,unfinished,250,100\n1,b,,0,0,,,0,1,0,100,unfinished,,100\n", `"share_milli":250,"with":["b"]`,
		},
		"slices": {
			core.Mig, 0, "outcome,mig_profile,shared_s\n0,a,,0,0,,,0,2,0,57.14285714285714,unfinished,2g,100\n1,b,,0,0,,,0,1,0,100,unfinished,7g,100\n", `"mig_profile":"2g","with":["b"]`,
		},
		"turns": {core.TimeSlice, 0.5, "outcome,shared_s,lost_s\n0,a,,0,0,,,0,2,0,200,unfinished,100,45\n1,b,,0,0,,,0,1,0,100,unfinished,100,0\n", `"with":["b"]`},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := coretest.MakeCluster().Nodes(1, "t4", 2).Obj()
			cluster.Sharing = tc.sharing
			a, b := coretest.MakeJob("a").Running(0, coretest.Seat(0, 0, 1)), coretest.MakeJob("b").Running(0, coretest.Seat(0, 1))
			asked := *a.Obj().JobSpec
			asked.Share = &core.Share{Milli: 250}
			if tc.sharing == core.Fractional { // as the cluster serves it
				a.Share(250)
			}
			v := coretest.MakeView(cluster).Jobs(a, b).Obj()
			if tc.sharing == core.Mig {
				v.Jobs[0].Share = &core.Share{Milli: 250, Profile: "2g"}
			}
			var jobs, decisions strings.Builder
			c := NewCollector(Components{}, Outputs{Jobs: &jobs, Decisions: &decisions})
			r := &core.Report{View: v, Events: []core.Event{
				{Kind: core.JobSubmitted, Job: 0, Spec: &asked},
				{Kind: core.JobSubmitted, Job: 1, Spec: v.Jobs[1].JobSpec},
				{Kind: core.JobProgressed, Job: 0, FromSeconds: 10, Slowed: tc.slowed},
			}}
			for _, j := range v.Jobs {
				r.Changes = append(r.Changes, core.Change{Action: core.Start, Job: j.ID, Seats: j.Seats, By: "p"})
			}
			if err := c.ObserveRound(r); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Finish(v.Jobs, 100); err != nil {
				t.Fatal(err)
			}
			if got := jobs.String(); !strings.HasSuffix(got, tc.jobs) {
				t.Errorf("jobs.csv:\n%s\nwant its end\n%s", got, tc.jobs)
			}
			text, _, _ := strings.Cut(decisions.String(), "\n")
			want := `{"round":1,"t_s":0,"job":"a","action":"start","replicas":2,"seats":[["t4-0","0,1"]],"by":"p"}`
			if tc.decisions != "" {
				want = strings.Replace(want, `,"by"`, ","+tc.decisions+`,"by"`, 1)
			}
			if text != want {
				t.Errorf("decisions.jsonl:\n%s\nwant\n%s", text, want)
			}
		})
	}
}
