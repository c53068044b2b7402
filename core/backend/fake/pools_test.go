package fake_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/backend/fake"
	"github.com/quartet-sched/quartet/core/workload"
)

func pooled() *core.Cluster {
	return &core.Cluster{
		Accelerators: []string{"gpu"}, Nodes: []core.Node{{ID: 0, Name: "n0", Devices: 1}},
		Pools: []core.Pool{{Name: "p", Devices: 2, Max: 3}},
	}
}

func scale(t *testing.T, b *fake.Backend, round, nodes int, remove ...core.NodeID) {
	t.Helper()
	if err := b.Scale(t.Context(), round, []core.PoolTarget{{Pool: "p", Nodes: nodes, Remove: remove}}); err != nil {
		t.Fatal(err)
	}
}

// changes are what is told of nodes until a moment, with seconds to two digits.
func changes(t *testing.T, b *fake.Backend, until float64) (list []string) {
	t.Helper()
	for {
		o, err := b.Next(t.Context(), core.Wake{BySeconds: until, OnEvents: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range o.Events {
			switch {
			case e.Kind == core.NodeAdded:
				list = append(list, fmt.Sprintf("%.2f: %s is %v until %.2f", e.AtSeconds, e.Added.Name, e.Added.Health, e.Added.ExpectedSeconds))
			case e.Kind == core.NodeRemoved:
				list = append(list, fmt.Sprintf("%.2f: node %d is gone", e.AtSeconds, e.Node))
			case e.Kind == core.NodeChanged:
				list = append(list, fmt.Sprintf("%.2f: node %d is %v", e.AtSeconds, e.Node, e.Health))
			}
		}
		apply(t, b)
		if o.NowSeconds >= until {
			return list
		}
	}
}

// What is left to chance follows from the seed, and nobody is told of it before.
func TestChanceFollowsFromTheSeed(t *testing.T) {
	pool := backend.Pool{Pool: "p", Provisioning: 10 * time.Second, Spread: 20 * time.Second, Fails: 0.4, Evictions: time.Minute, Notice: 5 * time.Second}
	run := func(seed uint64) (list []string) {
		w := &workload.Workload{Open: true}
		b := fake.Open(pooled(), w, fake.Options{Pools: []backend.Pool{pool}, Seed: seed, StallSeconds: math.Inf(1)})
		list = changes(t, b, 1)
		for round := 1; round < 20; round++ {
			scale(t, b, round, 3)
			list = append(list, changes(t, b, 30*float64(round))...)
		}
		return list
	}
	first := run(1)
	if diff := cmp.Diff(first, run(1)); diff != "" {
		t.Errorf("(-first +again)\n%s", diff)
	}
	if cmp.Equal(first, run(2)) {
		t.Error("another seed makes no difference")
	}
	for _, line := range first {
		var at, until float64
		if _, err := fmt.Sscanf(strings.Join(strings.Fields(line)[5:], ""), "%f", &until); err != nil || !strings.Contains(line, "provisioning") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%f:", &at); err != nil || math.Abs(until-at-20) > 0.011 {
			t.Errorf("%q: want it expected after 10 s and half of the 20 s that it may take longer", line)
		}
	}
	for _, word := range []string{"provisioning until", "is ready", "is draining", "is gone"} {
		if !strings.Contains(strings.Join(first, "\n"), word) {
			t.Errorf("no node %s: the test shows nothing\n%s", word, strings.Join(first, "\n"))
		}
	}
}

// The cluster may grow while its pool has fewer nodes than it may have, as far as the pipeline knows.
func TestTheClusterMayGrow(t *testing.T) {
	c := pooled()
	b := fake.Open(c, &workload.Workload{Open: true}, fake.Options{Pools: []backend.Pool{{Pool: "p", Provisioning: time.Second, Evictions: time.Hour}}})
	if p := c.Pools[0]; !c.MayGrow || p.ProvisioningSeconds != 1 || !p.Spot {
		t.Errorf("it may grow: %v; the pool is told as %+v", c.MayGrow, p)
	}
	changes(t, b, 1)
	scale(t, b, 1, 3)
	if !c.MayGrow {
		t.Error("it may not grow before the pipeline is told of the nodes")
	}
	changes(t, b, 2)
	if c.MayGrow {
		t.Error("it may grow with all the nodes that it may have")
	}
	scale(t, b, 2, 2, 3)
	changes(t, b, 3)
	if !c.MayGrow {
		t.Error("it may not grow after a node left")
	}
}

func TestNodesOfPoolsAndOrders(t *testing.T) {
	b := fake.Open(pooled(), jobs(100), fake.Options{})
	nextEvents(t, b)
	apply(t, b, on(0, 0))
	scale(t, b, 1, 2)
	changes(t, b, 1)
	if err := b.Scale(t.Context(), 2, []core.PoolTarget{{Pool: "q", Nodes: 1}}); err == nil || !strings.Contains(err.Error(), `pool "q"`) {
		t.Errorf("a pool that there is not: %v", err)
	}
	if err := b.SetHealth(t.Context(), "p-1", core.Draining); err != nil {
		t.Fatal(err)
	}
	scale(t, b, 2, 2) // one of them takes no jobs
	want := []string{"1.00: node 2 is draining", "1.00: p-2 is provisioning until 1.00", "1.00: node 3 is ready"}
	if diff := cmp.Diff(want, changes(t, b, 2)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	apply(t, b, core.Change{Round: 3, Action: core.Move, Job: 0, Seats: []core.Seat{{Node: 1, Devices: 0b10}}})
	scale(t, b, 3, 1, 1)
	if err := b.SetHealth(t.Context(), "p-0", core.Ready); err == nil || !strings.Contains(err.Error(), "leaves its pool") {
		t.Errorf("a node that leaves is made ready: %v", err)
	}
	if err := b.SetHealth(t.Context(), "p-0", core.Down); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2.00: node 1 is draining", "2.00: node 1 is down", "2.00: node 1 is gone"}, changes(t, b, 3)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := b.SetHealth(t.Context(), "p-0", core.Ready); err == nil || !strings.Contains(err.Error(), `no node "p-0"`) {
		t.Errorf("a node that is gone is made ready: %v", err)
	}
}

// whim is a scaler that wants anything, the same in the same round.
type whim struct{ seed uint64 }

func (w whim) Scale(_ context.Context, v *core.View, _ *core.Plan) (target core.ClusterTarget, _ error) {
	r := rand.New(rand.NewPCG(w.seed, uint64(v.Round)))
	for i := range v.Cluster.Pools {
		if p := &v.Cluster.Pools[i]; r.IntN(3) > 0 {
			t := core.PoolTarget{Pool: p.Name, Nodes: p.Min + r.IntN(p.Max-p.Min+1)}
			for k := range v.Cluster.Nodes {
				if v.Cluster.Nodes[k].Pool == p.Name && r.IntN(4) == 0 {
					t.Remove = append(t.Remove, core.NodeID(k))
				}
			}
			target.Pools = append(target.Pools, t)
		}
	}
	return target, nil
}

// keeper holds what a pipeline sees to the rules of pools, and writes it down.
type keeper struct {
	*rapid.T
	rounds []string
	most   int
	stop   context.CancelFunc
	ended  int
}

func (k *keeper) ObserveRound(r *core.Report) error {
	c := r.View.Cluster
	text := fmt.Sprintf("%d at %v: may grow %v", r.View.Round, r.View.NowSeconds, c.MayGrow)
	room := false
	for i := range c.Pools {
		p := &c.Pools[i]
		size := c.PoolSize(p.Name)
		text += fmt.Sprintf(", %s %d", p.Name, size)
		if room = room || size < p.Max; size > p.Max {
			k.Fatalf("%s: more than %d nodes", text, p.Max)
		}
	}
	if c.MayGrow != room {
		k.Fatalf("%s: want %v", text, room)
	}
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.ID != core.NodeID(i) || n.ExpectedSeconds > 0 && n.Health != core.Provisioning {
			k.Fatalf("%s: node %d is %v, expected at %v s", text, n.ID, n.Health, n.ExpectedSeconds)
		}
		text += fmt.Sprintf(" %v", c.Nodes[i].Health)
	}
	for _, j := range r.View.Jobs {
		if j != nil {
			for _, seat := range j.Seats {
				if c.Nodes[seat.Node].Health > core.Down {
					k.Fatalf("%s: job %d is on node %d", text, j.ID, seat.Node)
				}
			}
		}
	}
	k.ended += len(r.Ended)
	k.rounds = append(k.rounds, text)
	if len(k.rounds) == k.most {
		k.stop()
	}
	return nil
}

