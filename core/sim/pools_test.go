package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/restart"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/placement"
)

// whim is a scaler that wants anything.
type whim struct {
	rand  *rand.Rand
	least int // nodes that it wants at least
}

func (w *whim) Scale(_ context.Context, v *core.View, _ *core.Plan) (target core.ClusterTarget, _ error) {
	for i := range v.Cluster.Pools {
		p := &v.Cluster.Pools[i]
		if w.rand.IntN(3) == 0 {
			continue // no opinion
		}
		from := max(p.Min, w.least)
		t := core.PoolTarget{Pool: p.Name, Nodes: from + w.rand.IntN(p.Max-from+1)}
		for k := range v.Cluster.Nodes {
			if v.Cluster.Nodes[k].Pool == p.Name && w.rand.IntN(4) == 0 {
				t.Remove = append(t.Remove, core.NodeID(k))
			}
		}
		target.Pools = append(target.Pools, t)
	}
	return target, nil
}

// scales holds what is asked of the simulator to the cool-downs, and to nodes that there are.
type scales struct {
	core.Scaling
	*rapid.T
	cluster        *core.Cluster
	now            func() float64
	changed, grown map[string]float64
}

func (s *scales) Scale(ctx context.Context, round int, targets []core.PoolTarget) error {
	for _, t := range targets {
		p, size := s.cluster.Pool(t.Pool), s.cluster.PoolSize(t.Pool)
		last, wait := s.grown, p.UpCooldownSeconds
		if t.Nodes < size {
			last, wait = s.changed, p.DownCooldownSeconds
			if len(t.Remove) != size-t.Nodes {
				s.Fatalf("%d nodes are to become %d, and %v leave", size, t.Nodes, t.Remove)
			}
		}
		if at, before := last[t.Pool]; before && s.now() < at+wait {
			s.Fatalf("at %v pool %q is changed to %d nodes, after %v and with %v between", s.now(), t.Pool, t.Nodes, at, wait)
		}
		if t.Nodes > p.Max || t.Nodes == size {
			s.Fatalf("pool %q of %d nodes is to have %d", t.Pool, size, t.Nodes)
		}
		if s.changed[t.Pool] = s.now(); t.Nodes > size {
			s.grown[t.Pool] = s.now()
		}
	}
	if err := s.Scaling.Scale(ctx, round, targets); err != nil {
		return err
	}
	return s.Scaling.Scale(ctx, round, targets) // which has no further effect
}

// pooled checks the nodes after each round, and adds up what is paid for on its own.
type pooled struct {
	*rapid.T
	ready map[core.NodeID]float64
	lives map[string][][2]float64 // by pool: from when to when nodes were paid for
	held  float64                 // node seconds of all pools
	now   float64
	jobs  map[core.JobID][]core.Seat
}

func (p *pooled) lived(pool string, from, to float64) {
	p.lives[pool] = append(p.lives[pool], [2]float64{from, to})
}

// paid is for how many seconds nodes of a pool were paid for, and what that came to.
func (p *pooled) paid(pool *core.Pool) (seconds, cost float64) {
	for _, life := range p.lives[pool.Name] {
		seconds += life[1] - life[0]
		moments := []float64{life[0], life[1]}
		for _, later := range pool.Prices {
			moments = append(moments, min(max(later.FromSeconds, life[0]), life[1]))
		}
		slices.Sort(moments)
		for i := 1; i < len(moments); i++ {
			cost += (moments[i] - moments[i-1]) / 3600 * pool.PriceAt((moments[i-1]+moments[i])/2)
		}
	}
	return seconds, cost
}

