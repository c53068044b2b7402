package study

import (
	"encoding/json"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// sampleDraws reports whether the jobs that are chosen depend on the seed.
func sampleDraws(c *configs.Config) bool { return c.Sample.Draws() }

// sampleKey identifies the jobs of a run, which come from a source.
func sampleKey(c *configs.Config, source string) (string, error) {
	if c.Sample.Whole() {
		return source, nil
	}
	sample, err := json.Marshal(core.Encode(&c.Sample))
	return source + " " + string(sample), err
}

// choose takes the jobs of a run out of a source.
func choose(c *configs.Config, source *workload.Workload) (*workload.Workload, error) {
	w, err := c.Sample.Apply(source, c.Seed)
	return w, c.Locate(err)
}

// offeredLoad is the device time that jobs demand over that which there is.
func offeredLoad(c *configs.Config, w *workload.Workload) float64 {
	if w.Open {
		return nan
	}
	return workload.OfferedLoad(w, c.BuildCluster())
}
