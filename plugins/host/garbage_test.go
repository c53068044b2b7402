package host_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// canned answers every call with the same message, as no SDK would.
type canned struct{ answer proto.Message }

func (c canned) Invoke(_ context.Context, _ string, _, answer any, _ ...grpc.CallOption) error {
	proto.Merge(answer.(proto.Message), c.answer)
	return nil
}

func (canned) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("no streams")
}

func TestGarbageIsTold(t *testing.T) {
	messages := openGolden(t, "garbage")
	for name, answer := range map[string]*stagev1.AllocateResponse{
		"an edit that does not fit":     {Edit: &stagev1.Edit{Steps: []uint32{0, 5, 0}}},
		"half an edit":                  {Edit: &stagev1.Edit{Steps: []uint32{1}}},
		"grants without an edit":        {Grants: []*stagev1.Grant{{Job: 0, Replicas: 1}}},
		"resync for ever":               {Resync: true},
		"a type that wraps around to 0": {Edit: &stagev1.Edit{Steps: []uint32{0, 0, 1}}, Grants: []*stagev1.Grant{{Job: 0, Replicas: 1, Accelerator: 1 << 16}}},
	} {
		t.Run(name, func(t *testing.T) {
			allocator, err := host.Allocator(t.Context(), host.Spec[core.Allocator]{
				ID: "allocation/canned", Plugin: "canned", Options: quickly(host.Fail),
				Dial: func(context.Context) (*host.Session, error) {
					return &host.Session{Conn: canned{answer}, Close: func() {}}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			stages := goodStages()
			stages.Allocation = core.Component[core.Allocator]{ID: "allocation/canned", Policy: allocator}
			p := core.NewPipeline(&core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "a", Devices: 1}}}, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
			job := core.Event{Kind: core.JobSubmitted, Spec: &core.JobSpec{Name: "job", Requested: 1, MinReplicas: 1, MaxReplicas: 1}}
			err = p.Round(t.Context(), core.Observation{Events: []core.Event{job}}, nil)
			messages.compare(t, name, err)
		})
	}
}
