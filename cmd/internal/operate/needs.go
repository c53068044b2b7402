package operate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// The settings with which a config for the simulator runs real jobs.
const (
	trustJobs    = `if all jobs declare their seconds or iterations: --set 'backend={type: local, config: {declared: true}}'`
	knowNoWork   = `if not: --set pipeline.elasticity.job.config.declared_work=false`
	declaredWork = "its jobs are ordered by what they declare with --set pipeline.allocation.config.step_times=false"
)

// hintNeeds says what to set when a policy must know more of jobs than real ones tell.
func hintNeeds(err error) error {
	found, ok := errors.AsType[core.Diagnostics](err)
	if !ok {
		return err
	}
	found = slices.Clone(found)
	for i := range found {
		d := &found[i]
		needs := func(c core.Capability) bool {
			return d.Hint == "" && strings.Contains(d.Summary, fmt.Sprintf("needs capability %q", c))
		}
		switch {
		case needs(core.CapabilityRemainingWork):
			d.Hint = trustJobs
			if strings.Contains(d.Summary, `"elasticity/goodput"`) {
				d.Hint += "; " + knowNoWork
			}
		case needs(core.CapabilityStepTimes) && strings.Contains(d.Summary, `"allocation/srtf"`):
			d.Hint = declaredWork
		}
	}
	return found
}
