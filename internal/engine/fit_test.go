package engine

import (
	"context"
	"errors"
	"fmt"
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
			c, err := configs.Parse(catalog(), "default.yaml", configs.Default(), configs.Options{
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

// copying is an elasticity that knows of jobs only what changes tell it, as one in another process does.
type copying struct {
	wide
	cursor int
	known  map[core.JobID]bool
	most   *int // jobs known at once
}

func (c *copying) Respond(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	changed, next, complete := v.ChangesSince(c.cursor)
	if !complete {
		return nil, errors.New("the view forgot what changed")
	}
	c.cursor = next
	for _, id := range changed {
		if v.Job(id) != nil {
			c.known[id] = true
		} else {
			delete(c.known, id)
		}
	}
	*c.most = max(*c.most, len(c.known))
	for _, j := range jobs {
		if !c.known[j.ID] {
			return nil, fmt.Errorf("asked about unknown job %d", j.ID)
		}
	}
	return c.wide.Respond(ctx, v, jobs)
}

// TestFitOfALargeWorkload asks an elasticity that keeps a copy of the view about more jobs than are laid out at once.
func TestFitOfALargeWorkload(t *testing.T) {
	for name, jobs := range map[string]int{"one block": atOnce, "one job more": atOnce + 1, "several blocks": 3*atOnce - 1} {
		t.Run(name, func(t *testing.T) {
			c, err := configs.Parse(catalog(), "default.yaml", configs.Default(), configs.Options{
				Sets: []string{fmt.Sprintf("workload.config={jobs: %d, replicas: one}", jobs)},
			})
			if err != nil {
				t.Fatal(err)
			}
			most := 0
			c.Elasticity = configs.Selected[core.Elasticity]{
				ID: "elasticity/copying", Config: &core.None{},
				Factory: core.NewFactory(core.Info{Type: "copying"}, core.None{}, func(core.None, core.Settings) (core.Elasticity, error) {
					return &copying{wide: wide{1}, known: map[core.JobID]bool{}, most: &most}, nil
				}),
			}
			w, err := LoadWorkload(t.Context(), c, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := (&Composition{Config: c}).checkFit(t.Context(), c.BuildCluster(), w); err != nil {
				t.Error(err)
			}
			if most > atOnce {
				t.Errorf("%d jobs known at once, want at most %d", most, atOnce)
			}
		})
	}
}

// BenchmarkFit checks as many jobs as the Philly trace has, a third of which are particular about accelerators.
func BenchmarkFit(b *testing.B) {
	c, err := configs.Parse(catalog(), "default.yaml", configs.Default(), configs.Options{
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
