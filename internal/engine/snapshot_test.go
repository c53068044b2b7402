package engine_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// shadowed is an allocator beside which, from a round on, another one is asked that took up what it had learned.
type shadowed struct {
	core.Allocator
	t     *testing.T
	again func() core.Allocator
	from  int
	asked int
	other core.Allocator
}

func (s *shadowed) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	if s.asked++; s.asked == s.from {
		s.other = s.again()
		if learns, ok := s.Allocator.(core.Snapshotter); ok {
			learned, err := learns.Snapshot()
			if err != nil {
				s.t.Fatal(err)
			}
			if err := s.other.(core.Snapshotter).Restore(learned); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	grants, err := s.Allocator.Allocate(ctx, v, candidates)
	if err != nil || s.other == nil {
		return grants, err
	}
	want := slices.Clone(grants)
	got, err := s.other.Allocate(ctx, v, candidates)
	if err == nil && reflect.DeepEqual(want, got) {
		return want, nil // as nearly always: a difference takes longer to see
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		s.t.Fatalf("round %d at %v s: error %v; what the next would grant (-want +got):\n%s", v.Round, v.NowSeconds, err, diff)
	}
	return want, nil
}

// settings are those by which an allocation draws nothing at random, for the stream of one that is created anew begins anew, and
// by which what it learned makes a difference.
var settings = map[string]map[string]any{
	"matching": {"samples": 0, "kicks": 0},
	"pollux":   {"restart": "horizon", "adaptive_horizon": true},
}

// Every built-in allocation goes on after a snapshot as if nothing had been.
func TestAnAllocationGoesOnFromItsSnapshot(t *testing.T) {
	for _, factory := range quartet.Builtins().Allocation {
		t.Run(factory.Type, func(t *testing.T) {
			for _, from := range []int{1, 2, 9, 30} {
				s := quartet.NewSpec()
				s.Name, s.Seed = "shadowed", 7
				if len(factory.Sharing) > 0 {
					s.Cluster.Sharing = factory.Sharing[0].String()
				}
				s.Cluster.Nodes = []quartet.NodeGroup{
					{Name: "a", Count: 3, Accelerator: "v100", Devices: 4}, {Name: "b", Count: 2, Accelerator: "k80", Devices: 2},
				}
				s.Workload = quartet.Part{Type: "generated", Config: map[string]any{"jobs": 60, "span": "4h"}}
				s.Pipeline.Allocation = quartet.Policy{Type: factory.Type, Config: settings[factory.Type]}
				s.Pipeline.Elasticity.Job = quartet.Policy{Type: "fixed", Config: map[string]any{"replicas": "elastic"}}
				s.Pipeline.Placement.Type = "consolidated"
				base := doortest.Compose(t, quartet.Builtins(), s).Allocation
				make := func() core.Allocator {
					a, err := base.New(7, nil)
					if err != nil {
						t.Fatal(err)
					}
					return a
				}
				watched := &shadowed{Allocator: make(), t: t, again: make, from: from}
				s.Pipeline.Allocation = quartet.Policy{Type: "shadowed"}
				doortest.Simulate(t, doortest.Compose(t, quartet.Builtins().WithAllocation(quartet.Given[core.Allocator]("shadowed", watched)), s))
				if watched.asked < 40 {
					t.Errorf("asked %d times only", watched.asked)
				}
			}
		})
	}
}