func (p *pooled) ObserveRound(r *core.Report) error {
	c := r.View.Cluster
	at := func(moment float64) {
		for _, seats := range p.jobs {
			for _, seat := range seats {
				if n := &c.Nodes[seat.Node]; n.Pool != "" {
					p.held += (moment - p.now) * float64(seat.Devices.Count()) / float64(n.Devices)
				}
			}
		}
		p.now = moment
	}
	for i := range r.Events {
		e := &r.Events[i]
		if e.AtSeconds > p.now {
			at(e.AtSeconds)
		}
		switch {
		case e.Kind == core.NodeChanged && e.Health == core.Ready && c.Nodes[e.Node].Pool != "":
			if _, known := p.ready[e.Node]; !known {
				p.ready[e.Node] = e.AtSeconds
			}
		case e.Kind == core.NodeRemoved:
			if from, known := p.ready[e.Node]; known {
				p.lived(c.Nodes[e.Node].Pool, from, e.AtSeconds)
				delete(p.ready, e.Node)
			}
		case e.Kind == core.JobInterrupted, e.Kind == core.JobFinished:
			delete(p.jobs, e.Job)
		}
	}
	at(r.View.NowSeconds)
	for _, change := range r.Changes {
		if delete(p.jobs, change.Job); change.Action == core.Start || change.Action == core.Move {
			p.jobs[change.Job] = change.Seats
		}
	}
	for i := range c.Pools {
		if size := c.PoolSize(c.Pools[i].Name); size > c.Pools[i].Max {
			p.Fatalf("round %d: pool %q has %d nodes, at most %d", r.View.Round, c.Pools[i].Name, size, c.Pools[i].Max)
		}
	}
	for _, j := range r.View.Jobs {
		if j == nil {
			continue
		}
		for _, seat := range j.Seats {
			if j.Pinned && slices.ContainsFunc(r.Scaled, func(t core.PoolTarget) bool { return slices.Contains(t.Remove, seat.Node) }) {
				p.Fatalf("round %d: node %q is to leave, and pinned job %q runs on it", r.View.Round, c.Nodes[seat.Node].Name, j.Name)
			}
			if h := c.Nodes[seat.Node].Health; h == core.Gone || h == core.Provisioning {
				p.Fatalf("round %d: job %q runs on node %q, which is %v", r.View.Round, j.Name, c.Nodes[seat.Node].Name, h)
			}
		}
	}
	return nil
}

// Whatever a scaler wants, and whatever a provider does: bounds and cool-downs hold, no job is on a node that is not there, all jobs end
// while there are nodes, and the bill is that of the nodes that were there.
func TestPoolsUnderAnyScaler(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &core.Cluster{Accelerators: []string{"t4"}}
		config := drawPools(t, c)
		if len(c.Nodes) == 0 {
			c.Nodes = append(c.Nodes, core.Node{Name: "own", Devices: 4}) // of no pool
		}
		jobs := drawJobs(t, func(*core.JobSpec) {})
		if left := runUnderWhim(t, c, config, jobs, backendtest.FIFO()); len(left) > 0 {
			t.Fatalf("%d jobs never ended, the first of them waits for %v", len(left), left[0].WaitingReason)
		}
	})
}

