package backendtest_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/admission"
	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/allocation/tiresias"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/placement"
)

// simulation is a drawn run.
type simulation struct {
	nodes     int
	devices   int
	jobs      []workload.Job
	simulator map[string]any
	allocator core.Factory[core.Allocator]
	rounds    core.RoundOptions
}

func drawSimulation(t *rapid.T) *simulation {
	s := &simulation{nodes: rapid.IntRange(1, 4).Draw(t, "nodes"), devices: rapid.IntRange(1, 4).Draw(t, "devices")}
	at := 0.0
	for i := range rapid.IntRange(1, 20).Draw(t, "jobs") {
		at += rapid.SampledFrom([]float64{0, 0, 7, 60, 333.25}).Draw(t, "gap")
		replicas := rapid.IntRange(1, s.nodes*s.devices+1).Draw(t, "replicas") // one too many is rejected
		seconds := rapid.Float64Range(1, 1000).Draw(t, "seconds")
		j := workload.Job{Model: workload.NewDurationModel(seconds, replicas)}
		j.Spec = core.JobSpec{
			ID: core.JobID(i), Name: fmt.Sprintf("job-%d", i), Weight: 1, SubmitSeconds: at, TotalWork: seconds,
			Requested: replicas, MinReplicas: rapid.IntRange(1, replicas).Draw(t, "least"), MaxReplicas: replicas + rapid.IntRange(0, 2).Draw(t, "more"),
		}
		s.jobs = append(s.jobs, j)
	}
	s.simulator = map[string]any{
		"restart_overhead": rapid.SampledFrom([]string{"0s", "5s", "45s"}).Draw(t, "overhead"),
		"stall_after":      "24h",
	}
	if rapid.Bool().Draw(t, "nodes fail") {
		s.simulator["failures"] = map[string]any{"mtbf": "20m", "repair": "2m"}
		s.simulator["checkpoint_interval"] = "50s"
	}
	s.allocator = rapid.SampledFrom([]core.Factory[core.Allocator]{
		allocation.NewFIFO(), allocation.NewLAS(), allocation.NewSRTF(), tiresias.New(), allocation.NewAFS(),
	}).Draw(t, "allocator")
	s.rounds.IntervalSeconds = rapid.SampledFrom([]float64{30, 60, 100}).Draw(t, "interval")
	s.rounds.OnEvents = rapid.Bool().Draw(t, "on events")
	return s
}

// run returns what the simulation writes.
func (s *simulation) run(t *rapid.T, change func(core.Backend) core.Backend) map[string]string {
	c := &core.Cluster{Accelerators: []string{"gpu"}}
	for i := range s.nodes {
		c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("node-%d", i), Devices: s.devices})
	}
	b, err := coretest.Component(sim.NewSimulator(), s.simulator, nil).Open(context.Background(), c, &workload.Workload{Jobs: s.jobs})
	if err != nil {
		t.Fatal(err)
	}
	stages := core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission", Policy: coretest.Component(admission.NewAcceptAll(), nil, nil)}},
		Allocation: core.Component[core.Allocator]{ID: "allocation", Policy: coretest.Component(s.allocator, nil, nil)},
		Placement:  core.Component[core.Placer]{ID: "placement", Policy: coretest.Component(placement.NewFirstFit(), nil, nil)},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity", Policy: coretest.Component(elasticity.NewFixed(), nil, nil)},
	}
	var jobs, rounds, decisions bytes.Buffer
	told := metrics.NewCollector(metrics.Components{}, metrics.Outputs{Jobs: &jobs, Rounds: &rounds, Decisions: &decisions})
	p := core.NewPipeline(c, stages, core.PipelineOptions{Rounds: s.rounds, Observers: []core.Observer{told}})
	if err := p.Run(context.Background(), change(b)); err != nil {
		t.Fatal(err)
	}
	if _, err := told.Finish(p.Unfinished(), p.NowSeconds()); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"jobs.csv": jobs.String(), "rounds.csv": rounds.String(), "decisions.jsonl": decisions.String()}
}

func TestRepetitionsMakeNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, seed := drawSimulation(t), rapid.Uint64().Draw(t, "seed of the repetitions")
		once := s.run(t, func(b core.Backend) core.Backend { return b })
		again := s.run(t, func(b core.Backend) core.Backend {
			return backendtest.Repeat(b, rand.New(rand.NewPCG(seed, 0)))
		})
		if diff := cmp.Diff(once, again); diff != "" {
			t.Errorf("%s (-once +again):\n%s", s.allocator.Type, diff)
		}
	})
}
