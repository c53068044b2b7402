package host_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/plugins/faulty"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

const jobsInWorld = 12

// quickly are options under which failures take no time to speak of.
func quickly(on host.OnFailure) host.Options {
	return host.Options{
		OnFailure: on, MaxRestarts: 2, Backoff: time.Millisecond, CallTimeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
	}
}

// faultyAdmission and faultyAllocation put a faulty stage, in a process of its own, among good ones.
func faultyAdmission(t *testing.T, c faulty.Config, o host.Options) (core.Stages, error) {
	spec := host.Spec[core.Admitter]{ID: "admission/faulty", Plugin: "faulty", Options: o, Fallback: &faulty.Policy{}}
	spec.Dial = dialFaulty(host.Component{Stage: stagev1.Stage_STAGE_ADMISSION, Type: "faulty", ID: spec.ID, Config: core.Encode(c)})
	admitter, err := host.Admitter(t.Context(), spec)
	stages := goodStages()
	stages.Admission[0] = core.Component[core.Admitter]{ID: spec.ID, Policy: admitter}
	closeAfter(t, admitter)
	return stages, err
}

func faultyAllocation(t *testing.T, c faulty.Config, o host.Options) (core.Stages, error) {
	spec := host.Spec[core.Allocator]{ID: "allocation/faulty", Plugin: "faulty", Options: o, Fallback: &faulty.Policy{}}
	spec.Dial = dialFaulty(host.Component{Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "faulty", ID: spec.ID, Config: core.Encode(c)})
	allocator, err := host.Allocator(t.Context(), spec)
	stages := goodStages()
	stages.Allocation = core.Component[core.Allocator]{ID: spec.ID, Policy: allocator}
	closeAfter(t, allocator)
	return stages, err
}

func dialFaulty(c host.Component) host.Dial {
	b := faultyBinary(serveFaulty)
	if fault, ok := c.Config["fault"].(string); ok {
		b.EndTimeout = endTimeout(fault)
	}
	return dialBinary(b, c)
}

// endTimeout is how long a process with a fault may take to end: one that is stopped never ends when asked.
func endTimeout(fault string) time.Duration {
	if strings.HasPrefix(fault, "stop") {
		return 200 * time.Millisecond
	}
	return 0
}

func dialBinary(b host.Binary, c host.Component) host.Dial {
	return func(ctx context.Context) (*host.Session, error) { return b.Session(ctx, c) }
}

func closeAfter(t *testing.T, policy any) {
	if closer, ok := policy.(io.Closer); ok {
		t.Cleanup(func() { _ = closer.Close() })
	}
}

func goodStages() core.Stages {
	return core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission/good", Policy: &faulty.Policy{}}},
		Allocation: core.Component[core.Allocator]{ID: "allocation/good", Policy: &faulty.Policy{}},
		Placement:  core.Component[core.Placer]{ID: "placement/good", Policy: &faulty.Policy{}},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/good", Policy: &faulty.Policy{}},
	}
}

// outcomes notes how and when jobs end.
type outcomes map[core.JobID]string

func (o outcomes) ObserveRound(r *core.Report) error {
	for _, j := range r.Ended {
		o[j.ID] = fmt.Sprintf("%v at %v s", j.State, j.FinishSeconds)
	}
	return nil
}

// run simulates a small workload, more than the cluster has devices for at a time, with given stages.
func run(t *testing.T, stages core.Stages) (outcomes, error) {
	t.Helper()
	return runIn(t.Context(), t, stages)
}

func runIn(ctx context.Context, t *testing.T, stages core.Stages) (outcomes, error) {
	t.Helper()
	source, err := made(t, workload.NewGenerated(), map[string]any{"jobs": jobsInWorld, "span": "10m", "replicas": "one", "durations": "pollux"})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := source.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	opener, err := made(t, sim.NewSimulator(), nil)
	if err != nil {
		t.Fatal(err)
	}
	cluster := coretest.MakeCluster().Nodes(2, "t4", 2).Obj()
	world, err := opener.Open(ctx, cluster, jobs)
	if err != nil {
		t.Fatal(err)
	}
	seen := outcomes{}
	p := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{seen}})
	return seen, p.Run(ctx, world)
}

func made[S any](t *testing.T, f core.Factory[S], raw map[string]any) (S, error) {
	t.Helper()
	config, problems := f.Decode(raw)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return f.New(config, core.Settings{ID: f.Type, Rand: core.NewRand(1, f.Type), Log: slog.New(slog.DiscardHandler)})
}
