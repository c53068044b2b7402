// Package python_test holds the Python SDK to the contracts of the stages, as seen from a Go host.
package python_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/internal/pythontest"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// interpreter finds a Python with what the SDK needs, and makes the SDK importable.
func interpreter(t testing.TB) string {
	t.Helper()
	path := pythontest.Require(t)
	sdk, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", sdk)
	return path
}

func policies(t testing.TB) host.Binary {
	return host.Binary{
		Name: "policies", Path: interpreter(t), Args: []string{filepath.Join("tests", "policies.py")}, StartTimeout: 20 * time.Second,
	}
}

// instances is how many instances of a policy a conformance suite holds against each other.
const instances = 3

// ring creates components in a few processes by turns: creating one in a process replaces the one before, and a suite
// never uses more than its last few instances.
type ring struct {
	processes [instances]*host.Process
	next      int
}

func newRing(t testing.TB, b host.Binary) *ring {
	r := &ring{}
	for i := range r.processes {
		p, err := b.Start(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		r.processes[i] = p
	}
	return r
}

func (r *ring) dial(c host.Component) host.Dial {
	return func(ctx context.Context) (*host.Session, error) {
		p := r.processes[r.next%instances]
		r.next++
		answer, err := host.Configure(ctx, p.Conn, c, false)
		return &host.Session{Conn: p.Conn, Close: func() {}, FinalOutput: p.FinalOutput, Abilities: wire.AbilitiesFrom(answer)}, err
	}
}

func options() host.Options {
	o := host.DefaultOptions
	o.Log = slog.New(slog.DiscardHandler)
	return o
}

// factoryOf makes a factory whose policies live in the processes of a ring.
func factoryOf[S any](r *ring, stage stagev1.Stage, typ string, reach func(context.Context, host.Spec[S]) (S, error)) core.Factory[S] {
	info := core.Info{
		Type: typ, Summary: "a policy in Python", Description: "It lives in another process.",
		Capabilities: []core.Capability{core.CapabilityRemainingWork, core.CapabilityStepTimes, core.CapabilityMeasurements},
	}
	return core.NewFactory(info, core.None{}, func(_ core.None, s core.Settings) (S, error) {
		c := host.Component{Stage: stage, Type: typ, ID: s.ID, Seed: 1}
		return reach(context.Background(), host.Spec[S]{ID: s.ID, Plugin: "policies", Dial: r.dial(c), Options: options()})
	})
}

func TestConformance(t *testing.T) {
	r := newRing(t, policies(t))
	t.Run("accept_all", func(t *testing.T) {
		coretest.RunAdmitter(t, factoryOf(r, stagev1.Stage_STAGE_ADMISSION, "accept_all", host.Admitter))
	})
	t.Run("load_limit", func(t *testing.T) {
		coretest.RunAdmitter(t, factoryOf(r, stagev1.Stage_STAGE_ADMISSION, "load_limit", host.Admitter))
	})
	t.Run("fifo", func(t *testing.T) {
		coretest.RunAllocator(t, factoryOf(r, stagev1.Stage_STAGE_ALLOCATION, "fifo", host.Allocator))
	})
	t.Run("las", func(t *testing.T) {
		coretest.RunAllocator(t, factoryOf(r, stagev1.Stage_STAGE_ALLOCATION, "las", host.Allocator))
	})
	t.Run("first_fit", func(t *testing.T) {
		coretest.RunPlacer(t, factoryOf(r, stagev1.Stage_STAGE_PLACEMENT, "first_fit", host.Placer))
	})
	t.Run("fixed", func(t *testing.T) {
		coretest.RunElasticity(t, factoryOf(r, stagev1.Stage_STAGE_ELASTICITY, "fixed", host.Elasticity))
	})
	t.Run("linear", func(t *testing.T) {
		coretest.RunElasticity(t, factoryOf(r, stagev1.Stage_STAGE_ELASTICITY, "linear", host.Elasticity))
	})
	t.Run("keep", func(t *testing.T) {
		coretest.RunScaler(t, factoryOf(r, stagev1.Stage_STAGE_SCALER, "keep", host.Scaler))
	})
	t.Run("seats", func(t *testing.T) {
		remote := factoryOf(r, stagev1.Stage_STAGE_SCALER, "seats", host.Scaler)
		coretest.RunScaler(t, core.NewFactory(remote.Info, core.None{}, func(_ core.None, s core.Settings) (core.ClusterScaler, error) {
			scaler, err := remote.New(&core.None{}, s)
			return seatsInGo{scaler, t}, err
		}))
	})
}

// seatsInGo holds the policy "seats" to what it is in Go.
type seatsInGo struct {
	core.ClusterScaler
	*testing.T
}

func (s seatsInGo) Scale(ctx context.Context, v *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	var want core.ClusterTarget
	missing := 0
	for _, c := range plan.Candidates {
		missing += c.Response.MinReplicas
	}
	for i := range v.Cluster.Pools {
		p := &v.Cluster.Pools[i]
		nodes := min(max((missing+p.Devices-1)/p.Devices, p.Min), p.Max)
		missing -= nodes * p.Devices
		if nodes == v.Cluster.PoolSize(p.Name) {
			continue
		}
		t := core.PoolTarget{Pool: p.Name, Nodes: nodes, Message: fmt.Sprintf("for %d jobs", len(plan.Candidates))}
		for k := range slices.Backward(v.Cluster.Nodes) {
			if v.Cluster.Nodes[k].Pool == p.Name {
				t.Remove = append(t.Remove, core.NodeID(k))
			}
		}
		want.Pools = append(want.Pools, t)
	}
	got, err := s.ClusterScaler.Scale(ctx, v, plan)
	if diff := cmp.Diff(want, got); diff != "" && err == nil {
		s.Errorf("(-Go +Python)\n%s", diff)
	}
	return got, err
}

func TestDeadlineExample(t *testing.T) {
	b := policies(t)
	b.Args = []string{filepath.Join("..", "examples", "python-deadline", "deadline.py")}
	coretest.RunAdmitter(t, factoryOf(newRing(t, b), stagev1.Stage_STAGE_ADMISSION, "deadline", host.Admitter))
}

// TestViewsAreEqual holds what Python sees, and computes of it, against the view in Go, bit for bit, in random rounds.
func TestViewsAreEqual(t *testing.T) {
	remote := factoryOf(newRing(t, policies(t)), stagev1.Stage_STAGE_ADMISSION, "mirror", host.Admitter)
	coretest.RunAdmitter(t, core.NewFactory(remote.Info, core.None{}, func(_ core.None, s core.Settings) (core.Admitter, error) {
		a, err := remote.New(&core.None{}, s)
		return mirrored{a, t}, err
	}), coretest.Pools(), coretest.Sharing(), coretest.Reporting())
}

// TestGroups has an allocation in Python group jobs, and a placement seat the groups, round after round on the same view.
func TestGroups(t *testing.T) {
	r, settings := newRing(t, policies(t)), core.Settings{ID: "python/test"}
	allocator, err := factoryOf(r, stagev1.Stage_STAGE_ALLOCATION, "pairs", host.Allocator).New(&core.None{}, settings)
	if err != nil {
		t.Fatal(err)
	}
	placer, err := factoryOf(r, stagev1.Stage_STAGE_PLACEMENT, "together", host.Placer).New(&core.None{}, settings)
	if err != nil {
		t.Fatal(err)
	}
	var jobs []*coretest.JobBuilder
	for round, tc := range []struct {
		requests int // of the job that comes
		want     []string
	}{
		{2, []string{"0: 2 of group 0 on [0,1]"}},
		{1, []string{"0: 2 of group 0 on [0,1]", "1: 1 of group 0 on [2]"}},
		{2, []string{"0: 2 of group 1 on [0,1]", "2: 2 of group 1 on [0,1]", "1: 1 of group 0 on [2]"}},
		{1, []string{"0: 2 of group 1 on [0,1]", "2: 2 of group 1 on [0,1]", "1: 1 of group 2 on [2]", "3: 1 of group 2 on [2]"}},
		{4, []string{"0: 2 of group 1 on [0,1]", "2: 2 of group 1 on [0,1]", "1: 1 of group 2 on [2]", "3: 1 of group 2 on [2]", "4: 4 of group 0 on nothing"}},
	} {
		jobs = append(jobs, coretest.MakeJob(fmt.Sprint("job-", round)).Replicas(tc.requests).Waiting())
		v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).TakesTurns(2, 16).Obj()).Round(round + 1).Jobs(jobs...).Obj()
		grants, err := allocator.Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid))
		if err != nil {
			t.Fatal(err)
		}
		seating, err := placer.Place(t.Context(), v, grants)
		if err != nil {
			t.Fatal(err)
		}
		on := map[core.JobID]string{}
		for _, p := range seating.Placed {
			on[p.Job] = fmt.Sprintf("[%s]", p.Seats[0].Devices)
		}
		for _, v := range seating.Unseated {
			on[v.Job] = "nothing"
		}
		var got []string
		for _, g := range grants {
			got = append(got, fmt.Sprintf("%d: %d of group %d on %s", g.Job, g.Replicas, g.Group, on[g.Job]))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", round, diff)
		}
	}
}

