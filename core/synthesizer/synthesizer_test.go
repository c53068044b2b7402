package synthesizer

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/twin"
	"github.com/quartet-sched/quartet/core/workload"
)

// steady is a job that has done its work after so many seconds on what it asks for.
type steady float64

func (s steady) Phases() int                        { return 1 }
func (s steady) PhaseEnd(int) float64               { return float64(s) }
func (s steady) Rate(int, workload.Running) float64 { return 1 }
func (s steady) StepsLeft(int) float64              { return math.NaN() }

// nobody decides that all wait.
type nobody struct{ core.Elasticity }

func (nobody) Admit(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) {
	return nil, nil
}

func (nobody) Allocate(context.Context, *core.View, []core.Candidate) ([]core.Grant, error) {
	return nil, nil
}

func (nobody) Place(context.Context, *core.View, []core.Grant) (core.Seating, error) {
	return core.Seating{}, nil
}

func (nobody) Respond(_ context.Context, _ *core.View, jobs []*core.Job) ([]core.Response, error) {
	list := make([]core.Response, len(jobs))
	for i, j := range jobs {
		list[i] = core.Response{Job: j.ID, MinReplicas: 1, MaxReplicas: 1}
	}
	return list, nil
}

func (nobody) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	return nil, nil
}

// silent is a backend to which nothing is said.
type silent struct{ core.Backend }

func (silent) Apply(context.Context, []core.Change) error { return nil }

// believed are worlds of jobs of 1000 seconds, which are told apart by their seeds.
type believed struct{}

func (believed) Draw(v *core.View, _ uint64, draw int, _ float64) *twin.World {
	w := &twin.World{Config: sim.Config{}, Seed: uint64(draw)}
	for _, j := range v.Jobs {
		if j != nil {
			w.Jobs = append(w.Jobs, twin.Job{ID: j.ID, Model: steady(1000)})
		}
	}
	return w
}

// world is a pipeline whose rounds a test holds.
type world struct {
	t *testing.T
	*core.Pipeline
	s *Synthesizer
}

// newWorld has one job submitted, and three candidates. ends is when the job ends under a candidate in a draw, from the moment on.
func newWorld(t *testing.T, s Settings, ends func(candidate, draw int) (float64, error)) *world {
	t.Helper()
	candidates := make([]Candidate, 3)
	for i := range candidates {
		candidates[i] = Candidate{
			Name:     string(rune('a' + i)),
			Policies: twin.Policies{Options: core.RoundOptions{IntervalSeconds: float64(i)}}, // tells which it is
			Compose:  func() (*core.Composition, error) { return &core.Composition{Identity: string(rune('a' + i))}, nil },
		}
	}
	chooser := New(s, candidates, believed{}, nil)
	chooser.future = func(ctx context.Context, still *twin.RunSnapshot, p twin.Policies, w *twin.World, seconds float64) (*twin.Future, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if at := int(p.Options.IntervalSeconds); !s.Background && p.Same != (at == chooser.is.InForce) {
			t.Errorf("candidate %d, while %d decides, goes on where the run is: %v", at, chooser.is.InForce, p.Same)
		}
		v := still.View()
		end, err := ends(int(p.Options.IntervalSeconds), int(w.Seed))
		f := &twin.Future{FromSeconds: v.NowSeconds, ToSeconds: v.NowSeconds + seconds}
		for _, j := range w.Jobs {
			f.Jobs = append(f.Jobs, twin.JobOutcome{ID: j.ID, StartSeconds: v.NowSeconds, EndSeconds: v.NowSeconds + end, Outcome: core.Completed})
		}
		return f, err
	}
	n := nobody{}
	stages := core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission/nobody", Policy: n}},
		Allocation: core.Component[core.Allocator]{ID: "allocation/nobody", Policy: n},
		Placement:  core.Component[core.Placer]{ID: "placement/nobody", Policy: n},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/nobody", Policy: n},
	}
	cluster := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "n", Devices: 4}}}
	w := &world{t, core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{chooser}}), chooser}
	w.hold(0, core.Event{Kind: core.JobSubmitted, Spec: &core.JobSpec{Name: "job", Requested: 1, MinReplicas: 1, MaxReplicas: 1}})
	return w
}

