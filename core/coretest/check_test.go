package coretest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// panicky panics when it has a job to decide on, and time for it.
type panicky struct{ steadyPlain }

func (panicky) Allocate(ctx context.Context, _ *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	if len(candidates) > 0 && ctx.Err() == nil {
		panic("at the disco")
	}
	return nil, nil
}

// greedy grants more replicas than the job can use.
type greedy struct{ steadyPlain }

func (greedy) Allocate(_ context.Context, _ *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	var grants []core.Grant
	for _, c := range candidates {
		grants = append(grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Response.MaxReplicas + 1})
	}
	return grants, nil
}

func faultsOf(t *testing.T, f core.Factory[core.Allocator], e Effort, opts ...Option) map[string]Result {
	t.Helper()
	results, err := Check(f, e, opts...)
	if err != nil {
		t.Fatal(err)
	}
	faults := map[string]Result{}
	for _, r := range results {
		faults[r.Check] = r
	}
	return faults
}

func TestCheckPassesWhatConforms(t *testing.T) {
	f := factoryOf(func() core.Allocator { return steadyPlain{} })
	faults := faultsOf(t, f, Effort{Worlds: 20})
	if len(faults) != 6 {
		t.Errorf("%d checks, want all 6", len(faults))
	}
	for name, r := range faults {
		if r.Fault != "" {
			t.Errorf("%s: %s", name, r.Fault)
		}
	}
	if n := len(faultsOf(t, f, Effort{Worlds: 1}, Elsewhere())); n != 4 {
		t.Errorf("%d checks of a policy elsewhere, want 4", n)
	}
}

func TestCheckTellsFaultsWithTheirSeed(t *testing.T) {
	f := factoryOf(func() core.Allocator { return greedy{} })
	first := faultsOf(t, f, Effort{})["rounds"]
	if first.Seed == 0 || !strings.Contains(first.Fault, "replicas") || strings.Contains(first.Fault, "rapid") {
		t.Errorf("got fault %q with seed %d", first.Fault, first.Seed)
	}
	if again := faultsOf(t, f, Effort{Seed: first.Seed, Worlds: 1})["rounds"]; again.Fault == "" {
		t.Errorf("seed %d did not repeat the fault", first.Seed)
	}
}

func TestCheckSurvivesPanics(t *testing.T) {
	faults := faultsOf(t, factoryOf(func() core.Allocator { return panicky{} }), Effort{})
	for _, name := range []string{"rounds", "ended jobs are forgotten"} {
		if !strings.Contains(faults[name].Fault, "at the disco") {
			t.Errorf("%s: got fault %q, want the panic", name, faults[name].Fault)
		}
	}
}

// moody fails its first question, and no other.
type moody struct {
	steadyPlain
	asked *int
}

func (m moody) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	if len(candidates) > 0 {
		*m.asked++
	}
	if *m.asked == 1 {
		return nil, errors.New("(not in the mood)")
	}
	return m.steadyPlain.Allocate(ctx, v, candidates)
}

func TestCheckTellsWhatItCannotSeeAgain(t *testing.T) {
	asked := 0
	fault := faultsOf(t, factoryOf(func() core.Allocator { return moody{asked: &asked} }), Effort{}, Elsewhere())["rounds"].Fault
	if want := "only once, and not again in the same world: returned an error: (not in the mood)"; fault != want {
		t.Errorf("got fault %q, want %q", fault, want)
	}
}

func TestCheckRefusesWhatIsNoStage(t *testing.T) {
	if _, err := Check(factoryOf(func() int { return 1 }), Effort{}); err == nil {
		t.Error("no error for a factory of no stage")
	}
}