// The same of pools of several types, of one node or none, at prices that change, with jobs of several replicas that are bound to types, pinned, or mix
// types. A job that ends unfinished waits in vain.
func TestPoolsOfAnyKindUnderAnyScaler(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &core.Cluster{Accelerators: []string{"t4", "v100", "a100"}[:rapid.IntRange(1, 3).Draw(t, "types")]}
		accelerator := rapid.IntRange(0, len(c.Accelerators)-1)
		for i := range rapid.IntRange(0, 2).Draw(t, "own nodes") {
			c.Nodes = append(c.Nodes, core.Node{
				ID: core.NodeID(i), Name: fmt.Sprint("own-", i), Devices: rapid.IntRange(1, 4).Draw(t, "devices"), Accelerator: core.AcceleratorID(accelerator.Draw(t, "type")),
			})
		}
		config := drawPools(t, c)
		config.StallAfter = 30 * time.Minute // many jobs are too large, and wait until then
		for i := range c.Pools {
			p := &c.Pools[i]
			p.Accelerator = core.AcceleratorID(accelerator.Draw(t, "type"))
			for k := range c.Nodes {
				if c.Nodes[k].Pool == p.Name {
					c.Nodes[k].Accelerator = p.Accelerator
				}
			}
			p.PricePerHour = rapid.SampledFrom([]float64{0, 1, 3600}).Draw(t, "price")
			for range rapid.IntRange(0, 3).Draw(t, "prices") {
				from := float64(rapid.IntRange(0, 300).Draw(t, "later"))
				if n := len(p.Prices); n > 0 {
					from += p.Prices[n-1].FromSeconds + 0.5
				}
				p.Prices = append(p.Prices, core.Price{FromSeconds: from, PerHour: rapid.SampledFrom([]float64{0, 7, 3600, 1e9}).Draw(t, "later price")})
			}
		}
		jobs := drawJobs(t, func(j *core.JobSpec) {
			j.Requested = rapid.IntRange(1, 6).Draw(t, "replicas")
			j.MinReplicas, j.MaxReplicas, j.Pinned = j.Requested, j.Requested, rapid.Bool().Draw(t, "pinned")
			if rapid.Bool().Draw(t, "bound to a type") {
				j.Accelerators = []string{c.Accelerators[accelerator.Draw(t, "its type")]}
			}
			j.MixesTypes = rapid.IntRange(0, 3).Draw(t, "mixes types") == 0
		})
		stages := core.Stages{
			Admission:  backendtest.FIFO().Admission,
			Allocation: component(t, "allocation/fifo", allocation.NewFIFO()),
			Placement:  component(t, "placement/first_fit", placement.NewFirstFit()),
			Elasticity: component(t, "elasticity/fixed", elasticity.NewFixed()),
		}
		runUnderWhim(t, c, config, jobs, stages)
	})
}

func component[S any](t *rapid.T, id string, f core.Factory[S]) core.Component[S] {
	config, problems := f.Decode(nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	policy, err := f.New(config, core.Settings{ID: id, Rand: core.NewRand(1, id), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return core.Component[S]{ID: id, Policy: policy}
}

// drawPools adds one to three pools to a cluster, and the nodes that they begin with.
func drawPools(t *rapid.T, c *core.Cluster) Config {
	seconds := func(most int, what string) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, what)) * time.Second
	}
	config := Config{StallAfter: 10 * time.Hour, Cost: restart.Cost{RestartOverhead: seconds(20, "overhead")}, ReleaseDelay: seconds(5, "release")}
	for i := range rapid.IntRange(1, 3).Draw(t, "pools") {
		p := core.Pool{Name: fmt.Sprint("pool", i), Devices: rapid.IntRange(1, 4).Draw(t, "devices"), PricePerHour: 3600}
		p.Max = rapid.IntRange(1, 5).Draw(t, "most")
		p.Min = rapid.IntRange(0, p.Max).Draw(t, "least")
		p.UpCooldownSeconds, p.DownCooldownSeconds = seconds(100, "up").Seconds(), seconds(100, "down").Seconds()
		for k := range p.Min {
			c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(len(c.Nodes)), Name: fmt.Sprintf("%s-%d", p.Name, k), Devices: p.Devices, Pool: p.Name})
		}
		c.Pools = append(c.Pools, p)
		w := Pool{Pool: p.Name, Provisioning: seconds(60, "provisioning"), Spread: seconds(60, "spread"), DrainTimeout: seconds(60, "drain")}
		if rapid.Bool().Draw(t, "spot") {
			w.Notice = seconds(60, "notice")
			w.Evictions = w.Notice + 30*time.Second + seconds(600, "evictions") // longer, or hardly a node is ever ready without notice
		}
		if rapid.Bool().Draw(t, "fails") {
			w.Fails = 0.5
		}
		config.Pools = append(config.Pools, w)
	}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	return config
}

// drawJobs makes up to six jobs of up to five minutes on one device, as a draw changes them.
func drawJobs(t *rapid.T, draw func(*core.JobSpec)) *workload.Workload {
	jobs := &workload.Workload{}
	for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
		work := float64(rapid.IntRange(1, 300).Draw(t, "work"))
		spec := core.JobSpec{ID: core.JobID(i), Name: fmt.Sprint(i), SubmitSeconds: float64(20 * i), Weight: 1, TotalWork: work, Requested: 1, MinReplicas: 1, MaxReplicas: 1}
		draw(&spec)
		jobs.Jobs = append(jobs.Jobs, workload.Job{Spec: spec, Model: workload.NewDurationModel(work, spec.Requested)})
	}
	return jobs
}