// hold holds a round.
func (w *world) hold(at float64, events ...core.Event) {
	w.t.Helper()
	if err := w.Round(w.t.Context(), core.Observation{NowSeconds: at, Events: events}, silent{}); err != nil {
		w.t.Fatal(err)
	}
}

// choose is the name of the candidate that takes over; empty for none.
func (w *world) choose() string {
	w.t.Helper()
	c, err := w.s.Choose(w.t.Context(), w.Pipeline)
	if err != nil {
		w.t.Fatal(err)
	}
	if c == nil {
		return ""
	}
	return c.Identity
}

func settings() Settings {
	return Settings{Method: Twin, EveryRounds: 1, HorizonSeconds: 1000, Draws: 4, Objective: MeanJCT, MarginRatio: 0.05, Seed: 1}
}

// Draws 1 to 4 choose, and 5 to 8 test what was chosen.
func TestLook(t *testing.T) {
	by := func(b, c float64) func(int, int) float64 {
		return func(candidate, _ int) float64 { return [...]float64{500, b, c}[candidate] }
	}
	for name, tc := range map[string]struct {
		ends func(candidate, draw int) float64
		fail map[int]bool
		want string
	}{
		"one gains":                             {by(400, 500), nil, "b"},
		"the better of two that gain":           {by(400, 300), nil, "c"},
		"the first of two alike":                {by(400, 400), nil, "b"},
		"none gains":                            {by(500, 600), nil, ""},
		"a gain below the margin":               {by(480, 500), nil, ""},
		"one that fails is left out":            {by(300, 400), map[int]bool{1: true}, "c"},
		"without the one in force, nobody else": {by(300, 400), map[int]bool{0: true}, ""},
		"chosen by luck, which the tests do not share": {func(candidate, draw int) float64 {
			if candidate == 1 && draw <= 4 {
				return 100
			}
			return 500
		}, nil, ""},
		"a gain of one test only": {func(candidate, draw int) float64 {
			if candidate == 1 && (draw <= 4 || draw == 6) {
				return 100
			}
			return 500
		}, nil, ""},
		"draws differ, and the gain in each is alike": {func(candidate, draw int) float64 {
			if candidate == 1 {
				return 90 * float64(draw)
			}
			return 120 * float64(draw)
		}, nil, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, settings(), func(candidate, draw int) (float64, error) {
				if tc.fail[candidate] {
					return 0, errors.New("broken")
				}
				return tc.ends(candidate, draw), nil
			})
			if got := w.choose(); got != "" {
				t.Errorf("chose %q at the first look", got)
			}
			w.hold(60)
			if got := w.choose(); got != tc.want {
				t.Errorf("chose %q, want %q", got, tc.want)
			}
			m := w.s.Summary(0)
			if switched := len(m.Log) == 1; switched != (tc.want != "") || m.Looks != 2 || switched && m.Log[0].To != tc.want {
				t.Errorf("the summary is %+v", m)
			}
		})
	}
}

func TestLooksAreDue(t *testing.T) {
	s := settings()
	s.EveryRounds, s.PauseSeconds = 2, 100
	w := newWorld(t, s, func(int, int) (float64, error) { return 500, nil })
	var looks []int
	for _, at := range []float64{0, 10, 20, 110, 120, 300, 500, 510} {
		if at > 0 {
			w.hold(at)
		}
		w.choose()
		looks = append(looks, w.s.Summary(at).Looks)
	}
	if diff := cmp.Diff([]int{0, 0, 0, 1, 1, 2, 2, 3}, looks); diff != "" {
		t.Errorf("looks after each round (-want +got):\n%s", diff)
	}
}

