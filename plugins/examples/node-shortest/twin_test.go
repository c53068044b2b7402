// Package shortest_test holds the plugin in JavaScript to a twin in Go: both must decide the same to the last byte.
package shortest_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// pluginVariable names the built plugin; `make node` sets it.
const pluginVariable = "QUARTET_NODE_PLUGIN"

const componentID = "allocation/shortest"

// twin is src/shortest.js, line by line.
type twin struct {
	backfill, preempt bool
	grants            []core.Grant
}

type ranked struct {
	*core.Candidate
	rank int
	work float64
}

func (p *twin) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	queue := make([]ranked, 0, len(candidates))
	for i := range candidates {
		c := &candidates[i]
		r := ranked{Candidate: c, rank: 2, work: c.TotalWork}
		switch {
		case c.MustStay(v.Cluster, c.Response):
			r.rank = 0
		case c.State == core.Running && !p.preempt:
			r.rank = 1
		}
		if r.work == 0 {
			r.work = math.Inf(1)
		}
		queue = append(queue, r)
	}
	slices.SortFunc(queue, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.work, b.work), cmp.Compare(a.ID, b.ID))
	})
	left := v.Devices
	p.grants = p.grants[:0]
	for _, r := range queue {
		replicas := r.Requested
		if r.State == core.Running {
			replicas = r.Held
		}
		replicas = min(max(replicas, r.Response.MinReplicas), r.Response.MaxReplicas)
		if replicas > left {
			if p.backfill {
				continue
			}
			break
		}
		left -= replicas
		p.grants = append(p.grants, core.Grant{Job: r.ID, Accelerator: core.AnyAccelerator, Replicas: replicas})
	}
	return p.grants, nil
}

// Standing rests on no time: only on who runs after the round.
func (p *twin) Standing() core.Standing {
	return core.Standing{UntilSeconds: math.Inf(1), IfSeated: len(p.grants)}
}

func TestDecidesLikeItsTwin(t *testing.T) {
	path := os.Getenv(pluginVariable)
	if path == "" {
		t.Skipf("%s names no plugin; `make node` builds it", pluginVariable)
	}
	tests := map[string]struct{ backfill, preempt bool }{
		"as it comes":         {backfill: true},
		"in order":            {},
		"preempting":          {backfill: true, preempt: true},
		"preempting in order": {preempt: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				plugin, err := host.Allocator(t.Context(), host.Spec[core.Allocator]{
					ID: componentID, Plugin: "node-shortest", Options: options(),
					Dial: func(ctx context.Context) (*host.Session, error) {
						return host.Binary{Name: "node-shortest", Path: path}.Session(ctx, host.Component{
							Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "shortest", ID: componentID, Seed: seed,
							Config: map[string]any{"backfill": tc.backfill, "preempt": tc.preempt},
						})
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				got := run(t, seed, plugin)
				if err := plugin.(io.Closer).Close(); err != nil {
					t.Fatal(err)
				}
				want := run(t, seed, &twin{backfill: tc.backfill, preempt: tc.preempt})
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d: (-twin +plugin)\n%s", seed, diff)
				}
			}
		})
	}
}

func options() host.Options {
	o := host.DefaultOptions
	o.Log = slog.New(slog.DiscardHandler)
	return o
}

// run simulates a workload on nodes that fail, and returns what is written of it.
func run(t *testing.T, seed uint64, allocator core.Allocator) map[string]string {
	t.Helper()
	jobs, err := made(t, seed, workload.NewGenerated(), map[string]any{"jobs": 120, "span": "1h", "replicas": "gavel", "durations": "pollux"}).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs.Jobs {
		if i%7 == 3 {
			jobs.Jobs[i].Spec.TotalWork = 0 // declares nothing
		}
	}
	cluster := coretest.MakeCluster().Nodes(4, "t4", 4).Nodes(2, "v100", 8).Obj()
	world, err := made(t, seed, sim.NewSimulator(), map[string]any{
		"failures": map[string]any{"mtbf": "2h", "repair": "20m"}, "restart_overhead": "30s",
	}).Open(t.Context(), cluster, jobs)
	if err != nil {
		t.Fatal(err)
	}
	var rows, rounds, decisions bytes.Buffer
	collector := metrics.NewCollector(metrics.Components{}, metrics.Outputs{Jobs: &rows, Rounds: &rounds, Decisions: &decisions})
	stages := core.Stages{
		Allocation: core.Component[core.Allocator]{ID: componentID, Policy: allocator},
		Placement:  core.Component[core.Placer]{ID: "placement/plain", Policy: plain{}},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/plain", Policy: plain{}},
	}
	p := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{collector}})
	if err := p.Run(t.Context(), world); err != nil {
		t.Fatal(err)
	}
	if _, err := collector.Finish(p.Unfinished(), p.NowSeconds()); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"jobs.csv": rows.String(), "rounds.csv": rounds.String(), "decisions.jsonl": decisions.String()}
}

func made[S any](t *testing.T, seed uint64, f core.Factory[S], raw map[string]any) S {
	t.Helper()
	config, problems := f.Decode(raw)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	policy, err := f.New(config, core.Settings{ID: f.Type, Rand: core.NewRand(seed, f.Type), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", f.Type, err))
	}
	return policy
}

// plain seats each grant on the first node with room, keeping what runs where it is, and knows rigid jobs only.
type plain struct{}

func (plain) Place(_ context.Context, v *core.View, grants []core.Grant) (s core.Seating, err error) {
	var ledger core.Ledger
	ledger.Reset(v.Cluster)
	kept := map[core.JobID]bool{}
	for _, g := range grants {
		if j := v.Job(g.Job); j.Held == g.Replicas && ledger.Occupy(j.Seats) {
			kept[g.Job] = true
		}
	}
	for _, g := range grants {
		seats := v.Job(g.Job).Seats
		if !kept[g.Job] {
			seats = nil
			for n := range v.Cluster.Nodes {
				if ledger.Free(core.NodeID(n)) >= g.Replicas {
					seats = []core.Seat{ledger.Take(core.NodeID(n), g.Replicas)}
					break
				}
			}
		}
		if seats == nil {
			s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.Fragmented})
			continue
		}
		s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: seats})
	}
	return s, nil
}

func (plain) Respond(_ context.Context, _ *core.View, jobs []*core.Job) ([]core.Response, error) {
	responses := make([]core.Response, len(jobs))
	for i, j := range jobs {
		responses[i] = coretest.Rigid(j)
	}
	return responses, nil
}

// Standing is for ever: nothing here depends on the time.
func (plain) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }

func (plain) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	return nil, nil
}
