package host_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// scripted is a plugin that answers each question as the test says, and notes how each was put.
type scripted struct {
	answers []proto.Message // the last one again for ever; nil fails
	asked   []string
	closed  int
}

func (s *scripted) Invoke(_ context.Context, _ string, request, answer any, _ ...grpc.CallOption) error {
	next := s.answers[min(len(s.asked), len(s.answers)-1)]
	s.asked = append(s.asked, inShort(request.(proto.Message)))
	if next == nil {
		return status.Error(codes.Internal, "the model is not loaded")
	}
	proto.Merge(answer.(proto.Message), next)
	return nil
}

func (*scripted) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("no streams")
}

// inShort is how a question was put: whether it tells the whole view, and its lists, as an edit and the number of new items.
func inShort(request proto.Message) string {
	text := "part"
	if request.(interface{ GetView() *stagev1.ViewUpdate }).GetView().GetFull() {
		text = "full"
	}
	list := func(edit *stagev1.Edit, fresh int) { text += fmt.Sprintf(" %v+%d", edit.GetSteps(), fresh) }
	switch r := request.(type) {
	case *stagev1.AdmitRequest:
		list(r.GetEdit(), len(r.GetWaiting()))
	case *stagev1.PlaceRequest:
		list(r.GetEdit(), len(r.GetGrants()))
	case *stagev1.RespondRequest:
		text += fmt.Sprintf(" %v", r.GetJobs())
		for _, e := range r.GetEnded() {
			text += fmt.Sprintf(" ended %d %v", e.GetId(), e.GetOutcome())
		}
	case *stagev1.TuneRequest:
		list(r.GetEdit(), len(r.GetPlacements()))
	case *stagev1.ScaleRequest:
		for _, j := range r.GetView().GetJobs() {
			text += fmt.Sprintf(" job %d at least %d", j.GetId(), j.GetResponse().GetMinReplicas())
		}
		list(r.GetGrantsEdit(), len(r.GetGrants()))
		list(r.GetPlacementsEdit(), len(r.GetPlacements()))
		text += fmt.Sprintf(" %d tunings", len(r.GetTunings()))
	}
	return text
}

// builtIn answers in place of a plugin. It is a policy of every stage.
type builtIn struct{ ended int }

func (*builtIn) Admit(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) {
	return []core.Verdict{{Job: 5}}, nil
}

func (*builtIn) Allocate(context.Context, *core.View, []core.Candidate) ([]core.Grant, error) {
	return []core.Grant{{Job: 5}}, nil
}

func (*builtIn) Place(context.Context, *core.View, []core.Grant) (core.Seating, error) {
	return core.Seating{Placed: []core.Placement{{Job: 5}}}, nil
}

func (*builtIn) Respond(context.Context, *core.View, []*core.Job) ([]core.Response, error) {
	return []core.Response{{Job: 5}}, nil
}

func (*builtIn) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	return []core.Tuning{{Job: 5}}, nil
}

func (*builtIn) Scale(context.Context, *core.View, *core.Plan) (core.ClusterTarget, error) {
	return core.ClusterTarget{Nodes: 5}, nil
}

func (b *builtIn) Ended(_ context.Context, _ *core.View, jobs []*core.Job) error {
	b.ended += len(jobs)
	return nil
}

// steadyBuiltIn also says how long its answers stand, and how good they are.
type steadyBuiltIn struct{ builtIn }

func (*steadyBuiltIn) Standing() core.Standing { return core.Standing{UntilSeconds: 77} }
func (*steadyBuiltIn) GapRatio() float64       { return 0.75 }

// everyStage is what builtIn and steadyBuiltIn are.
type everyStage interface {
	core.Admitter
	core.Allocator
	core.Placer
	core.Elasticity
	core.ClusterScaler
}

