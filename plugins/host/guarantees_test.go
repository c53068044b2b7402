package host_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/allocation/gpufraction"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/plugins/host"
	"github.com/quartet-sched/quartet/plugins/loopback"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// plainAllocator grants nothing, and guaranteeing guarantees something besides.
type plainAllocator struct{}

func (plainAllocator) Allocate(context.Context, *core.View, []core.Candidate) ([]core.Grant, error) {
	return nil, nil
}

type guaranteeing struct{ plainAllocator }

func (guaranteeing) Guarantees() core.Guarantees { return core.Guarantees{0.5, 0.25, 0} }

// An allocation in another process guarantees what it tells, and the built-in that takes over what that does; the usual parts where
// nobody tells.
func TestGuarantees(t *testing.T) {
	t.Parallel()
	told := &core.Guarantees{0.9, 0.8, 0.1}
	for name, tc := range map[string]struct {
		told          *core.Guarantees
		instead       core.Allocator
		before, after core.Guarantees
	}{
		"it tells":                         {told: told, instead: plainAllocator{}, before: *told, after: core.UsualGuarantees()},
		"it tells none":                    {instead: guaranteeing{}, before: core.UsualGuarantees(), after: core.Guarantees{0.5, 0.25, 0}},
		"who takes over tells others":      {told: told, instead: guaranteeing{}, before: *told, after: core.Guarantees{0.5, 0.25, 0}},
		"nobody tells, and one takes over": {instead: plainAllocator{}, before: core.UsualGuarantees(), after: core.UsualGuarantees()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugin := &scripted{answers: []proto.Message{nil}}
			stage, err := host.Allocator(t.Context(), host.Spec[core.Allocator]{
				ID: "allocation/scripted", Plugin: "scripted", Options: quickly(host.Fallback), Fallback: tc.instead,
				Dial: func(context.Context) (*host.Session, error) {
					return &host.Session{Conn: plugin, Close: func() {}, Abilities: wire.Abilities{Guarantees: tc.told}}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			guarantor := stage.(core.Guarantor)
			if got := guarantor.Guarantees(); got != tc.before {
				t.Errorf("guarantees %v, want %v", got, tc.before)
			}
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Obj()
			if _, err := stage.Allocate(t.Context(), v, nil); err != nil {
				t.Fatal(err)
			}
			if got := guarantor.Guarantees(); got != tc.after {
				t.Errorf("after the fallback took over: guarantees %v, want %v", got, tc.after)
			}
		})
	}
}

// What gpu_fraction guarantees by its settings is told through the wire.
func TestGuaranteesThroughTheWire(t *testing.T) {
	t.Parallel()
	f := gpufraction.New()
	config := map[string]any{"premium": 0.99, "standard": 0.8, "basic": 0.1}
	stage, err := host.Allocator(t.Context(), host.Spec[core.Allocator]{
		ID: "allocation/gpu_fraction", Plugin: "fraction", Options: quickly(host.Fail),
		Dial: loopback.Dial(f, host.Component{Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "gpu_fraction", ID: "allocation/gpu_fraction", Config: config}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stage.(interface{ Close() error }).Close() })
	if got, want := stage.(core.Guarantor).Guarantees(), (core.Guarantees{0.99, 0.8, 0.1}); got != want {
		t.Errorf("guarantees %v, want %v", got, want)
	}
}

// configured is a plugin that answers Configure.
type configured struct{ answer *stagev1.ConfigureResponse }

func (c configured) Invoke(_ context.Context, _ string, _, answer any, _ ...grpc.CallOption) error {
	proto.Merge(answer.(proto.Message), c.answer)
	return nil
}

func (configured) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("no streams")
}

// Guarantees that are no part for each tier are refused when the component is created.
func TestWrongGuarantees(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		told []float64
		want string
	}{
		"none":           {},
		"right":          {told: []float64{1, 0.5, 0}},
		"too few":        {told: []float64{0.9, 0.5}, want: "guarantees [0.9 0.5]: must be a number for each of premium, standard, basic"},
		"too many":       {told: []float64{0.9, 0.5, 0, 0}, want: "guarantees [0.9 0.5 0 0]: must be a number for each of premium, standard, basic"},
		"more than all":  {told: []float64{1.5, 0.5, 0}, want: "guarantees [1.5 0.5 0]: must be from 0 to 1"},
		"less than none": {told: []float64{1, 0.5, -1}, want: "guarantees [1 0.5 -1]: must be from 0 to 1"},
	} {
		answer, err := host.Configure(t.Context(), configured{&stagev1.ConfigureResponse{Guarantees: tc.told}}, host.Component{}, false)
		switch {
		case tc.want != "" && (err == nil || err.Error() != tc.want):
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		case tc.want == "" && (err != nil || (wire.AbilitiesFrom(answer).Guarantees == nil) != (tc.told == nil)):
			t.Errorf("%s: %v, error %v", name, answer, err)
		}
	}
}
