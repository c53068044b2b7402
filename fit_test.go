package quartet

import (
	"context"
	"testing"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// wide is an elasticity that gives every job at least so many replicas.
type wide struct{ least int }

func (w wide) Respond(_ context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	responses := make([]core.Response, len(jobs))
	for i, j := range jobs {
		if v.Job(j.ID) != j || j.SubmitSeconds > v.NowSeconds {
			continue // no job of the view, or not submitted
		}
		responses[i] = core.Response{Job: j.ID, MinReplicas: w.least, MaxReplicas: w.least}
	}
	return responses, nil
}

func (wide) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	return nil, nil
}

// TestFitIsForTheElasticityToSay puts jobs of one replica on 64 devices.
func TestFitIsForTheElasticityToSay(t *testing.T) {
	cases := map[string]struct {
		least int
		want  string
	}{
		"all that there is": {least: 64},
		"more": {least: 65, want: `job "job-000000" needs 65 devices, the cluster has 64 that it can run on; ` +
			`enlarge the cluster or leave the job out; 3 of its 3 jobs do not fit`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := configs.Parse(Builtins(), "default.yaml", configs.Default(), configs.Options{
				Sets: []string{"workload.config={jobs: 3, replicas: one}"},
			})
			if err != nil {
				t.Fatal(err)
			}
			c.Elasticity = configs.Selected[core.Elasticity]{
				ID: "elasticity/wide", Config: &core.None{},
				Factory: core.NewFactory(core.Info{Type: "wide"}, core.None{}, func(core.None, core.Settings) (core.Elasticity, error) {
					return wide{tc.least}, nil
				}),
			}
			jobs, err := LoadWorkload(t.Context(), c, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := (&Composition{Config: c}).checkFit(t.Context(), c.BuildCluster(), jobs); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}

// BenchmarkFit checks as many jobs as the Philly trace has, a third of which are particular about accelerators.
func BenchmarkFit(b *testing.B) {
	c, err := configs.Parse(Builtins(), "default.yaml", configs.Default(), configs.Options{
		Sets: []string{"cluster.nodes=[{name: n, count: 300, accelerator: t4, devices: 8}]"},
	})
	if err != nil {
		b.Fatal(err)
	}
	jobs := &workload.Workload{Jobs: make([]workload.Job, 82247)}
	for i := range jobs.Jobs {
		job := &jobs.Jobs[i]
		job.Model = workload.NewDurationModel(1, 1)
		job.Spec = core.JobSpec{ID: core.JobID(i), Requested: 1, MinReplicas: 1, MaxReplicas: 1}
		if i%3 == 0 {
			job.Spec.Accelerators = []string{"t4", "v100"}
		}
	}
	cluster, composition := c.BuildCluster(), &Composition{Config: c}
	b.ReportAllocs()
	for b.Loop() {
		if err := composition.checkFit(b.Context(), cluster, jobs); err != nil {
			b.Fatal(err)
		}
	}
}
