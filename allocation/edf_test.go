package allocation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// The earliest deadline comes first, whoever runs, and gets what it can use of what is left.
func TestEDF(t *testing.T) {
	t.Parallel()
	peak := func(j *core.Job) core.Response { // fastest on two of four, and not at all on three
		rates := []float64{1, 3, 0, 2}
		return core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas, Curves: []core.Curve{{OneNode: rates, ManyNodes: rates}}}
	}
	job := func(deadline float64) *coretest.JobBuilder {
		return coretest.MakeJob("j").Elastic(1, 1, 4).Deadline(deadline).Waiting()
	}
	for name, tc := range map[string]struct {
		devices string
		nodes   int
		jobs    []*coretest.JobBuilder
		want    []core.Grant // without the type
	}{
		"most":                    {edfMost, 4, []*coretest.JobBuilder{job(200), job(100)}, []core.Grant{{Job: 1, Replicas: 4}}},
		"most of what is left":    {edfMost, 7, []*coretest.JobBuilder{job(200), job(100)}, []core.Grant{{Job: 1, Replicas: 4}, {Job: 0, Replicas: 2}}},
		"fastest":                 {edfFastest, 4, []*coretest.JobBuilder{job(200), job(100)}, []core.Grant{{Job: 1, Replicas: 2}, {Job: 0, Replicas: 2}}},
		"requested":               {edfRequested, 4, []*coretest.JobBuilder{job(200), job(100)}, []core.Grant{{Job: 1, Replicas: 1}, {Job: 0, Replicas: 1}}},
		"no deadline comes last":  {edfFastest, 3, []*coretest.JobBuilder{job(0), job(100)}, []core.Grant{{Job: 1, Replicas: 2}, {Job: 0, Replicas: 1}}},
		"best effort comes last":  {edfFastest, 3, []*coretest.JobBuilder{job(50).BestEffort(), job(100)}, []core.Grant{{Job: 1, Replicas: 2}, {Job: 0, Replicas: 1}}},
		"a late one stays ahead":  {edfFastest, 2, []*coretest.JobBuilder{job(100), job(1)}, []core.Grant{{Job: 1, Replicas: 2}}},
		"a running one gives way": {edfFastest, 2, []*coretest.JobBuilder{job(100).Running(0, coretest.Seat(0, 0)), job(10)}, []core.Grant{{Job: 1, Replicas: 2}}},
		"a pinned one does not":   {edfFastest, 2, []*coretest.JobBuilder{job(100).Pinned().Running(0, coretest.Seat(0, 0)), job(10)}, []core.Grant{{Job: 0, Replicas: 1}, {Job: 1, Replicas: 1}}},
		"one that does not fit":   {edfFastest, 3, []*coretest.JobBuilder{job(100), coretest.MakeJob("w").Elastic(4, 4, 4).Deadline(10).Waiting()}, []core.Grant{{Job: 0, Replicas: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := NewEDF().New(&EDFConfig{Devices: tc.devices}, core.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", tc.nodes).Obj()).Now(50).Jobs(tc.jobs...).Obj()
			grants, err := p.Allocate(t.Context(), v, coretest.Candidates(v, peak))
			if err != nil {
				t.Fatal(err)
			}
			for i := range grants {
				grants[i].Accelerator = 0
			}
			if diff := cmp.Diff(tc.want, grants); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
