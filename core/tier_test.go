package core_test

import (
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// replaced is an allocator that guarantees less once it was asked, as one does whose plugin failed and that another takes over for.
type replaced struct {
	grantAll
	asked bool
}

func (f *replaced) Guarantees() core.Guarantees {
	if f.asked {
		return core.Guarantees{0.5, 0.5, 0.5}
	}
	return core.Guarantees{1, 1, 1}
}

// guaranteed notes what each round guarantees by its report, and has the allocator fail after the first.
type guaranteed struct {
	of   *replaced
	told []core.Guarantees
}

func (g *guaranteed) ObserveRound(r *core.Report) error {
	g.told, g.of.asked = append(g.told, r.Guarantees), true
	return nil
}

// A round is told what is guaranteed by whoever allocated in it.
func TestGuaranteesOfWhoTakesOver(t *testing.T) {
	policy := &replaced{}
	stages := fakes{}.stages()
	stages.Allocation.Policy = policy
	seen := &guaranteed{of: policy}
	b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 1)}}, {NowSeconds: 60}}}
	c := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "n", Devices: 4}}}
	if err := core.NewPipeline(c, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{seen}}).Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if want := []core.Guarantees{{1, 1, 1}, {0.5, 0.5, 0.5}}; !slices.Equal(seen.told, want) {
		t.Errorf("guaranteed %v, want %v", seen.told, want)
	}
}
