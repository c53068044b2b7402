package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// provider is a simulator with a pool p of nodes of two devices, of which some are there, and a job that never ends.
type provider struct {
	*testing.T
	*Simulator
}

func newProvider(t *testing.T, world Pool, start int, seed uint64) *provider {
	t.Helper()
	c := &core.Cluster{Accelerators: []string{"t4"}, Pools: []core.Pool{{Name: "other", Devices: 1}, {Name: "p", Devices: 2, Max: 4, CPUs: 8, MemoryGB: 16}}}
	for i := range start {
		c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("p-%d", i), Devices: 2, Pool: "p"})
	}
	c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(start), Name: "own", Devices: 2})
	world.Pool = "p"
	config := Config{StallAfter: 1e6 * time.Second, ReleaseDelay: 3 * time.Second, Pools: []Pool{world}}
	jobs := &workload.Workload{Jobs: []workload.Job{{
		Spec:  core.JobSpec{Name: "j", Weight: 1, TotalWork: 1e6, Requested: 1, MinReplicas: 1, MaxReplicas: 1},
		Model: workload.NewDurationModel(1e6, 1),
	}}}
	b, err := (&opener{config, core.Settings{ID: "sim", Seed: seed, Rand: core.NewRand(seed, "sim")}}).Open(t.Context(), c, jobs)
	if err != nil {
		t.Fatal(err)
	}
	return &provider{t, b.(*Simulator)}
}

// until is what became of nodes up to a moment.
func (p *provider) until(seconds float64) (told []string) {
	p.Helper()
	var events []core.Event
	for now := -1.0; now < seconds; {
		seen, err := p.Next(p.Context(), core.Wake{BySeconds: seconds, IntervalSeconds: 1})
		if err != nil {
			p.Fatal(err)
		}
		now = seen.NowSeconds
		events = append(events, seen.Events...)
	}
	for i := range events {
		switch e := &events[i]; e.Kind {
		case core.NodeAdded:
			told = append(told, fmt.Sprintf("%g node %d %s of %s with %d %s is %s", e.AtSeconds, e.Node, e.Added.Name, e.Added.Pool, e.Added.Devices, e.Added.Accelerator, e.Added.Health))
		case core.NodeChanged:
			told = append(told, fmt.Sprintf("%g node %d is %s", e.AtSeconds, e.Node, e.Health))
		case core.NodeRemoved:
			told = append(told, fmt.Sprintf("%g node %d is gone", e.AtSeconds, e.Node))
		case core.JobInterrupted:
			told = append(told, fmt.Sprintf("%g job %d is interrupted", e.AtSeconds, e.Job))
		}
	}
	return told
}

func (p *provider) wants(nodes int, remove ...core.NodeID) {
	p.Helper()
	if err := p.Scale(p.Context(), 0, []core.PoolTarget{{Pool: "p", Nodes: nodes, Remove: remove}}); err != nil {
		p.Fatal(err)
	}
}

// starts runs the job on a device of a node.
func (p *provider) starts(action core.Action, node core.NodeID) {
	p.Helper()
	seats := []core.Seat{{Node: node, Devices: 1}}
	if err := p.Apply(p.Context(), []core.Change{{Action: action, Job: 0, Seats: seats}}); err != nil {
		p.Fatal(err)
	}
}

func (p *provider) wantEvents(seconds float64, want ...string) {
	p.Helper()
	if diff := cmp.Diff(want, p.until(seconds)); diff != "" {
		p.Errorf("up to %v s (-want +got):\n%s", seconds, diff)
	}
}

func TestNodesOfAPoolCome(t *testing.T) {
	p := newProvider(t, Pool{Provisioning: 90 * time.Second}, 1, 1)
	p.wantEvents(10)
	if !p.devices.known.MayGrow {
		t.Error("the pool may not grow, with one node of four")
	}
	p.wants(3)
	p.wants(3) // those that come count
	p.wantEvents(20, "10 node 2 p-1 of p with 2 t4 is provisioning", "10 node 3 p-2 of p with 2 t4 is provisioning")
	p.wantEvents(99)
	p.wantEvents(100, "100 node 2 is ready", "100 node 3 is ready")
	p.wants(4)
	p.wantEvents(150, "100 node 4 p-3 of p with 2 t4 is provisioning")
	p.wants(3, 4) // it has not come yet
	p.wantEvents(400, "150 node 4 is gone")
	if !p.devices.known.MayGrow {
		t.Error("the pool may not grow, with three nodes of four")
	}
	p.wants(4)
	p.until(500)
	if p.devices.known.MayGrow {
		t.Error("the pool may grow, with four nodes of four")
	}
	p.wants(3, 5)
	if !p.devices.known.MayGrow {
		t.Error("the pool may not grow again")
	}
	if err := p.Scale(t.Context(), 0, []core.PoolTarget{{Pool: "nobody's", Nodes: 1}}); err == nil || !strings.Contains(err.Error(), "nobody's") {
		t.Errorf("a pool that is not there: %v", err)
	}
}

