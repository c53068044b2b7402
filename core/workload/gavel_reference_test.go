package workload

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/internal/refdata"
)

// The published streams came from the published generator: ours draws the same jobs.
func TestGeneratesThePublishedStreams(t *testing.T) {
	throughputs := refdata.Path(t, "data", "gavel", "throughputs_flat.csv.gz")
	for name, tc := range map[string]struct{ file, replicas string }{
		"one device":      {"continuous_single_seed0.csv.gz", replicasOne},
		"several devices": {"continuous_multi_seed0.csv.gz", replicasMixed},
	} {
		t.Run(name, func(t *testing.T) {
			want := mustLoad(t, NewGavel(), map[string]any{
				"path": refdata.Path(t, "data", "gavel", tc.file), "throughputs_path": throughputs, "jobs_per_hour": 4.0,
			})
			config := mustDecode(t, NewGavelGenerated(), map[string]any{
				"throughputs_path": throughputs, "jobs": int64(len(want.Jobs)), "jobs_per_hour": 4.0, "replicas": tc.replicas,
			})
			got, err := (&gavelGenerator{config: *config.(*GavelGeneratedConfig), seed: 0}).Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range want.Jobs {
				w, g := &want.Jobs[i].Spec, &got.Jobs[i].Spec
				if w.Name != g.Name || w.Application != g.Application || w.Requested != g.Requested ||
					relativeError(g.TotalWork, w.TotalWork) > 1e-14 || math.Abs(g.SubmitSeconds-w.SubmitSeconds) > 1e-3 {
					t.Fatalf("job %d is %+v, want %+v", i, g, w)
				}
			}
		})
	}
}

// Both forms of the throughputs say the same.
func TestThroughputsAgree(t *testing.T) {
	table, err := loadGavelSpeeds(t.Context(), refdata.Path(t, "data", "gavel", "throughputs_flat.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := loadGavelSpeeds(t.Context(), refdata.Path(t, "data", "gavel", "simulation_throughputs.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if len(table.byTask) != 83 || len(document.byTask) != 83 {
		t.Errorf("%d and %d tasks, want 83", len(table.byTask), len(document.byTask))
	}
	for task, speed := range table.byTask {
		other := document.byTask[task]
		if other == nil {
			t.Errorf("%v is missing", task)
			continue
		}
		for i, accelerator := range speed.accelerators {
			if other.on(accelerator) != speed.rates[i] {
				t.Errorf("%v on %s does %v steps per second and %v", task, accelerator, speed.rates[i], other.on(accelerator))
			}
		}
	}
}

func TestReadsPublishedTraces(t *testing.T) {
	throughputs := refdata.Path(t, "data", "gavel", "throughputs_flat.csv.gz")
	for name, tc := range map[string]struct {
		format, file string
		want         int
	}{
		"physical cluster": {gavelTrace, "physical_cluster/max_min_fairness.trace", 96},
		"philly":           {gavelPhilly, "msr_seed0/2869ce.trace", 533},
	} {
		t.Run(name, func(t *testing.T) {
			w := mustLoad(t, NewGavel(), map[string]any{
				"path": refdata.Path(t, "data", "gavel", tc.file), "throughputs_path": throughputs, "format": tc.format, "sizes": sizesScaled,
			})
			checkWorkload(t, w)
			if len(w.Jobs) != tc.want {
				t.Errorf("%d jobs, want %d", len(w.Jobs), tc.want)
			}
		})
	}
}
