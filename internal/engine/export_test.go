package engine

import (
	"github.com/quartet-sched/quartet/core/synthesizer"
	"github.com/quartet-sched/quartet/core/workload"
)

// SetWorkloadModel has a synthesizer look ahead by what a test knows, instead of what the run teaches.
func (c *Composition) SetWorkloadModel(believe func(*workload.Workload) synthesizer.WorkloadModel) {
	c.workloadModel = believe
}