// b gains by forecast. Whether it holds is seen after half of the horizon, 500 seconds.
func TestSwitchesAreMeasured(t *testing.T) {
	ended := core.Event{Kind: core.JobFinished, Job: 0, AtSeconds: 200}
	other := core.Event{Kind: core.JobSubmitted, Job: 1, AtSeconds: 10, Spec: &core.JobSpec{ID: 1, Name: "other", SubmitSeconds: 10, Requested: 1, MinReplicas: 1, MaxReplicas: 1}}
	for name, tc := range map[string]struct {
		events []core.Event
		want   string
	}{
		"as forecast":                         {[]core.Event{ended}, ""},
		"jobs are there longer":               {nil, "a"},
		"one that came later is there longer": {[]core.Event{ended, other}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			better := 1
			w := newWorld(t, settings(), func(candidate, draw int) (float64, error) {
				if candidate == better {
					return 200 + float64(draw), nil
				}
				return 300 + float64(draw), nil
			})
			w.choose()
			w.hold(1)
			if got := w.choose(); got != "b" {
				t.Fatalf("chose %q", got)
			}
			w.hold(450, tc.events...)
			if got := w.choose(); got != "" {
				t.Fatalf("chose %q before it was measured", got)
			}
			w.hold(510)
			if got := w.choose(); got != tc.want {
				t.Fatalf("chose %q, want %q", got, tc.want)
			}
			m := w.s.Summary(510)
			if back := tc.want != ""; m.TakenBack == 1 != back {
				t.Errorf("taken back %d times", m.TakenBack)
			}
			if tc.want == "" {
				return
			}
			if !m.Log[1].TakenBack || !strings.Contains(m.Log[1].Why, `"b" did not do as expected`) {
				t.Errorf("logged %+v", m.Log[1])
			}
			w.hold(2000) // b is barred for four horizons
			if got := w.choose(); got != "" {
				t.Errorf("chose %q, which was taken back", got)
			}
			w.hold(4600)
			w.choose()
			w.hold(4700)
			if got := w.choose(); got != "b" {
				t.Errorf("chose %q once that is over, want b", got)
			}
		})
	}
}

// A run that was left goes on with the candidate that was in force, unless the candidates are others.
func TestARunGoesOn(t *testing.T) {
	gain := func(candidate, _ int) (float64, error) { return 500 - 100*float64(candidate), nil }
	w := newWorld(t, settings(), gain)
	w.choose()
	w.hold(60)
	if got := w.choose(); got != "c" {
		t.Fatalf("chose %q", got)
	}
	learned, err := w.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	next := newWorld(t, settings(), gain)
	if err := next.s.Restore(learned); err != nil {
		t.Fatal(err)
	}
	if got := next.choose(); got != "c" {
		t.Errorf("goes on with %q, want c", got)
	}
	if got := next.choose(); got != "" {
		t.Errorf("then chose %q", got)
	}
	if got := next.s.Summary(0).Switches; got != 1 {
		t.Errorf("%d switches, want the one before it was left", got)
	}
	other := newWorld(t, settings(), func(int, int) (float64, error) { return 500, nil })
	other.s.candidates[1].Name = "z"
	if err := other.s.Restore(learned); err != nil {
		t.Fatal(err)
	}
	if got := other.choose(); got != "" {
		t.Errorf("goes on with %q, though the candidates are others", got)
	}
}

// A round does not wait for a look in the background; what it found holds after the round in which it is seen.
func TestBackground(t *testing.T) {
	s := settings()
	s.Background, s.PauseSeconds = true, 60
	open := make(chan struct{})
	w := newWorld(t, s, func(candidate, _ int) (float64, error) {
		<-open
		return 500 - 100*float64(candidate), nil
	})
	w.hold(60)
	if got := w.choose(); got != "" {
		t.Fatalf("chose %q", got)
	}
	w.hold(70)
	if got := w.choose(); got != "" {
		t.Fatalf("chose %q while the look goes on", got)
	}
	close(open)
	<-w.s.pending.done
	w.hold(130)
	if got := w.choose(); got != "" { // takes the first, and begins another
		t.Fatalf("chose %q at the first look", got)
	}
	<-w.s.pending.done
	w.hold(140)
	if got := w.choose(); got != "c" {
		t.Errorf("chose %q, want c", got)
	}
	w.s.Close()
}