// runUnderWhim runs jobs under a scaler that wants anything, and holds the bill to what was seen. It returns the jobs that wait in vain.
func runUnderWhim(t *rapid.T, c *core.Cluster, config Config, jobs *workload.Workload, stages core.Stages) []*core.Job {
	seed := rapid.Uint64().Draw(t, "seed")
	backend, err := (&opener{config, core.Settings{ID: "sim", Seed: seed, Rand: core.NewRand(seed, "sim")}}).Open(t.Context(), c, jobs)
	if err != nil {
		t.Fatal(err)
	}
	stages.Scaler = core.Component[core.ClusterScaler]{ID: "scaler/whim", Policy: &whim{rand: rand.New(rand.NewPCG(seed, 1)), least: 1}}
	bill := metrics.NewCollector(metrics.Components{}, metrics.Outputs{})
	is := &pooled{T: t, ready: map[core.NodeID]float64{}, lives: map[string][][2]float64{}, jobs: map[core.JobID][]core.Seat{}}
	for id, n := range c.Nodes {
		if n.Pool != "" {
			is.ready[core.NodeID(id)] = 0
		}
	}
	var p *core.Pipeline
	p = core.NewPipeline(c, stages, core.PipelineOptions{
		Rounds:    core.RoundOptions{IntervalSeconds: 10},
		Observers: []core.Observer{is, bill},
		Scaling: &scales{
			Scaling: backend.(core.Scaling), T: t, cluster: c, now: func() float64 { return p.NowSeconds() }, changed: map[string]float64{}, grown: map[string]float64{},
		},
	})
	if err := p.Run(t.Context(), backend); err != nil {
		t.Fatal(err)
	}
	left, end := p.Unfinished(), p.NowSeconds()
	if sim := backend.(*Simulator); len(left) > 0 && !sim.inVain(end+10) && !math.IsInf(sim.nextEvent(), 1) {
		t.Fatalf("%d jobs are left at %v s, and the time is not up", len(left), end)
	}
	s, err := bill.Finish(left, end)
	if err != nil {
		t.Fatal(err)
	}
	for id, from := range is.ready {
		is.lived(c.Nodes[id].Pool, from, end)
	}
	differ := func(a, b float64) bool { return math.Abs(a-b) > 1e-9*max(math.Abs(a), math.Abs(b))+1e-6 }
	jobCosts, seconds, idle := 0.0, 0.0, 0.0
	for _, j := range bill.Jobs() {
		jobCosts += float64(j.Cost)
	}
	if all := float64(s.Bill.Cost - s.Bill.IdleCost); differ(jobCosts, all) {
		t.Fatalf("the jobs cost %v, and %v is billed and not idle", jobCosts, all)
	}
	for i, u := range s.Pools {
		wantSeconds, want := is.paid(&c.Pools[i])
		if u.Pool != c.Pools[i].Name || differ(float64(u.Cost), want) || differ(float64(u.NodeHours)*3600, wantSeconds) {
			t.Fatalf("pool %q costs %v for %v h, want %v for %v s", u.Pool, u.Cost, u.NodeHours, want, wantSeconds)
		}
		if u.IdleCost < 0 || u.IdleCost > u.Cost || u.IdleNodeHours < 0 || u.IdleNodeHours > u.NodeHours || u.MostNodes < 0 {
			t.Fatalf("%+v", u)
		}
		seconds, idle = seconds+wantSeconds, idle+float64(u.IdleNodeHours)*3600
	}
	if differ(seconds-idle, is.held) {
		t.Fatalf("%v node seconds are paid for, %v of them idle, and jobs held %v", seconds, idle, is.held)
	}
	return left
}
