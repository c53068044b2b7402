package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// learned is echo with every ability. It notes what it is asked, and fails with err.
type learned struct {
	echo
	asked []string
	err   error
	gap   float64
}

func (l *learned) note(format string, args ...any) error {
	l.asked = append(l.asked, fmt.Sprintf(format, args...))
	return l.err
}

func ids(jobs []*core.Job) (list []string) {
	for _, j := range jobs {
		list = append(list, fmt.Sprintf("%d %s", j.ID, j.State))
	}
	return list
}

func (l *learned) Admit(ctx context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	if err := l.note("admit %v", ids(waiting)); err != nil {
		return nil, err
	}
	return l.echo.Admit(ctx, v, waiting)
}

func (l *learned) Review(_ context.Context, _ *core.View, jobs []*core.Job) ([]core.Verdict, error) {
	return []core.Verdict{{Job: jobs[0].ID, Code: core.End, Reason: core.Converged}}, l.note("review %v", ids(jobs))
}

func (l *learned) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	if err := l.note("allocate %d", len(candidates)); err != nil {
		return nil, err
	}
	return l.echo.Allocate(ctx, v, candidates)
}

func (l *learned) Place(ctx context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	if err := l.note("place %v", len(grants)); err != nil {
		return core.Seating{}, err
	}
	s, err := l.echo.Place(ctx, v, grants)
	s.Unseated = append(s.Unseated, core.Verdict{Job: 0, Code: core.Defer, Reason: core.Fragmented})
	return s, err
}

func (l *learned) Ended(_ context.Context, v *core.View, jobs []*core.Job) error {
	return l.note("ended %v in round %d", ids(jobs), v.Round)
}

func (l *learned) Respond(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	if err := l.note("respond %v", ids(jobs)); err != nil {
		return nil, err
	}
	return l.echo.Respond(ctx, v, jobs)
}

func (l *learned) Tune(ctx context.Context, v *core.View, placements []core.Placement) ([]core.Tuning, error) {
	if err := l.note("tune %d", len(placements)); err != nil {
		return nil, err
	}
	return l.echo.Tune(ctx, v, placements)
}

func (l *learned) Scale(_ context.Context, _ *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	return core.ClusterTarget{Nodes: 5}, l.note("scale %d %d %d %d", len(plan.Grants), len(plan.Placements), len(plan.Tunings), len(plan.Candidates))
}

func (l *learned) Standing() core.Standing { return core.Standing{UntilSeconds: 120, IfSeated: 1} }
func (l *learned) GapRatio() float64       { return l.gap }

// curves is a learned that looks at curves.
type curves struct{ *learned }

func (c curves) AdmitCandidates(_ context.Context, _ *core.View, admitted, waiting []core.Candidate) ([]core.Verdict, error) {
	return nil, c.note("admit %d beside %d", len(waiting), len(admitted))
}

// everywhere serves a policy in all stages, those in which it can answer.
func everywhere(t testing.TB, policy interface {
	core.Admitter
	core.Allocator
	core.Placer
	core.Elasticity
	core.ClusterScaler
},
) *server {
	s := serve(t,
		echoOf(func() core.Admitter { return policy }), echoOf(func() core.Allocator { return policy }),
		echoOf(func() core.Placer { return policy }), echoOf(func() core.Elasticity { return policy }),
		echoOf(func() core.ClusterScaler { return policy }),
	)
	for _, stage := range []stagev1.Stage{1, 2, 3, 4, 5} {
		if len(s.components) < int(stage) || s.components[stage-1].stage != stage {
			t.Fatalf("the stages are out of order: %v", s.components)
		}
	}
	s.register(grpc.NewServer())
	return s
}

func configure(t testing.TB, s *server, stage stagev1.Stage) {
	t.Helper()
	answer, err := s.Configure(t.Context(), &stagev1.ConfigureRequest{Stage: stage, Type: "echo", ComponentId: "x/echo"})
	if err != nil || len(answer.GetDiagnostics()) > 0 {
		t.Fatalf("configure: %v, error %v", answer, err)
	}
}

// answer is what the answers of all stages have in common.
type answer interface {
	proto.Message
	GetResync() bool
}

// steady is implemented by those that hold a standing.
type steady interface{ GetStanding() *stagev1.Standing }

// question is a call of one stage, about the world of theWorld.
type question struct {
	stage stagev1.Stage
	ask   func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error)
	asked string // of a learned
	want  answer // of a learned, without its standing
	// broken makes the call with a list that makes no sense.
	broken func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error)
	fault  string // that it is answered with
}

