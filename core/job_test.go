package core_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

func TestMustStay(t *testing.T) {
	pinned := func(change func(*core.Job)) *core.Job {
		j := core.NewJob(&core.JobSpec{Pinned: true})
		j.State, j.Held, j.Seats = core.Running, 2, []core.Seat{{Node: 0, Devices: 3}}
		change(j)
		return j
	}
	for name, tc := range map[string]struct {
		change   func(*core.Job)
		min, max int
		health   core.Health
		want     bool
	}{
		"it holds what it can use":              {func(*core.Job) {}, 1, 4, core.Ready, true},
		"it holds the least":                    {func(*core.Job) {}, 2, 4, core.Ready, true},
		"it holds the most":                     {func(*core.Job) {}, 1, 2, core.Ready, true},
		"it needs more by now":                  {func(*core.Job) {}, 3, 4, core.Ready, false},
		"it can use only fewer by now":          {func(*core.Job) {}, 1, 1, core.Ready, false},
		"its node is drained":                   {func(*core.Job) {}, 1, 4, core.Draining, false},
		"its node is down":                      {func(*core.Job) {}, 1, 4, core.Down, false},
		"it waits":                              {func(j *core.Job) { j.State = core.Waiting }, 1, 4, core.Ready, false},
		"it is not pinned":                      {func(j *core.Job) { j.JobSpec = &core.JobSpec{} }, 1, 4, core.Ready, false},
		"it holds a device that the node lacks": {func(j *core.Job) { j.Seats[0].Devices = 1 << 5 }, 1, 4, core.Ready, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := twoNodes()
			c.Nodes[0].Health = tc.health
			got := pinned(tc.change).MustStay(c, &core.Response{MinReplicas: tc.min, MaxReplicas: tc.max})
			if got != tc.want {
				t.Errorf("must stay: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestBatchOnAType(t *testing.T) {
	spec := core.JobSpec{
		Batch: core.BatchSpec{Requested: 64, Initial: 32, Max: 512, MinPerDevice: 8, MaxPerDevice: 128},
		BatchByType: []core.TypeBatch{
			{Accelerator: "a100", MinPerDevice: 16, MaxPerDevice: 256}, {Accelerator: "t4", MinPerDevice: 4, MaxPerDevice: 32},
		},
	}
	own := func(least, most int) core.BatchSpec {
		b := spec.Batch
		b.MinPerDevice, b.MaxPerDevice = least, most
		return b
	}
	for accelerator, want := range map[string]core.BatchSpec{"a100": own(16, 256), "t4": own(4, 32), "v100": spec.Batch, "": spec.Batch} {
		if diff := cmp.Diff(want, spec.BatchOn(accelerator)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", accelerator, diff)
		}
	}
}

// viewed keeps what a view says at the end of each round.
type viewed struct{ healthChanges, devices []int }

func (v *viewed) ObserveRound(r *core.Report) error {
	v.healthChanges = append(v.healthChanges, r.View.HealthChanges)
	v.devices = append(v.devices, r.View.Devices)
	return nil
}

func TestTheViewCountsChangesOfHealth(t *testing.T) {
	to := func(n core.NodeID, h core.Health) core.Event {
		return core.Event{Kind: core.NodeChanged, Node: n, Health: h}
	}
	var told viewed
	b := &script{observations: []core.Observation{
		{},
		{NowSeconds: 60, Events: []core.Event{to(0, core.Down), to(1, core.Draining)}},
		{NowSeconds: 120},
		{NowSeconds: 180, Events: []core.Event{to(0, core.Ready)}},
	}}
	if err := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}}).Run(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	want := viewed{healthChanges: []int{0, 2, 2, 3}, devices: []int{8, 0, 0, 4}}
	if diff := cmp.Diff(want, told, cmp.AllowUnexported(viewed{})); diff != "" {
		t.Errorf("by round (-want +got):\n%s", diff)
	}
}

// An interruption happens between rounds, and counts from its own moment.
func TestAnInterruptionCountsFromItsMoment(t *testing.T) {
	b := &script{observations: []core.Observation{
		{Events: []core.Event{submit(0, 0, 4)}},
		{NowSeconds: 60, Events: []core.Event{
			{Kind: core.NodeChanged, Node: 0, Health: core.Down},
			{Kind: core.NodeChanged, Node: 1, Health: core.Down},
			{Kind: core.JobInterrupted, Job: 0, AtSeconds: 45},
		}},
	}}
	p := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
	if err := p.Run(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	j := p.Unfinished()[0]
	if j.LastChange != 45 || j.Executed != 45 || j.Attained != 180 || j.Preemptions != 1 {
		t.Errorf("last change at %v s, ran %v s, %v device-seconds, %d preemptions; want 45, 45, 180 and 1", j.LastChange, j.Executed, j.Attained, j.Preemptions)
	}
}

func TestAJobIsCancelledAtAMoment(t *testing.T) {
	running := core.NewJob(&core.JobSpec{TotalWork: 100})
	running.State, running.Held, running.Seats, running.LastChange = core.Running, 2, []core.Seat{{Devices: 3}}, 10
	running.AsOfSeconds, running.ProgressAsOf, running.ProgressRate = 10, 10, 2
	got := running.EndedAt(core.Cancelled, 30)
	if got.State != core.Cancelled || got.FinishSeconds != 30 || got.Held != 0 || got.Seats != nil || got.LastChange != 30 || got.Executed != 20 || got.Attained != 40 || got.Progress != 40 {
		t.Errorf("%+v", got)
	}
	if running.State != core.Running || running.Held != 2 {
		t.Errorf("it was changed: %+v", running)
	}
	waiting := core.NewJob(&core.JobSpec{SubmitSeconds: 5})
	if got := waiting.EndedAt(core.Cancelled, 30); got.State != core.Cancelled || got.FinishSeconds != 30 || got.Executed != 0 || got.LastChange != 5 {
		t.Errorf("%+v", got)
	}
}
