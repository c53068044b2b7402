package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
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
	hours map[string]float64
	held  float64 // node seconds of all pools
	now   float64
	jobs  map[core.JobID][]core.Seat
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
				p.hours[c.Nodes[e.Node].Pool] += e.AtSeconds - from
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
		seconds := func(most int, what string) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, what)) * time.Second
		}
		c := &core.Cluster{Accelerators: []string{"t4"}}
		config := Config{StallAfter: 10 * time.Hour, RestartOverhead: seconds(20, "overhead"), ReleaseDelay: seconds(5, "release")}
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
		if len(c.Nodes) == 0 {
			c.Nodes = append(c.Nodes, core.Node{Name: "own", Devices: 4}) // of no pool
		}
		if err := config.Validate(); err != nil {
			t.Fatal(err)
		}
		jobs := &workload.Workload{}
		for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
			work := float64(rapid.IntRange(1, 300).Draw(t, "work"))
			jobs.Jobs = append(jobs.Jobs, workload.Job{
				Spec: core.JobSpec{
					ID: core.JobID(i), Name: fmt.Sprint(i), SubmitSeconds: float64(20 * i), Weight: 1, TotalWork: work, Requested: 1, MinReplicas: 1, MaxReplicas: 1,
				},
				Model: workload.NewDurationModel(work, 1),
			})
		}
		seed := rapid.Uint64().Draw(t, "seed")
		backend, err := (&opener{config, core.Settings{ID: "sim", Seed: seed, Rand: core.NewRand(seed, "sim")}}).Open(t.Context(), c, jobs)
		if err != nil {
			t.Fatal(err)
		}
		stages := backendtest.FIFO()
		stages.Scaler = core.Component[core.ClusterScaler]{ID: "scaler/whim", Policy: &whim{rand: rand.New(rand.NewPCG(seed, 1)), least: 1}}
		bill := metrics.NewCollector(metrics.Components{}, metrics.Outputs{})
		is := &pooled{T: t, ready: map[core.NodeID]float64{}, hours: map[string]float64{}, jobs: map[core.JobID][]core.Seat{}}
		for id, n := range c.Nodes {
			if n.Pool != "" {
				is.ready[core.NodeID(id)] = 0
			}
		}
		p := core.NewPipeline(c, stages, core.RoundOptions{IntervalSeconds: 10}, nil, is, bill)
		p.ScaleBy(&scales{
			Scaling: backend.(core.Scaling), T: t, cluster: c, now: p.NowSeconds, changed: map[string]float64{}, grown: map[string]float64{},
		})
		if err := p.Run(t.Context(), backend); err != nil {
			t.Fatal(err)
		}
		if left := p.Unfinished(); len(left) > 0 {
			t.Fatalf("%d jobs never ended, the first of them waits for %v", len(left), left[0].WaitingReason)
		}
		s, err := bill.Finish(nil, p.NowSeconds())
		if err != nil {
			t.Fatal(err)
		}
		for id, from := range is.ready {
			is.hours[c.Nodes[id].Pool] += p.NowSeconds() - from
		}
		idle, paid := 0.0, 0.0
		for _, j := range bill.Jobs() {
			paid -= float64(j.Cost)
		}
		if paid += float64(s.Bill.Cost - s.Bill.IdleCost); math.Abs(paid) > 1e-6 {
			t.Fatalf("the costs of the jobs differ by %v from what is billed and not idle", paid)
		}
		paid = 0
		for _, u := range s.Pools {
			if got, want := float64(u.Cost), is.hours[u.Pool]; math.Abs(got-want) > 1e-6 {
				t.Fatalf("pool %q costs %v, want %v", u.Pool, got, want)
			}
			idle, paid = idle+float64(u.IdleCost), paid+float64(u.Cost)
		}
		if math.Abs(paid-idle-is.held) > 1e-6 {
			t.Fatalf("%v is paid for, %v of it idle, and jobs held %v", paid, idle, is.held)
		}
	})
}
