package matching

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// BenchmarkAllocate decides for jobs that wait, on five types.
func BenchmarkAllocate(b *testing.B) {
	for _, size := range []struct{ nodes, jobs int }{{3, 40}, {12, 160}, {48, 640}} {
		b.Run(fmt.Sprintf("%ddevices×%djobs", 5*8*size.nodes, size.jobs), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			cluster := coretest.MakeCluster()
			for t := range 5 {
				cluster.Nodes(size.nodes, fmt.Sprintf("type-%d", t), 8)
			}
			var jobs []*coretest.JobBuilder
			for i := range size.jobs {
				jobs = append(jobs, coretest.MakeJob(fmt.Sprintf("job-%d", i)).Elastic(1, 2, 16).MixesTypes().Waiting())
			}
			v := coretest.MakeView(cluster.Obj()).Jobs(jobs...).Obj()
			candidates := coretest.Candidates(v, func(j *core.Job) core.Response {
				u := &core.MixedTypeRates{SyncSeconds: make([]float64, 16)}
				for range 5 {
					u.SingleDeviceRates = append(u.SingleDeviceRates, 1+9*rng.Float64())
				}
				for k := range u.SyncSeconds {
					u.SyncSeconds[k] = 0.1 * float64(k) / float64(k+1)
				}
				return core.Response{Job: j.ID, MinReplicas: 1, MaxReplicas: 16, RemainingWork: 1000 * rng.ExpFloat64(), MixedTypes: u}
			})
			config := Default
			policy, err := New().New(&config, core.Settings{Rand: core.NewRand(1, "allocation/matching")})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := policy.Allocate(context.Background(), v, candidates); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
