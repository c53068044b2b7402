package sia

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
)

// newAllocator makes one with the default configuration changed.
func newAllocator(t testing.TB, change func(*Config)) core.Allocator {
	t.Helper()
	c := Default
	if change != nil {
		change(&c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	a, err := New().New(&c, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// world is a cluster and its jobs.
type world struct {
	view       core.View
	candidates []core.Candidate
}

// newWorld has nodes[t] nodes of devices[t] devices for each type t.
func newWorld(nodes, devices []int) *world {
	w := &world{view: core.View{NowSeconds: 3600, IntervalSeconds: 60, Cluster: &core.Cluster{}}}
	for t := range nodes {
		w.view.Cluster.Accelerators = append(w.view.Cluster.Accelerators, fmt.Sprintf("type%d", t))
		for range nodes[t] {
			id := core.NodeID(len(w.view.Cluster.Nodes))
			w.view.Cluster.Nodes = append(w.view.Cluster.Nodes, core.Node{
				ID: id, Name: fmt.Sprintf("n%d", id), Accelerator: core.AcceleratorID(t), Devices: devices[t],
			})
		}
	}
	return w
}

// add adds a job with a curve for each type, as fast across nodes as on one.
func (w *world) add(least, most int, curves ...[]float64) *core.Job {
	id := core.JobID(len(w.view.Jobs))
	j := core.NewJob(&core.JobSpec{ID: id, Name: fmt.Sprintf("j%d", id), Requested: least, MinReplicas: least, MaxReplicas: most})
	j.State = core.Waiting
	r := &core.Response{Job: id, MinReplicas: least, MaxReplicas: most, RemainingWork: math.NaN()}
	for _, rates := range curves {
		r.Curves = append(r.Curves, core.Curve{OneNode: rates, ManyNodes: rates})
	}
	w.view.Jobs, w.view.Active = append(w.view.Jobs, j), append(w.view.Active, id)
	w.candidates = append(w.candidates, core.Candidate{Job: j, Response: r})
	return j
}

func run(j *core.Job, seats ...core.Seat) {
	j.State, j.Seats, j.Held = core.Running, seats, core.Replicas(seats)
}

func seat(node int, devices core.DeviceSet) core.Seat {
	return core.Seat{Node: core.NodeID(node), Devices: devices}
}

// linear is a curve that grows with every replica.
func linear(each float64) []float64 {
	rates := make([]float64, 64)
	for i := range rates {
		rates[i] = each * float64(i+1)
	}
	return rates
}

// flat is a curve of jobs that gain nothing from replicas.
func flat(rate float64) []float64 {
	rates := make([]float64, 64)
	for i := range rates {
		rates[i] = rate
	}
	return rates
}

func TestAllocates(t *testing.T) {
	type grants = map[core.JobID][]core.Seat
	cases := map[string]struct {
		nodes, devices []int
		change         func(*Config)
		jobs           func(*world)
		want           grants
	}{
		"a lone job gets whole nodes of the type that suits it": {
			[]int{2, 3},
			[]int{4, 4},
			nil,
			func(w *world) { w.add(1, 64, linear(1), linear(2)) },
			grants{0: {seat(2, 0xf), seat(3, 0xf), seat(4, 0xf)}},
		},
		"each job where it is comparatively better": {
			[]int{1, 1},
			[]int{4, 4},
			nil,
			func(w *world) { w.add(1, 4, linear(1), linear(9)); w.add(1, 4, linear(4), linear(5)) },
			grants{0: {seat(1, 0xf)}, 1: {seat(0, 0xf)}},
		},
		"a power of two on one node": {
			[]int{1},
			[]int{8},
			nil,
			func(w *world) { w.add(1, 7, linear(1)) },
			grants{0: {seat(0, 0xf)}},
		},
		"a rigid job has its size on either type": {
			[]int{1, 1},
			[]int{4, 4},
			nil,
			func(w *world) { w.add(3, 3, linear(1), linear(2)) },
			grants{0: {seat(1, 0x7)}},
		},
		"rigid, strong-scaling and elastic jobs side by side": {
			[]int{1, 1},
			[]int{4, 4},
			nil,
			func(w *world) {
				w.add(2, 2, linear(1), linear(1))
				w.add(1, 64, linear(1), linear(4))
				w.add(1, 1, flat(1), flat(1))
			},
			grants{0: {seat(0, 0x3)}, 1: {seat(1, 0xf)}, 2: {seat(0, 0x4)}},
		},
		"a type that a job cannot run on is not offered": {
			[]int{1, 1},
			[]int{4, 4},
			nil,
			func(w *world) { w.add(1, 4, linear(1), linear(9)).Accelerators = []string{"type0"} },
			grants{0: {seat(0, 0xf)}},
		},
		"equal configurations are not worth a move": {
			[]int{1, 1},
			[]int{4, 4},
			nil,
			func(w *world) { run(w.add(1, 4, flat(1), flat(1)), seat(1, 0x8)) },
			grants{0: {seat(1, 0x8)}},
		},
		"a job moves to a faster type": {
			[]int{1, 1},
			[]int{1, 1},
			nil,
			func(w *world) { run(w.add(1, 1, linear(1), linear(9)), seat(0, 0x1)) },
			grants{0: {seat(1, 0x1)}},
		},
		"unless it does not see types": {
			[]int{1, 1},
			[]int{1, 1},
			func(c *Config) { c.Types = blindTypes },
			func(w *world) { run(w.add(1, 1, linear(1), linear(9)), seat(0, 0x1)) },
			grants{0: {seat(0, 0x1)}},
		},
		"a type where it cannot run it sees even so": {
			[]int{1, 1},
			[]int{1, 1},
			func(c *Config) { c.Types = blindTypes },
			func(w *world) { w.add(1, 1, flat(0), linear(1)) },
			grants{0: {seat(1, 0x1)}},
		},
		"a young job does not move for little": {
			[]int{2},
			[]int{4},
			nil,
			func(w *world) {
				j := w.add(1, 8, linear(1))
				j.SubmitSeconds, j.Restarts = 3540, 1
				w.candidates[0].Response.Curves[0].OneNode = []float64{1, 1.1, 1.1, 1.1}
				w.candidates[0].Response.Curves[0].ManyNodes = flat(1.1)
				run(j, seat(1, 0x8))
			},
			grants{0: {seat(1, 0x8)}},
		},
		"a device that broke ends a restart": {
			[]int{1, 1},
			[]int{4, 2},
			nil,
			func(w *world) {
				w.view.Cluster.Nodes[0].Unusable = 0x2
				j := w.add(2, 2, linear(1), linear(9))
				j.ProgressAsOf = 3630
				run(j, seat(0, 0x3))
			},
			grants{0: {seat(1, 0x3)}},
		},
		"a node is whole without the devices that broke": {
			[]int{3},
			[]int{4},
			nil,
			func(w *world) {
				w.view.Cluster.Nodes[0].Unusable, w.view.Cluster.Nodes[1].Unusable, w.view.Cluster.Nodes[2].Unusable = 0x3, 0xd, 0x3
				w.add(4, 4, linear(1))
			},
			grants{0: {seat(0, 0xc), seat(1, 0x2), seat(2, 0x4)}},
		},
		"a job that is restarting keeps what it has": {
			[]int{2},
			[]int{4},
			nil,
			func(w *world) {
				j := w.add(1, 8, linear(1))
				j.ProgressAsOf = 3630
				run(j, seat(1, 0x8))
			},
			grants{0: {seat(1, 0x8)}},
		},
		"unless it may not": {
			[]int{2},
			[]int{4},
			func(c *Config) { c.FinishRestarts = false },
			func(w *world) {
				j := w.add(1, 8, linear(1))
				j.ProgressAsOf = 3630
				run(j, seat(1, 0x8))
			},
			grants{0: {seat(0, 0xf), seat(1, 0xf)}},
		},
		"or its node has failed": {
			[]int{2},
			[]int{4},
			nil,
			func(w *world) {
				j := w.add(1, 8, linear(1))
				j.ProgressAsOf = 3630
				run(j, seat(1, 0x8))
				w.view.Cluster.Nodes[1].Health = core.Draining
			},
			grants{0: {seat(0, 0xf)}},
		},
		"a larger job takes the place of a smaller one, which moves": {
			[]int{2},
			[]int{4},
			nil,
			func(w *world) {
				run(w.add(2, 2, linear(1)), seat(0, 0x3))
				run(w.add(2, 2, linear(1)), seat(1, 0xc))
				w.add(4, 4, linear(1))
			},
			grants{2: {seat(0, 0xf)}, 1: {seat(1, 0xc)}, 0: {seat(1, 0x3)}},
		},
		"a pinned job keeps its devices, whoever would need them": {
			[]int{2},
			[]int{4},
			nil,
			func(w *world) {
				for node := range 2 {
					j := w.add(1, 4, linear(1))
					j.Pinned = true
					run(j, seat(node, 0x2))
				}
				w.add(4, 4, linear(1))
				w.add(2, 2, linear(1))
			},
			grants{0: {seat(0, 0x2)}, 1: {seat(1, 0x2)}, 2: {seat(0, 0xd), seat(1, 0x1)}, 3: {seat(1, 0xc)}},
		},
		"a job spans no more nodes than it may": {
			[]int{3},
			[]int{4},
			func(c *Config) { c.MostNodes = []MostNodes{{"type0", 2}} },
			func(w *world) { w.add(1, 64, linear(1)) },
			grants{0: {seat(0, 0xf), seat(1, 0xf)}},
		},
		"the shorter overhead of its application": {
			[]int{1},
			[]int{2},
			func(c *Config) {
				c.RestartOverhead, c.ApplicationOverhead = time.Hour, []restart.Application{{Application: "quick"}}
			},
			func(w *world) {
				for _, application := range []string{"slow", "quick"} {
					j := w.add(1, 2, linear(1))
					j.Application, j.Restarts = application, 1
				}
				run(w.view.Jobs[1], seat(0, 0x1))
				w.candidates = w.candidates[1:]
			},
			grants{1: {seat(0, 0x3)}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tc.nodes, tc.devices)
			tc.jobs(w)
			granted, err := newAllocator(t, tc.change).Allocate(t.Context(), &w.view, w.candidates)
			if err != nil {
				t.Fatal(err)
			}
			got := grants{}
			for _, g := range granted {
				got[g.Job] = g.Proposed
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("seats (-want +got):\n%s", diff)
			}
		})
	}
}

// Blind to types, it does not matter which of them a job is fast on: rates count by the devices that there are.
func TestBlindRates(t *testing.T) {
	w := newWorld([]int{1, 1, 1}, []int{1, 3, 4})
	w.add(1, 1, flat(8), flat(4), flat(100)).Accelerators = []string{"type0", "type1"}
	p := newAllocator(t, func(c *Config) { c.Types = blindTypes }).(*allocator)
	p.survey(w.view.Cluster)
	for accelerator := range core.AcceleratorID(2) {
		if got := p.rate(w.view.Cluster, &w.candidates[0], accelerator, 1); got != 5 {
			t.Errorf("rate %v on type %d, want (1·8 + 3·4)/4", got, accelerator)
		}
	}
}

// As published, a job that was restarted often and now gains little is left idle; clamped, it runs.
func TestClampRestarts(t *testing.T) {
	for _, clamp := range []bool{false, true} {
		w := newWorld([]int{1, 1}, []int{1, 1})
		j := w.add(1, 1, flat(1), flat(1))
		j.Restarts = 60
		run(j, seat(1, 1))
		w.view.Cluster.Nodes[1].Health = core.Down // it must move
		grants, err := newAllocator(t, func(c *Config) { c.ClampRestarts = clamp }).Allocate(t.Context(), &w.view, w.candidates)
		if err != nil {
			t.Fatal(err)
		}
		if runs := len(grants) == 1; runs != clamp {
			t.Errorf("clamped %v, runs %v", clamp, runs)
		}
	}
}

func TestValidates(t *testing.T) {
	c := Default
	c.WaitingPenalty = 1
	c.ApplicationOverhead = []restart.Application{{Application: "a"}, {Application: "a", Overhead: 1}}
	c.MostNodes = []MostNodes{{"t", 1}, {"t", 2}}
	want := "waiting_penalty: must be above 1, or no job would run\n" +
		"application_overhead[1].application: application \"a\" is listed twice\nmost_nodes[1].accelerator: \"t\" is listed twice"
	if err := c.Validate(); err == nil || err.Error() != want {
		t.Errorf("problems %v, want %s", err, want)
	}
}

// An overhead of an application that is left out is no overhead of nothing.
func TestApplicationsNameTheirOverhead(t *testing.T) {
	item := func(keys map[string]any) map[string]any {
		return map[string]any{"application_overhead": []any{keys}}
	}
	for name, tc := range map[string]struct {
		raw  map[string]any
		want string
	}{
		"whole":               {item(map[string]any{"application": "a", "overhead": "0s"}), ""},
		"without an overhead": {item(map[string]any{"application": "a"}), "application_overhead[0].overhead: required but missing"},
		"without a name":      {item(map[string]any{"overhead": "5s"}), "application_overhead[0].application: required but missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, found := New().Decode(tc.raw)
			got := ""
			for _, d := range found {
				got += d.Path + ": " + d.Summary
			}
			if got != tc.want {
				t.Errorf("problems %q, want %q", got, tc.want)
			}
		})
	}
}

// randomWorld draws jobs of all kinds, of which some run.
func randomWorld(t *rapid.T) *world {
	types := rapid.IntRange(1, 3).Draw(t, "types")
	nodes, devices := make([]int, types), make([]int, types)
	for i := range nodes {
		nodes[i], devices[i] = rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.SampledFrom([]int{1, 2, 3, 4}).Draw(t, "devices")
	}
	w := newWorld(nodes, devices)
	var ledger core.Ledger
	ledger.Reset(w.view.Cluster)
	for range rapid.IntRange(1, 5).Draw(t, "jobs") {
		least := rapid.IntRange(1, 3).Draw(t, "least")
		var curves [][]float64
		for range types {
			rates := linear(1)
			scale, power := rapid.Float64Range(0.1, 10).Draw(t, "scale"), rapid.Float64Range(0, 1).Draw(t, "power")
			for k := range rates {
				rates[k] = scale * math.Pow(rates[k], power)
			}
			curves = append(curves, rates)
		}
		j := w.add(least, least*rapid.IntRange(1, 5).Draw(t, "times"), curves...)
		j.SubmitSeconds, j.Restarts = rapid.Float64Range(0, 3600).Draw(t, "submitted"), rapid.IntRange(0, 20).Draw(t, "restarts")
		node := core.NodeID(rapid.IntRange(0, len(w.view.Cluster.Nodes)-1).Draw(t, "node"))
		if held := rapid.IntRange(0, 4).Draw(t, "held"); held >= least && held <= ledger.Free(node) {
			run(j, ledger.Take(node, held))
			if rapid.Bool().Draw(t, "restarting") {
				j.ProgressAsOf = 3601
			}
		}
	}
	return w
}

// All grants have seats of their own, and the plan is worth as much as the best of all plans.
func TestPlansAreBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := randomWorld(t)
		c := Default
		c.Gap = 0
		c.Power = rapid.SampledFrom([]float64{-2, -0.5, 0, 1}).Draw(t, "power")
		made, err := New().New(&c, core.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		p := made.(*allocator)
		grants, err := p.Allocate(t.Context(), &w.view, w.candidates)
		if err != nil {
			t.Fatal(err)
		}
		var ledger core.Ledger
		ledger.Reset(w.view.Cluster)
		got, granted := 0.0, map[core.JobID]bool{}
		for _, g := range grants {
			if granted[g.Job] || core.Replicas(g.Proposed) != g.Replicas || !ledger.Occupy(g.Proposed) {
				t.Fatalf("grants %+v", grants)
			}
			granted[g.Job] = true
			for _, choice := range p.menus[g.Job].Choices {
				if choice.Type == int(g.Accelerator) && choice.Devices == g.Replicas {
					got += choice.Value
				}
			}
		}
		for i, menu := range p.menus {
			if menu.Forced && !granted[core.JobID(i)] {
				t.Fatalf("job %d must keep what it has, and is not granted it", i)
			}
		}
		if best := p.best(0, append([]int(nil), p.capacity...)); math.Abs(got-best) > 1e-6*(1+math.Abs(best)) {
			t.Fatalf("a plan is worth %v, the best %v", got, best)
		}
	})
}

