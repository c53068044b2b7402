package sdk

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// echo is every stage: it reads all that it is given and answers about all of it.
type echo struct{}

func (echo) Admit(_ context.Context, _ *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	var verdicts []core.Verdict
	for _, j := range waiting {
		verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.PolicyDecision})
	}
	return verdicts, nil
}

func (echo) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	var grants []core.Grant
	for _, c := range candidates {
		grants = append(grants, core.Grant{Job: c.ID, Replicas: c.Response.MinReplicas, Proposed: v.Jobs[c.ID].Seats})
	}
	return grants, nil
}

func (echo) Place(_ context.Context, _ *core.View, grants []core.Grant) (s core.Seating, err error) {
	for _, g := range grants {
		s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: g.Proposed})
	}
	return s, nil
}

func (echo) Respond(_ context.Context, _ *core.View, jobs []*core.Job) ([]core.Response, error) {
	var responses []core.Response
	for _, j := range jobs {
		responses = append(responses, coretest.Rigid(j))
	}
	return responses, nil
}

func (echo) Tune(_ context.Context, _ *core.View, placements []core.Placement) ([]core.Tuning, error) {
	var tunings []core.Tuning
	for _, p := range placements {
		tunings = append(tunings, core.Tuning{Job: p.Job, BatchPerDevice: core.Replicas(p.Seats)})
	}
	return tunings, nil
}

func (echo) Scale(_ context.Context, _ *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	return core.ClusterTarget{Nodes: len(plan.Grants) + len(plan.Placements)}, nil
}

func echoOf[S any](create func() S) core.Factory[S] {
	return core.NewFactory(core.Info{Type: "echo"}, core.None{}, func(core.None, core.Settings) (S, error) { return create(), nil })
}

// echoes serves echo in every stage.
func echoes(t testing.TB) *server {
	t.Helper()
	s, err := newServer([]Factory{
		echoOf(func() core.Admitter { return echo{} }), echoOf(func() core.Allocator { return echo{} }),
		echoOf(func() core.Placer { return echo{} }), echoOf(func() core.Elasticity { return echo{} }),
		echoOf(func() core.ClusterScaler { return echo{} }),
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.register(grpc.NewServer())
	return s
}

// FuzzStages sends anything to every call of every stage, after a whole view.
func FuzzStages(f *testing.F) {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Jobs(
		coretest.MakeJob("pending"), coretest.MakeJob("waiting").Waiting(), coretest.MakeJob("running").Running(0, coretest.Seat(0, 1)),
	).Obj()
	encode := func(m proto.Message) []byte {
		message, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		return message
	}
	var encoder wire.Encoder
	full, change := encoder.Encode(v, coretest.Candidates(v, coretest.Rigid), nil), encoder.Encode(v, nil, nil)
	calls := []struct {
		method  string
		stage   stagev1.Stage
		request func(u *stagev1.ViewUpdate) proto.Message
	}{
		{stagev1.AdmissionService_Admit_FullMethodName, stagev1.Stage_STAGE_ADMISSION, func(u *stagev1.ViewUpdate) proto.Message {
			return &stagev1.AdmitRequest{View: u, Edit: &stagev1.Edit{Steps: []uint32{0, 0, 1}}, Waiting: []int32{0}}
		}},
		{stagev1.AllocationService_Allocate_FullMethodName, stagev1.Stage_STAGE_ALLOCATION, func(u *stagev1.ViewUpdate) proto.Message {
			return &stagev1.AllocateRequest{View: u}
		}},
		{stagev1.PlacementService_Place_FullMethodName, stagev1.Stage_STAGE_PLACEMENT, func(u *stagev1.ViewUpdate) proto.Message {
			return &stagev1.PlaceRequest{View: u, Edit: &stagev1.Edit{Steps: []uint32{0, 0, 1}}, Grants: []*stagev1.Grant{{Job: 1, Replicas: 1}}}
		}},
		{stagev1.ElasticityService_Respond_FullMethodName, stagev1.Stage_STAGE_ELASTICITY, func(u *stagev1.ViewUpdate) proto.Message {
			return &stagev1.RespondRequest{View: u, Jobs: []int32{0, 2}}
		}},
		{stagev1.ElasticityService_Tune_FullMethodName, stagev1.Stage_STAGE_ELASTICITY, func(u *stagev1.ViewUpdate) proto.Message {
			return &stagev1.TuneRequest{View: u, Edit: &stagev1.Edit{Steps: []uint32{0, 0, 1}}, Placements: []*stagev1.Placement{{Job: 2}}}
		}},
		{stagev1.ScalerService_Scale_FullMethodName, stagev1.Stage_STAGE_SCALER, func(u *stagev1.ViewUpdate) proto.Message {
			return &stagev1.ScaleRequest{View: u, Tunings: []*stagev1.Tuning{{Job: 2}}}
		}},
	}
	for i, c := range calls {
		f.Add(uint8(i), encode(c.request(change)))
	}
	f.Fuzz(func(t *testing.T, which uint8, message []byte) {
		c := calls[int(which)%len(calls)]
		s := echoes(t)
		ctx := context.Background()
		configured, err := s.Configure(ctx, &stagev1.ConfigureRequest{Stage: c.stage, Type: "echo", ComponentId: "echo"})
		if err != nil || len(configured.GetDiagnostics()) > 0 {
			t.Fatalf("configure: %v, error %v", configured, err)
		}
		for _, message := range [][]byte{encode(c.request(full)), message} {
			if _, err := s.call(ctx, c.method, message); err != nil && strings.Contains(err.Error(), "panic") {
				t.Fatal(err)
			}
		}
	})
}

func TestEveryCallIsServed(t *testing.T) {
	s := echoes(t)
	var want []string
	for _, service := range []grpc.ServiceDesc{
		stagev1.AdmissionService_ServiceDesc, stagev1.AllocationService_ServiceDesc, stagev1.PlacementService_ServiceDesc,
		stagev1.ElasticityService_ServiceDesc, stagev1.ScalerService_ServiceDesc,
	} {
		for _, m := range service.Methods {
			want = append(want, "/"+service.ServiceName+"/"+m.MethodName)
		}
	}
	var got []string
	for method := range s.calls {
		got = append(got, method)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("an exchange takes %v, want %v", got, want)
	}
	if _, err := s.call(context.Background(), "/quartet.stage.v1.BaseService/Exchange", nil); err == nil {
		t.Error("an unknown call is answered")
	}
}
