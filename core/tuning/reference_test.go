package tuning_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core/search"
	"github.com/quartet-sched/quartet/core/tuning"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// asha is the rule of early stopping by which the reference was made, in its stopping variant, by a search that stops trials at the very report: at steps 4, 16 and 64 a trial
// goes on if it is among the best quarter, rounded down, of those that came so far up to now, and if fewer than four did.
type asha struct {
	search.Search
	rungs map[float64][]float64
}

func newASHA(s search.Search) search.Search {
	return &asha{s, map[float64][]float64{4: nil, 16: nil, 64: nil}}
}

func (a *asha) Tell(ctx context.Context, results []search.Result) ([]int, error) {
	stop, err := a.Search.Tell(ctx, results)
	for _, r := range results {
		rung, is := a.rungs[r.Step]
		if r.Kind != search.Report || !is {
			continue
		}
		rung = append(rung, r.Value)
		a.rungs[r.Step] = rung
		better := 0
		for _, other := range rung {
			if other > r.Value {
				better++
			}
		}
		if len(rung) >= 4 && better >= len(rung)/4 {
			stop = append(stop, r.Trial)
		}
	}
	return stop, err
}

const tick = 30 // seconds

// figures are those of a run as the reference counts them.
type figures struct {
	makespanHours, jctMinutes, gpuHours float64
}

