package core_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// judge ends jobs that report 1 or more, holds those back that report 0 or less, and admits nobody that reported before 180 s. A report of 7 prunes those that
// it holds back.
type judge struct {
	verdicts []core.Verdict // instead, in the round after the first
}

func (judge) Admit(_ context.Context, v *core.View, waiting []*core.Job) (verdicts []core.Verdict, err error) {
	for _, j := range waiting {
		if len(j.Reported) > 0 && v.NowSeconds < 180 {
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.AwaitingResults})
		}
	}
	return verdicts, nil
}

func (g judge) Review(_ context.Context, _ *core.View, reported []*core.Job) (verdicts []core.Verdict, err error) {
	if g.verdicts != nil {
		return g.verdicts, nil
	}
	best := 0.0
	for _, j := range reported {
		p, _ := j.Series("score").Latest()
		best = max(best, p.Value)
	}
	for _, j := range reported {
		switch p, _ := j.Series("score").Latest(); {
		case j.State == core.Pending && best == 7:
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.End, Reason: core.Pruned})
		case p.Value >= 1:
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.End, Reason: core.Converged})
		case p.Value <= 0:
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.AwaitingResults})
		}
	}
	return verdicts, nil
}

func judged(g judge) core.Stages {
	stages := fakes{}.stages()
	stages.Admission[0].Policy = g
	return stages
}

func reported(id core.JobID, at, step, value float64) core.Event {
	return core.Event{Kind: core.JobReported, AtSeconds: at, Job: id, Metric: "score", Step: step, Value: value}
}

func TestReview(t *testing.T) {
	first := []core.Event{submit(0, 0, 4), submit(1, 0, 4), submit(2, 0, 4)}
	for name, tc := range map[string]struct {
		rounds [][]core.Event
		want   []string
	}{
		"one that is good enough ends, and its devices go to the next at once": {
			[][]core.Event{first, {reported(0, 30, 1, 1)}},
			[]string{
				"1 at 0: active [0 1 2], waiting 1, used 8; start 0 0[0,1,2,3] by placement/fake; start 1 1[0,1,2,3] by placement/fake; 2 defer waiting_for_devices by placement/fake",
				"2 at 60: active [1 2], waiting 0, used 8; finish 0 converged by admission/fake; move 1 0[0,1,2,3] by placement/fake; start 2 1[0,1,2,3] by placement/fake; 0 end converged by admission/fake; 0 completed",
			},
		},
		"one that is held back comes again when it is admitted": {
			[][]core.Event{first, {reported(1, 30, 1, 0)}, nil, nil},
			[]string{
				"1 at 0: active [0 1 2], waiting 1, used 8; start 0 0[0,1,2,3] by placement/fake; start 1 1[0,1,2,3] by placement/fake; 2 defer waiting_for_devices by placement/fake",
				"2 at 60: active [0 2], waiting 0, used 8; pause 1 awaiting_results by admission/fake; start 2 1[0,1,2,3] by placement/fake; 1 defer awaiting_results by admission/fake",
				"3 at 120: active [0 2], waiting 0, used 8",
				"4 at 180: active [0 1 2], waiting 1, used 8; stop 2 preempted_by_priority by placement/fake; start 1 1[0,1,2,3] by placement/fake",
			},
		},
		"one without devices is held back, and ends, as well": {
			[][]core.Event{first, {reported(2, 30, 1, 0)}, {reported(2, 90, 2, 1)}, nil},
			[]string{
				"1 at 0: active [0 1 2], waiting 1, used 8; start 0 0[0,1,2,3] by placement/fake; start 1 1[0,1,2,3] by placement/fake; 2 defer waiting_for_devices by placement/fake",
				"2 at 60: active [0 1], waiting 0, used 8; pause 2 awaiting_results by admission/fake; 2 defer awaiting_results by admission/fake",
				"3 at 120: active [0 1], waiting 0, used 8; finish 2 converged by admission/fake; 2 end converged by admission/fake; 2 completed",
				"4 at 180: active [0 1], waiting 0, used 8",
			},
		},
		"one that is held back ends by what another one reports": {
			[][]core.Event{first, {reported(1, 30, 1, 0)}, {reported(0, 90, 2, 7)}, nil},
			[]string{
				"1 at 0: active [0 1 2], waiting 1, used 8; start 0 0[0,1,2,3] by placement/fake; start 1 1[0,1,2,3] by placement/fake; 2 defer waiting_for_devices by placement/fake",
				"2 at 60: active [0 2], waiting 0, used 8; pause 1 awaiting_results by admission/fake; start 2 1[0,1,2,3] by placement/fake; 1 defer awaiting_results by admission/fake",
				"3 at 120: active [2], waiting 0, used 4; finish 0 converged by admission/fake; finish 1 pruned by admission/fake; move 2 0[0,1,2,3] by placement/fake; 0 end converged by admission/fake; 1 end pruned by admission/fake; 0 completed; 1 completed",
				"4 at 180: active [2], waiting 0, used 4",
			},
		},
		"what a job that has ended reports is nothing": {
			[][]core.Event{first[:1], {reported(0, 30, 1, 1)}, {reported(0, 90, 2, 0)}},
			[]string{
				"1 at 0: active [0], waiting 0, used 4; start 0 0[0,1,2,3] by placement/fake",
				"2 at 60: active [], waiting 0, used 0; finish 0 converged by admission/fake; 0 end converged by admission/fake; 0 completed",
				"3 at 120: active [], waiting 0, used 0",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, told := &script{}, &story{}
			for i, events := range tc.rounds {
				b.observations = append(b.observations, core.Observation{NowSeconds: 60 * float64(i), Events: events})
			}
			p := core.NewPipeline(twoNodes(), judged(judge{}), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{told}})
			if err := p.Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, told.rounds); diff != "" {
				t.Error("want, got:", diff)
			}
		})
	}
}