func TestNodesOfAPoolGo(t *testing.T) {
	for name, tc := range map[string]struct {
		world Pool
		moves float64 // when the job moves to the node of no pool; 0 for never
		want  []string
	}{
		"an empty one at once, another when its job is gone and has let go": {
			Pool{}, 50, []string{"10 node 1 is draining", "10 node 0 is draining", "10 node 1 is gone", "53 node 0 is gone"},
		},
		"the job does not go": {
			Pool{}, 0, []string{"10 node 1 is draining", "10 node 0 is draining", "10 node 1 is gone"},
		},
		"the job does not go in time": {
			Pool{DrainTimeout: 100 * time.Second},
			0,
			[]string{"10 node 1 is draining", "10 node 0 is draining", "10 node 1 is gone", "110 node 0 is gone", "110 job 0 is interrupted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, tc.world, 2, 1)
			p.until(0)
			p.starts(core.Start, 0)
			got := p.until(10)
			p.wants(0, 1, 0)
			if tc.moves > 0 {
				got = append(got, p.until(tc.moves)...)
				p.starts(core.Move, 2)
			}
			got = append(got, p.until(300)...)
			slices.Sort(got)
			want := slices.Sorted(slices.Values(tc.want))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Of many nodes about the part fails that is to, all come within the spread, and evictions have their mean and their notice.
func TestChanceOfAPool(t *testing.T) {
	const runs = 4000
	failed, ready, lives := 0, 0, 0.0
	least, most := math.Inf(1), 0.0
	for seed := range uint64(runs) {
		p := newProvider(t, Pool{Provisioning: 60 * time.Second, Spread: 40 * time.Second, Fails: 0.25, Evictions: 1000 * time.Second, Notice: 20 * time.Second}, 0, seed)
		p.until(0)
		p.wants(1)
		var began, notice, gone float64
		for _, e := range p.until(50_000) {
			var at float64
			if _, err := fmt.Sscan(e, &at); err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.HasSuffix(e, "is ready"):
				began = at
			case strings.HasSuffix(e, "is draining"):
				notice = at
			case strings.HasSuffix(e, "is gone"):
				gone = at
			}
		}
		if began == 0 {
			if failed++; gone < 60 || gone > 100 || notice > 0 {
				t.Errorf("seed %d: a node that does not come is known to at %v, and draining at %v", seed, gone, notice)
			}
			continue
		}
		ready++
		least, most = min(least, began), max(most, began)
		if want := max(began, gone-20); math.Abs(notice-want) > 1e-9 {
			t.Errorf("seed %d: notice at %v of the end at %v, ready at %v", seed, notice, gone, began)
		}
		lives += gone - began
	}
	if failed < runs*23/100 || failed > runs*27/100 {
		t.Errorf("%d of %d do not come, want a quarter", failed, runs)
	}
	if least < 60 || least > 63 || most > 100 || most < 97 {
		t.Errorf("they come after %v to %v s, want 60 to 100", least, most)
	}
	if mean := lives / float64(ready); mean < 940 || mean > 1060 {
		t.Errorf("they are there for %v s on average, want 1,000", mean)
	}
	// Nodes that are there at the beginning are taken away too.
	if p := newProvider(t, Pool{Evictions: time.Second}, 2, 1); len(p.until(1000)) != 2 {
		t.Error("not both nodes were taken away")
	}
	if p := newProvider(t, Pool{}, 2, 1); len(p.until(100_000)) != 0 {
		t.Error("nodes went that nobody takes away")
	}
}

func TestPoolsOfAConfig(t *testing.T) {
	c := Config{Pools: []Pool{{Pool: "p", Notice: time.Second}, {Pool: "p"}}}
	var got []string
	for _, err := range c.checkPools() {
		got = append(got, err.Error())
	}
	if want := []string{"pools[0].notice: needs evictions", `pools[1].pool: pool "p" is listed twice`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	c = Config{Pools: []Pool{{Pool: "spots", Evictions: time.Second, Notice: time.Second}}, JoiningNodes: make([]JoiningNodes, 1), Publication: Publication{Progress: perRound}}
	pools := &core.Cluster{Pools: []core.Pool{{Name: "spot"}}}
	if problems := c.checkPools(); len(problems) > 0 {
		t.Errorf("%v", problems)
	}
	got = nil
	for _, d := range c.checkPoolNames(pools) {
		got = append(got, d.Path+": "+d.Summary)
	}
	if want := []string{`pools[0].pool: unknown pool "spots"`, "joining_nodes: cannot be used in a cluster with pools", "publication.progress: per_round knows no pools"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	c.Pools = nil
	if ds := c.checkPoolNames(&core.Cluster{}); len(ds) > 0 {
		t.Errorf("without pools: %v", ds)
	}
}
