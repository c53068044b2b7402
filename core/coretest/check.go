package coretest

import (
	"fmt"

	"github.com/quartet-sched/quartet/core"
)

// Result is what one check of a suite came to.
type Result struct {
	Check string // name of the check
	Fault string // empty when the policy passed
	Seed  uint64 // that repeats the fault; 0 when it takes none
}

// Instances is the greatest number of instances of a policy that a suite uses at once: those it created last.
const Instances = 3

// Elsewhere says that the policy lives in another process, whose memory and goroutines are not ours to count.
func Elsewhere() Option { return func(o *options) { o.elsewhere = true } }

// Check runs the suite of a stage outside of `go test`. The error says that S is the slot of no stage.
func Check[S any](f core.Factory[S], e Effort, opts ...Option) ([]Result, error) {
	suite, err := suiteOf(f, opts)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(suite))
	for i, c := range suite {
		results[i] = c.judge(e)
	}
	return results, nil
}

func suiteOf(f any, opts []Option) ([]check, error) {
	switch f := f.(type) {
	case core.Factory[core.Admitter]:
		return checks(admitterSlot(f.Type), f, opts), nil
	case core.Factory[core.Allocator]:
		return checks(allocatorSlot(f.Type), f, opts), nil
	case core.Factory[core.Placer]:
		return placerChecks(f, opts), nil
	case core.Factory[core.Elasticity]:
		return checks(elasticitySlot(f.Type), f, opts), nil
	case core.Factory[core.ClusterScaler]:
		return checks(scalerSlot(f.Type), f, opts), nil
	default:
		return nil, fmt.Errorf("%T is a factory of no stage", f)
	}
}

// judge runs the check and words its complaint for readers who have no test to run again.
func (c check) judge(e Effort) Result {
	r := Result{Check: c.name}
	if c.inWorld != nil {
		r.Fault, r.Seed = e.explore(c.inWorld)
	} else {
		r.Fault = recorded(c.run)
	}
	return r
}