func TestAJobHeldBackIsAskedAboutInTheNextRound(t *testing.T) {
	for name, tc := range map[string]struct{ interval, want float64 }{
		"on a grid":      {60, 120},
		"on events only": {0, 60},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{
				{Events: []core.Event{submit(0, 0, 4)}}, {NowSeconds: 60, Events: []core.Event{reported(0, 30, 1, 0)}},
			}}
			p := core.NewPipeline(twoNodes(), judged(judge{}), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: tc.interval, OnEvents: true}})
			if err := p.Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if got := b.wakes[2].BySeconds; got != tc.want {
				t.Errorf("the next round is due by %v, want %v", got, tc.want)
			}
		})
	}
}

func TestReviewOfOthersIsRefused(t *testing.T) {
	for name, verdicts := range map[string][]core.Verdict{
		"a job that is not there":     {{Job: 7, Code: core.End}},
		"a job twice":                 {{Job: 0, Code: core.End}, {Job: 0, Code: core.Defer}},
		"jobs out of order":           {{Job: 1, Code: core.End}, {Job: 0, Code: core.End}},
		"a rejection":                 {{Job: 0, Code: core.Reject}},
		"a reason out of the list":    {{Job: 0, Code: core.End, Reason: core.AwaitingResults + 1}},
		"a job that nobody held back": {{Job: 2, Code: core.End}},
		"a pinned job held back":      {{Job: 1, Code: core.Defer, Reason: core.AwaitingResults}},
		"evidence that is no number":  {{Job: 0, Code: core.Defer, Wanted: math.NaN()}},
	} {
		t.Run(name, func(t *testing.T) {
			first := []core.Event{submit(0, 0, 4), submit(1, 0, 4), submit(2, 0, 4)}
			first[1].Spec.Pinned, first[2].Spec.Suspended = true, true
			b := &script{observations: []core.Observation{{Events: first}, {NowSeconds: 60, Events: []core.Event{reported(0, 30, 1, 0.5)}}}}
			p := core.NewPipeline(twoNodes(), judged(judge{verdicts: verdicts}), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
			if err := p.Run(t.Context(), b); err == nil {
				t.Error("no error, want a broken invariant")
			}
		})
	}
}

// While jobs are held back, a round in which something happened is followed by another, also without an interval, and a quiet one is not.
func TestRoundsFollowWhileJobsAreHeldBack(t *testing.T) {
	b := &script{observations: []core.Observation{
		{Events: []core.Event{submit(0, 0, 4), submit(1, 0, 4)}},
		{NowSeconds: 60, Events: []core.Event{reported(0, 60, 1, 0)}},
		{NowSeconds: 60},
		{NowSeconds: 61},
		{NowSeconds: 70, Events: []core.Event{{Kind: core.JobFinished, AtSeconds: 70, Job: 1}}},
		{NowSeconds: 70},
		{NowSeconds: 80, Events: []core.Event{{Kind: core.JobProgressed, AtSeconds: 80, Job: 0}}},
	}}
	p := core.NewPipeline(twoNodes(), judged(judge{}), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}})
	if err := p.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var by []float64
	for _, w := range b.wakes {
		by = append(by, w.BySeconds)
	}
	never := math.Inf(1)
	if diff := cmp.Diff([]float64{never, never, 60, never, never, 70, never, never}, by); diff != "" {
		t.Error("rounds due by, want, got:", diff)
	}
}

