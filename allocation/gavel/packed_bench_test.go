package gavel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// BenchmarkAllocatePacked holds rounds over jobs of 26 kinds on three types, all of whose pairs were measured; every second one computes shares anew.
func BenchmarkAllocatePacked(b *testing.B) {
	const kinds = 26
	for _, jobs := range []int{128, 1024} {
		for name, config := range map[string]map[string]any{"few": nil, "all": {"partners": "all", "least_gain": 0.0}} {
			b.Run(fmt.Sprintf("%s-%d", name, jobs), func(b *testing.B) {
				draw := rand.New(rand.NewPCG(1, 1))
				var curves [kinds][]core.Curve
				var pairs []core.Pair
				for k := range curves {
					for t, on := range []string{"a", "b", "c"} {
						rate := []float64{(0.5 + draw.Float64()) / float64(t+1)}
						curves[k] = append(curves[k], core.Curve{OneNode: rate, ManyNodes: rate})
						for o := range k + 1 {
							parts := [2]float64{0.2 + 0.7*draw.Float64(), 0.2 + 0.7*draw.Float64()}
							if o == k {
								parts[1] = parts[0]
							}
							pairs = append(pairs, core.Pair{Accelerator: on, Applications: [2]string{fmt.Sprint(k), fmt.Sprint(o)}, Replicas: 1, Parts: parts})
						}
					}
				}
				table := core.NewPairTable(pairs)
				var list []*coretest.JobBuilder
				for i := range jobs {
					list = append(list, coretest.MakeJob(fmt.Sprint(i)).Application(fmt.Sprint(i%kinds)).Replicas(1).Work(1e4+float64(i)).Waiting())
				}
				each := jobs / 4
				cluster := coretest.MakeCluster().Nodes(each, "a", 1).Nodes(each, "b", 1).Nodes(each, "c", 1).TakesTurns(2, 0).Obj()
				v := coretest.MakeView(cluster).Interval(360).Jobs(list...).Obj()
				for _, j := range v.Jobs {
					j.Pairs = table
				}
				candidates := coretest.Candidates(v, func(j *core.Job) core.Response {
					r := coretest.Rigid(j)
					r.Curves = curves[int(j.ID)%kinds]
					return r
				})
				factory := NewMaxMinPacked()
				decoded, _ := factory.Decode(config)
				policy, err := factory.New(decoded, core.Settings{})
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
}