// run runs a variant of the reference on the trials of a seed.
func run(t *testing.T, seed int, stops bool, sets []string) figures {
	t.Helper()
	c := quartet.Builtins()
	if stops {
		c = c.WithWorkload(tuning.NewWith(newASHA))
	}
	trials := refdata.Path(t, "reference", "hpo-cifar10", fmt.Sprintf("trials_seed%d.csv", seed))
	sets = append([]string{
		"workload.config.space=[]", fmt.Sprintf("workload.config.search={type: list, config: {path: %q}}", trials),
		"workload.config.simulated.width=width_factor", "workload.config.simulated.quality=quality_offset", "workload.config.simulated.noise=noise",
	}, sets...)
	loaded, err := quartet.Load(c, configs.Options{Files: []string{"papers/pollux-osdi21/tuning.yaml"}, Sets: sets, Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	r, err := loaded.Simulate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := figures{makespanHours: float64(r.Summary.MakespanSeconds) / 3600}
	for _, j := range r.Jobs {
		ran := float64(j.FinishSeconds - j.FirstStartSeconds)
		f.jctMinutes += ran / 60 / float64(len(r.Jobs))
		// The reference frees devices at the end of a tick.
		f.gpuHours += (float64(j.GPUSeconds) + (math.Ceil(float64(j.FinishSeconds)/tick)*tick-float64(j.FinishSeconds))*float64(j.GPUSeconds)/ran) / 3600
	}
	return f
}

func TestReference(t *testing.T) {
	text, err := os.ReadFile(refdata.Path(t, "reference", "hpo-cifar10", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var reference []struct {
		Variant  string  `json:"variant"`
		Seed     int     `json:"seed"`
		Makespan float64 `json:"makespan_h"`
		JCT      float64 `json:"jct_min"`
		GPU      float64 `json:"gpu_h"`
	}
	if err := json.Unmarshal(text, &reference); err != nil {
		t.Fatal(err)
	}
	goodput := []string{"workload.config.simulated.adapts=true", "pipeline.elasticity.job={type: goodput, config: {knowledge: exact, declared_work: false}}"}
	four := append(slices.Clone(goodput), "workload.config.job={replicas: 4}")
	elastic := append(slices.Clone(goodput), "pipeline.allocation={type: pollux, config: {restart: horizon, horizon: 200s}}", "pipeline.placement={type: proposed}")
	// The admission decides in the next round. One trial more than the quota lets run waits meanwhile, and takes the devices in that round.
	admitted := []string{"workload.config.parallel=5", "pipeline.admission=[{type: quota, config: {default_jobs: 4}}, {type: asha, config: {metrics: [accuracy], first: 4, reduction: 4, max_step: 100}}]"}
	type variant struct {
		stops     bool
		tolerance float64
		sets      []string
	}
	variants := map[string]variant{
		"static 4 GPUs, 128 per GPU (B=512)":  {false, 0.01, nil},
		"static 4 GPUs, 256 per GPU (B=1024)": {false, 0.01, []string{"workload.config.simulated.batch=1024"}},
		"static 4 GPUs, 512 per GPU (B=2048)": {false, 0.01, []string{"workload.config.simulated.batch=2048"}},
		"static 4 GPUs, 32 per GPU (B=128)":   {false, 0.01, []string{"workload.config.simulated.batch=128"}},
		"static 4 GPUs, goodput batch":        {false, 0.01, four},
		"elastic goodput":                     {false, 0.03, elastic},
		"ASHA + static B=512":                 {true, 0.03, nil},
		"ASHA + elastic goodput":              {true, 0.03, elastic},
	}
	byAdmission := map[string]variant{
		"ASHA + static B=512":    {false, 0.03, admitted},
		"ASHA + elastic goodput": {false, 0.03, append(slices.Clone(elastic), admitted...)},
	}
	if len(reference) != 3*len(variants) {
		t.Errorf("the reference has %d rows, want 3 for each of %d variants", len(reference), len(variants))
	}
	means := map[string]float64{}
	for _, row := range reference {
		v, known := variants[row.Variant]
		if !known {
			t.Errorf("unknown variant %q", row.Variant)
			continue
		}
		got := run(t, row.Seed, v.stops, v.sets)
		means[row.Variant] += got.makespanHours / 3
		for _, x := range []struct {
			name      string
			got, want float64
		}{{"makespan, h", got.makespanHours, row.Makespan}, {"JCT, min", got.jctMinutes, row.JCT}, {"GPU-h", got.gpuHours, row.GPU}} {
			off := x.got/x.want - 1
			t.Logf("%s, seed %d: %s %.4f, reference %.4f: %+.2f %%", row.Variant, row.Seed, x.name, x.got, x.want, 100*off)
			if math.Abs(off) > v.tolerance {
				t.Errorf("%s, seed %d: %s is %.4f, want %.4f to %g %%", row.Variant, row.Seed, x.name, x.got, x.want, 100*v.tolerance)
			}
		}
		v, stopped := byAdmission[row.Variant]
		if !stopped {
			continue
		}
		got = run(t, row.Seed, false, v.sets)
		means[row.Variant+" by admission"] += got.makespanHours / 3
		makespan, gpu, later := got.makespanHours/row.Makespan-1, got.gpuHours/row.GPU-1, 60*(got.jctMinutes-row.JCT)
		t.Logf("%s by admission, seed %d: makespan %.4f h, %+.2f %%; GPU-h %.4f, %+.2f %%; JCT %.4f min, %+.1f s, %+.2f %%",
			row.Variant, row.Seed, got.makespanHours, 100*makespan, got.gpuHours, 100*gpu, got.jctMinutes, later, 100*(got.jctMinutes/row.JCT-1))
		if math.Abs(makespan) > v.tolerance || math.Abs(gpu) > v.tolerance {
			t.Errorf("%s by admission, seed %d: makespan is %.4f h, want %.4f, and GPU-h %.4f, want %.4f, to %g %%", row.Variant, row.Seed, got.makespanHours, row.Makespan, got.gpuHours, row.GPU, 100*v.tolerance)
		}
		// A trial is ended at the end of a tick instead of within: half a tick later on average, and what that does to others.
		if later < 0 || later > tick/2*1.2 {
			t.Errorf("%s by admission, seed %d: trials end %.1f s later than in the reference, want up to half a tick and a fifth of that", row.Variant, row.Seed, later)
		}
	}
	order := []string{
		"ASHA + elastic goodput by admission", "ASHA + static B=512 by admission", "elastic goodput", "static 4 GPUs, goodput batch", "static 4 GPUs, 128 per GPU (B=512)",
		"static 4 GPUs, 256 per GPU (B=1024)", "static 4 GPUs, 512 per GPU (B=2048)", "static 4 GPUs, 32 per GPU (B=128)",
	}
	if !slices.IsSortedFunc(order, func(a, b string) int {
		if means[a] < means[b] {
			return -1
		}
		return 1
	}) {
		t.Errorf("makespans are not in the order of the reference: %v", means)
	}
}