// patient is a judge that wants to look again at jobs held back at a moment.
type patient struct {
	judge
	until float64
}

func (p patient) Standing() core.Standing { return core.Standing{UntilSeconds: p.until} }

// A reviewer is asked again at the moment that it names while jobs are held back, also without an interval; other admitters are not, nor is one whose moment is gone.
func TestReviewersNameTheMomentOfTheNextRound(t *testing.T) {
	never := math.Inf(1)
	for name, tc := range map[string]struct {
		admitter core.Admitter
		interval float64
		want     []float64
	}{
		"a moment":              {patient{until: 70}, 0, []float64{never, never, 60, 70, never}},
		"on a grid":             {patient{until: 170}, 60, []float64{never, 180, 120, 180, 180}},
		"no reviewer":           {steadyAdmit{admitAll{}, core.Standing{UntilSeconds: 70}}, 0, []float64{never, never, never, never, never}},
		"one that does not say": {judge{}, 0, []float64{never, never, 60, never, never}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{
				{Events: []core.Event{submit(0, 0, 4), submit(1, 0, 4)}},
				{NowSeconds: 60, Events: []core.Event{reported(0, 60, 1, 0)}},
				{NowSeconds: 60},
				{NowSeconds: 75},
			}}
			stages := steady(forEver)
			stages.Admission[0].Policy = tc.admitter
			p := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: tc.interval, OnEvents: true}})
			if err := p.Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, b.dueBy()); diff != "" {
				t.Error("rounds due by, want, got:", diff)
			}
		})
	}
}

// obituary is a judge that is told how jobs end.
type obituary struct {
	judge
	told *[]string
}

func (o obituary) Ended(_ context.Context, v *core.View, jobs []*core.Job) error {
	for _, j := range jobs {
		p, _ := j.Series("score").Latest()
		*o.told = append(*o.told, fmt.Sprintf("round %d: %d %v with %v", v.Round, j.ID, j.State, p.Value))
	}
	return nil
}

// A reviewer that is a historian is told of jobs that ended, with what they reported last, and once.
func TestReviewersAreToldOfEnds(t *testing.T) {
	var got []string
	stages := judged(judge{})
	stages.Admission[0].Policy = obituary{told: &got}
	b := &script{observations: []core.Observation{
		{Events: []core.Event{submit(0, 0, 4), submit(1, 0, 4)}},
		{NowSeconds: 60, Events: []core.Event{reported(0, 60, 1, 0.25), {Kind: core.JobFinished, AtSeconds: 60, Job: 0}, reported(1, 60, 1, 1)}},
		{NowSeconds: 120},
	}}
	p := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
	if err := p.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"round 2: 0 completed with 0.25"}, got); diff != "" {
		t.Error("want, got:", diff)
	}
}

// A round that an earlier scheduler held stands, whatever the reviewer answers now.
func TestReviewsOfBeforeStand(t *testing.T) {
	seats := []core.Seat{{Node: 0, Devices: core.FirstDevices(4)}}
	start := core.Change{Round: 1, Action: core.Start, Job: 0, Seats: seats, By: "placement/fake"}
	for name, tc := range map[string]struct {
		value float64
		was   core.Change
		want  string
	}{
		"as before":            {1, core.Change{Round: 2, Action: core.Finish, Job: 0, Reason: core.Converged, By: "admission/fake"}, "active [], waiting 0, used 0"},
		"paused, now ended":    {1, core.Change{Round: 2, Action: core.Pause, Job: 0, Reason: core.AwaitingResults, By: "admission/fake"}, "active [], waiting 0, used 0"},
		"ended, now held back": {0, core.Change{Round: 2, Action: core.Finish, Job: 0, Reason: core.Pruned, By: "admission/fake"}, "active [], waiting 0, used 0"},
		"ended, now going on":  {0.5, core.Change{Round: 2, Action: core.Finish, Job: 0, Reason: core.Pruned, By: "admission/fake"}, "active [], waiting 0, used 0"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, same := range []bool{true, false} {
				b, told := &script{}, &story{}
				b.observations = []core.Observation{
					{Events: []core.Event{submit(0, 0, 4)}, Decided: &core.Decided{Same: same, Changes: []core.Change{start}}},
					{NowSeconds: 60, Events: []core.Event{reported(0, 30, 1, tc.value)}, Decided: &core.Decided{Same: same, Changes: []core.Change{tc.was}}},
				}
				p := core.NewPipeline(twoNodes(), judged(judge{}), core.PipelineOptions{
					Rounds:    core.RoundOptions{IntervalSeconds: 60},
					Observers: []core.Observer{told},
					Memory:    &memory{replay: b},
					NewStages: func(context.Context) (core.Stages, error) { return judged(judge{}), nil },
				})
				if err := p.Run(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				want := fmt.Sprintf("2 at 60: %s, repeated; %v 0 %v by admission/fake", tc.want, tc.was.Action, tc.was.Reason)
				if got := told.rounds[1]; len(got) < len(want) || got[:len(want)] != want {
					t.Errorf("same %v: got\n%s, want\n%s", same, got, want)
				}
			}
		})
	}
}

