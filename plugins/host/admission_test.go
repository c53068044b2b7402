package host_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// promising is a built-in admission that looks at curves.
type promising struct{ builtIn }

func (*promising) Promises() bool { return true }

func (*promising) AdmitCandidates(_ context.Context, _ *core.View, admitted, waiting []core.Candidate) ([]core.Verdict, error) {
	return []core.Verdict{{Job: core.JobID(len(admitted)), Wanted: float64(len(waiting))}}, nil
}

// curvesSeen is a plugin that notes of which jobs it is told the responses.
type curvesSeen struct {
	scripted
	responses [][]int32
}

func (p *curvesSeen) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	jobs := []int32{}
	for _, j := range request.(*stagev1.AdmitRequest).GetView().GetJobs() {
		if j.GetResponse() != nil {
			jobs = append(jobs, j.GetId())
		}
	}
	p.responses = append(p.responses, jobs)
	return p.scripted.Invoke(ctx, method, request, answer, options...)
}

// An admission in another process is asked by curves if it says that it looks at them, and the built-in that takes over
// if that one does.
func TestAdmissionByCurves(t *testing.T) {
	t.Parallel()
	fine := &stagev1.AdmitResponse{}
	for name, tc := range map[string]struct {
		traits   wire.Abilities
		instead  core.Admitter
		answers  []proto.Message
		told     [][]int32
		looks    bool
		promises []bool // after each round
		want     [][]core.Verdict
	}{
		"it looks at curves": {
			traits: wire.Able(wire.UsesCurves), answers: []proto.Message{fine}, told: [][]int32{{0, 1}, {}}, looks: true,
			promises: []bool{false, false}, want: [][]core.Verdict{nil, nil},
		},
		"it promises": {
			traits: wire.Able(wire.UsesCurves, wire.KeepsDeadlines), answers: []proto.Message{fine}, told: [][]int32{{0, 1}, {}}, looks: true,
			promises: []bool{true, true}, want: [][]core.Verdict{nil, nil},
		},
		"it does not look": {answers: []proto.Message{fine}, told: [][]int32{{}, {}}, promises: []bool{false, false}, want: [][]core.Verdict{nil, nil}},
		"only who takes over looks": {
			instead: &promising{}, answers: []proto.Message{fine, nil}, told: [][]int32{{}, {}}, looks: true,
			promises: []bool{false, true}, want: [][]core.Verdict{nil, {{Job: 1, Wanted: 1}}},
		},
		"who takes over does not look": {
			traits: wire.Able(wire.UsesCurves, wire.KeepsDeadlines), instead: &builtIn{}, answers: []proto.Message{nil}, told: [][]int32{{0, 1}}, looks: true,
			promises: []bool{false, false}, want: [][]core.Verdict{{{Job: 5}}, {{Job: 5}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugin := &curvesSeen{scripted: scripted{answers: tc.answers}}
			on := host.Fail
			if tc.instead != nil {
				on = host.Fallback
			}
			stage, err := host.Admitter(t.Context(), host.Spec[core.Admitter]{
				ID: "admission/scripted", Plugin: "scripted", Options: quickly(on), Fallback: tc.instead,
				Dial: func(context.Context) (*host.Session, error) {
					return &host.Session{Conn: plugin, Close: func() {}, Abilities: tc.traits}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			curves, looks := stage.(core.CurveAdmitter)
			if looks != tc.looks {
				t.Fatalf("looks at curves: %v, want %v", looks, tc.looks)
			}
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(
				coretest.MakeJob("admitted").Replicas(1).Waiting(), coretest.MakeJob("asked about").Replicas(2),
			).Obj()
			var jobs []core.Candidate
			for _, j := range v.Jobs {
				response := coretest.Rigid(j)
				jobs = append(jobs, core.Candidate{Job: j, Response: &response})
			}
			for i, want := range tc.want {
				var got []core.Verdict
				if looks {
					got, err = curves.AdmitCandidates(t.Context(), v, jobs[:1], jobs[1:])
				} else {
					got, err = stage.Admit(t.Context(), v, []*core.Job{jobs[1].Job})
				}
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("round %d: -want +got:\n%s", i, diff)
				}
				if p := stage.(core.Promiser).Promises(); p != tc.promises[i] {
					t.Errorf("round %d: promises %v, want %v", i, p, tc.promises[i])
				}
			}
			if diff := cmp.Diff(tc.told, plugin.responses); diff != "" {
				t.Errorf("told: -want +got:\n%s", diff)
			}
		})
	}
}