var one = &stagev1.Edit{Steps: []uint32{0, 0, 1}}

func questions() map[string]question {
	misfit := &stagev1.Edit{Steps: []uint32{9, 9, 9}}
	seats := []*stagev1.Seat{{Node: 0, Devices: 2}}
	const edit = "an edit does not fit the list that it is for"
	admit := func(edit *stagev1.Edit, jobs ...int32) func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
		return func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
			return admission{server: s}.Admit(ctx, &stagev1.AdmitRequest{View: u, Edit: edit, Waiting: jobs})
		}
	}
	review := func(jobs ...int32) func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
		return func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
			return admission{server: s}.Review(ctx, &stagev1.ReviewRequest{View: u, Reported: jobs})
		}
	}
	place := func(edit *stagev1.Edit) func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
		return func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
			return placement{server: s}.Place(ctx, &stagev1.PlaceRequest{View: u, Edit: edit, Grants: []*stagev1.Grant{{Job: 2, Replicas: 1, Proposed: seats}}})
		}
	}
	respond := func(jobs ...int32) func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
		return func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
			return elasticity{server: s}.Respond(ctx, &stagev1.RespondRequest{View: u, Jobs: jobs})
		}
	}
	tune := func(edit *stagev1.Edit) func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
		return func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
			return elasticity{server: s}.Tune(ctx, &stagev1.TuneRequest{View: u, Edit: edit, Placements: []*stagev1.Placement{{Job: 2, Seats: seats}}})
		}
	}
	scale := func(grants, placements *stagev1.Edit) func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
		return func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
			return scaler{server: s}.Scale(ctx, &stagev1.ScaleRequest{
				View: u, GrantsEdit: grants, Grants: []*stagev1.Grant{{Job: 1, Replicas: 1}}, PlacementsEdit: placements,
				Placements: []*stagev1.Placement{{Job: 2}}, Tunings: []*stagev1.Tuning{{Job: 2}},
			})
		}
	}
	gap := 0.25
	return map[string]question{
		"admit": {
			stage: stagev1.Stage_STAGE_ADMISSION, ask: admit(one, 0), asked: "admit [0 pending]",
			want:   &stagev1.AdmitResponse{Edit: one, Verdicts: wire.Verdicts([]core.Verdict{{Job: 0, Code: core.Defer, Reason: core.PolicyDecision}})},
			broken: admit(misfit, 0), fault: edit,
		},
		"admit an unknown job": {
			stage: stagev1.Stage_STAGE_ADMISSION, ask: admit(one, 0), asked: "admit [0 pending]",
			want:   &stagev1.AdmitResponse{Edit: one, Verdicts: wire.Verdicts([]core.Verdict{{Job: 0, Code: core.Defer, Reason: core.PolicyDecision}})},
			broken: admit(one, 7), fault: "asked about unknown job 7",
		},
		"review": {
			stage: stagev1.Stage_STAGE_ADMISSION, ask: review(2), asked: "review [2 running]",
			want:   &stagev1.ReviewResponse{Verdicts: wire.Verdicts([]core.Verdict{{Job: 2, Code: core.End, Reason: core.Converged}})},
			broken: review(7), fault: "asked about unknown job 7",
		},
		"allocate": {
			stage: stagev1.Stage_STAGE_ALLOCATION, asked: "allocate 2",
			ask: func(ctx context.Context, s *server, u *stagev1.ViewUpdate) (answer, error) {
				return allocation{server: s}.Allocate(ctx, &stagev1.AllocateRequest{View: u})
			},
			want: &stagev1.AllocateResponse{
				Edit: &stagev1.Edit{Steps: []uint32{0, 0, 2}}, Grants: []*stagev1.Grant{{Job: 1, Replicas: 1}, {Job: 2, Replicas: 1, Proposed: seats}}, GapRatio: &gap,
			},
		},
		"place": {
			stage: stagev1.Stage_STAGE_PLACEMENT, ask: place(one), asked: "place 1",
			want: &stagev1.PlaceResponse{
				PlacedEdit: one, Placed: []*stagev1.Placement{{Job: 2, Seats: seats}}, UnseatedEdit: one,
				Unseated: wire.Verdicts([]core.Verdict{{Job: 0, Code: core.Defer, Reason: core.Fragmented}}),
			},
			broken: place(misfit), fault: edit,
		},
		"respond": {
			stage: stagev1.Stage_STAGE_ELASTICITY, ask: respond(1, 2), asked: "respond [1 waiting 2 running]",
			want:   &stagev1.RespondResponse{Responses: []*stagev1.Response{{Job: 1, MinReplicas: 1, MaxReplicas: 1, RemainingWork: math.NaN()}, {Job: 2, MinReplicas: 1, MaxReplicas: 1, RemainingWork: math.NaN()}}},
			broken: respond(1, -1), fault: "asked about unknown job -1",
		},
		"tune": {
			stage: stagev1.Stage_STAGE_ELASTICITY, ask: tune(one), asked: "tune 1",
			want:   &stagev1.TuneResponse{Tunings: []*stagev1.Tuning{{Job: 2, BatchPerDevice: 1}}},
			broken: tune(misfit), fault: edit,
		},
		"scale": {
			stage: stagev1.Stage_STAGE_SCALER, ask: scale(one, one), asked: "scale 1 1 1 2",
			want:   &stagev1.ScaleResponse{Nodes: 5},
			broken: scale(misfit, one), fault: edit,
		},
		"scale placements": {
			stage: stagev1.Stage_STAGE_SCALER, ask: scale(one, one), asked: "scale 1 1 1 2",
			want:   &stagev1.ScaleResponse{Nodes: 5},
			broken: scale(one, misfit), fault: edit,
		},
	}
}

