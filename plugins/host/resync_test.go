package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// forgetful is a plugin that asks for the whole view at some of the questions, and notes which ones told it.
type forgetful struct {
	forgets map[int]bool // by question, from 0
	full    []bool
}

func (f *forgetful) Invoke(_ context.Context, _ string, request, answer any, _ ...grpc.CallOption) error {
	question := len(f.full)
	f.full = append(f.full, request.(*stagev1.AllocateRequest).GetView().GetFull())
	proto.Merge(answer.(proto.Message), &stagev1.AllocateResponse{Resync: f.forgets[question]})
	return nil
}

func (*forgetful) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("no streams")
}

func TestAPluginThatForgotIsToldTheWholeView(t *testing.T) {
	for name, tc := range map[string]struct {
		forgets map[int]bool
		want    []bool // whether a question told the whole view
	}{
		"never":                {nil, []bool{true, false, false}},
		"at the first":         {map[int]bool{0: true}, []bool{true, true, false, false}},
		"later":                {map[int]bool{1: true}, []bool{true, false, true, false}},
		"in two rounds":        {map[int]bool{1: true, 3: true}, []bool{true, false, true, false, true}},
		"twice in a row, fail": {map[int]bool{1: true, 2: true}, []bool{true, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := &forgetful{forgets: tc.forgets}
			allocator, err := host.Allocator(t.Context(), host.Spec[core.Allocator]{
				ID: "allocation/forgetful", Plugin: "forgetful", Options: quickly(host.Fail),
				Dial: func(context.Context) (*host.Session, error) {
					return &host.Session{Conn: plugin, Close: func() {}}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(coretest.MakeJob("only").Replicas(1).Waiting()).Obj()
			for range 3 {
				v.Round++
				if _, err = allocator.Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid)); err != nil {
					break
				}
			}
			if failed := err != nil; failed != (name == "twice in a row, fail") {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, plugin.full); diff != "" {
				t.Errorf("questions that told the whole view -want +got:\n%s", diff)
			}
		})
	}
}
