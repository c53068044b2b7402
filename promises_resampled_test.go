package quartet_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// Nor is a promise broken on traces that are drawn from the jobs of Figure 8a, whose curves are measured, where the cluster is
// crowded and a new plan may miss what the plan of before keeps.
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
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.SampledFrom([]int{3600, 20_000, 80_000}).Draw(t, "span")
		rand := rapid.Uint64().Draw(t, "seed")
		next := func(n int) int { // cheap numbers: drawing each job takes longer than the run
			rand = rand*6364136223846793005 + 1442695040888963407
			return int(rand>>33) % n
		}
		drawn := [][]string{rows[0]}
		for i := range rapid.SampledFrom([]int{30, 100, 195}).Draw(t, "jobs") {
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
		cost := rapid.SampledFrom([]string{"0s", "16s", "60s", "160s", "300s"}).Draw(t, "cost")
		levels := rapid.SampledFrom([]string{"powers_of_two", "all"}).Draw(t, "levels")
		c, err := quartet.Load(quartet.Builtins(), configs.Options{
			Files: []string{"papers/elasticflow-asplos23/elasticflow.yaml"}, Env: os.LookupEnv, Sets: []string{
				"workload.config.path=" + trace, "output.write=[]", "backend.config.restart_overhead=" + cost,
				fmt.Sprintf("pipeline.admission=[{type: deadline, config: {overhead: %s, levels: %s}}]", cost, levels),
				fmt.Sprintf("pipeline.allocation.config={overhead: %s, levels: %s, expand: %s}", cost, levels,
					rapid.SampledFrom([]string{"least_growth", "most_growth"}).Draw(t, "expand")),
				fmt.Sprintf("round={interval: %s, on_events: %t}", rapid.SampledFrom([]string{"60s", "300s", "600s"}).Draw(t, "interval"), rapid.Bool().Draw(t, "on events")),
				fmt.Sprintf("cluster.nodes=[{name: t4, count: %d, accelerator: t4, devices: 4}]", rapid.SampledFrom([]int{2, 8, 16}).Draw(t, "nodes")),
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
			t.Fatalf("%+v, %d unfinished", *d, s.Jobs.Unfinished)
		}
	})
}