// TestWhatIsCounted holds what policies say that they count to what a host hears.
func TestWhatIsCounted(t *testing.T) {
	told, err := policies(t).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	turns := []core.Sharing{core.TimeSlice}
	for id, want := range map[string]core.Info{
		"allocation/pairs": {Sharing: turns}, "placement/together": {Sharing: turns, Counts: true, Divides: true}, "placement/first_fit": {}, "allocation/las": {},
	} {
		at := slices.IndexFunc(told.Components, func(c host.ComponentInfo) bool { return c.ID() == id })
		if at < 0 {
			t.Errorf("there is no %s", id)
			continue
		}
		if got := told.Components[at].Info; got.Counts != want.Counts || got.Divides != want.Divides || !slices.Equal(got.Sharing, want.Sharing) {
			t.Errorf("%s counts: %v, divides: %v, shares %v; want %v, %v, %v", id, got.Counts, got.Divides, got.Sharing, want.Counts, want.Divides, want.Sharing)
		}
	}
}

// TestReportsAreEqual is both for what the random rounds do not hold: what jobs measured, told piece by piece while it
// grows, the truth about them, and responses that keep their curves.
func TestReportsAreEqual(t *testing.T) {
	r, settings := newRing(t, policies(t)), core.Settings{ID: "python/test"}
	admitter, err := factoryOf(r, stagev1.Stage_STAGE_ADMISSION, "mirror", host.Admitter).New(&core.None{}, settings)
	if err != nil {
		t.Fatal(err)
	}
	allocator, err := factoryOf(r, stagev1.Stage_STAGE_ALLOCATION, "echo", host.Allocator).New(&core.None{}, settings)
	if err != nil {
		t.Fatal(err)
	}
	p := core.NewPipeline(coretest.MakeCluster().Nodes(2, "t4", 4).Obj(), core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: settings.ID, Policy: mirrored{admitter, t}}},
		Allocation: core.Component[core.Allocator]{ID: settings.ID, Policy: echoed{allocator, t}},
		Placement:  core.Component[core.Placer]{ID: settings.ID, Policy: idle{}},
		Elasticity: core.Component[core.Elasticity]{ID: settings.ID, Policy: idle{}},
	}, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60, OnEvents: true}})

	measured := func(i int) core.Measurement {
		return core.Measurement{Accelerator: []string{"t4", ""}[i%2], Nodes: 1 + i%3, Replicas: 1 + i%4, PerDevice: 32 << (i % 2), PassSeconds: 0.1 * float64(i), StepSeconds: 0.3 * float64(i)}
	}
	truth := &core.Truth{Measurements: []core.Measurement{measured(1), measured(2)}, Gradients: core.Gradients{SquaredNorm: 0.1, Variance: 0.7}}
	gains := &core.Sensitivity{
		Base: core.Resources{CPUs: 3, MemoryGB: 62.5}, Ideal: core.Resources{CPUs: 12, MemoryGB: 40}, Speedup: 1.7, IterationSeconds: 0.3,
		CPUs: []float64{1, 3}, MemoryGB: []float64{20, 62.5}, Speeds: [][]float64{{0.4, 0.5}, {0.8, 1}},
	}
	pairs := core.NewPairTable([]core.Pair{
		{Accelerator: "t4", Applications: [2]string{"b", "a"}, Replicas: 2, Parts: [2]float64{0.7, 0.9}},
		{Accelerator: "t4", Applications: [2]string{"a", "a"}, Replicas: 1, Parts: [2]float64{0.6, 0.6}},
	})
	for id := range 8 {
		now := 60 * float64(id)
		spec := *coretest.MakeJob(fmt.Sprint("job-", id)).ID(core.JobID(id)).Replicas(1).Submit(now).Obj().JobSpec
		if id%2 == 0 {
			spec.Truth, spec.Sensitivity, spec.Pairs = truth, gains, pairs
		}
		events := []core.Event{{Kind: core.JobSubmitted, Job: spec.ID, Spec: &spec, AtSeconds: now, StepsLeft: math.NaN()}}
		for job := range id {
			i := id*id + job
			events = append(events, core.Event{
				Kind: core.JobMeasured, AtSeconds: now, Job: core.JobID(job), Measurement: measured(i),
				Gradients: core.Gradients{SquaredNorm: 1 / float64(i), Variance: float64(i)},
			})
		}
		if err := p.Round(t.Context(), core.Observation{NowSeconds: now, Events: events}, idle{}); err != nil {
			t.Fatal(err)
		}
	}
}