// A job that was rejected, or does not end, is there for the horizon and what is left of it.
func TestObjective(t *testing.T) {
	v := &core.View{NowSeconds: 100, Devices: 2, Cluster: &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Devices: 2}}}}
	w := &twin.World{}
	for i := range 3 {
		v.Jobs = append(v.Jobs, core.NewJob(&core.JobSpec{ID: core.JobID(i), Requested: 1}))
		w.Jobs = append(w.Jobs, twin.Job{ID: core.JobID(i), Model: steady(400)})
	}
	v.Jobs[2].FirstStart = 50
	w.Arrivals = []workload.Job{{Spec: core.JobSpec{SubmitSeconds: 150, Requested: 2}, Model: steady(400)}, {Spec: core.JobSpec{SubmitSeconds: 1100}, Model: steady(1)}}
	r := newRuler(v, w, 1000)
	nan := math.NaN()
	for name, tc := range map[string]struct {
		fates        []twin.JobOutcome
		jct, respond float64
	}{
		"all end": {[]twin.JobOutcome{
			{ID: 0, StartSeconds: 100, EndSeconds: 500, Outcome: core.Completed},
			{ID: 1, StartSeconds: 200, EndSeconds: 600, Outcome: core.Completed},
			{ID: 2, StartSeconds: 50, EndSeconds: 300, Outcome: core.Completed},
			{ID: 3, StartSeconds: 600, EndSeconds: 1000, Outcome: core.Completed},
		}, (400 + 500 + 200 + 850) / 4.0, (0 + 100 + 450) / 3.0},
		"one is rejected, and has all of its work left": {[]twin.JobOutcome{
			{ID: 0, StartSeconds: nan, EndSeconds: 100, Outcome: core.Rejected},
			{ID: 1, StartSeconds: 100, EndSeconds: 500, Outcome: core.Completed},
			{ID: 2, StartSeconds: 50, EndSeconds: 300, Outcome: core.Completed},
			{ID: 3, StartSeconds: 500, EndSeconds: 900, Outcome: core.Completed},
		}, (1000 + 400 + 400 + 200 + 750) / 4.0, (1000 + 0 + 350) / 3.0},
		"two go on: the one with less work left first, on both devices": {[]twin.JobOutcome{
			{ID: 0, StartSeconds: 100, EndSeconds: nan, Outcome: core.Running, Progress: 100},
			{ID: 1, StartSeconds: 100, EndSeconds: 500, Outcome: core.Completed},
			{ID: 2, StartSeconds: 50, EndSeconds: 300, Outcome: core.Completed}, // the other did not come within the rounds of the future
		}, (1000 + 300 + 400 + 200 + 950 + (300+800)/2) / 4.0, (0 + 0 + 950) / 3.0},
	} {
		t.Run(name, func(t *testing.T) {
			f := &twin.Future{Jobs: tc.fates}
			for o, want := range map[Objective]float64{MeanJCT: tc.jct, Responsiveness: tc.respond} {
				if got, _ := r.measure(f, o); math.Abs(got-want) > 1e-9 {
					t.Errorf("%s is %v, want %v", o, got, want)
				}
			}
		})
	}
}

// Jobs take four times what they need under a, twice under b and just that under c. Each is tried, and again when what is known of it has faded; the best is
// in force for most of the time.
func TestBandit(t *testing.T) {
	s := settings()
	s.Method, s.HorizonSeconds = Bandit, 4000
	w := newWorld(t, s, nil)
	var chosen []string
	at, id := 0.0, core.JobID(1)
	for range 60 {
		slowdown := [...]float64{4, 2, 1}[w.s.is.InForce]
		ended := &core.Job{JobSpec: &core.JobSpec{ID: id, SubmitSeconds: at, Requested: 2}, State: core.Completed, Attained: 100, FinishSeconds: at + 50*slowdown}
		at += 200
		id++
		w.hold(at)
		if err := w.s.ObserveRound(&core.Report{View: w.View(), Ended: []*core.Job{ended}}); err != nil {
			t.Fatal(err)
		}
		if got := w.choose(); got != "" {
			chosen = append(chosen, got)
		}
	}
	m := w.s.Summary(at)
	if best := float64(m.InForce[2].Seconds) / at; chosen[0] != "b" || chosen[1] != "c" || best < 0.7 {
		t.Errorf("chose %v; the best was in force for %.2f of the time", chosen, best)
	}
}

