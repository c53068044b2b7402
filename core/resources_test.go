package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// giver seats two jobs on one node with four devices and eight CPUs, and gives each replica what a test says of the round.
type giver struct {
	fakes
	round  int
	buffer [2]core.Resources
	given  [][2]*core.Resources // by round
}

func (g *giver) Place(_ context.Context, _ *core.View, grants []core.Grant) (core.Seating, error) {
	var s core.Seating
	given := g.given[min(g.round, len(g.given)-1)]
	for _, grant := range grants {
		each := given[grant.Job]
		if each != nil { // the buffer is used again
			g.buffer[grant.Job] = *each
			each = &g.buffer[grant.Job]
		}
		s.Placed = append(s.Placed, core.Placement{Job: grant.Job, Seats: []core.Seat{{Devices: 1 << grant.Job}}, Resources: each})
	}
	g.round++
	return s, nil
}

func (g *giver) stages() core.Stages {
	return core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission/fake", Policy: &g.admit}},
		Allocation: core.Component[core.Allocator]{ID: "allocation/fake", Policy: &g.grant},
		Placement:  core.Component[core.Placer]{ID: "placement/giver", Policy: g},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/fake", Policy: &g.fixed},
	}
}

// A placer changes what jobs are given while they stay: no restart, one change each, and what the other gave back is there to be taken.
func TestPlacementGivesResources(t *testing.T) {
	t.Parallel()
	each := func(cpus float64) *core.Resources { return &core.Resources{CPUs: cpus, MemoryGB: 1} }
	for name, tc := range map[string]struct {
		given   [][2]*core.Resources
		uncount bool
		want    []string // by round
		broken  string
	}{
		"from one to the other": {
			given: [][2]*core.Resources{{each(6), each(2)}, {each(6), each(2)}, {each(1), each(7)}},
			want:  []string{"start 0 6, start 1 2", "", "tune 0 1, tune 1 7"},
		},
		"back to what they ask for": {
			given: [][2]*core.Resources{{each(6), nil}, {nil, nil}}, want: []string{"start 0 6, start 1 asked", "tune 0 asked"},
		},
		"more than there is": {given: [][2]*core.Resources{{each(6), each(3)}}, broken: core.RuleNodeLeft},
		"more than there is by what they ask for": {
			given: [][2]*core.Resources{{each(7), nil}}, broken: core.RuleNodeLeft,
		},
		"below 0":         {given: [][2]*core.Resources{{each(-1), nil}}, broken: core.RuleResourcesSane},
		"no number":       {given: [][2]*core.Resources{{each(math.NaN()), nil}}, broken: core.RuleResourcesSane},
		"nobody counts":   {given: [][2]*core.Resources{{each(1), nil}}, uncount: true, broken: core.RuleResourcesSane},
		"taken too early": {given: [][2]*core.Resources{{each(6), each(2)}, {each(6), each(3)}}, broken: core.RuleNodeLeft},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &core.Cluster{Accelerators: []string{"t4"}, CountsResources: !tc.uncount, Nodes: []core.Node{{Name: "n", Devices: 4, CPUs: 8, MemoryGB: 100}}}
			var got []string
			b := &script{}
			for i := range tc.given {
				seen := core.Observation{NowSeconds: 60 * float64(i)}
				if i == 0 {
					for id := range core.JobID(2) {
						spec := &core.JobSpec{ID: id, Name: fmt.Sprintf("j%d", id), Weight: 1, Requested: 1, MinReplicas: 1, MaxReplicas: 1, CPUs: 2, MemoryGB: 1}
						seen.Events = append(seen.Events, core.Event{Kind: core.JobSubmitted, Job: id, Spec: spec})
					}
				}
				b.observations = append(b.observations, seen)
			}
			watch := observe(func(r *core.Report) {
				var words []string
				for _, c := range r.Changes {
					has := "asked"
					if c.Resources != nil {
						has = fmt.Sprint(c.Resources.CPUs)
					}
					if j := r.View.Jobs[c.Job]; !core.SameResources(j.Resources, c.Resources) || j.Restarts > 0 || j.Has().CPUs != 2 && c.Resources == nil {
						t.Errorf("job %d has %v after %v, and %d restarts", c.Job, j.Resources, c.Resources, j.Restarts)
					}
					if c.By != "placement/giver" {
						t.Errorf("%v by %s", c.Action, c.By)
					}
					words = append(words, fmt.Sprintf("%v %d %s", c.Action, c.Job, has))
				}
				got = append(got, strings.Join(words, ", "))
			})
			g := &giver{given: tc.given}
			err := core.NewPipeline(cluster, g.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{watch}}).Run(t.Context(), b)
			var broken *core.InvariantError
			switch {
			case tc.broken != "":
				if !errors.As(err, &broken) || !strings.Contains(err.Error(), tc.broken) {
					t.Errorf("error %v, want %q", err, tc.broken)
				}
			case err != nil:
				t.Error(err)
			case !slices.Equal(got, tc.want):
				t.Errorf("changes %q, want %q", got, tc.want)
			}
		})
	}
}