// idle is a backend and stages that do nothing. What a job gains from devices stays, what is left of it shrinks.
type idle struct{}

func (idle) Respond(_ context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	var responses []core.Response
	for _, j := range jobs {
		responses = append(responses, core.Response{
			Job: j.ID, MinReplicas: 1, MaxReplicas: 2, RemainingWork: 100 - float64(v.Round),
			Curves:     []core.Curve{{OneNode: []float64{0.1, 0.2}, ManyNodes: []float64{0, 0.15}}},
			MixedTypes: &core.MixedTypeRates{SingleDeviceRates: []float64{0.1, 0.3}, SyncSeconds: []float64{0, 0.5}},
		})
	}
	return responses, nil
}

func (idle) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	return nil, nil
}

func (idle) Place(context.Context, *core.View, []core.Grant) (core.Seating, error) {
	return core.Seating{}, nil
}

func (idle) Next(context.Context, core.Wake) (core.Observation, error) {
	return core.Observation{}, io.EOF
}

func (idle) Apply(context.Context, []core.Change) error { return nil }
func (idle) Capabilities() []core.Capability            { return nil }

// TestCandidatesAreEqual holds what Python sees of the responses of jobs against those in Go, bit for bit.
func TestCandidatesAreEqual(t *testing.T) {
	remote := factoryOf(newRing(t, policies(t)), stagev1.Stage_STAGE_ALLOCATION, "echo", host.Allocator)
	coretest.RunAllocator(t, core.NewFactory(remote.Info, core.None{}, func(_ core.None, s core.Settings) (core.Allocator, error) {
		a, err := remote.New(&core.None{}, s)
		if err == nil {
			if got, want := a.(core.Guarantor).Guarantees(), (core.Guarantees{0.9, 0.5, 0.25}); got != want {
				t.Errorf("it guarantees %v, want %v", got, want)
			}
		}
		return echoed{a, t}, err
	}), coretest.Elsewhere(), coretest.Reporting())
}

