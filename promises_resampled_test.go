package quartet_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// Nor is a promise broken on 60 traces that are drawn from the jobs of Figure 8a, whose curves are measured, with the cluster, the interval and
// the cost of a change of the config. Elsewhere about one in 10,000 may be (docs/deadlines.md).
func TestNoPromiseIsBrokenOnResampledTraces(t *testing.T) {
	t.Parallel()
	in, err := os.Open(refdata.Path(t, "reference", "elasticflow-asplos23", "trace.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	column := func(name string) int { return slices.Index(rows[0], name) }
	id, submit, due, duration := column("job_id"), column("submit_time"), column("ddl"), column("duration")
	for seed := range uint64(60) {
		span, rand := []int{3600, 20_000, 80_000}[seed%3], core.NewRand(seed, "resampled")
		next := rand.IntN
		drawn := [][]string{rows[0]}
		for i := range len(rows) - 1 {
			row := slices.Clone(rows[1+next(len(rows)-1)])
			seconds, err := strconv.ParseFloat(row[duration], 64)
			if err != nil {
				t.Fatal(err)
			}
			at := float64(next(100*span)) / 100
			if next(2) == 0 {
				at = float64(60 * next(span/60))
			}
			row[id], row[submit], row[due] = fmt.Sprint(i), fmt.Sprint(at), fmt.Sprint(at+seconds*(0.1+2.9*float64(next(1000))/1000))
			drawn = append(drawn, row)
		}
		trace := filepath.Join(folder, "trace.csv")
		out, err := os.Create(trace)
		if err != nil {
			t.Fatal(err)
		}
		if err := csv.NewWriter(out).WriteAll(drawn); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		levels, expand := []string{"powers_of_two", "all"}[seed/3%2], []string{"least_growth", "most_growth"}[seed/6%2]
		c, err := quartet.Load(quartet.Builtins(), configs.Options{
			Files: []string{"papers/elasticflow-asplos23/elasticflow.yaml"}, Env: os.LookupEnv, Sets: []string{
				"workload.config.path=" + trace, "output.write=[]",
				fmt.Sprintf("pipeline.admission=[{type: deadline, config: {overhead: 16s, levels: %s}}]", levels),
				fmt.Sprintf("pipeline.allocation.config={overhead: 16s, levels: %s, expand: %s}", levels, expand),
				fmt.Sprintf("round={interval: 60s, on_events: %t}", seed/12%2 == 0),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		result, err := c.Simulate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := result.Summary
		if d := s.Deadlines; d.Broken > 0 || d.Missed > 0 || s.Jobs.Unfinished > 0 {
			t.Errorf("seed %d: %+v, %d unfinished", seed, *d, s.Jobs.Unfinished)
		}
	}
}
