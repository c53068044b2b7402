package gavel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// BenchmarkAllocate holds rounds over 2,048 jobs of 26 kinds on three types, of which every second one computes
// shares anew.
func BenchmarkAllocate(b *testing.B) {
	const jobs, kinds = 2048, 26
	for name, factory := range map[string]core.Factory[core.Allocator]{
		"max_min": NewMaxMin(), "water_filling": NewWaterFilling(), "finish_time_fairness": NewFinishTimeFairness(),
		"makespan": NewMakespan(), "best_normalised_sum": NewBestNormalisedSum(), "fifo_perf": NewFIFOPerf(), "allox": NewAlloX(),
	} {
		b.Run(name, func(b *testing.B) {
			draw := rand.New(rand.NewPCG(1, 1))
			var curves [kinds][]core.Curve
			for k := range curves {
				for range 3 {
					rate := []float64{0.5 + 10*draw.Float64()}
					curves[k] = append(curves[k], core.Curve{OneNode: rate, ManyNodes: rate})
				}
			}
			var list []*coretest.JobBuilder
			for i := range jobs {
				list = append(list, coretest.MakeJob(fmt.Sprint(i)).Replicas(1).Work(1e4+float64(i)).Waiting())
			}
			cluster := coretest.MakeCluster().Nodes(512, "a", 1).Nodes(512, "b", 1).Nodes(512, "c", 1).Obj()
			v := coretest.MakeView(cluster).Interval(360).Jobs(list...).Obj()
			candidates := coretest.Candidates(v, func(j *core.Job) core.Response {
				r := coretest.Rigid(j)
				r.Curves = curves[int(j.ID)%kinds]
				return r
			})
			config, _ := factory.Decode(nil)
			policy, err := factory.New(config, core.Settings{})
			if err != nil {
				b.Fatal(err)
			}
			for i := range b.N {
				v.NowSeconds += 360
				if _, err := policy.Allocate(context.Background(), v, candidates[:jobs-i%2]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAlloX2000 decides for 2,000 jobs that wait, with two free devices of each of six types.
func BenchmarkAlloX2000(b *testing.B) {
	const types = 6
	draw := rand.New(rand.NewPCG(1, 1))
	var tasks []task
	for range 2000 {
		job := task{remaining: 1e4 * draw.ExpFloat64()}
		for range types {
			job.rates = append(job.rates, 0.5+10*draw.Float64())
		}
		tasks = append(tasks, job)
	}
	p := newProblem(slices.Repeat([]float64{2}, types), tasks...)
	policy := new(alloX)
	for b.Loop() {
		if err := policy.divide(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
}
