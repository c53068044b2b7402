package core_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// joins is a node of four v100 that joins as the third.
func joins(at float64, h core.Health) core.Event {
	return core.Event{Kind: core.NodeAdded, AtSeconds: at, Node: 2, Added: &core.AddedNode{Name: "c", Accelerator: "h100", Devices: 8, Health: h}}
}

// edited is a job as submit makes it, edited.
func edited(id core.JobID, at float64, edit func(*core.JobSpec)) core.Event {
	e := submit(id, 0, 2)
	e.Kind, e.AtSeconds = core.JobChanged, at
	edit(e.Spec)
	return e
}

func suspended(s *core.JobSpec) { s.Suspended = true }

// What happens to jobs on nodes that come and go, round by round.
func TestAClusterThatChanges(t *testing.T) {
	held := submit(0, 10, 2)
	held.Held = &core.Held{
		Seats: []core.Seat{{Node: 0, Devices: 0b0011}}, FirstStart: 1, LastChange: 4, Executed: 9, Attained: 18, Restarts: 3, Preemptions: 1,
	}
	held.Progress, held.Rate, held.FromSeconds = 70, 2, 5
	had := submit(0, 10, 2)
	had.Held = &core.Held{FirstStart: math.NaN(), Attained: 18}
	cases := map[string]struct {
		grows  bool
		rounds [][]core.Event
		want   []string
	}{
		"too large for a cluster that may grow": {true, [][]core.Event{{submit(0, 0, 6)}, {}, {joins(60, core.Ready)}}, []string{
			"1 at 0: active [], waiting 0, used 0; 0 defer awaiting_nodes by pipeline; 0 pending",
			"2 at 60: active [], waiting 0, used 0; 0 pending",
			"3 at 120: active [0], waiting 0, used 6; start 0 2[0,1,2,3,4,5] by placement/fake; 0 running",
		}},
		"too large for one that does not": {false, [][]core.Event{{submit(0, 0, 6)}}, []string{
			"1 at 0: active [], waiting 0, used 0; discard 0 exceeds_cluster by pipeline; 0 reject exceeds_cluster by pipeline; 0 rejected",
		}},
		"a node that is provisioned": {true, [][]core.Event{{joins(0, core.Provisioning), submit(0, 0, 6)}, {{Kind: core.NodeChanged, Node: 2, AtSeconds: 50}}}, []string{
			"1 at 0: active [0], waiting 1, used 0; 0 defer node_unavailable by pipeline; 0 waiting",
			"2 at 60: active [0], waiting 0, used 6; start 0 2[0,1,2,3,4,5] by placement/fake; 0 running",
		}},
		"the nodes of a job leave": {false, [][]core.Event{{submit(0, 0, 4)}, {
			{Kind: core.NodeRemoved, Node: 0, AtSeconds: 30},
			{Kind: core.JobInterrupted, Job: 0, AtSeconds: 30, Cause: core.CauseNodeFailed},
		}, {
			{Kind: core.NodeRemoved, Node: 1, AtSeconds: 70},
			{Kind: core.NodeRemoved, Node: 1, AtSeconds: 70},
			{Kind: core.NodeChanged, Node: 1, AtSeconds: 71},
			{Kind: core.JobInterrupted, Job: 0, AtSeconds: 70, Cause: core.CauseNodeFailed},
		}}, []string{
			"1 at 0: active [0], waiting 0, used 4; start 0 0[0,1,2,3] by placement/fake; 0 running",
			"2 at 60: active [0], waiting 0, used 4; start 0 1[0,1,2,3] by placement/fake; 0 running",
			"3 at 120: active [], waiting 0, used 0; discard 0 accelerator_missing by pipeline; 0 reject accelerator_missing by pipeline; 0 rejected",
		}},
		"the nodes of a job leave a cluster that may grow": {true, [][]core.Event{{submit(0, 0, 4)}, {
			{Kind: core.NodeRemoved, Node: 0, AtSeconds: 30},
			{Kind: core.NodeRemoved, Node: 1, AtSeconds: 30},
			{Kind: core.JobInterrupted, Job: 0, AtSeconds: 30, Cause: core.CauseNodeFailed},
		}, {joins(70, core.Ready)}}, []string{
			"1 at 0: active [0], waiting 0, used 4; start 0 0[0,1,2,3] by placement/fake; 0 running",
			"2 at 60: active [0], waiting 1, used 0; 0 defer awaiting_nodes by pipeline; 0 waiting",
			"3 at 120: active [0], waiting 0, used 4; start 0 2[0,1,2,3] by placement/fake; 0 running",
		}},
		"devices that others hold": {false, [][]core.Event{{{Kind: core.NodeChanged, Node: 0, Unusable: 0b0101}, submit(0, 0, 2)}, {
			{Kind: core.NodeChanged, Node: 0, AtSeconds: 30, Unusable: 0b0011},
		}}, []string{
			"1 at 0: active [0], waiting 0, used 2; start 0 0[1,3] by placement/fake; 0 running",
			"2 at 60: active [0], waiting 0, used 2; move 0 0[2,3] by placement/fake; 0 running",
		}},
		"a job that runs already": {false, [][]core.Event{{held, submit(1, 10, 4)}}, []string{
			"1 at 0: active [0 1], waiting 0, used 6; start 1 1[0,1,2,3] by placement/fake; 0 running; 1 running",
		}},
		"a job that waits and had devices before": {false, [][]core.Event{{had}}, []string{
			"1 at 0: active [0], waiting 0, used 2; start 0 0[0,1] by placement/fake; 0 running",
		}},
		"a job that loses devices": {false, [][]core.Event{{submit(0, 0, 2)}, {
			{Kind: core.JobShrunk, Job: 0, AtSeconds: 30, Seats: []core.Seat{{Node: 0, Devices: 0b0010}}},
		}}, []string{
			"1 at 0: active [0], waiting 0, used 2; start 0 0[0,1] by placement/fake; 0 running",
			"2 at 60: active [0], waiting 0, used 2; move 0 0[0,1] by placement/fake; 0 running",
		}},
		"suspended while it runs, and let go on": {false, [][]core.Event{{submit(0, 0, 2)}, {edited(0, 30, suspended)}, {}, {edited(0, 130, func(*core.JobSpec) {})}}, []string{
			"1 at 0: active [0], waiting 0, used 2; start 0 0[0,1] by placement/fake; 0 running",
			"2 at 60: active [], waiting 0, used 0; stop 0 suspended by pipeline; 0 defer suspended by pipeline; 0 pending",
			"3 at 120: active [], waiting 0, used 0; 0 pending",
			"4 at 180: active [0], waiting 0, used 2; start 0 0[0,1] by placement/fake; 0 running",
		}},
		"suspended and let go on between two rounds": {false, [][]core.Event{{submit(0, 0, 2)}, {edited(0, 30, suspended), edited(0, 40, func(*core.JobSpec) {})}}, []string{
			"1 at 0: active [0], waiting 0, used 2; start 0 0[0,1] by placement/fake; 0 running",
			"2 at 60: active [0], waiting 0, used 2; move 0 0[0,1] by placement/fake; 0 running",
		}},
		"suspended, and over": {false, [][]core.Event{{submit(0, 0, 2)}, {edited(0, 30, suspended), {Kind: core.JobFinished, Job: 0, AtSeconds: 40}}}, []string{
			"1 at 0: active [0], waiting 0, used 2; start 0 0[0,1] by placement/fake; 0 running",
			"2 at 60: active [], waiting 0, used 0; 0 completed",
		}},
		"edited to be too large": {false, [][]core.Event{{submit(0, 0, 2)}, {
			edited(0, 30, func(s *core.JobSpec) { s.Requested, s.MinReplicas, s.MaxReplicas = 6, 6, 6 }),
		}, {}}, []string{
			"1 at 0: active [0], waiting 0, used 2; start 0 0[0,1] by placement/fake; 0 running",
			"2 at 60: active [0], waiting 1, used 0; stop 0 preempted_by_priority by placement/fake; 0 waiting",
			"3 at 120: active [], waiting 0, used 0; discard 0 exceeds_cluster by pipeline; 0 reject exceeds_cluster by pipeline; 0 rejected",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var told story
			b := &script{}
			for i, events := range tc.rounds {
				b.observations = append(b.observations, core.Observation{NowSeconds: 60 * float64(i), Events: events})
			}
			c := twoNodes()
			c.MayGrow = tc.grows
			p := core.NewPipeline(c, fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told, states{&told}}})
			if err := p.Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, told.rounds); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// states adds the state of each job to a story.
type states struct{ *story }

func (s states) ObserveRound(r *core.Report) error {
	for _, j := range r.View.Jobs {
		if j != nil {
			s.rounds[len(s.rounds)-1] += "; " + string(rune('0'+j.ID)) + " " + j.State.String()
		}
	}
	return nil
}

// A job that runs already keeps what it had behind it, and one that shrinks or starts what it holds.
func TestTheAccountsOfAClusterThatChanges(t *testing.T) {
	held := submit(0, 10, 2)
	held.Held = &core.Held{
		Seats: []core.Seat{{Node: 0, Devices: 0b0011}}, FirstStart: 1, LastChange: 4, Executed: 9, Attained: 18, Restarts: 3, Preemptions: 1,
		Tuning: core.Tuning{BatchPerDevice: 8}, Measured: []core.Measurement{{Nodes: 1, Replicas: 2, StepSeconds: 0.5}}, Gradients: core.Gradients{SquaredNorm: 3},
	}
	held.Progress, held.Rate, held.FromSeconds = 70, 2, 10
	b := &script{observations: []core.Observation{
		{NowSeconds: 10, Events: []core.Event{held, {Kind: core.JobStarting, Job: 0, AtSeconds: 10}}},
		{NowSeconds: 20, Events: []core.Event{{Kind: core.JobStarted, Job: 0, AtSeconds: 15}}},
		{NowSeconds: 30, Events: []core.Event{{Kind: core.JobShrunk, Job: 0, AtSeconds: 30, Progress: 110, Rate: 1, FromSeconds: 30, Seats: []core.Seat{{Node: 0, Devices: 0b0001}}}}},
		{NowSeconds: 40, Events: []core.Event{{Kind: core.JobStarting, Job: 0, AtSeconds: 40}, {Kind: core.JobInterrupted, Job: 0, AtSeconds: 40, Cause: core.CauseEvicted, Progress: 100}}},
	}}
	type account struct {
		State                                       core.JobState
		Starting                                    bool
		Held, Restarts, Preemptions, Batch, Reports int
		Executed, Attained, Done, FirstStart        float64
	}
	var got []account
	stay := fakes{seat: seatFirst{change: func(s core.Seating) core.Seating { return s }}, fixed: rigid{respond: func(r []core.Response) []core.Response {
		for i := range r {
			r[i].MinReplicas = 1
		}
		return r
	}}}
	p := core.NewPipeline(twoNodes(), stay.stages(), core.PipelineOptions{
		Rounds: core.RoundOptions{IntervalSeconds: 10},
		Observers: []core.Observer{observe(func(r *core.Report) {
			j, now := r.View.Jobs[0], r.View.NowSeconds
			got = append(got, account{
				j.State, j.Starting, j.Held, j.Restarts, j.Preemptions, j.Tuning.BatchPerDevice, len(j.Measured),
				j.ExecutedSeconds(now), j.AttainedService(now), j.WorkDone(now), j.FirstStart,
			})
		})},
	})
	if err := p.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	want := []account{ // grantAll gives the least, one device, from the first round on: the second is given back
		{core.Running, false, 1, 4, 1, 8, 1, 9, 18, 70, 1},
		{core.Running, false, 1, 4, 1, 8, 1, 19, 28, 70, 1},
		{core.Running, false, 1, 4, 1, 8, 1, 29, 38, 110, 1},
		{core.Running, false, 1, 5, 2, 8, 1, 39, 48, 100, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Jobs that run already may be on devices together as far as the cluster shares them.
func TestJobsThatShareRunAlready(t *testing.T) {
	half, most, none, whole := 500, 700, 0, -1
	for name, tc := range map[string]struct {
		sharing core.Sharing
		milli   []int // of each job, all on one device; whole for none
		ok      bool
	}{
		"halves":                         {core.Fractional, []int{half, half}, true},
		"three halves":                   {core.Fractional, []int{half, half, half}, false},
		"more than the device":           {core.Fractional, []int{half, most}, false},
		"a part beside a whole":          {core.Fractional, []int{whole, half}, false},
		"a whole beside a part":          {core.Fractional, []int{half, whole}, false},
		"on CPUs beside a whole":         {core.Fractional, []int{whole, none, none}, true},
		"a whole beside those on CPUs":   {core.Fractional, []int{none, none, whole}, true},
		"two that take turns":            {core.TimeSlice, []int{whole, whole}, true},
		"parts are whole":                {core.TimeSlice, []int{half, half}, true},
		"more than may take turns":       {core.TimeSlice, []int{whole, whole, whole}, false},
		"turns have no parts":            {core.TimeSlice, []int{none, whole, whole}, false},
		"exclusive":                      {core.Exclusive, []int{whole, whole}, false},
		"exclusive, whatever they asked": {core.Exclusive, []int{half, half}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := twoNodes()
			c.Sharing, c.MaxOwners = tc.sharing, 2
			var events []core.Event
			for id, milli := range tc.milli {
				e := submit(core.JobID(id), 0, 1)
				if milli >= 0 {
					e.Spec.Share = &core.Share{Milli: milli}
				}
				e.Held = &core.Held{Seats: []core.Seat{{Node: 0, Devices: 0b0010}}}
				events = append(events, e)
			}
			p := core.NewPipeline(c, fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
			err := p.Round(t.Context(), core.Observation{Events: events}, &script{})
			if told := err != nil && strings.Contains(err.Error(), "as running on devices of job"); told == tc.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

// What makes no sense ends the run, and says of what.
func TestEventsThatMakeNoSense(t *testing.T) {
	held := func(edit func(*core.Event)) core.Event {
		e := submit(0, 0, 2)
		e.Held = &core.Held{Seats: []core.Seat{{Node: 0, Devices: 0b0011}}}
		edit(&e)
		return e
	}
	second := held(func(e *core.Event) { e.Job, e.Spec.ID, e.Spec.Name = 1, 1, "b" })
	cases := map[string]struct {
		events []core.Event
		want   string
	}{
		"a node that is not the next one":    {[]core.Event{{Kind: core.NodeAdded, Node: 3, Added: &core.AddedNode{Devices: 1}}}, "not as the next one, 2"},
		"a node without a description":       {[]core.Event{{Kind: core.NodeAdded, Node: 2}}, "without a description"},
		"a node without devices":             {[]core.Event{{Kind: core.NodeAdded, Node: 2, Added: &core.AddedNode{Name: "c"}}}, `node "c" with 0 devices`},
		"a node with too many":               {[]core.Event{{Kind: core.NodeAdded, Node: 2, Added: &core.AddedNode{Name: "c", Devices: 65}}}, "65 devices"},
		"a node that joins gone":             {[]core.Event{{Kind: core.NodeAdded, Node: 2, Added: &core.AddedNode{Name: "c", Devices: 1, Health: core.Gone}}}, "gone"},
		"a node that changes to gone":        {[]core.Event{{Kind: core.NodeChanged, Node: 0, Health: core.Gone}}, "only its removal says"},
		"the removal of no node":             {[]core.Event{{Kind: core.NodeRemoved, Node: 2}}, "unknown node 2"},
		"held, and never started":            {[]core.Event{held(func(e *core.Event) { e.Held.FirstStart = math.NaN() })}, "having started at NaN"},
		"held on no node":                    {[]core.Event{held(func(e *core.Event) { e.Held.Seats[0].Node = 2 })}, "running on node#2[0,1]"},
		"held on no device":                  {[]core.Event{held(func(e *core.Event) { e.Held.Seats[0].Devices = 0b10000 })}, "running on a[4]"},
		"held twice":                         {[]core.Event{held(func(*core.Event) {}), second}, `on devices of job "a"`},
		"held, with a progress of nothing":   {[]core.Event{held(func(e *core.Event) { e.Progress = -1 })}, "having had -1"},
		"a job that shrinks to nothing":      {[]core.Event{held(func(*core.Event) {}), {Kind: core.JobShrunk, Job: 0}}, "nothing left"},
		"a job that shrinks to more":         {[]core.Event{held(func(*core.Event) {}), {Kind: core.JobShrunk, Job: 0, Seats: []core.Seat{{Node: 0, Devices: 0b111}}}}, "no part of"},
		"a job edited to be another":         {[]core.Event{submit(0, 0, 2), edited(0, 0, func(s *core.JobSpec) { s.Name = "z" })}, "without its specification"},
		"a job edited to a range of nothing": {[]core.Event{submit(0, 0, 2), edited(0, 0, func(s *core.JobSpec) { s.MaxReplicas = 1 })}, "2 to 1 replicas"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
			err := p.Run(t.Context(), &script{observations: []core.Observation{{Events: tc.events}}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// troubled is a backend that fails so many times before each call that succeeds.
type troubled struct {
	script
	fails, left int
	with        error
}

func (b *troubled) fail() error {
	if b.left == 0 {
		b.left = b.fails
		return nil
	}
	b.left--
	return b.with
}

func (b *troubled) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if err := b.fail(); err != nil {
		return core.Observation{}, err
	}
	return b.script.Next(ctx, w)
}

func (b *troubled) Apply(ctx context.Context, changes []core.Change) error {
	if err := b.fail(); err != nil {
		return err
	}
	return b.script.Apply(ctx, changes)
}

// Trouble that passes ends no run, and costs no decision.
func TestTroubleThatPasses(t *testing.T) {
	out := &core.Unavailable{Cause: errors.New("restarting")}
	type waited struct {
		failures int
		trouble  bool
	}
	cases := map[string]struct {
		with error
		wait error
		want error
	}{
		"it passes":           {out, nil, nil},
		"nobody waits longer": {out, context.DeadlineExceeded, context.DeadlineExceeded},
		"fenced":              {core.ErrFenced, nil, core.ErrFenced},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &troubled{fails: 2, left: 2, with: tc.with, script: script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2)}}}}}
			var waits []waited
			p := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{
				Rounds: core.RoundOptions{IntervalSeconds: 60},
				RetryBackend: func(_ context.Context, failures int, trouble error) error {
					waits = append(waits, waited{failures, trouble != nil})
					return tc.wait
				},
			})
			err := p.Run(t.Context(), b)
			if !errors.Is(err, tc.want) {
				t.Fatalf("error %v, want %v", err, tc.want)
			}
			if tc.want != nil {
				return
			}
			once := []waited{{1, true}, {2, true}, {0, false}} // before the round, in Apply, and before the end
			if diff := cmp.Diff([]waited{once[0], once[1], once[2], once[0], once[1], once[2], once[0], once[1]}, waits, cmp.AllowUnexported(waited{})); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if len(b.applied) != 1 || len(b.applied[0].Seats) != 1 {
				t.Errorf("applied %+v, want one start", b.applied)
			}
		})
	}
	t.Run("without RetryBackend it ends the run", func(t *testing.T) {
		b := &troubled{fails: 1, left: 1, with: out}
		p := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
		if err := p.Run(t.Context(), b); !errors.Is(err, out) {
			t.Errorf("error %v, want %v", err, out)
		}
	})
}