func TestSeries(t *testing.T) {
	j := core.NewJob(&core.JobSpec{ID: 0, Name: "a"})
	if p, ok := j.Series("loss").Latest(); ok {
		t.Errorf("got %v of a job that told nothing", p)
	}
	b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 4)}}}}
	for i := range 3000 {
		b.observations = append(b.observations, core.Observation{NowSeconds: float64(i + 1), Events: []core.Event{reported(0, float64(i), float64(i), float64(-i))}})
	}
	b.observations = append(b.observations, core.Observation{NowSeconds: 3001, Events: []core.Event{reported(0, 3001, 2998, 7)}})
	var last *core.Job
	p := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 1}, Observers: []core.Observer{watch(func(r *core.Report) { last = r.View.Job(0) })}})
	if err := p.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	s := last.Series("score")
	if n := len(s.Points); n > core.MostPoints || n < core.MostPoints/2 {
		t.Errorf("%d points are kept", n)
	}
	for i, p := range s.Points[1:] {
		if p.Step <= s.Points[i].Step {
			t.Fatalf("step %v after %v", p.Step, s.Points[i].Step)
		}
	}
	if got, _ := s.Latest(); got.Value != 7 || got.Step != 2998 || s.Points[0].Step != 0 {
		t.Errorf("got %v last and %v first; what is computed anew takes the place of what was told", got, s.Points[0])
	}
}

type watch func(r *core.Report)

func (w watch) ObserveRound(r *core.Report) error {
	w(r)
	return nil
}

// following is an elasticity that may follow reports, and notes of which jobs it was asked in which round, with how many reports.
type following struct {
	rigid
	follows bool
	asked   *[]string
}

func (f following) FollowsReports() bool { return f.follows }

func (f following) Respond(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	for _, j := range jobs {
		if s := j.Series("score"); s != nil {
			*f.asked = append(*f.asked, fmt.Sprintf("round %d: job %d with %d", v.Round, j.ID, len(s.Points)))
		}
	}
	return f.rigid.Respond(ctx, v, jobs)
}

// A report wakes the pipeline for an observer that decides by reports.
func TestReportsWakeWhoHearsThem(t *testing.T) {
	b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 4)}}, {NowSeconds: 60}}}
	p := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, WakeOnReports: true})
	if err := p.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for i, w := range b.wakes {
		if !w.OnReports {
			t.Errorf("wake %d is not on reports", i)
		}
	}
	if len(b.wakes) < 2 {
		t.Errorf("%d wakes", len(b.wakes))
	}
}

// A report wakes the pipeline for an elasticity that follows reports, and for no other one. It is asked about the job in the very round.
func TestReportsWakeWhoFollowsThem(t *testing.T) {
	for name, follows := range map[string]bool{"follows": true, "does not": false} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			stages := fakes{}.stages()
			stages.Elasticity.Policy = following{follows: follows, asked: &asked}
			b := &script{observations: []core.Observation{
				{Events: []core.Event{submit(0, 0, 4), submit(1, 0, 4)}}, {NowSeconds: 60, Events: []core.Event{reported(1, 30, 1, 0.5), reported(1, 40, 2, 0.4)}}, {NowSeconds: 120},
			}}
			p := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
			if err := p.Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			for i, w := range b.wakes {
				if w.OnReports != follows {
					t.Errorf("wake %d on reports: %t, want %t", i, w.OnReports, follows)
				}
			}
			if diff := cmp.Diff([]string{"round 2: job 1 with 2"}, asked); diff != "" {
				t.Error("want, got:", diff)
			}
		})
	}
}