// No job completes under b. It is left after a horizon, not kept for ever.
func TestBanditLeavesOneThatCompletesNothing(t *testing.T) {
	s := settings()
	s.Method, s.HorizonSeconds = Bandit, 400
	w := newWorld(t, s, nil)
	chosen := map[string]float64{}
	at := 0.0
	for id := core.JobID(1); id < 30; id++ {
		at += 50
		w.hold(at)
		r := &core.Report{View: w.View()}
		if w.s.is.InForce != 1 {
			r.Ended = []*core.Job{{JobSpec: &core.JobSpec{ID: id, SubmitSeconds: at - 50, Requested: 1}, State: core.Completed, Attained: 50, FinishSeconds: at}}
		}
		if err := w.s.ObserveRound(r); err != nil {
			t.Fatal(err)
		}
		if got := w.choose(); got != "" && chosen[got] == 0 {
			chosen[got] = at
		}
	}
	if chosen["b"] == 0 || chosen["c"] < chosen["b"]+400 || chosen["c"] > chosen["b"]+500 {
		t.Errorf("took over first at %v", chosen)
	}
}

// A candidate that is taken back is barred for four horizons, and for twice as long at each further time.
func TestBarsDouble(t *testing.T) {
	s := newStanding(2)
	for i, tc := range []struct{ now, until float64 }{
		{100, 100 + 4*50}, {1000, 1000 + 8*50}, {2000, 2000 + 16*50},
	} {
		if s.bar(1, tc.now, 50); !s.barred(1, tc.until-1) || s.barred(1, tc.until) || s.barred(0, tc.now) {
			t.Errorf("time %d: barred until %v, want %v, and the other one not at all", i+1, s.Barred, tc.until)
		}
	}
}