// TestPendingCandidatesAreEqual holds what an admission in Python sees of the responses of jobs, those that wait to be admitted included,
// against those in Go, bit for bit.
func TestPendingCandidatesAreEqual(t *testing.T) {
	remote := factoryOf(newRing(t, policies(t)), stagev1.Stage_STAGE_ADMISSION, "curve_mirror", host.Admitter)
	coretest.RunAdmitter(t, core.NewFactory(remote.Info, core.None{}, func(_ core.None, s core.Settings) (core.Admitter, error) {
		a, err := remote.New(&core.None{}, s)
		if err != nil {
			return nil, err
		}
		if p, speaks := a.(core.Promiser); !speaks || !p.Promises() {
			t.Error("it does not say that it promises deadlines")
		}
		return curveMirrored{a.(core.CurveAdmitter), t}, nil
	}), coretest.Elsewhere(), coretest.Reporting())
}

type curveMirrored struct {
	core.CurveAdmitter
	t *testing.T
}

func (m curveMirrored) AdmitCandidates(ctx context.Context, v *core.View, admitted, waiting []core.Candidate) ([]core.Verdict, error) {
	verdicts, err := m.CurveAdmitter.AdmitCandidates(ctx, v, admitted, waiting)
	if err != nil {
		return nil, err
	}
	if len(verdicts) != len(waiting) {
		m.t.Errorf("%d verdicts for %d jobs", len(verdicts), len(waiting))
	}
	var lines []string
	for _, c := range append(slices.Clone(admitted), waiting...) {
		r := c.Response
		lines = append(lines, fmt.Sprintf("%d %d %d %d %s", c.ID, r.Job, r.MinReplicas, r.MaxReplicas, bits(r.RemainingWork, r.SingleDeviceRate)))
		for _, curve := range r.Curves {
			lines = append(lines, bits(curve.OneNode...)+"|"+bits(curve.ManyNodes...))
		}
		if u := r.MixedTypes; u != nil {
			lines = append(lines, bits(u.SingleDeviceRates...)+"|"+bits(u.SyncSeconds...))
		}
	}
	want := strings.Join(lines, "\n")
	for _, verdict := range verdicts {
		if verdict.Message != want {
			m.t.Errorf("round %d: Go sees\n%s\nPython sees\n%s", v.Round, want, verdict.Message)
		}
	}
	return verdicts, nil
}

