package host_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/plugins/faulty"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

func faultyReview(t *testing.T, c faulty.Config, o host.Options) core.Stages {
	t.Helper()
	spec := host.Spec[core.Admitter]{ID: "admission/faulty_review", Plugin: "faulty", Options: o, Fallback: &faulty.Reviewer{}}
	spec.Dial = dialFaulty(host.Component{Stage: stagev1.Stage_STAGE_ADMISSION, Type: "faulty_review", ID: spec.ID, Config: core.Encode(c)})
	admitter, err := host.Admitter(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, admitter)
	stages := goodStages()
	stages.Admission[0] = core.Component[core.Admitter]{ID: spec.ID, Policy: admitter}
	return stages
}

// changes notes what happens to jobs, round by round.
type changes []string

func (c *changes) ObserveRound(r *core.Report) error {
	text := fmt.Sprintf("%d: active %v", r.View.Round, r.View.Active)
	for _, change := range r.Changes {
		text += fmt.Sprintf(", %v %d", change.Action, change.Job)
	}
	for _, j := range r.Ended {
		text += fmt.Sprintf(", %d %v", j.ID, j.State)
	}
	*c = append(*c, text)
	return nil
}

// silent is a backend that is told, and tells nothing.
type silent struct{}

func (silent) Next(context.Context, core.Wake) (core.Observation, error) { panic("called by hand") }
func (silent) Apply(context.Context, []core.Change) error                { return nil }
func (silent) Capabilities() []core.Capability                           { return nil }

// review holds rounds in which jobs report: one is held back in the second, and two end, in the third and in the fourth.
func review(t *testing.T, stages core.Stages) (changes, error) {
	t.Helper()
	var seen changes
	p := core.NewPipeline(coretest.MakeCluster().Nodes(2, "t4", 2).Obj(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&seen}})
	var first []core.Event
	for id := range core.JobID(4) {
		spec := coretest.MakeJob(fmt.Sprint("job-", id)).ID(id).Replicas(1).Obj().JobSpec
		first = append(first, core.Event{Kind: core.JobSubmitted, Job: id, Spec: spec, StepsLeft: math.NaN()})
	}
	score := func(id core.JobID, step, value float64) core.Event {
		return core.Event{Kind: core.JobReported, Job: id, AtSeconds: 60 * step, Metric: "score", Step: step, Value: value}
	}
	for round, events := range [][]core.Event{first, {score(0, 1, 0.5), score(1, 1, -1)}, {score(0, 2, 1), score(2, 2, 0.5)}, {score(2, 3, 1)}, nil} {
		if err := p.Round(t.Context(), core.Observation{NowSeconds: 60 * float64(round), Events: events}, silent{}); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// A review that goes wrong is told, and survived by a restart and by a built-in that reviews: whoever takes over decides the same.
func TestReviewsThatGoWrong(t *testing.T) {
	t.Parallel()
	stages := goodStages()
	stages.Admission[0].Policy = &faulty.Reviewer{}
	want, err := review(t, stages)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(changes{
		"1: active [0 1 2 3], start 0, start 1, start 2, start 3", "2: active [0 2 3], pause 1", "3: active [1 2 3], finish 0, start 1, 0 completed",
		"4: active [1 3], finish 2, 2 completed", "5: active [1 3]",
	}, want); diff != "" {
		t.Fatalf("with a built-in (-want +got):\n%s", diff)
	}
	messages := openGolden(t, "reviews")
	for _, fault := range append([]string{"panic", "exit", "kill", "hang", "error"}, faulty.ReviewAnswers...) {
		limit := time.Duration(0)
		if fault == "hang" {
			limit = 600 * time.Millisecond
		}
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			_, err := review(t, faultyReview(t, faulty.Config{Fault: fault}, limited(host.Fail, limit)))
			messages.compare(t, fault, err)
			for on, trouble := range map[host.OnFailure]host.Trouble{host.Restart: {Restarts: 1}, host.Fallback: {Fallback: true}} {
				stages := faultyReview(t, faulty.Config{Fault: fault, Marker: filepath.Join(t.TempDir(), string(on))}, limited(on, limit))
				got, err := review(t, stages)
				if err != nil {
					t.Fatalf("%s: %v", on, err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: -undisturbed +disturbed:\n%s", on, diff)
				}
				told, _ := stages.Admission[0].Policy.(interface{ Trouble() (host.Trouble, bool) }).Trouble()
				if told.Restarts != trouble.Restarts || told.Fallback != trouble.Fallback {
					t.Errorf("%s: trouble %+v", on, told)
				}
			}
		})
	}
}

// heard is a plugin that notes which calls it gets, and whether they tell what jobs report.
type heard struct {
	scripted
	calls []string
}