// best is the value of the best plan for the jobs from one on, by trying all.
func (p *allocator) best(job int, free []int) float64 {
	if job == len(p.menus) {
		return 0
	}
	value := math.Inf(-1)
	if !p.menus[job].Forced {
		value = p.best(job+1, free)
	}
	for _, choice := range p.menus[job].Choices {
		if choice.Devices <= free[choice.Type] {
			free[choice.Type] -= choice.Devices
			value = max(value, choice.Value+p.best(job+1, free))
			free[choice.Type] += choice.Devices
		}
	}
	return value
}

// busy is a cluster of three types and jobs whose goodput grows by unlike powers of the replicas. Four of five run.
func busy(b testing.TB, gpus, jobs int) *world {
	b.Helper()
	w := newWorld([]int{gpus * 3 / 8 / 4, gpus / 4 / 8, gpus * 3 / 8 / 8}, []int{4, 8, 8})
	r := rand.New(rand.NewPCG(1, uint64(gpus)))
	for range jobs {
		power := 0.4 + 0.6*r.Float64()
		var curves [][]float64
		for range 3 {
			rates, scale := linear(1), 1+3*r.Float64()
			for k := range rates {
				rates[k] = scale * math.Pow(rates[k], power)
			}
			curves = append(curves, rates)
		}
		j := w.add(1, 1<<r.IntN(7), curves...)
		j.SubmitSeconds, j.Restarts = 3600*r.Float64(), r.IntN(8)
	}
	grants, err := newAllocator(b, nil).Allocate(b.Context(), &w.view, w.candidates)
	if err != nil {
		b.Fatal(err)
	}
	for _, g := range grants {
		if r.IntN(5) > 0 {
			run(w.view.Jobs[g.Job], append([]core.Seat(nil), g.Proposed...)...)
		}
		if r.IntN(5) == 0 { // it has learned of twice as many
			response := w.candidates[g.Job].Response
			response.MaxReplicas = min(2*response.MaxReplicas, 64)
		}
	}
	return w
}

// The choice is certified on a large cluster too.
func TestProvesTheGap(t *testing.T) {
	w := busy(t, 2048, 700)
	p := newAllocator(t, nil).(*allocator)
	if _, err := p.Allocate(t.Context(), &w.view, w.candidates); err != nil {
		t.Fatal(err)
	}
	if !(p.gap <= 0.005) {
		t.Errorf("the choice is proven to be within %v of the best, want 0.005", p.gap)
	}
}

func BenchmarkAllocate(b *testing.B) {
	for _, size := range []struct{ gpus, jobs int }{{64, 30}, {64, 60}, {512, 256}, {2048, 700}} {
		for _, gap := range []float64{0, 1e-4, 5e-3} {
			b.Run(fmt.Sprintf("%d_gpus_%d_jobs_gap_%g", size.gpus, size.jobs, gap), func(b *testing.B) {
				w := busy(b, size.gpus, size.jobs)
				p := newAllocator(b, func(c *Config) { c.Gap = gap })
				for b.Loop() {
					if _, err := p.Allocate(b.Context(), &w.view, w.candidates); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(100*p.(*allocator).gap, "gap_%")
			})
		}
	}
}