// Review asks Python, which lets everybody go on, and holds jobs back.
func (m curveMirrored) Review(ctx context.Context, v *core.View, reported []*core.Job) ([]core.Verdict, error) {
	_, err := m.CurveAdmitter.(core.Reviewer).Review(ctx, v, reported)
	return coretest.ReviewBySteps(reported), err
}

type echoed struct {
	core.Allocator
	t *testing.T
}

func (e echoed) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	return e.AllocateSome(ctx, v, candidates, candidates)
}

// AllocateSome compares what Python sees where it is asked about some of the candidates, with narrower ranges.
func (e echoed) AllocateSome(ctx context.Context, v *core.View, all, candidates []core.Candidate) ([]core.Grant, error) {
	echo, err := e.Allocator.(core.SomeAllocator).AllocateSome(ctx, v, all, candidates)
	if err != nil {
		return nil, err
	}
	if len(echo) != len(candidates) {
		e.t.Errorf("round %d: Python sees %d candidates of %d", v.Round, len(echo), len(candidates))
		return nil, nil
	}
	for i, c := range candidates {
		r, g := c.Response, echo[i]
		want := []float64{r.RemainingWork}
		for _, curve := range r.Curves {
			want = append(append(want, float64(len(curve.OneNode))), curve.OneNode...)
			want = append(append(want, float64(len(curve.ManyNodes))), curve.ManyNodes...)
		}
		if r.MixedTypes != nil {
			want = append(append(want, r.MixedTypes.SingleDeviceRates...), r.MixedTypes.SyncSeconds...)
		}
		var got []float64
		for _, seat := range g.Proposed {
			got = append(got, math.Float64frombits(uint64(seat.Devices)))
		}
		if g.Job != c.ID || g.Replicas != r.MinReplicas || int(g.Accelerator) != r.MaxReplicas || bits(got...) != bits(want...) {
			e.t.Errorf("round %d: Go sees %+v, Python sees %+v with %v", v.Round, r, g, got)
		}
	}
	return nil, nil
}

