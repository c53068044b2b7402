package inflation_test

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/refdata"
	"github.com/quartet-sched/quartet/placement/score"
	"github.com/quartet-sched/quartet/placement/score/inflation"
)

var policies = map[string]func(*score.Typical) score.Scorer{
	"FGD":           func(y *score.Typical) score.Scorer { return score.NewFGD(y) },
	"BestFit":       func(*score.Typical) score.Scorer { return score.BestFit{} },
	"DotProd":       func(*score.Typical) score.Scorer { return score.DotProduct{} },
	"GpuPacking":    func(*score.Typical) score.Scorer { return score.Packing{} },
	"GpuClustering": func(*score.Typical) score.Scorer { return score.Clustering{} },
	"Random":        func(*score.Typical) score.Scorer { return score.NewRandom(rand.New(rand.NewPCG(1, 2))) },
}

// traceFrom numbers the accelerator types in the order of the nodes.
func traceFrom(rows []workload.OpenBTask, machines []workload.OpenBNode, division score.Division) *inflation.Trace {
	var types []string
	id := func(name string) core.AcceleratorID {
		if !slices.Contains(types, name) {
			types = append(types, name)
		}
		return core.AcceleratorID(slices.Index(types, name))
	}
	var nodes []inflation.Node
	for _, m := range machines {
		nodes = append(nodes, inflation.Node{Name: m.Name, CPU: m.CPUMilli, Memory: m.MemoryMiB, Devices: m.Devices, Accelerator: id(m.Model)})
	}
	var tasks []inflation.Task
	for _, r := range rows {
		task := inflation.Task{Name: r.Name, Written: r.Types, Task: score.Task{
			CPU: r.CPUMilli, Memory: r.MemoryMiB, Devices: int32(r.Devices), Milli: int32(r.Milli),
		}}
		if r.Types != "" {
			for name := range strings.SplitSeq(r.Types, "|") {
				task.Types |= 1 << uint(id(name))
			}
		}
		tasks = append(tasks, task)
	}
	return inflation.NewTrace(tasks, nodes, division)
}

// table reads a published file, by rows.
func table(t testing.TB, name string) [][]string {
	t.Helper()
	file, err := os.Open(refdata.Path(t, "reference", "fgd", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := csv.NewReader(file)
	if strings.HasSuffix(name, ".gz") {
		unzipped, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		reader = csv.NewReader(unzipped)
	}
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// curve is a row of the published curves.
type curve struct {
	workload, policy string
	seed             int64
}

func published(t testing.TB, name string) map[curve][]float64 {
	t.Helper()
	all := map[curve][]float64{}
	for _, row := range table(t, name) {
		seed, err := strconv.ParseInt(row[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		var values []float64
		for _, cell := range row[3:] {
			x, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, x)
		}
		all[curve{row[0], row[1], seed}] = values
	}
	return all
}

// farthest is the largest difference of two curves.
func farthest(got, want []float64) (most float64) {
	for x := range want {
		most = max(most, math.Abs(got[x]-want[x]))
	}
	return most
}

// The published curves of six workloads and six seeds. The draws of Random cannot be repeated, so its mean alone is near.
func TestPublishedCurves(t *testing.T) {
	t.Parallel()
	allocated, fragments := published(t, "published_allocation.csv.gz"), published(t, "published_fragmentation.csv.gz")
	for _, name := range publishedLists {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := traceOf(t, name, score.OfAll)
			off := map[string]float64{}
			for seed := int64(42); seed <= 47; seed++ {
				draw := trace.Draw(seed, 130)
				for policy, scorer := range policies {
					key := curve{name, policy, seed}
					wantAllocated, wantFragments := allocated[key], fragments[key]
					if len(wantAllocated) != 131 || len(wantFragments) != 131 {
						t.Fatalf("%v: %d and %d points", key, len(wantAllocated), len(wantFragments))
					}
					got := draw.Run(scorer(trace.Typical()), nil)
					if policy == "Random" {
						off["allocated"] += (got.Allocated[130] - wantAllocated[130]) / 6
						off["fragments"] += (got.Fragments[130] - wantFragments[130]) / 6
						continue
					}
					const within = 0.0101 // a digit of the published figures
					if a, f := farthest(got.Allocated, wantAllocated), farthest(got.Fragments, wantFragments); a > within || f > within {
						t.Errorf("%v: off by %.2f allocated, %.2f fragments", key, a, f)
					}
				}
			}
			for what, by := range off {
				if math.Abs(by) > 0.4 {
					t.Errorf("Random: mean %s at 130 %% off by %.2f", what, by)
				}
			}
		})
	}
}

// The placements of the default workload one by one. Their model divides counts, and so differs from the published curves in the last bit.
func TestPublishedPlacements(t *testing.T) {
	t.Parallel()
	nodes := traceOf(t, "default", score.OfAll).Draw(42, 130).Nodes
	for i, row := range table(t, "node_order_seed42.csv") {
		if got := fmt.Sprintf("%04d-%s", i, nodes[i].Name); got != row[0] {
			t.Fatalf("node %d is %s, want %s", i, got, row[0])
		}
	}
	cases := map[string]struct {
		policy    string
		division  score.Division
		elsewhere int
	}{
		"FGD":                            {"FGD", score.OfCovered, 0},
		"BestFit":                        {"BestFit", score.OfCovered, 0},
		"GpuPacking":                     {"GpuPacking", score.OfCovered, 0},
		"FGD as the curves were made by": {"FGD", score.OfAll, 9}, // tasks without devices, among nodes that are the same to them
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := traceOf(t, "default", tc.division)
			draw, want := trace.Draw(42, 130), table(t, "placements_default_seed42_"+tc.policy+".csv.gz")
			var elsewhere [][]string
			i := 0
			draw.Run(policies[tc.policy](trace.Typical()), func(a inflation.Arrival, p inflation.Placement) {
				got := []string{strconv.Itoa(i), a.Name(), "", inflation.Devices(p.Devices)}
				if p.Fits {
					got[2] = draw.Nodes[p.Node].Name
				}
				if !slices.Equal(got, want[i]) {
					elsewhere = append(elsewhere, got)
					if a.Task.Devices > 0 {
						t.Errorf("got %q, want %q", got, want[i])
					}
				}
				i++
			})
			if i != len(want) || len(elsewhere) != tc.elsewhere {
				t.Errorf("%d arrivals, want %d; %d go elsewhere, want %d: %q", i, len(want), len(elsewhere), tc.elsewhere, elsewhere)
			}
		})
	}
}

