package wire_test

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// seldom is a mirror that looks only when told to.
type seldom struct {
	mirror
	look bool
}

// Allocate grants nothing.
func (s *seldom) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	if !s.look {
		return nil, nil
	}
	return nil, s.mirror.look(v, candidates, nil)
}

// crowd is a world of many jobs, and a pipeline over it whose allocator is a seldom.
type crowd struct {
	allocator seldom
	pipeline  *core.Pipeline
	now       float64
}

func newCrowd(t testing.TB, jobs int) *crowd {
	t.Helper()
	c := &crowd{}
	stages := core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission/all", Policy: admitAll{}}},
		Allocation: core.Component[core.Allocator]{ID: "allocation/seldom", Policy: &c.allocator},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/rigid", Policy: new(rigid)},
	}
	c.pipeline = core.NewPipeline(coretest.MakeCluster().Nodes(32, "v100", 4).Obj(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
	events := make([]core.Event, jobs)
	for i := range events {
		id := core.JobID(i)
		spec := coretest.MakeJob("job").ID(id).Replicas(1).Work(1e6).Obj().JobSpec
		events[i] = core.Event{Kind: core.JobSubmitted, Job: id, Spec: spec, StepsLeft: math.NaN()}
	}
	c.round(t, events)
	return c
}

func (c *crowd) round(t testing.TB, events []core.Event) {
	t.Helper()
	c.now += 60
	if err := c.pipeline.Round(context.Background(), core.Observation{NowSeconds: c.now, Events: events}, nowhere{}); err != nil {
		t.Fatal(err)
	}
}

// progress tells that the first so many jobs got on.
func (c *crowd) progress(jobs int) []core.Event {
	events := make([]core.Event, jobs)
	for i := range events {
		events[i] = core.Event{Kind: core.JobProgressed, AtSeconds: c.now, Job: core.JobID(i), Progress: c.now, Rate: 1, FromSeconds: c.now, StepsLeft: math.NaN()}
	}
	return events
}

type admitAll struct{}

func (admitAll) Admit(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) {
	return nil, nil
}

type rigid struct{}

func (*rigid) Respond(_ context.Context, _ *core.View, jobs []*core.Job) ([]core.Response, error) {
	responses := make([]core.Response, len(jobs))
	for i, j := range jobs {
		responses[i] = coretest.Rigid(j)
	}
	return responses, nil
}

func (*rigid) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	return nil, nil
}

type nowhere struct{}

func (nowhere) Next(context.Context, core.Wake) (core.Observation, error) { panic("called by hand") }
func (nowhere) Apply(context.Context, []core.Change) error                { return nil }
func (nowhere) Capabilities() []core.Capability                           { return nil }

// TestWhoMissesTheJournalIsToldEverything lets more changes pass than a view remembers.
func TestWhoMissesTheJournalIsToldEverything(t *testing.T) {
	const jobs = 2000
	c := newCrowd(t, jobs)
	c.allocator.look = true
	c.round(t, nil)
	c.round(t, c.progress(1))
	if c.allocator.full {
		t.Error("was told everything although it had missed nothing")
	}
	c.allocator.look = false
	for range 80 { // 160,000 changes
		c.round(t, c.progress(jobs))
	}
	c.allocator.look = true
	c.round(t, nil)
	if !c.allocator.full {
		t.Error("was told changes although the view no longer remembered all")
	}
	c.round(t, c.progress(1))
	if c.allocator.full {
		t.Error("was told everything again")
	}
}

// TestBytesFollowTheChanges holds the size of an update to the number of jobs that changed.
func TestBytesFollowTheChanges(t *testing.T) {
	const jobs = 1000
	c := newCrowd(t, jobs)
	c.allocator.look = true
	c.round(t, nil)
	size := func(changed int) int {
		c.round(t, c.progress(changed))
		return c.allocator.bytes
	}
	nothing, one, hundred, all := size(0), size(1), size(100), size(jobs)
	each := one - nothing
	if nothing > 100 || each > 200 || hundred-nothing > 110*each || all-nothing > (jobs+jobs/10)*each {
		t.Errorf("0, 1, 100 and %d changed jobs: %d, %d, %d and %d bytes", jobs, nothing, one, hundred, all)
	}
}

// Two jobs of one application share a copy of what is true of it.
func TestATruthIsToldOnce(t *testing.T) {
	truth := &core.Truth{
		Measurements: []core.Measurement{{Accelerator: "t4", Nodes: 1, Replicas: 2, PerDevice: 8, PassSeconds: 0.25, StepSeconds: 0.5}},
		Gradients:    core.Gradients{SquaredNorm: 1, Variance: 2},
		Steps:        []core.BatchSteps{{Batch: 8, Steps: 1000}, {Batch: 16, Steps: 612.5}},
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Jobs(coretest.MakeJob("a"), coretest.MakeJob("b")).Obj()
	for _, j := range v.Jobs {
		j.JobSpec.Truth = truth
	}
	var encoder wire.Encoder
	var heard wire.Copy
	if known, err := heard.Apply(encoder.Encode(v, nil, nil)); !known || err != nil {
		t.Fatalf("known %v, error %v", known, err)
	}
	got := heard.View.Jobs
	if diff := cmp.Diff(truth, got[0].Truth); diff != "" || got[0].Truth != got[1].Truth {
		t.Errorf("shared: %v; truth (-want +got):\n%s", got[0].Truth == got[1].Truth, diff)
	}
}

func TestAnUpdateForAnotherCopyIsNotTaken(t *testing.T) {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Jobs(coretest.MakeJob("a"), coretest.MakeJob("b").Waiting()).Obj()
	var encoder wire.Encoder
	var heard wire.Copy
	first, second, third := encoder.Encode(v, nil, nil), encoder.Encode(v, nil, nil), encoder.Encode(v, nil, nil)
	refused := func() {
		t.Helper()
		if known, err := heard.Apply(second); known || err != nil {
			t.Fatalf("a stray update: known %v, error %v", known, err)
		}
	}
	refused() // before the first
	if known, err := heard.Apply(first); !known || err != nil {
		t.Fatalf("the first update: known %v, error %v", known, err)
	}
	if known, err := heard.Apply(third); known || err != nil {
		t.Errorf("an update too far: known %v, error %v", known, err)
	}
	if known, err := heard.Apply(second); !known || err != nil {
		t.Errorf("the second update: known %v, error %v", known, err)
	}
	refused() // again
	encoder.Reset()
	if known, err := heard.Apply(encoder.Encode(v, nil, nil)); !known || err != nil || len(heard.View.Jobs) != 2 {
		t.Errorf("a full update: known %v, error %v, %d jobs", known, err, len(heard.View.Jobs))
	}
}
