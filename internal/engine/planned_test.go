package engine_test

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// goingOn is a backend whose run goes on: a plan of it begins with what policies had learned.
type goingOn struct{ core.Backend }

func (goingOn) Check(*core.Cluster, core.RoundOptions) core.Diagnostics { return nil }
func (goingOn) Capabilities() []core.Capability                         { return nil }
func (goingOn) Open(context.Context, *core.Cluster, *workload.Workload) (core.Backend, error) {
	return nil, errors.New("nothing is run")
}

func (goingOn) Preview(context.Context, string, *core.Cluster, *workload.Workload) (backend.Preview, error) {
	return &nextRound{}, nil
}

// nextRound is a round of that run: a job holds the second device of a node.
type nextRound struct {
	told    bool
	changes []core.Change
}

func (p *nextRound) Next(context.Context, core.Wake) (core.Observation, error) {
	if p.told {
		return core.Observation{}, io.EOF
	}
	p.told = true
	spec := &core.JobSpec{Name: "held", Weight: 1, Requested: 1, MinReplicas: 1, MaxReplicas: 1}
	return core.Observation{NowSeconds: 100, Events: []core.Event{{
		Kind: core.JobSubmitted, AtSeconds: 100, Spec: spec, StepsLeft: math.NaN(),
		Held: &core.Held{Seats: []core.Seat{{Node: 0, Devices: 2}}, Executed: 5, Attained: 5},
	}}}, nil
}

func (p *nextRound) Apply(_ context.Context, c []core.Change) error { p.changes = c; return nil }
func (p *nextRound) Changes() []core.Change                         { return p.changes }
func (p *nextRound) Capabilities() []core.Capability                { return nil }
func (p *nextRound) KeepsDevices() bool                             { return true }
func (p *nextRound) Replaying() bool                                { return false }
func (p *nextRound) Keep([]core.Learned) error                      { return nil }
func (p *nextRound) Learned() []core.Learned {
	return []core.Learned{{Component: "allocation/pupil", Data: []byte("much")}}
}
func (p *nextRound) Begin(int, *core.Composition, []core.Learned) error { return nil }

// pupil lets jobs run as they do, and tells what it was taught.
type pupil struct{ taught string }

func (p *pupil) Allocate(_ context.Context, _ *core.View, candidates []core.Candidate) (grants []core.Grant, err error) {
	for i := range candidates {
		grants = append(grants, core.Grant{Job: candidates[i].Job.ID, Replicas: 1})
	}
	return grants, nil
}

func (p *pupil) Snapshot() ([]byte, error) { return []byte(p.taught), nil }
func (p *pupil) Restore(learned []byte) error {
	p.taught = string(learned)
	return nil
}

func TestAPlanGoesOnWithWhatWasLearned(t *testing.T) {
	p := &pupil{}
	c := quartet.Builtins().WithAllocation(quartet.Given[core.Allocator]("pupil", p)).WithBackend(quartet.Given[backend.Opener]("going_on", goingOn{}))
	s := doortest.Small()
	s.Pipeline.Allocation.Type, s.Backend.Type = "pupil", "going_on"
	plan, err := doortest.Compose(t, c, s).Plan(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if p.taught != "much" || plan.NowSeconds != 100 {
		t.Errorf("the policy was taught %q, and the plan is of %v s", p.taught, plan.NowSeconds)
	}
	if diff := cmp.Diff([]core.Change(nil), plan.Changes); diff != "" {
		t.Errorf("a job that keeps its device is to be changed (-want +got):\n%s", diff)
	}
}
