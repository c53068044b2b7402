package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// The settings with which a config for the simulator runs real jobs.
const (
	trustJobs  = `if all jobs declare their seconds or iterations: --set 'backend={type: local, config: {declared: true}}'`
	knowNoWork = `if not: --set pipeline.elasticity.job.config.declared_work=false`
)

// hintNeeds tells what to set when a policy must know how much work real jobs have left.
func hintNeeds(err error) error {
	found, ok := errors.AsType[core.Diagnostics](err)
	if !ok {
		return err
	}
	found = slices.Clone(found)
	for i := range found {
		d := &found[i]
		if d.Hint != "" || !strings.Contains(d.Summary, fmt.Sprintf("needs capability %q", core.CapabilityRemainingWork)) {
			continue
		}
		d.Hint = trustJobs
		if strings.Contains(d.Summary, `"elasticity/goodput"`) {
			d.Hint += "; " + knowNoWork
		}
	}
	return found
}