func (p *heard) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	text := filepath.Base(method)
	for _, j := range request.(interface{ GetView() *stagev1.ViewUpdate }).GetView().GetJobs() {
		text += fmt.Sprintf(" %d:%d", j.GetId(), len(j.GetReported()))
		if j.GetResponse() != nil {
			text += "+"
		}
	}
	p.calls = append(p.calls, text)
	if review, is := answer.(*stagev1.ReviewResponse); is {
		review.Verdicts = []*stagev1.Verdict{{Job: 1, Code: stagev1.Code_CODE_END, Reason: "converged"}}
		return nil
	}
	return p.scripted.Invoke(ctx, method, request, answer, options...)
}

// A process is asked to review only if it says that it does, hears of reports only if it knows them, and what it answers leaves the standing
// of its last admission as it was.
func TestWhoReviews(t *testing.T) {
	t.Parallel()
	until := &stagev1.AdmitResponse{Standing: &stagev1.Standing{UntilSeconds: 500}}
	ended := []core.Verdict{{Job: 1, Code: core.End, Reason: core.Converged}}
	for name, tc := range map[string]struct {
		traits  wire.Abilities
		instead core.Admitter
		reviews bool
		want    []core.Verdict
		calls   []string
	}{
		"it reviews":                  {traits: wire.Able(wire.ReviewsJobs, wire.KnowsReports), reviews: true, want: ended, calls: []string{"Admit 0:0 1:0", "Review 1:1", "Admit"}},
		"it does not":                 {traits: wire.Able(wire.KnowsReports), calls: []string{"Admit 0:0 1:0", "Admit 1:1"}},
		"it was built before":         {calls: []string{"Admit 0:0 1:0", "Admit 1:0"}},
		"only who may take over does": {traits: wire.Able(wire.KnowsReports), instead: &faulty.Reviewer{}, reviews: true, calls: []string{"Admit 0:0 1:0", "Admit 1:1"}},
		"it reviews and looks at curves": {
			traits: wire.Able(wire.ReviewsJobs, wire.KnowsReports, wire.UsesCurves), reviews: true, want: ended, calls: []string{"Admit 0:0+ 1:0+", "Review 1:1", "Admit 1:0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugin := &heard{scripted: scripted{answers: []proto.Message{until}}}
			on := host.Fail
			if tc.instead != nil {
				on = host.Fallback
			}
			stage, err := host.Admitter(t.Context(), host.Spec[core.Admitter]{
				ID: "admission/heard", Plugin: "heard", Options: quickly(on), Fallback: tc.instead,
				Dial: func(context.Context) (*host.Session, error) {
					return &host.Session{Conn: plugin, Close: func() {}, Abilities: tc.traits}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(coretest.MakeJob("quiet").Waiting(), coretest.MakeJob("reports").Waiting()).Obj()
			admit := func() {
				var err error
				if curves, looks := stage.(core.CurveAdmitter); looks {
					_, err = curves.AdmitCandidates(t.Context(), v, coretest.Candidates(v, coretest.Rigid), nil)
				} else {
					_, err = stage.Admit(t.Context(), v, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			r, reviews := stage.(core.Reviewer)
			if reviews != tc.reviews {
				t.Fatalf("reviews: %v, want %v", reviews, tc.reviews)
			}
			admit()
			v.Jobs[1].Reported = []core.Series{{Metric: "score", Points: []core.Point{{Step: 1, Value: 1}}}}
			v.NoteChange(1)
			if reviews {
				got, err := r.Review(t.Context(), v, v.Jobs[1:])
				if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
					t.Errorf("error %v, -want +got:\n%s", err, diff)
				}
				if s := stage.(core.Steady).Standing(); s.UntilSeconds != 500 {
					t.Errorf("after a review the admission stands %+v", s)
				}
			}
			admit()
			if diff := cmp.Diff(tc.calls, plugin.calls); diff != "" {
				t.Errorf("calls: -want +got:\n%s", diff)
			}
		})
	}
}

// Reports call for rounds where the elasticity that answers now says that it follows them.
func TestWhoFollowsReports(t *testing.T) {
	t.Parallel()
	for name, traits := range map[string]wire.Abilities{"it follows": wire.Able(wire.KnowsReports, wire.FollowsReports), "it does not": wire.Able(wire.KnowsReports)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage, err := host.Elasticity(t.Context(), host.Spec[core.Elasticity]{
				ID: "elasticity/heard", Plugin: "heard", Options: quickly(host.Fail),
				Dial: func(context.Context) (*host.Session, error) {
					return &host.Session{Conn: &heard{}, Close: func() {}, Abilities: traits}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := stage.(core.ReportFollower).FollowsReports(); got != traits.Has(wire.FollowsReports) {
				t.Errorf("follows reports: %v, want %v", got, traits.Has(wire.FollowsReports))
			}
		})
	}
}