// Ours leaves 5 % less unallocated than FGD on the default workload, and no more on any other: over the ten seeds of the paper, and four of them
// on the workloads that are made here.
func TestFragmentationLeavesLess(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Concat(publishedLists, madeLists) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := traceOf(t, name, score.OfAll)
			theirs, ours, seeds := 0.0, 0.0, 10.0
			if slices.Contains(madeLists, name) {
				seeds = 4
			}
			for seed := int64(42); seed < 42+int64(seeds); seed++ {
				draw := trace.Draw(seed, 130)
				theirs += (100 - draw.Run(score.NewFGD(trace.Typical()), nil).Allocated[130]) / seeds
				ours += (100 - draw.Run(score.NewFragmentation(trace.Typical()), nil).Allocated[130]) / seeds
			}
			t.Logf("unallocated %.3f %%, FGD %.3f %%: %+.1f %%", ours, theirs, 100*(ours/theirs-1))
			if ours > theirs || name == "default" && ours > 0.95*theirs {
				t.Errorf("unallocated %.3f %%, FGD %.3f %%", ours, theirs)
			}
		})
	}
}

// One run of the published experiment, from the lists to the curves.
func BenchmarkRun(b *testing.B) {
	tasks, nodes := tasksOf(b, "default"), nodesOf(b)
	run := func(b *testing.B, scorer func(*score.Typical) score.Scorer) {
		b.ReportAllocs()
		for b.Loop() {
			trace := traceFrom(tasks, nodes, score.OfAll)
			trace.Draw(42, 130).Run(scorer(trace.Typical()), nil)
		}
	}
	for policy, scorer := range policies {
		b.Run(policy, func(b *testing.B) { run(b, scorer) })
	}
	b.Run("Fragmentation", func(b *testing.B) { run(b, func(y *score.Typical) score.Scorer { return score.NewFragmentation(y) }) })
}

// Allocated at 130 % arrived, mean over the ten seeds of the paper: DotProd, GpuClustering, GpuPacking, BestFit, FGD.
func TestPublishedMeans(t *testing.T) {
	t.Parallel()
	order := []string{"DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD"}
	for name, want := range map[string][]float64{
		"default":     {90.85, 91.88, 92.00, 93.08, 95.39},
		"cpu050":      {93.27, 93.79, 93.72, 93.79, 95.21},
		"cpu250":      {83.81, 87.99, 88.28, 91.45, 93.41},
		"gpushare100": {82.42, 82.65, 82.57, 85.01, 86.90},
		"gpuspec33":   {89.14, 92.12, 93.22, 93.09, 94.55},
		"multigpu50":  {94.85, 95.81, 96.18, 95.74, 97.18},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := traceOf(t, name, score.OfAll)
			for i, policy := range order {
				mean := 0.0
				for seed := int64(42); seed <= 51; seed++ {
					mean += trace.Draw(seed, 130).Run(policies[policy](trace.Typical()), nil).Allocated[130] / 10
				}
				if math.Abs(mean-want[i]) > 0.0101 {
					t.Errorf("%s: %.3f, published %.2f", policy, mean, want[i])
				}
			}
		})
	}
}
