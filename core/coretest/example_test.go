package coretest_test

import (
	"cmp"
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// LargestFirstConfig configures NewLargestFirst.
type LargestFirstConfig struct {
	Reserve float64 `config:"reserve" doc:"Share of the devices that is kept for jobs of one replica." min:"0" max:"1"`
}

// NewLargestFirst serves the jobs that need the most devices first, so that small ones fill the gaps.
//
// Source: first fit decreasing, as in bin packing. O(n log n) for n candidates.
func NewLargestFirst() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:        "largest_first",
		Summary:     "the job that needs the most devices first",
		Description: "Preempts small jobs when a larger one arrives. Elastic jobs get the least they can run with.",
	}, LargestFirstConfig{Reserve: 0.1}, func(c LargestFirstConfig, _ core.Settings) (core.Allocator, error) {
		return &largestFirst{config: c}, nil
	})
}

type largestFirst struct {
	config LargestFirstConfig
	order  []core.Candidate // buffers of the last round, used again
	grants []core.Grant
}

func (p *largestFirst) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.order, p.grants = append(p.order[:0], candidates...), p.grants[:0]
	slices.SortFunc(p.order, func(a, b core.Candidate) int {
		return cmp.Or(b.Response.MinReplicas-a.Response.MinReplicas, int(a.ID-b.ID))
	})
	left, reserved := v.Devices, int(p.config.Reserve*float64(v.Devices))
	for _, c := range p.order {
		n := c.Response.MinReplicas
		if n == 1 {
			reserved = 0 // what was kept is for this one
		}
		if n <= left-reserved {
			left -= n
			p.grants = append(p.grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: n})
		}
	}
	clear(p.order) // keep no reference into the View
	return p.grants, nil
}

// Standing is for ever: the answer depends on the candidates and the devices, and both change by events only.
func (p *largestFirst) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }

func TestLargestFirst(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 5).Obj()
	view := coretest.MakeView(cluster).Jobs(
		coretest.MakeJob("small").Replicas(1).Running(0, coretest.Seat(0, 0)),
		coretest.MakeJob("large").Replicas(8).Waiting(),
		coretest.MakeJob("middle").Replicas(2).Waiting(),
	).Obj()
	factory := NewLargestFirst()
	config, problems := factory.Decode(nil)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	policy, err := factory.New(config, core.Settings{ID: "allocation/largest_first"})
	if err != nil {
		t.Fatal(err)
	}
	grants, err := policy.Allocate(t.Context(), view, coretest.Candidates(view, coretest.Rigid))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range grants {
		got = append(got, view.Job(g.Job).Name)
	}
	if want := []string{"large", "small"}; !slices.Equal(got, want) { // one device of ten is kept, two are wanted
		t.Errorf("granted %v, want %v", got, want)
	}
}

func TestLargestFirstConforms(t *testing.T) {
	coretest.RunAllocator(t, NewLargestFirst())
	coretest.RunAllocator(t, NewLargestFirst(), coretest.WithConfig(map[string]any{"reserve": 0.5}))
}

// TestDocumentedPolicyIsThisOne holds docs/write-a-policy.md to this file: each of its Go blocks stands here.
func TestDocumentedPolicyIsThisOne(t *testing.T) {
	page, err := os.ReadFile("../../docs/write-a-policy.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	if len(blocks) < 3 {
		t.Fatalf("found %d Go blocks, want the policy, its test and its conformance test", len(blocks))
	}
	for i, block := range blocks {
		code, _, closed := strings.Cut(block, "```")
		if !closed || !strings.Contains(string(source), code) {
			t.Errorf("Go block %d is not in example_test.go:\n%s", i+1, code)
		}
	}
}
