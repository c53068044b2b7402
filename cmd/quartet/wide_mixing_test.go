package main

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
)

// created makes a component with defaults.
func created[S any](f core.Factory[S], raw map[string]any) core.Component[S] {
	return core.Component[S]{ID: f.Type, Policy: coretest.Component(f, raw, nil), OneType: f.OneType}
}

// wideOutcomes collects how jobs ended, and why they were rejected.
type wideOutcomes struct {
	states   map[core.JobID]core.JobState
	verdicts map[core.JobID]core.Verdict
}

func (o *wideOutcomes) ObserveRound(r *core.Report) error {
	for _, j := range r.Ended {
		o.states[j.ID] = j.State
	}
	for _, v := range r.Verdicts {
		if v.Code == core.Reject {
			o.verdicts[v.Job] = v
		}
	}
	return nil
}

// A job that mixes types and needs more devices than any one type has either runs to its end, or is rejected, whatever
// the composition; and the jobs beside it end.
func TestWideMixingJobsRunOrAreRejected(t *testing.T) {
	c := catalog()
	for _, allocation := range c.Allocation {
		for _, placement := range c.Placement {
			for split, elasticity := range map[string]map[string]any{"even": nil, "proportional": {"split": "proportional"}} {
				t.Run(allocation.Type+" "+placement.Type+" "+split, func(t *testing.T) {
					states, verdict := runWideMixing(t, core.Stages{
						Admission:  []core.Component[core.Admitter]{created(c.Admission[0], nil)},
						Allocation: created(allocation, nil), Placement: created(placement, nil),
						Elasticity: created(c.Elasticity[0], elasticity), Scaler: created(c.Scaler[0], nil),
					})
					for _, narrow := range []core.JobID{0, 2} {
						if states[narrow] != core.Completed {
							t.Errorf("narrow job %d is %v, want completed", narrow, states[narrow])
						}
					}
					want := core.Completed
					if allocation.OneType {
						want = core.Rejected
						if verdict.Reason != core.ExceedsCluster || verdict.Wanted != 6 || verdict.Available != 4 || verdict.By != allocation.Type || verdict.Message == "" {
							t.Errorf("verdict %+v", verdict)
						}
					}
					if states[1] != want {
						t.Errorf("wide job is %v, want %v", states[1], want)
					}
				})
			}
		}
	}
}

func runWideMixing(t *testing.T, stages core.Stages) (map[core.JobID]core.JobState, core.Verdict) {
	cluster := coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "v100", 4).Obj()
	w := &workload.Workload{}
	for i, least := range []int{1, 6, 1} {
		m := &mixing{samples: map[string]float64{"t4": 100, "v100": 50}, batch: 64, steps: 300, sync: make([]float64, 8)}
		on := []core.TypeTimes{{Accelerator: "t4"}, {Accelerator: "v100"}}
		for r := range m.sync {
			on[0].OneNode = append(on[0].OneNode, 0.64/float64(r+1))
			on[1].OneNode = append(on[1].OneNode, 1.28/float64(r+1))
		}
		on[0].ManyNodes, on[1].ManyNodes = on[0].OneNode, on[1].OneNode
		w.Jobs = append(w.Jobs, workload.Job{Model: m, Spec: core.JobSpec{
			ID: core.JobID(i), Name: string(rune('a' + i)), Application: "mixing", Weight: 1, SubmitSeconds: float64(i),
			Requested: least, MinReplicas: least, MaxReplicas: least, MixesTypes: true, TotalWork: m.steps,
			Batch: core.BatchSpec{Requested: m.batch, Initial: m.batch, Max: m.batch, MinPerDevice: 1},
			StepTimes: &core.StepTimes{Types: on, MixedTypes: &core.MixedTypeTimes{
				SyncSeconds: m.sync, SingleDeviceTimes: []core.SingleDeviceTime{{Accelerator: "t4", Seconds: 0.64}, {Accelerator: "v100", Seconds: 1.28}},
			}},
		}})
	}
	f := sim.NewSimulator()
	config, problems := f.Decode(map[string]any{"stall_after": "4h"})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	opener, err := f.New(config, core.Settings{Rand: core.NewRand(1, "backend/simulator")})
	if err != nil {
		t.Fatal(err)
	}
	world, err := opener.Open(t.Context(), cluster, w)
	if err != nil {
		t.Fatal(err)
	}
	ends := &wideOutcomes{states: map[core.JobID]core.JobState{}, verdicts: map[core.JobID]core.Verdict{}}
	p := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{ends}})
	if err := p.Run(t.Context(), world); err != nil {
		t.Fatal(err)
	}
	return ends.states, ends.verdicts[1]
}