// theWorld is a view with a pending, a waiting and a running job, sent whole and then by its changes, of which there are none.
func theWorld() (full, change *stagev1.ViewUpdate) {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Round(3).Jobs(
		coretest.MakeJob("pending"), coretest.MakeJob("waiting").Waiting(), coretest.MakeJob("running").Running(0, coretest.Seat(0, 1)),
	).Obj()
	encoder := wire.Encoder{Reports: true}
	candidates := coretest.Candidates(v, coretest.Rigid)
	return encoder.Encode(v, candidates, nil), encoder.Encode(v, candidates, nil)
}

func TestEachStageAsksItsPolicy(t *testing.T) {
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			policy := &learned{gap: 0.25}
			s := everywhere(t, policy)
			configure(t, s, q.stage)
			full, _ := theWorld()
			got, err := q.ask(t.Context(), s, full)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{q.asked}, policy.asked); diff != "" {
				t.Errorf("the policy was asked (-want +got):\n%s", diff)
			}
			if told, ok := got.(steady); ok {
				if diff := cmp.Diff(&stagev1.Standing{UntilSeconds: 120, IfSeated: 1}, told.GetStanding(), protocmp.Transform()); diff != "" {
					t.Errorf("standing (-want +got):\n%s", diff)
				}
				m := got.ProtoReflect()
				m.Clear(m.Descriptor().Fields().ByName("standing"))
			}
			if diff := cmp.Diff(q.want, got, protocmp.Transform(), cmp.Comparer(func(a, b float64) bool { return a == b || a != a && b != b })); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEachStageAsksForTheWholeView sends changes first: the policy is not asked, and the answer says nothing else.
func TestEachStageAsksForTheWholeView(t *testing.T) {
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			policy := &learned{}
			s := everywhere(t, policy)
			configure(t, s, q.stage)
			full, change := theWorld()
			got, err := q.ask(t.Context(), s, change)
			if err != nil || !got.GetResync() {
				t.Fatalf("%v, error %v, want that it asks for the whole view", got, err)
			}
			m := got.ProtoReflect()
			m.Clear(m.Descriptor().Fields().ByName("resync"))
			if proto.Size(got) > 0 || len(policy.asked) > 0 {
				t.Errorf("it also says %v, and asked %v", got, policy.asked)
			}
			for _, u := range []*stagev1.ViewUpdate{full, change} { // from then on changes are enough
				if got, err := q.ask(t.Context(), s, u); err != nil || got.GetResync() {
					t.Errorf("%v, error %v", got, err)
				}
			}
		})
	}
}

// TestConfigureForgetsTheView configures a second time, after which changes are not enough.
func TestConfigureForgetsTheView(t *testing.T) {
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			s := everywhere(t, &learned{})
			configure(t, s, q.stage)
			full, change := theWorld()
			if _, err := q.ask(t.Context(), s, full); err != nil {
				t.Fatal(err)
			}
			configure(t, s, q.stage)
			if got, err := q.ask(t.Context(), s, change); err != nil || !got.GetResync() {
				t.Errorf("%v, error %v", got, err)
			}
		})
	}
}

