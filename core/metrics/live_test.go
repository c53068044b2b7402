package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/admission"
	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/placement"
)

func component[S any](t testing.TB, f core.Factory[S], config map[string]any) core.Component[S] {
	t.Helper()
	decoded, problems := f.Decode(config)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	made, err := f.New(decoded, core.Settings{ID: f.Type, Rand: core.NewRand(1, f.Type), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return core.Component[S]{ID: f.Type, Policy: made}
}

// busy is a cluster of two types under more jobs than it has devices for, which are preempted, moved, held back and
// rejected.
func busy(t testing.TB, jobs int, observers ...core.Observer) (p *core.Pipeline, world core.Backend, alone ExclusiveTime) {
	t.Helper()
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).Nodes(1, "v100", 8).Obj()
	dice := rand.New(rand.NewPCG(1, 2))
	w := &workload.Workload{}
	for id := range jobs {
		replicas, seconds := 1<<dice.IntN(4), float64(100+dice.IntN(5000))
		if id%17 == 16 {
			replicas = 64
		}
		w.Jobs = append(w.Jobs, workload.Job{
			Model: workload.NewDurationModel(seconds, replicas),
			Spec:  *coretest.MakeJob(fmt.Sprint(id)).ID(core.JobID(id)).Submit(float64(500 * id)).Work(seconds).Replicas(replicas).Obj().JobSpec,
		})
	}
	opener := component(t, sim.NewSimulator(), map[string]any{"restart_overhead": "30s"}).Policy
	world, err := opener.Open(t.Context(), cluster, w)
	if err != nil {
		t.Fatal(err)
	}
	stages := core.Stages{
		Admission:  []core.Component[core.Admitter]{component(t, admission.NewAcceptAll(), nil)},
		Allocation: component(t, allocation.NewLAS(), map[string]any{"quantum_seconds": 0.0}),
		Placement:  component(t, placement.NewFirstFit(), nil),
		Elasticity: component(t, elasticity.NewFixed(), nil),
	}
	p = core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: observers})
	return p, world, workload.NewExclusiveTimes(cluster, w).Seconds
}

var errEnough = errors.New("enough")

// untilRound ends a run after a round.
type untilRound int

func (u untilRound) ObserveRound(r *core.Report) error {
	if r.View.Round >= int(u) {
		return errEnough
	}
	return nil
}

// asking asks for a snapshot in every round.
type asking struct{ *Live }

func (a asking) ObserveRound(r *core.Report) error {
	defer a.Snapshot()
	return a.Live.ObserveRound(r)
}

