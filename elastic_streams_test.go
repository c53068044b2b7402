package quartet_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// elasticDay is the horizon of the experiment on elastic scaling, in seconds; its last round is an interval before.
const elasticDay = 86_400.0

// elasticRun is what came of a stream under a policy by the end of the day.
type elasticRun struct {
	Truth, Pattern, Mode, Policy string
	Seed                         int
	Arrived, Done, Dropped       int
	JCT                          float64 `json:"jct_min"`
}

// simulateStream runs a stream through the pipeline and the simulator.
func simulateStream(t *testing.T, r elasticRun, sets ...string) elasticRun {
	t.Helper()
	batch := map[string]string{"elastic": "range", "goodput": "range", "max": "largest", "rand": "random", "min": "smallest"}[r.Policy]
	elasticity := "throughput"
	if r.Policy == "goodput" {
		elasticity = "goodput"
	}
	sets = append([]string{
		"workload.config.batch=" + batch, "workload.config.truth=" + r.Truth, "pipeline.elasticity.job.type=" + elasticity, "pipeline.elasticity.job.config.knowledge=exact",
		"pipeline.admission[0].config.misfits=" + r.Mode,
	}, sets...)
	c, err := quartet.Load(quartet.Builtins(), configs.Options{Files: []string{"papers/saxena-mascots20/elastic.yaml"}, Env: os.LookupEnv, Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	result := simulate(t, c)
	r.Arrived, r.Done, r.Dropped, r.JCT = len(result.Jobs), 0, 0, 0
	for _, j := range result.Jobs {
		switch {
		case j.Outcome == core.Completed.String() && float64(j.FinishSeconds) <= elasticDay:
			r.Done++
			r.JCT += float64(j.JCTSeconds) / 60
		case j.Outcome == core.Rejected.String() && j.SubmitSeconds <= elasticDay-c.Round.Interval.Seconds(): // in a round of that day
			r.Dropped++
		}
	}
	r.JCT /= float64(r.Done)
	return r
}

// The streams of the reference through the real pipeline: every policy, pattern, mode and truth.
func TestElasticStreams(t *testing.T) {
	text, err := os.ReadFile(refdata.Path(t, "reference", "elastic-batch-dp", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var results []elasticRun
	if err := json.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	for _, want := range results {
		path := refdata.Path(t, "reference", "elastic-batch-dp", "stream_"+want.Pattern+"_seed"+strconv.Itoa(want.Seed)+".csv")
		got := simulateStream(t, want, "workload.config.path="+path, "workload.config.arrivals=none")
		t.Log(fmt.Sprintf("%-8s %-6s %-5s %-7s: arrived %4d (%4d), done %4d (%4d), dropped %4d (%4d), JCT %6.1f (%6.1f) min", want.Truth, want.Pattern, want.Mode, want.Policy,
			got.Arrived, want.Arrived, got.Done, want.Done, got.Dropped, want.Dropped, got.JCT, want.JCT))
		near := func(what string, got, want int, of int) {
			if math.Abs(float64(got-want)) > 0.02*float64(of) {
				t.Errorf("%d %s, want %d", got, what, want)
			}
		}
		near("arrived", got.Arrived, want.Arrived, want.Arrived)
		near("done", got.Done, want.Done, want.Done)
		near("dropped", got.Dropped, want.Dropped, want.Arrived)
	}
}