// Whatever a scaler wants and becomes of nodes, pools keep to their bounds, and a scheduler that takes over sees the same rounds
// and goes on.
func TestPoolsOfAnyKind(t *testing.T) {
	began := 0
	rapid.Check(t, func(t *rapid.T) {
		seconds := func(what string, most int) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, what)) * time.Second
		}
		var pools []core.Pool
		o := fake.Options{Identity: "one", Seed: rapid.Uint64().Draw(t, "seed"), StopSeconds: rapid.SampledFrom([]float64{0, 0, 2.5}).Draw(t, "stops")}
		if rapid.Bool().Draw(t, "tells again") {
			o.RepeatShare, o.Rand = 0.5, rand.New(rand.NewPCG(1, 2))
		}
		for i := range rapid.IntRange(1, 2).Draw(t, "pools") {
			p := core.Pool{Name: fmt.Sprintf("p%d", i), Devices: 1 + i, Max: rapid.IntRange(1, 4).Draw(t, "most")}
			p.Min = rapid.IntRange(0, p.Max).Draw(t, "least")
			pools = append(pools, p)
			w := backend.Pool{Pool: p.Name, Provisioning: seconds("provisioning", 9), Spread: seconds("spread", 5), DrainTimeout: seconds("drain", 6)}
			w.Fails = rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "fails")
			if w.Evictions = seconds("evictions", 40); w.Evictions > 0 {
				w.Notice = seconds("notice", 8)
			}
			o.Pools = append(o.Pools, w)
		}
		build := func() *core.Cluster {
			b := &core.Cluster{Accelerators: []string{"gpu"}, Pools: slices.Clone(pools)}
			for i := range b.Pools {
				for k := range b.Pools[i].Min {
					b.Nodes = append(b.Nodes, core.Node{
						ID: core.NodeID(len(b.Nodes)), Name: fmt.Sprintf("p%d-%d", i, k), Devices: b.Pools[i].Devices, Pool: b.Pools[i].Name,
					})
				}
			}
			return b
		}
		w := &workload.Workload{}
		for i := range 5 {
			w.Jobs = append(w.Jobs, workload.Job{Spec: core.JobSpec{
				ID: core.JobID(i), Name: fmt.Sprint("job-", i), SubmitSeconds: float64(3 * i), Weight: 1,
				Requested: 1 + i%2, MinReplicas: 1 + i%2, MaxReplicas: 1 + i%2, TotalWork: float64(4 + 3*i),
			}})
		}
		scaler := whim{rapid.Uint64().Draw(t, "whim")}
		run := func(b *fake.Backend, c *core.Cluster, most int) *keeper {
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			k := &keeper{T: t, most: most, stop: stop}
			stages := backendtest.FIFO()
			stages.Scaler = core.Component[core.ClusterScaler]{ID: "scaler/whim", Policy: scaler}
			p := core.NewPipeline(c, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 2, OnEvents: true}, Observers: []core.Observer{k}, Scaling: b})
			if err := p.Run(ctx, b); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			return k
		}
		cluster := build()
		b := fake.Open(cluster, w, o)
		first := run(b, cluster, rapid.IntRange(2, 30).Draw(t, "rounds"))
		cluster = build()
		if err := b.RestartOn(cluster, "one"); err != nil {
			t.Fatal(err)
		}
		second := run(b, cluster, 80)
		if n := len(first.rounds); len(second.rounds) < n || !slices.Equal(first.rounds, second.rounds[:n]) {
			t.Fatalf("the rounds before (-first +second)\n%s", cmp.Diff(first.rounds, second.rounds[:min(n, len(second.rounds))]))
		}
		if second.ended > 0 {
			began++
		}
	})
	if began == 0 {
		t.Error("no job ever ended: the test shows nothing")
	}
}