// TestAFullViewBeginsTheListsAnew asks twice with the whole view: the second question repeats the lists, and so does its answer.
func TestAFullViewBeginsTheListsAnew(t *testing.T) {
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			s := everywhere(t, &learned{gap: 0.25})
			configure(t, s, q.stage)
			full, _ := theWorld()
			first, err := q.ask(t.Context(), s, full)
			if err != nil {
				t.Fatal(err)
			}
			second, err := q.ask(t.Context(), s, full)
			if err != nil || !proto.Equal(first, second) && !strings.Contains(fmt.Sprint(first), "nan") {
				t.Errorf("%v, error %v, want %v", second, err, first)
			}
		})
	}
}

// TestListsTravelByTheirEdits asks twice, the second time without new items: the lists are kept, and the answer repeats nothing.
func TestListsTravelByTheirEdits(t *testing.T) {
	s := everywhere(t, &learned{})
	configure(t, s, stagev1.Stage_STAGE_PLACEMENT)
	full, change := theWorld()
	if _, err := (placement{server: s}).Place(t.Context(), &stagev1.PlaceRequest{View: full, Edit: one, Grants: []*stagev1.Grant{{Job: 2, Replicas: 1}}}); err != nil {
		t.Fatal(err)
	}
	got, err := placement{server: s}.Place(t.Context(), &stagev1.PlaceRequest{View: change, Edit: &stagev1.Edit{Steps: []uint32{0, 1, 0}}})
	kept := &stagev1.Edit{Steps: []uint32{0, 1, 0}}
	want := &stagev1.PlaceResponse{PlacedEdit: kept, UnseatedEdit: kept, Standing: &stagev1.Standing{UntilSeconds: 120, IfSeated: 1}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
}

func TestEachStageRefuses(t *testing.T) {
	for name, q := range questions() {
		full, _ := theWorld()
		refused := func(t *testing.T, s *server, ask func(context.Context, *server, *stagev1.ViewUpdate) (answer, error), u *stagev1.ViewUpdate, code codes.Code, want string) {
			t.Helper()
			_, err := ask(t.Context(), s, u)
			if got := status.Convert(err); got.Code() != code || !strings.Contains(got.Message(), want) {
				t.Errorf("code %v, message %q, want %v and %q", got.Code(), got.Message(), code, want)
			}
		}
		t.Run(name, func(t *testing.T) {
			policy := &learned{}
			s := everywhere(t, policy)
			refused(t, s, q.ask, full, codes.FailedPrecondition, `was not configured for stage "`+wire.StageName(q.stage)+`"`)
			configure(t, s, q.stage)
			if q.broken != nil {
				refused(t, s, q.broken, full, codes.InvalidArgument, q.fault)
			}
			configure(t, s, q.stage)
			bad := proto.CloneOf(full)
			bad.Nodes[1].Devices = 0
			refused(t, s, q.ask, bad, codes.InvalidArgument, "view: node 1 has 0 devices")
			if len(policy.asked) > 0 {
				t.Errorf("the policy was asked %v", policy.asked)
			}
			configure(t, s, q.stage)
			policy.err = errors.New("the policy cannot tell")
			refused(t, s, q.ask, full, codes.Unknown, "the policy cannot tell")
		})
	}
}

// TestWhatAPlainPolicyLeavesOut serves a policy without abilities: it reports no standing, no gap, and refuses to review.
func TestWhatAPlainPolicyLeavesOut(t *testing.T) {
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			s := everywhere(t, echo{})
			configure(t, s, q.stage)
			full, _ := theWorld()
			got, err := q.ask(t.Context(), s, full)
			if name == "review" {
				if status.Code(err) != codes.FailedPrecondition {
					t.Errorf("%v, error %v", got, err)
				}
				return
			}
			if err != nil || got.(steady).GetStanding() != nil {
				t.Errorf("%v, error %v", got, err)
			}
			if a, ok := got.(*stagev1.AllocateResponse); ok && a.GapRatio != nil {
				t.Errorf("it certifies a gap of %v", a.GetGapRatio())
			}
		})
	}
}

