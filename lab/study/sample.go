package study

import (
	"encoding/json"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// sampleDraws reports whether the jobs that are chosen depend on the seed.
func sampleDraws(c *configs.Config) bool { return c.Sample.Draws() }

// sampleKey identifies the jobs of a run, which come from a source, and what is told of them.
func sampleKey(c *configs.Config, source string) (string, error) {
	chosen, err := json.Marshal([]any{core.Encode(&c.Sample), core.Encode(&c.Estimate)})
	return source + " " + string(chosen), err
}

// offeredLoad is the device time that jobs demand over that which there is.
func offeredLoad(c *configs.Config, w *workload.Workload) float64 {
	if w.Open {
		return nan
	}
	return workload.OfferedLoad(w, c.BuildCluster())
}