func TestSnapshotIsTheSummaryOfARunThatEndsThere(t *testing.T) {
	for name, tc := range map[string]struct {
		rounds int
		window Window
	}{
		"the first round":    {1, AllJobs},
		"a few rounds":       {40, AllJobs},
		"some of the jobs":   {150, Window{First: 5, Last: 20}},
		"most of the run":    {300, AllJobs},
		"until nothing runs": {1 << 30, AllJobs},
	} {
		t.Run(name, func(t *testing.T) {
			var files [2][6]bytes.Buffer
			summaries, snapshot := [2]*Summary{}, (*Snapshot)(nil)
			var soFar [6]bytes.Buffer
			for i := range files { // once without being asked
				_, _, alone := busy(t, 60)
				f := &files[i]
				collector := NewCollector(testComponents, Outputs{Jobs: &f[0], Rounds: &f[1], Decisions: &f[2], Accelerators: &f[3], Fairness: &f[4], Tenants: &f[5], ExclusiveTime: alone})
				collector.Measure(tc.window)
				live := NewLive(collector, Run{})
				observer := core.Observer(collector)
				if i == 1 {
					observer = asking{live}
				}
				p, world, _ := busy(t, 60, observer, untilRound(tc.rounds))
				if err := p.Run(t.Context(), world); err != nil && !errors.Is(err, errEnough) {
					t.Fatal(err)
				}
				if i == 1 {
					snapshot = live.Snapshot()
					s, now, err := live.WriteSoFar(Outputs{Jobs: &soFar[0], Accelerators: &soFar[3], Fairness: &soFar[4], Tenants: &soFar[5]})
					if err != nil || now != p.NowSeconds() {
						t.Fatalf("so far at %v, not %v: %v", now, p.NowSeconds(), err)
					}
					if diff := cmp.Diff(asJSON(t, snapshot.Summary), asJSON(t, s)); diff != "" {
						t.Errorf("so far (-snapshot +with files):\n%s", diff)
					}
				}
				var err error
				if summaries[i], err = collector.Finish(p.Unfinished(), p.NowSeconds()); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(asJSON(t, summaries[0]), asJSON(t, snapshot.Summary)); diff != "" {
				t.Errorf("snapshot (-finished +so far):\n%s", diff)
			}
			if diff := cmp.Diff(asJSON(t, summaries[0]), asJSON(t, summaries[1])); diff != "" {
				t.Errorf("being asked changed the summary (-not +asked):\n%s", diff)
			}
			for i := range files[0] {
				if !bytes.Equal(files[0][i].Bytes(), files[1][i].Bytes()) {
					t.Errorf("being asked changed file %d", i)
				}
			}
			for _, i := range []int{0, 3, 4, 5} { // rounds and decisions are written as they come
				if diff := cmp.Diff(files[0][i].String(), soFar[i].String()); diff != "" {
					t.Errorf("file %d (-finished +so far):\n%s", i, diff)
				}
			}
		})
	}
}

func asJSON(t *testing.T, s *Summary) string {
	t.Helper()
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tally counts what a snapshot tells besides the summary, from the view itself.
type tally struct {
	t    *testing.T
	live *Live
}

func (c tally) ObserveRound(r *core.Report) error {
	running, pending := 0, 0
	for _, j := range r.View.Jobs {
		switch {
		case j == nil:
		case j.State == core.Running:
			running++
		default:
			pending++
		}
	}
	s := c.live.Snapshot()
	told := 0
	for _, n := range s.Pending {
		told += n
	}
	got := [...]int{s.Running, told, s.DevicesUsed, s.DevicesUsable, s.Summary.Jobs.Unfinished}
	want := [...]int{running, pending, r.DevicesUsed, r.View.Devices, running + pending}
	if got != want || s.NowSeconds != r.View.NowSeconds {
		c.t.Errorf("round %d: told running, pending, used, usable, unfinished %v, want %v", r.View.Round, got, want)
	}
	if mean := float64(s.Summary.Restarts.Total) / float64(s.Started); s.Started > 0 && mean != float64(s.Summary.Restarts.Mean) {
		c.t.Errorf("round %d: %d started, but the summary has a mean of %v restarts, not %v", r.View.Round, s.Started, s.Summary.Restarts.Mean, mean)
	}
	return nil
}

func TestSnapshotCountsTheJobsOfTheView(t *testing.T) {
	live := NewLive(NewCollector(testComponents, Outputs{}), Run{})
	p, world, _ := busy(t, 60, live, tally{t, live})
	if err := p.Run(t.Context(), world); err != nil {
		t.Fatal(err)
	}
	if s := live.Snapshot(); s.Summary.Preemptions == 0 || s.Summary.Jobs.Rejected == 0 || s.Started == 0 {
		t.Errorf("the run is too quiet to tell anything: %+v", s.Summary)
	}
}

func TestAQuietRoundAllocatesNothing(t *testing.T) {
	live := NewLive(NewCollector(testComponents, Outputs{}), Run{})
	quiet := &core.Report{View: &core.View{Cluster: coretest.MakeCluster().Nodes(1, "t4", 4).Obj()}}
	if n := testing.AllocsPerRun(100, func() {
		if err := live.ObserveRound(quiet); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a round, want 0", n)
	}
}

func TestTimePassesBetweenRounds(t *testing.T) {
	now := 0.0
	collector := NewCollector(testComponents, Outputs{})
	live := NewLive(collector, Run{Now: func() float64 { return now }})
	p, world, _ := busy(t, 1, live, untilRound(1)) // a job that starts at once on some of the 16 devices
	if s := live.Snapshot(); s.NowSeconds != 0 || s.Summary.Rounds != 0 {
		t.Errorf("before the first round: %+v", s)
	}
	if err := p.Run(t.Context(), world); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	held := p.Unfinished()[0].Held
	for _, at := range []float64{0, 3600, 7200} {
		now = at
		s := live.Snapshot()
		if got, want := s.Summary.GPUHours, Number(float64(held)*at/3600); held == 0 || got != want || s.RoundSeconds != 0 || s.NowSeconds != at {
			t.Errorf("at %v s: %v GPU hours, want %v: %+v", at, got, want, s)
		}
	}
	now = -5 // a clock that was set back
	if s := live.Snapshot(); s.NowSeconds != 0 {
		t.Errorf("now is %v, before the last round", s.NowSeconds)
	}
	summary, err := live.Finish(p.Unfinished(), 1800)
	if err != nil {
		t.Fatal(err)
	}
	now = 1e9
	if _, _, err := live.WriteSoFar(Outputs{}); !errors.Is(err, ErrFinished) {
		t.Errorf("files so far of a run that has ended: %v", err)
	}
	if diff := cmp.Diff(asJSON(t, summary), asJSON(t, live.Snapshot().Summary)); diff != "" {
		t.Errorf("after the end (-finished +told):\n%s", diff)
	}
}

func TestSnapshotBeforeTheFirstRound(t *testing.T) {
	live := NewLive(NewCollector(testComponents, Outputs{}), Run{Name: "mine", Seed: 3})
	s := live.Snapshot()
	var jobs bytes.Buffer
	if s, now, err := live.WriteSoFar(Outputs{Jobs: &jobs}); err != nil || now != 0 || s.Name != "mine" || s.Seed != 3 || jobs.Len() > 0 {
		t.Errorf("so far: %+v at %v, %q, %v; jobs.csv is not wanted", s, now, jobs.String(), err)
	}
	if s.Summary.Name != "mine" || s.Summary.Seed != 3 || s.Summary.Rounds != 0 || s.Summary.MakespanSeconds.Known() {
		t.Errorf("got %+v", s.Summary)
	}
}

func TestTroublesAreThoseOfTheLastRound(t *testing.T) {
	var troubles []Trouble
	live := NewLive(NewCollector(testComponents, Outputs{}), Run{Troubles: func() []Trouble { return troubles }})
	p, world, _ := busy(t, 2, live, untilRound(1))
	troubles = []Trouble{{Component: "allocation/x", Restarts: 2, Reason: "it crashed"}}
	if err := p.Run(t.Context(), world); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	want := troubles
	troubles = nil
	if diff := cmp.Diff(want, live.Snapshot().Summary.Plugins); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// BenchmarkSnapshot is what a scrape holds a round up for at most, after as many jobs.
func BenchmarkSnapshot(b *testing.B) {
	for _, jobs := range []int{1000, 10_000} {
		b.Run(fmt.Sprint("jobs=", jobs), func(b *testing.B) {
			live := NewLive(NewCollector(testComponents, Outputs{Jobs: io.Discard}), Run{})
			p, world, _ := busy(b, jobs, live)
			if err := p.Run(b.Context(), world); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				live.latest = nil
				live.Snapshot()
			}
		})
	}
}