// The upper end of the 90 % prediction interval for one more value: mean + t s √(1 + 1/n), where t is the 95 % quantile of n - 1 degrees
// of freedom, 6.3138 and 2.9200 for 1 and 2.
func TestHighest(t *testing.T) {
	for name, tc := range map[string]struct {
		sample []float64
		want   float64
	}{
		"two values":   {[]float64{1, 3}, 2 + 6.3138*math.Sqrt2*math.Sqrt(1+1/2.)},
		"three values": {[]float64{12, 8, 10}, 10 + 2.9200*2*math.Sqrt(1+1/3.)},
		"all alike":    {[]float64{7, 7, 7}, 7},
	} {
		if got := highest(tc.sample); math.Abs(got-tc.want) > 1e-3 {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// The bound is mean - √(2 variance ln(all)/weight), of all jobs and those of the candidate.
func TestLowerBound(t *testing.T) {
	for name, tc := range map[string]struct {
		weight, sum, squares []float64
		want                 float64
	}{
		"one of three":                  {[]float64{4, 2, 1}, []float64{8, 0, 0}, []float64{20, 0, 0}, 2 - math.Sqrt(2*1*math.Log(7)/4)},
		"it alone":                      {[]float64{2, 0, 0}, []float64{6, 0, 0}, []float64{26, 0, 0}, 3 - math.Sqrt(2*4*math.Log(2)/2)},
		"all cost the same":             {[]float64{4, 2, 1}, []float64{8, 0, 0}, []float64{16, 0, 0}, 2},
		"rounded to less than the same": {[]float64{4, 2, 1}, []float64{8, 0, 0}, []float64{15.9, 0, 0}, 2},
		"a job and a half":              {[]float64{1.5, 0, 0}, []float64{3, 0, 0}, []float64{7.5, 0, 0}, 2 - math.Sqrt(2*1*math.Log(1.5)/1.5)},
		"half a job":                    {[]float64{0.5, 0, 0}, []float64{1, 0, 0}, []float64{2.5, 0, 0}, 2},
		"less than that":                {[]float64{0.4, 9, 9}, []float64{1, 9, 9}, []float64{2.5, 9, 9}, math.Inf(-1)},
		"nothing":                       {[]float64{0, 9, 9}, []float64{0, 9, 9}, []float64{0, 9, 9}, math.Inf(-1)},
	} {
		b := bandit{Weight: tc.weight, Sum: tc.sum, Squares: tc.squares}
		if got := b.bound(0); got != tc.want && !(math.Abs(got-tc.want) < 1e-12) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// A switch is taken back when the jobs were there longer than was forecast of both candidates, by a hundredth; it is measured half a horizon later.
func TestBroken(t *testing.T) {
	for name, tc := range map[string]struct {
		now              float64
		ends             []float64 // of two jobs; the switch was at 100 s, the horizon is 400 s
		forecast, stayed float64
		want             bool
	}{
		"too early":                                                {299, []float64{0, 0}, 50, 50, false},
		"longer than both":                                         {300, []float64{0, 0}, 50, 50, true},
		"longer than forecast only":                                {300, []float64{200, 200}, 50, 150, false},
		"longer than without it only":                              {300, []float64{200, 200}, 150, 50, false},
		"a hundredth longer than forecast":                         {300, []float64{201, 201}, 100, 50, false},
		"more than that":                                           {300, []float64{202, 202}, 100, 50, true},
		"a hundredth longer than before":                           {300, []float64{201, 201}, 50, 100, false},
		"more than that longer than before":                        {300, []float64{202, 202}, 50, 100, true},
		"one ended, one did not":                                   {300, []float64{110, 0}, 104, 104, false},
		"one that ended late counts no more than one that did not": {900, []float64{110, 800}, 104, 104, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &promise{AtSeconds: 100, Jobs: []core.JobID{3, 5}, Ends: tc.ends, Forecast: []float64{tc.forecast, tc.forecast}, Stayed: []float64{tc.stayed, tc.stayed}}
			s := standing{Promise: p}
			got, why := s.broken(&core.View{NowSeconds: tc.now}, 400)
			if got != tc.want || (why != "") != tc.want {
				t.Errorf("to be taken back: %v, %q; want %v", got, why, tc.want)
			}
			if open := s.Promise != nil; open != (tc.now < 300 || tc.want) {
				t.Errorf("a promise is kept: %v", open)
			}
		})
	}
}

// What was kept of a run is taken only as a whole, and its promise only where it fits.
func TestRestoreRefusesWhatDoesNotFit(t *testing.T) {
	names := `"names": ["a", "b", "c"]`
	for name, tc := range map[string]struct {
		kept    string
		want    int // in force then: 2 was kept
		promise bool
	}{
		"it fits":                     {`"in_force": 2, "seconds": [1,2,3], "barred": [0,0,0], "failed": [0,0,0], ` + names, 2, false},
		"with a promise":              {`"in_force": 2, "seconds": [1,2,3], "barred": [0,0,0], "failed": [0,0,0], "promise": {"from": 0, "jobs": [4], "ends": [0]}, ` + names, 2, true},
		"a promise of nobody":         {`"in_force": 2, "seconds": [1,2,3], "barred": [0,0,0], "failed": [0,0,0], "promise": {"from": 3, "jobs": [4], "ends": [0]}, ` + names, 2, false},
		"a promise of nobody, either": {`"in_force": 2, "seconds": [1,2,3], "barred": [0,0,0], "failed": [0,0,0], "promise": {"from": -1, "jobs": [4], "ends": [0]}, ` + names, 2, false},
		"a promise without ends":      {`"in_force": 2, "seconds": [1,2,3], "barred": [0,0,0], "failed": [0,0,0], "promise": {"from": 0, "jobs": [4], "ends": []}, ` + names, 2, false},
		"nobody is in force":          {`"in_force": 3, "seconds": [1,2,3], "barred": [0,0,0], "failed": [0,0,0], ` + names, 0, false},
		"nobody is in force, either":  {`"in_force": -1, "seconds": [1,2,3], "barred": [0,0,0], "failed": [0,0,0], ` + names, 0, false},
		"fewer times":                 {`"in_force": 2, "seconds": [1,2], "barred": [0,0,0], "failed": [0,0,0], ` + names, 0, false},
		"fewer bars":                  {`"in_force": 2, "seconds": [1,2,3], "barred": [0,0], "failed": [0,0,0], ` + names, 0, false},
		"fewer failures":              {`"in_force": 2, "seconds": [1,2,3], "barred": [0,0,0], "failed": [0,0], ` + names, 0, false},
		"fewer names":                 {`"in_force": 2, "seconds": [1,2,3], "barred": [0,0,0], "failed": [0,0,0], "names": ["a", "b"]`, 0, false},
		"other names":                 {`"in_force": 2, "seconds": [1,2,3], "barred": [0,0,0], "failed": [0,0,0], "names": ["a", "b", "d"]`, 0, false},
	} {
		w := newWorld(t, settings(), gains)
		if err := w.s.Restore([]byte(`{"bandit": {"weight": [0,0,0], "sum": [0,0,0], "squares": [0,0,0], "in_force": [{"from": 0, "of": 0}, {"from": 1, "of": 2}]}, ` + tc.kept + `}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if w.s.is.InForce != tc.want || (w.s.is.Promise != nil) != tc.promise {
			t.Errorf("%s: %d is in force, promise %+v; want %d and a promise: %v", name, w.s.is.InForce, w.s.is.Promise, tc.want, tc.promise)
		}
	}
	for name, kept := range map[string]string{
		"fewer weights":       `"weight": [0,0], "sum": [0,0,0], "squares": [0,0,0]`,
		"fewer sums":          `"weight": [0,0,0], "sum": [0,0], "squares": [0,0,0]`,
		"fewer squares":       `"weight": [0,0,0], "sum": [0,0,0], "squares": [0,0]`,
		"a stay of nobody":    `"weight": [0,0,0], "sum": [0,0,0], "squares": [0,0,0], "in_force": [{"from": 0, "of": 2}, {"from": 1, "of": 3}]`,
		"a stay of number -1": `"weight": [0,0,0], "sum": [0,0,0], "squares": [0,0,0], "in_force": [{"from": 0, "of": -1}]`,
	} {
		w := newWorld(t, settings(), gains)
		if err := w.s.Restore([]byte(`{"bandit": {` + kept + `}, "in_force": 2, "seconds": [1,2,3], "barred": [0,0,0], "failed": [0,0,0], ` + names + `}`)); err != nil || w.s.is.InForce != 0 {
			t.Errorf("a bandit with %s: %d is in force, error %v", name, w.s.is.InForce, err)
		}
	}
}

// A job runs on what it asks for on as few nodes of a type as possible, the last one partly.
func TestRunningOn(t *testing.T) {
	c := &core.Cluster{Accelerators: []string{"t4", "v100", "a100"}, Nodes: []core.Node{{Devices: 2}, {Devices: 4}, {Accelerator: 2, Devices: 8}}}
	on := func(n int, name string, shape ...int) workload.Running {
		r := workload.Running{Replicas: n, Shape: shape}
		for range shape {
			r.Accelerators = append(r.Accelerators, name)
		}
		return r
	}
	for name, tc := range map[string]struct {
		spec core.JobSpec
		want []workload.Running
	}{
		"a part of a node":       {core.JobSpec{Requested: 3}, []workload.Running{on(3, "t4", 3), on(3, "a100", 3)}},
		"a node":                 {core.JobSpec{Requested: 4}, []workload.Running{on(4, "t4", 4), on(4, "a100", 4)}},
		"several nodes":          {core.JobSpec{Requested: 9}, []workload.Running{on(9, "t4", 4, 4, 1), on(9, "a100", 8, 1)}},
		"types of its choice":    {core.JobSpec{Requested: 1, Accelerators: []string{"v100", "a100"}}, []workload.Running{on(1, "a100", 1)}},
		"it asks for no devices": {core.JobSpec{}, []workload.Running{on(1, "t4", 1), on(1, "a100", 1)}},
	} {
		if diff := cmp.Diff(tc.want, runningOn(&tc.spec, c)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
