package elasticity

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// The batches of several jobs are split each by itself, and one that just fits is done in one pass.
func TestSplitsOfSeveralJobs(t *testing.T) {
	fits := core.BatchSpec{Requested: 80, Initial: 80, Max: 80, MinPerDevice: 1, MaxPerDevice: 40}
	more := fits
	more.Requested = 81
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "v100", 4).Obj()).Jobs(mixing(fits).Waiting(), mixing(more).Waiting()).Obj()
	var placements []core.Placement
	for _, j := range v.Jobs {
		device := int(j.ID)
		placements = append(placements, core.Placement{Job: j.ID, Seats: []core.Seat{coretest.Seat(0, device), coretest.Seat(1, device)}})
	}
	got, err := newFixed(t, FixedConfig{Replicas: elastic, Split: proportional}).Tune(t.Context(), v, placements)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].AccumulationSteps != 0 || got[1].AccumulationSteps != 1 {
		t.Fatalf("tunes %+v, want one pass and two", got)
	}
	for i, want := range []int{80, 41} {
		if parts := got[i].BatchByReplica; len(parts) != 2 || parts[0]+parts[1] != want {
			t.Errorf("job %d: parts %v of %d", i, parts, want)
		}
	}
}

// A job that mixes types is told the rates of single devices; another is not.
func TestFixedTellsRatesAlone(t *testing.T) {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "v100", 4).Obj()).Obj()
	for mixes, want := range map[bool][]float64{true: {1.0 / 3, 1}, false: nil} {
		j := mixing(core.BatchSpec{Requested: 100}).Obj()
		j.MixesTypes = mixes
		got, err := newFixed(t, FixedConfig{Replicas: elastic}).Respond(t.Context(), v, []*core.Job{j})
		if err != nil {
			t.Fatal(err)
		}
		var alone []float64
		if got[0].MixedTypes != nil {
			alone = got[0].MixedTypes.SingleDeviceRates
		}
		if diff := cmp.Diff(want, alone); diff != "" {
			t.Errorf("mixes %v: rates alone (-want +got):\n%s", mixes, diff)
		}
	}
}

// An answer stands until the job has been silent for too long, for ever once it measured, and for one round where a warm-up
// goes on.
func TestGoodputStands(t *testing.T) {
	cases := map[string]struct {
		settings map[string]any
		want     float64
	}{
		"no warm-up":            {nil, 120},
		"of another rule":       {map[string]any{"warmup_iterations": 100.0}, 120},
		"without iterations":    {map[string]any{"scaling_rule": "legew"}, 120},
		"measured":              {nil, math.Inf(1)},
		"a warm-up under legew": {map[string]any{"scaling_rule": "legew", "warmup_iterations": 100.0}, 60},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, j := newGoodput(t, tc.settings), trainingJob()
			if name == "measured" {
				ran(j, truth, 1, 1, 64)
			}
			respond(t, p, j)
			v := viewOf(j)
			v.NowSeconds = 60
			if _, err := p.Tune(t.Context(), v, []core.Placement{{Job: j.ID, Seats: []core.Seat{coretest.Seat(0, 0)}}}); err != nil {
				t.Fatal(err)
			}
			if got := p.Standing().UntilSeconds; got != tc.want {
				t.Errorf("stands until %v, want %v", got, tc.want)
			}
		})
	}
}

// The limits of an application are those of the last run, and work that was proved wrong is not kept.
func TestHistoryFollowsTheApplication(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool.yaml")
	first := remembering(t, path, nil)
	ends(t, first, "app", 500, core.Completed)
	closed(t, first)
	for _, run := range []struct {
		work float64
		want []float64
	}{{600, []float64{500, 600}}, {5000, []float64{5000}}} {
		p := remembering(t, path, nil)
		ends(t, p, "app", run.work, core.Completed)
		p.pool.fresh["app"].limits.Max = 2048
		closed(t, p)
		read, _, err := readPool(path)
		if err != nil {
			t.Fatal(err)
		}
		app := read.named("app")
		var works []float64
		for _, e := range app.endings {
			works = append(works, e.work)
		}
		if diff := cmp.Diff(run.want, works); diff != "" || app.limits.Max != 2048 {
			t.Errorf("limits %+v, endings (-want +got):\n%s", app.limits, diff)
		}
	}
}