// reached is a stage whose process is the script, as host.Reach makes it.
func reached[S any](t *testing.T, plugin *scripted, on host.OnFailure, instead everyStage) S {
	t.Helper()
	policy, _ := any(instead).(S)
	stage, err := host.Reach(t.Context(), host.Spec[S]{
		ID: "stage/scripted", Plugin: "scripted", Options: quickly(on), Fallback: policy,
		Dial: func(context.Context) (*host.Session, error) {
			return &host.Session{Conn: plugin, Close: func() { plugin.closed++ }, Abilities: wire.Able(wire.LearnsFromEnds)}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return stage
}

// question is a call of a stage.
type question func(*core.View) (any, error)

var (
	seats      = []core.Seat{{Node: 0, Devices: 1}}
	grants     = []core.Grant{{Job: 0, Replicas: 1}}
	placements = []core.Placement{{Job: 0, Seats: seats}}
)

// opened lists the calls of all stages, as questions to a script.
var opened = map[string]struct {
	open func(t *testing.T, s *scripted, on host.OnFailure, instead everyStage) (stage any, ask question)
	// answer is to a full view, and again is the same answer to one that is told in part.
	answer, again proto.Message
	resync        proto.Message
	want, instead any
	first, later  string // how the question is put with a full view, and after it
}{
	"admit": {
		open: func(t *testing.T, s *scripted, on host.OnFailure, instead everyStage) (any, question) {
			stage := reached[core.Admitter](t, s, on, instead)
			return stage, func(v *core.View) (any, error) { return stage.Admit(t.Context(), v, v.Jobs) }
		},
		answer: &stagev1.AdmitResponse{Edit: insert(1), Verdicts: []*stagev1.Verdict{{Job: 0, Code: stagev1.Code_CODE_DEFER, Reason: "policy_decision"}}},
		again:  &stagev1.AdmitResponse{Edit: keep(1)}, resync: &stagev1.AdmitResponse{Resync: true},
		want: []core.Verdict{{Job: 0, Code: core.Defer, Reason: core.PolicyDecision}}, instead: []core.Verdict{{Job: 5}},
		first: "full [0 0 1]+1", later: "part [0 1 0]+0",
	},
	"allocate": {
		open: func(t *testing.T, s *scripted, on host.OnFailure, instead everyStage) (any, question) {
			stage := reached[core.Allocator](t, s, on, instead)
			return stage, func(v *core.View) (any, error) {
				return stage.Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid))
			}
		},
		answer: &stagev1.AllocateResponse{Edit: insert(1), Grants: []*stagev1.Grant{{Job: 0, Replicas: 2}}},
		again:  &stagev1.AllocateResponse{Edit: keep(1)}, resync: &stagev1.AllocateResponse{Resync: true},
		want: []core.Grant{{Job: 0, Replicas: 2}}, instead: []core.Grant{{Job: 5}},
		first: "full", later: "part",
	},
	"place": {
		open: func(t *testing.T, s *scripted, on host.OnFailure, instead everyStage) (any, question) {
			stage := reached[core.Placer](t, s, on, instead)
			return stage, func(v *core.View) (any, error) {
				seating, err := stage.Place(t.Context(), v, grants)
				for i := range seating.Unseated { // as the pipeline does: what is kept must come unsigned again
					if seating.Unseated[i].By != "" {
						return nil, fmt.Errorf("signed by %q", seating.Unseated[i].By)
					}
				}
				got := core.Seating{Placed: seating.Placed, Unseated: append([]core.Verdict(nil), seating.Unseated...)}
				for i := range seating.Unseated {
					seating.Unseated[i].By = "placement/scripted"
				}
				return got, err
			}
		},
		answer: &stagev1.PlaceResponse{
			PlacedEdit: insert(1), Placed: []*stagev1.Placement{{Job: 0, Seats: []*stagev1.Seat{{Node: 0, Devices: 1}}}},
			UnseatedEdit: insert(1), Unseated: []*stagev1.Verdict{{Job: 1, Code: stagev1.Code_CODE_DEFER, Reason: "fragmented"}},
		},
		again: &stagev1.PlaceResponse{PlacedEdit: keep(1), UnseatedEdit: keep(1)}, resync: &stagev1.PlaceResponse{Resync: true},
		want:    core.Seating{Placed: placements, Unseated: []core.Verdict{{Job: 1, Code: core.Defer, Reason: core.Fragmented}}},
		instead: core.Seating{Placed: []core.Placement{{Job: 5}}},
		first:   "full [0 0 1]+1", later: "part [0 1 0]+0",
	},
	"respond": {
		open: func(t *testing.T, s *scripted, on host.OnFailure, instead everyStage) (any, question) {
			stage := reached[core.Elasticity](t, s, on, instead)
			return stage, func(v *core.View) (any, error) { return stage.Respond(t.Context(), v, v.Jobs) }
		},
		answer: &stagev1.RespondResponse{Responses: []*stagev1.Response{{Job: 0, MinReplicas: 1, MaxReplicas: 3}}},
		again:  &stagev1.RespondResponse{Responses: []*stagev1.Response{{Job: 0, MinReplicas: 1, MaxReplicas: 3}}},
		resync: &stagev1.RespondResponse{Resync: true},
		want:   []core.Response{{Job: 0, MinReplicas: 1, MaxReplicas: 3}}, instead: []core.Response{{Job: 5}},
		first: "full [0]", later: "part [0]",
	},
	"tune": {
		open: func(t *testing.T, s *scripted, on host.OnFailure, instead everyStage) (any, question) {
			stage := reached[core.Elasticity](t, s, on, instead)
			return stage, func(v *core.View) (any, error) { return stage.Tune(t.Context(), v, placements) }
		},
		answer: &stagev1.TuneResponse{Tunings: []*stagev1.Tuning{{Job: 0, BatchPerDevice: 8}}},
		again:  &stagev1.TuneResponse{Tunings: []*stagev1.Tuning{{Job: 0, BatchPerDevice: 8}}},
		resync: &stagev1.TuneResponse{Resync: true},
		want:   []core.Tuning{{Job: 0, BatchPerDevice: 8}}, instead: []core.Tuning{{Job: 5}},
		first: "full [0 0 1]+1", later: "part [0 1 0]+0",
	},
	"scale": {
		open: func(t *testing.T, s *scripted, on host.OnFailure, instead everyStage) (any, question) {
			stage := reached[core.ClusterScaler](t, s, on, instead)
			return stage, func(v *core.View) (any, error) {
				return stage.Scale(t.Context(), v, &core.Plan{
					Grants: grants, Placements: placements, Tunings: []core.Tuning{{}}, Candidates: coretest.Candidates(v, coretest.Rigid),
				})
			}
		},
		answer: &stagev1.ScaleResponse{Pools: []*stagev1.PoolTarget{{Pool: "p", Nodes: 2, Remove: []int32{4, 1}, Message: "why"}, {Pool: "q"}}},
		again:  &stagev1.ScaleResponse{Pools: []*stagev1.PoolTarget{{Pool: "p", Nodes: 2, Remove: []int32{4, 1}, Message: "why"}, {Pool: "q"}}},
		resync: &stagev1.ScaleResponse{Resync: true},
		want: core.ClusterTarget{Pools: []core.PoolTarget{
			{Pool: "p", Nodes: 2, Remove: []core.NodeID{4, 1}, Message: "why"}, {Pool: "q"},
		}},
		instead: core.ClusterTarget{Nodes: 5},
		first:   "full job 0 at least 1 [0 0 1]+1 [0 0 1]+1 1 tunings", later: "part [0 1 0]+0 [0 1 0]+0 1 tunings",
	},
}

func insert(n uint32) *stagev1.Edit { return &stagev1.Edit{Steps: []uint32{0, 0, n}} }
func keep(n uint32) *stagev1.Edit   { return &stagev1.Edit{Steps: []uint32{0, n, 0}} }

// oneWaiting is a view in which one job waits.
func oneWaiting() *core.View {
	return coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(coretest.MakeJob("only").Replicas(1).Waiting()).Obj()
}

// askedFor asks n times, in one round after the other.
func askedFor(n int, ask question) (answers []any, err error) {
	v := oneWaiting()
	for range n {
		v.Round++
		answer, err := ask(v)
		if err != nil {
			return answers, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// A stage answers what the process answered, tells it only what changed, and everything anew when it asks for that.
func TestAStageAnswersWhatItsProcessDoes(t *testing.T) {
	for name, tc := range opened {
		for script, play := range map[string]struct {
			answers []proto.Message
			want    []string
		}{
			"nothing is forgotten": {[]proto.Message{tc.answer, tc.again}, []string{tc.first, tc.later, tc.later}},
			"forgotten later":      {[]proto.Message{tc.answer, tc.resync, tc.answer, tc.again}, []string{tc.first, tc.later, tc.first, tc.later}},
			"forgotten at first":   {[]proto.Message{tc.resync, tc.answer, tc.again}, []string{tc.first, tc.first, tc.later, tc.later}},
		} {
			t.Run(name+"/"+script, func(t *testing.T) {
				plugin := &scripted{answers: play.answers}
				_, ask := tc.open(t, plugin, host.Fail, nil)
				got, err := askedFor(3, ask)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]any{tc.want, tc.want, tc.want}, got, cmpopts.EquateNaNs()); diff != "" {
					t.Errorf("answers -want +got:\n%s", diff)
				}
				if diff := cmp.Diff(play.want, plugin.asked); diff != "" {
					t.Errorf("questions -want +got:\n%s", diff)
				}
			})
		}
	}
}

// What a process keeps of a list before the whole view was told is lost.
func TestNothingIsKeptPastAWholeView(t *testing.T) {
	for name, again := range map[string]proto.Message{
		"admit":    &stagev1.AdmitResponse{Edit: keep(1)},
		"allocate": &stagev1.AllocateResponse{Edit: keep(1)},
		"place":    &stagev1.PlaceResponse{PlacedEdit: keep(1)},
		"unseat":   &stagev1.PlaceResponse{UnseatedEdit: keep(1)},
	} {
		t.Run(name, func(t *testing.T) {
			tc, known := opened[name]
			if !known {
				tc = opened["place"]
			}
			plugin := &scripted{answers: []proto.Message{tc.answer, tc.resync, again}}
			_, ask := tc.open(t, plugin, host.Fail, nil)
			if answers, err := askedFor(2, ask); err == nil || !strings.Contains(err.Error(), "an edit does not fit the list that it is for") {
				t.Errorf("%v, error %v", answers, err)
			}
			if plugin.closed != 1 {
				t.Errorf("the process was closed %d times", plugin.closed)
			}
		})
	}
}

func TestAnAnswerThatCannotBeReadFails(t *testing.T) {
	wrong := []*stagev1.Verdict{{Job: 0, Code: 99}}
	for name, tc := range map[string]struct {
		call   string
		answer proto.Message
	}{
		"an unknown verdict":           {"admit", &stagev1.AdmitResponse{Edit: insert(1), Verdicts: wrong}},
		"an unknown verdict of placer": {"place", &stagev1.PlaceResponse{UnseatedEdit: insert(1), Unseated: wrong}},
	} {
		t.Run(name, func(t *testing.T) {
			_, ask := opened[tc.call].open(t, &scripted{answers: []proto.Message{tc.answer}}, host.Fail, nil)
			if answer, err := ask(oneWaiting()); err == nil || !strings.Contains(err.Error(), "99") {
				t.Errorf("%v, error %v", answer, err)
			}
		})
	}
}

func TestAStageFailsWithItsProcess(t *testing.T) {
	for name, tc := range opened {
		t.Run(name, func(t *testing.T) {
			plugin := &scripted{answers: []proto.Message{nil}}
			_, ask := tc.open(t, plugin, host.Fail, nil)
			for _, want := range []string{`plugin "scripted": the model is not loaded; plugin.on_failure: `, "the process has ended"} {
				if answer, err := ask(oneWaiting()); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, error %v, want %q in it", answer, err, want)
				}
			}
		})
		t.Run(name+"/fallback", func(t *testing.T) {
			plugin := &scripted{answers: []proto.Message{tc.answer, nil}}
			_, ask := tc.open(t, plugin, host.Fallback, &builtIn{})
			got, err := askedFor(3, ask)
			if diff := cmp.Diff([]any{tc.want, tc.instead, tc.instead}, got, cmpopts.EquateNaNs()); err != nil || diff != "" {
				t.Errorf("error %v, answers -want +got:\n%s", err, diff)
			}
			if len(plugin.asked) != 2 || plugin.closed != 1 {
				t.Errorf("asked %v, closed %d times", plugin.asked, plugin.closed)
			}
		})
	}
}

// An answer stands as long as the process says, up to now when it says nothing, and as the fallback says once that answers.
func TestHowLongAnAnswerStands(t *testing.T) {
	forEver, notAtAll := core.Standing{UntilSeconds: math.Inf(1)}, core.Standing{UntilSeconds: math.Inf(-1)}
	standing := &stagev1.Standing{UntilSeconds: 120, IfSeated: 2}
	told := map[string]proto.Message{
		"admit": &stagev1.AdmitResponse{Standing: standing}, "allocate": &stagev1.AllocateResponse{Standing: standing},
		"place": &stagev1.PlaceResponse{Standing: standing}, "respond": &stagev1.RespondResponse{Standing: standing},
		"tune": &stagev1.TuneResponse{Standing: standing}, "scale": &stagev1.ScaleResponse{Standing: standing},
	}
	for name, tc := range opened {
		for fallback, instead := range map[string]struct {
			policy everyStage
			want   core.Standing
		}{
			"says nothing": {&builtIn{}, notAtAll},
			"says when":    {&steadyBuiltIn{}, core.Standing{UntilSeconds: 77}},
		} {
			t.Run(name+"/the fallback "+fallback, func(t *testing.T) {
				stage, ask := tc.open(t, &scripted{answers: []proto.Message{told[name], tc.answer, nil}}, host.Fallback, instead.policy)
				got := []core.Standing{stage.(core.Steady).Standing()}
				v := oneWaiting()
				for range 3 {
					v.NowSeconds += 60
					if _, err := ask(v); err != nil {
						t.Fatal(err)
					}
					got = append(got, stage.(core.Steady).Standing())
				}
				want := []core.Standing{forEver, {UntilSeconds: 120, IfSeated: 2}, {UntilSeconds: v.NowSeconds - 60}, instead.want}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}

func TestTheGapIsThatOfTheLastAnswer(t *testing.T) {
	gap := 0.25
	for name, tc := range map[string]struct {
		instead everyStage
		want    float64
	}{
		"a fallback that certifies nothing": {&builtIn{}, math.NaN()},
		"a fallback that certifies":         {&steadyBuiltIn{}, 0.75},
	} {
		t.Run(name, func(t *testing.T) {
			stage, ask := opened["allocate"].open(t, &scripted{answers: []proto.Message{
				&stagev1.AllocateResponse{GapRatio: &gap}, &stagev1.AllocateResponse{}, nil,
			}}, host.Fallback, tc.instead)
			got := []float64{stage.(core.Certifier).GapRatio()}
			for range 3 {
				if _, err := ask(oneWaiting()); err != nil {
					t.Fatal(err)
				}
				got = append(got, stage.(core.Certifier).GapRatio())
			}
			if diff := cmp.Diff([]float64{math.NaN(), gap, math.NaN(), tc.want}, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Who wants to know how jobs end is told, the plugin and then its fallback.
func TestHowJobsEndIsTold(t *testing.T) {
	job := coretest.MakeJob("done").Obj()
	job.State = core.Completed
	for name, tc := range map[string]struct {
		ends    bool
		answers []proto.Message
		closed  bool
		instead everyStage
		want    []string
		told    int  // to the fallback
		failed  bool // with no fallback
	}{
		"to one that learns":             {true, []proto.Message{&stagev1.RespondResponse{}}, false, nil, []string{"full [] ended 0 OUTCOME_COMPLETED"}, 0, false},
		"not to one that does not":       {false, []proto.Message{&stagev1.RespondResponse{}}, false, nil, nil, 0, false},
		"not to one that is gone":        {true, []proto.Message{&stagev1.RespondResponse{}}, true, nil, nil, 0, false},
		"one that fails":                 {true, []proto.Message{nil}, false, nil, []string{"full [] ended 0 OUTCOME_COMPLETED"}, 0, true},
		"to the fallback of a failed":    {true, []proto.Message{nil}, false, &builtIn{}, []string{"full [] ended 0 OUTCOME_COMPLETED"}, 1, false},
		"not to one that cannot be told": {true, []proto.Message{nil}, false, deaf{}, []string{"full [] ended 0 OUTCOME_COMPLETED"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := &scripted{answers: tc.answers}
			on := host.Fail
			if tc.instead != nil {
				on = host.Fallback
			}
			var instead core.Elasticity
			if tc.instead != nil {
				instead = tc.instead
			}
			stage, err := host.Elasticity(t.Context(), host.Spec[core.Elasticity]{
				ID: "elasticity/scripted", Plugin: "scripted", Options: quickly(on), Fallback: instead,
				Dial: func(context.Context) (*host.Session, error) {
					session := &host.Session{Conn: plugin, Close: func() {}}
					if tc.ends {
						session.Abilities = wire.Able(wire.LearnsFromEnds)
					}
					return session, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if tc.closed {
				closeNow(t, stage)
			}
			err = stage.(core.Historian).Ended(t.Context(), oneWaiting(), []*core.Job{job})
			if (err != nil) != tc.failed {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, plugin.asked); diff != "" {
				t.Errorf("questions -want +got:\n%s", diff)
			}
			if b, ok := tc.instead.(*builtIn); ok && b.ended != tc.told {
				t.Errorf("the fallback was told of %d jobs, want %d", b.ended, tc.told)
			}
		})
	}
}

// deaf is a built-in policy that learns nothing from how jobs end.
type deaf struct{ everyStage }

func closeNow(t *testing.T, stage any) {
	t.Helper()
	if err := stage.(interface{ Close() error }).Close(); err != nil {
		t.Error(err)
	}
}

func TestNothingElseIsAStage(t *testing.T) {
	if _, err := host.Reach(t.Context(), host.Spec[int]{}); err == nil || !strings.Contains(err.Error(), "is of no stage") {
		t.Errorf("error %v", err)
	}
}
