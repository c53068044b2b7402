package engine

import (
	"github.com/quartet-sched/quartet/core/synthesizer"
	"github.com/quartet-sched/quartet/core/workload"
)

// BelieveBy has a synthesizer look ahead by what a test knows, instead of what the run teaches.
func (c *Composition) BelieveBy(believe func(*workload.Workload) synthesizer.Believer) {
	c.believe = believe
}