type mirrored struct {
	core.Admitter
	t *testing.T
}

func (m mirrored) Admit(ctx context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	verdicts, err := m.Admitter.Admit(ctx, v, waiting)
	if err != nil {
		return nil, err
	}
	m.compare(v, waiting, verdicts)
	return nil, nil
}

// Review compares what Python sees, and ends jobs and holds them back.
func (m mirrored) Review(ctx context.Context, v *core.View, reported []*core.Job) ([]core.Verdict, error) {
	verdicts, err := m.Admitter.(core.Reviewer).Review(ctx, v, reported)
	if err != nil {
		return nil, err
	}
	m.compare(v, reported, verdicts)
	return coretest.ReviewBySteps(reported), nil
}

func (m mirrored) compare(v *core.View, asked []*core.Job, verdicts []core.Verdict) {
	if len(verdicts) != len(asked) {
		m.t.Errorf("%d verdicts for %d jobs", len(verdicts), len(asked))
	}
	want := describe(v)
	for _, verdict := range verdicts {
		if verdict.Message != want {
			m.t.Errorf("round %d: Go sees\n%s\nPython sees\n%s", v.Round, want, verdict.Message)
		}
	}
}

// describe writes a view as the mirror policy does.
func describe(v *core.View) string {
	var lines []string
	line := func(parts ...any) { lines = append(lines, strings.TrimSuffix(fmt.Sprintln(parts...), "\n")) }
	line(bits(v.NowSeconds), v.Round, bits(v.IntervalSeconds), v.OnEvents, v.Devices, v.Waiting)
	line(v.HealthChanges, len(v.Jobs))
	line(int(v.Cluster.Sharing), v.Cluster.MaxOwners, v.Cluster.OversubscribesMemory, v.Cluster.CountsResources)
	line(joined(v.Active))
	line(joined(v.Changed))
	for i := range v.Cluster.Nodes {
		n := &v.Cluster.Nodes[i]
		line(n.ID, n.Name, n.Accelerator, n.Devices, bits(n.CPUs, n.MemoryGB, n.DeviceMemoryGB, n.ExpectedSeconds), n.Rack, n.Health, uint64(n.Unusable), n.Pool)
	}
	for i := range v.Cluster.Pools {
		p := &v.Cluster.Pools[i]
		line(p.Name, p.Accelerator, p.Devices, p.Min, p.Max, p.Spot, v.Cluster.PoolSize(p.Name))
		numbers := []float64{p.CPUs, p.MemoryGB, p.DeviceMemoryGB, p.PriceAt(v.NowSeconds), p.UpCooldownSeconds, p.DownCooldownSeconds, p.ProvisioningSeconds}
		for _, price := range p.Prices {
			numbers = append(numbers, price.FromSeconds, price.PerHour)
		}
		line(bits(numbers...))
	}
	line(joined(v.Cluster.Accelerators))
	now := v.NowSeconds
	for _, j := range v.Jobs {
		if j == nil || j.State.Ended() { // the one that the pipeline just rejected is gone for a plugin
			continue
		}
		var seats []string
		for _, s := range j.Seats {
			seats = append(seats, fmt.Sprintf("%d:%d", s.Node, uint64(s.Devices)))
		}
		var bounds []string
		for _, on := range j.BatchByType {
			bounds = append(bounds, fmt.Sprintf("%s %d %d", on.Accelerator, on.MinPerDevice, on.MaxPerDevice))
		}
		b := j.Batch
		line(j.ID, j.Name, j.Tenant, j.Application, j.Requested, j.MinReplicas, j.MaxReplicas, j.Tier, j.Experiment)
		line(joined(j.Accelerators), map[bool]string{false: "False", true: "True"}[j.MixesTypes], b.Requested, b.Initial, b.Max, b.MinPerDevice, b.MaxPerDevice, joined(bounds), joined(j.Command))
		line(j.State, j.WaitingReason, joined(seats))
		line(j.Tuning.BatchPerDevice, j.Tuning.AccumulationSteps, joined(j.Tuning.BatchByReplica), j.Restarts, j.Preemptions, j.Held)
		line(bits(j.Weight, j.SubmitSeconds, j.CPUs, j.MemoryGB, j.TotalWork, j.Tuning.LearningRateFactor))
		share := "whole"
		if j.Share != nil {
			share = fmt.Sprintf("%d/%s", j.Share.Milli, j.Share.Profile)
		}
		line(share, bits(j.Part(), j.Utilisation, j.DeviceMemoryGB, j.SlowdownTolerance, j.Iteration.Load, j.Iteration.Compute, j.Iteration.Sync, j.Iteration.Measured))
		given, has := "asked", j.Has()
		if j.Resources != nil {
			given = bits(j.Resources.CPUs, j.Resources.MemoryGB)
		}
		line(joined(j.Slices()), given, bits(has.CPUs, has.MemoryGB))
		if s := j.Sensitivity; s != nil {
			line(bits(s.Base.CPUs, s.Base.MemoryGB, s.Ideal.CPUs, s.Ideal.MemoryGB, s.Speedup, s.IterationSeconds) + "|" + bits(s.CPUs...) + "|" + bits(s.MemoryGB...))
			for _, row := range s.Speeds {
				line(bits(row...))
			}
		}
		for _, p := range j.Pairs.Pairs() {
			line(p.Accelerator, p.Applications[0], p.Applications[1], p.Replicas, bits(p.Parts[:]...))
		}
		line(bits(j.StepsLeft, j.FirstStart, j.LastChange))
		line(bits(j.ExecutedSeconds(now), j.AttainedService(now), j.WorkDone(now), j.RemainingWork(now)))
		if j.StepTimes != nil {
			line(bits(j.StepTimes.OneNode...) + "|" + bits(j.StepTimes.ManyNodes...))
			for _, on := range j.StepTimes.Types {
				line(on.Accelerator, bits(on.OneNode...)+"|"+bits(on.ManyNodes...))
			}
			if u := j.StepTimes.MixedTypes; u != nil {
				var alone []string
				for _, a := range u.SingleDeviceTimes {
					alone = append(alone, a.Accelerator+" "+bits(a.Seconds))
				}
				line(joined(alone))
				line(bits(u.SyncSeconds...))
			}
		}
		measurements := func(kind string, measured []core.Measurement, g core.Gradients) {
			line(kind, bits(g.SquaredNorm, g.Variance))
			for _, m := range measured {
				line(m.Accelerator, m.Nodes, m.Replicas, m.PerDevice, bits(m.PassSeconds, m.StepSeconds))
			}
		}
		if j.Truth != nil {
			measurements("true", j.Truth.Measurements, j.Truth.Gradients)
		}
		measurements("seen", j.Measured, j.Gradients)
		for _, s := range j.Reported {
			var numbers []float64
			for _, p := range s.Points {
				numbers = append(numbers, p.Step, p.Value, p.AtSeconds)
			}
			line(s.Metric, bits(numbers...))
		}
	}
	return strings.Join(lines, "\n")
}

func joined[T any](list []T) string { return strings.Trim(fmt.Sprint(list), "[]") }

func bits(numbers ...float64) string {
	texts := make([]string, len(numbers))
	for i, x := range numbers {
		if texts[i] = fmt.Sprintf("%016x", math.Float64bits(x)); x != x {
			texts[i] = "nan"
		}
	}
	return strings.Join(texts, " ")
}