// TestResponsesAreNeeded leaves out what jobs do with accelerators: an allocation is not asked, nor an admission that looks at it.
func TestResponsesAreNeeded(t *testing.T) {
	all := questions()
	for name, tc := range map[string]struct {
		waiting bool // the job asked about has a response
		active  bool // so have the others
		want    string
	}{
		"all told": {true, true, ""}, "of those asked about not": {false, true, "job 0 competes without a response"},
		"of the others not": {true, false, "job 1 competes without a response"},
	} {
		t.Run(name, func(t *testing.T) {
			full, _ := theWorld()
			for _, j := range full.GetJobs() {
				if told := tc.active; j.GetId() > 0 && !told {
					j.Response = nil
				}
				if j.GetId() == 0 && tc.waiting {
					j.Response = &stagev1.Response{Job: 0, MinReplicas: 1, MaxReplicas: 1}
				}
			}
			policy := curves{&learned{}}
			s := everywhere(t, policy)
			configure(t, s, stagev1.Stage_STAGE_ADMISSION)
			_, err := all["admit"].ask(t.Context(), s, full)
			if got := status.Convert(err); got.Message() != tc.want {
				t.Errorf("%q, want %q", got.Message(), tc.want)
			}
			if tc.want == "" {
				if diff := cmp.Diff([]string{"admit 1 beside 2"}, policy.asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
			}
			if tc.active {
				return
			}
			configure(t, s, stagev1.Stage_STAGE_ALLOCATION)
			if _, err := all["allocate"].ask(t.Context(), s, full); status.Code(err) != codes.InvalidArgument {
				t.Errorf("allocate: error %v", err)
			}
		})
	}
}

// TestEndsAreReportedBeforeTheViewForgetsThem ends a job in the very update that comes with the report.
func TestEndsAreReportedBeforeTheViewForgetsThem(t *testing.T) {
	ended := []*stagev1.EndedJob{{Id: 2, Outcome: stagev1.Outcome_OUTCOME_FAILED, Progress: 3}}
	for name, tc := range map[string]struct {
		jobs []int32
		want []string
	}{
		"ends only":          {nil, []string{"ended [2 failed] in round 3"}},
		"and jobs to answer": {[]int32{1}, []string{"ended [2 failed] in round 3", "respond [1 waiting]"}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &learned{}
			s := everywhere(t, policy)
			configure(t, s, stagev1.Stage_STAGE_ELASTICITY)
			full, change := theWorld()
			change.Ended = []int32{2}
			if _, err := (elasticity{server: s}).Respond(t.Context(), &stagev1.RespondRequest{View: full, Jobs: []int32{2}}); err != nil {
				t.Fatal(err)
			}
			policy.asked = nil
			got, err := elasticity{server: s}.Respond(t.Context(), &stagev1.RespondRequest{View: change, Jobs: tc.jobs, Ended: ended})
			if err != nil || len(got.GetResponses()) != len(tc.jobs) || got.GetStanding().GetUntilSeconds() != 120 {
				t.Errorf("%v, error %v", got, err)
			}
			if diff := cmp.Diff(tc.want, policy.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a policy that fails", func(t *testing.T) {
		policy := &learned{}
		s := everywhere(t, policy)
		configure(t, s, stagev1.Stage_STAGE_ELASTICITY)
		full, change := theWorld()
		if _, err := (elasticity{server: s}).Respond(t.Context(), &stagev1.RespondRequest{View: full, Jobs: []int32{2}}); err != nil {
			t.Fatal(err)
		}
		policy.err = errors.New("the history is full")
		if _, err := (elasticity{server: s}).Respond(t.Context(), &stagev1.RespondRequest{View: change, Ended: ended}); err == nil || !strings.Contains(err.Error(), "the history is full") {
			t.Errorf("error %v", err)
		}
	})
}

// panics is an allocation that panics.
type panics struct{ echo }

func (panics) Allocate(context.Context, *core.View, []core.Candidate) ([]core.Grant, error) {
	panic("index out of reach")
}

func TestAPanicIsAnErrorOfTheCall(t *testing.T) {
	var log strings.Builder
	s := everywhere(t, panics{})
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	configure(t, s, stagev1.Stage_STAGE_ALLOCATION)
	full, change := theWorld()
	for _, u := range []*stagev1.ViewUpdate{full, change} { // the second call finds the lock given back
		message, err := proto.Marshal(&stagev1.AllocateRequest{View: u})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.call(t.Context(), stagev1.AllocationService_Allocate_FullMethodName, message)
		if got := status.Convert(err); got.Code() != codes.Internal || got.Message() != "the policy panicked: index out of reach" {
			t.Errorf("code %v, message %q", got.Code(), got.Message())
		}
	}
	if !strings.Contains(log.String(), "stages_test.go") {
		t.Errorf("the log has no stack: %s", &log)
	}
}
