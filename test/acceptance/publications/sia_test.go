package publications

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/internal/refdata"
)

// siaHours are the mean JCTs of the reference simulator (spec/heterogeneity.md, 5.3).
var siaHours = map[string]float64{
	"saturn/workload-1": 0.5869, "saturn/workload-2": 0.7245, "saturn/workload-3": 0.7434, "philly/workload-1": 0.5429,
}

// onSiaTrace is the mean JCT in hours of a policy of Sia's evaluation, which must finish every job.
func onSiaTrace(t *testing.T, policy, trace string, sets ...string) float64 {
	t.Helper()
	path := refdata.Path(t, "data", "sia", "workloads", trace+".csv")
	summary, _ := simulated(t, "sia-sosp23/"+policy+".yaml", append(sets, "workload.config.path="+path)...)
	if summary.Jobs.Completed != 160 {
		t.Errorf("%d jobs completed, want 160", summary.Jobs.Completed)
	}
	return float64(summary.JCTSeconds.Mean) / 3600
}

func TestReproducesSia(t *testing.T) {
	for trace, want := range siaHours {
		t.Run(trace, func(t *testing.T) {
			if got := onSiaTrace(t, "sia", trace); math.Abs(got/want-1) > 0.05 {
				t.Errorf("mean JCT %v h, want %v h within 5 %%", got, want)
			}
		})
	}
}

func TestReproducesTheOrderOfSia(t *testing.T) {
	for _, trace := range []string{"saturn/workload-1", "philly/workload-2"} {
		t.Run(trace, func(t *testing.T) {
			sia, pollux, gavel := onSiaTrace(t, "sia", trace), onSiaTrace(t, "pollux", trace), onSiaTrace(t, "gavel", trace)
			if !(1.2*sia < pollux && 1.2*pollux < gavel) {
				t.Errorf("mean JCT %v h with Sia, %v h with Pollux, %v h with Gavel; want them in this order, far apart", sia, pollux, gavel)
			}
		})
	}
}

// Whoever does not see types is slower for it.
func TestSiaGainsFromTypes(t *testing.T) {
	const trace = "saturn/workload-2"
	blind := onSiaTrace(t, "sia", trace, "pipeline.allocation.config.types=blind", "pipeline.elasticity.job.config.types=blind")
	if seeing := siaHours[trace]; !(blind > 1.2*seeing) {
		t.Errorf("mean JCT %v h without types, %v h with them", blind, seeing)
	}
}

// The less a job may change, the longer it takes.
func TestSiaServesAllKindsOfJobs(t *testing.T) {
	const trace = "philly/workload-1"
	scaling := onSiaTrace(t, "sia", trace, "workload.config.jobs=strong_scaling")
	rigid := onSiaTrace(t, "sia", trace, "workload.config.jobs=rigid")
	if elastic := siaHours[trace]; !(elastic < scaling && scaling < rigid) {
		t.Errorf("mean JCT %v h elastic, %v h strong-scaling, %v h rigid", elastic, scaling, rigid)
	}
}
