package stats_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// The published comparisons, in per cent. Two of their loads are kept back.
func TestPublishedComparisons(t *testing.T) {
	text, err := os.ReadFile(refdata.Path(t, "reference", "statistics", "paired.json"))
	if err != nil {
		t.Fatal(err)
	}
	var published []struct {
		Pair         string
		N            int
		Change       float64    `json:"geo_change_pct"`
		T            [2]float64 `json:"t95"`
		Percentile   [2]float64 `json:"percentile95"`
		BCa          [2]float64 `json:"bca95"`
		Unpaired     [2]float64 `json:"unpaired_t95"`
		Z0           float64
		Acceleration float64 `json:"accel"`
		RatioOfMeans float64 `json:"ratio_of_means_pct"`
		Sign         int
		Wilcoxon     float64 `json:"wilcoxon_p"`
		A, B         []float64
	}
	if err := json.Unmarshal(text, &published); err != nil {
		t.Fatal(err)
	}
	if len(published) == 0 {
		t.Fatal("no comparisons")
	}
	for _, want := range published {
		t.Run(want.Pair, func(t *testing.T) {
			got, err := stats.Compare(want.A, want.B, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			b := stats.BCa(got.Values, 0.95)
			close := func(name string, got, want, within float64) {
				t.Helper()
				if math.IsNaN(got) || math.Abs(got-want) > within {
					t.Errorf("%s = %v, want %v", name, got, want)
				}
			}
			ends := func(name string, got stats.Interval, want [2]float64) {
				t.Helper()
				close(name+" low", 100*got.Low, want[0], 1e-3)
				close(name+" high", 100*got.High, want[1], 1e-3)
			}
			close("change", 100*got.Change, want.Change, 1e-9)
			close("ratio of means", 100*got.RatioOfMeans, want.RatioOfMeans, 1e-9)
			ends("t", got.T, want.T)
			ends("percentile", got.Percentile, want.Percentile)
			ends("bca", got.BCa, want.BCa)
			close("z0", b.Z0, want.Z0, 1e-9)
			close("acceleration", b.Acceleration, want.Acceleration, 1e-9)
			close("wilcoxon", got.Wilcoxon, want.Wilcoxon, 1e-12)
			if got.N != want.N || got.Wins != want.Sign || got.Method != stats.MethodPaired || !b.Exact {
				t.Errorf("n %d, wins %d, method %s, exact %t; want %d, %d, paired, exact", got.N, got.Wins, got.Method, b.Exact, want.N, want.Sign)
			}

			// The published contrast takes 2.145 for Student's quantile whatever n: right to its three digits at n = 8, where
			// there are 14 degrees of freedom, and too small at n = 5. The standard error is the same.
			center, half := math.Log1p(got.Unpaired.Low)/2+math.Log1p(got.Unpaired.High)/2, math.Log1p(got.Unpaired.High)/2-math.Log1p(got.Unpaired.Low)/2
			half *= 2.145 / map[int]float64{5: 2.3060041350333704, 8: 2.1447866879169273}[want.N]
			ends("unpaired", stats.Interval{Low: math.Expm1(center - half), High: math.Expm1(center + half)}, want.Unpaired)
			t.Logf("unpaired %.4f %.4f, published %.4f %.4f", 100*got.Unpaired.Low, 100*got.Unpaired.High, want.Unpaired[0], want.Unpaired[1])
		})
	}
}
