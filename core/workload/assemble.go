package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// assemble brings jobs into submission order and numbers them. It fails with every problem of the inputs, those found
// before and names used twice.
func assemble(jobs []Job, inputs []Input, problems core.Diagnostics) (*Workload, error) {
	first := make(map[string]int, len(jobs))
	for i := range jobs {
		job := &jobs[i]
		if k, twice := first[job.Spec.Name]; twice {
			problems = append(problems, core.Diagnostic{
				Position: job.At,
				Summary:  fmt.Sprintf("job name %q appears twice", job.Spec.Name),
				Hint:     fmt.Sprintf("first on line %d", jobs[k].At.Line),
			})
			continue
		}
		first[job.Spec.Name] = i
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(jobs, compareJobs)
	for i := range jobs {
		jobs[i].Spec.ID = core.JobID(i)
	}
	return &Workload{Jobs: jobs, Inputs: inputs}, nil
}

// compareJobs is submission order: by time, then by the trailing number of the name, then by name.
func compareJobs(a, b Job) int {
	numberA, numberB := trailingNumber(a.Spec.Name), trailingNumber(b.Spec.Name)
	return cmp.Or(
		cmp.Compare(a.Spec.SubmitSeconds, b.Spec.SubmitSeconds),
		cmp.Compare(len(numberA), len(numberB)), // without leading zeros, the longer is the greater
		strings.Compare(numberA, numberB),
		strings.Compare(a.Spec.Name, b.Spec.Name),
	)
}

// trailingNumber is the digits that a name ends in, without leading zeros.
func trailingNumber(name string) string {
	start := len(name)
	for start > 0 && '0' <= name[start-1] && name[start-1] <= '9' {
		start--
	}
	return strings.TrimLeft(name[start:], "0")
}
