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
	problems = append(problems, namesUsedTwice(jobs)...)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if !inOrder(jobs, inSubmissionOrder) {
		slices.SortFunc(jobs, func(a, b Job) int { return compareJobs(&a, &b) })
	}
	for i := range jobs {
		jobs[i].Spec.ID = core.JobID(i)
	}
	return &Workload{Jobs: jobs, Inputs: inputs}, nil
}

// namesUsedTwice reports each job whose name one before it has. Names that rise from job to job, as most traces number
// theirs, need no table.
func namesUsedTwice(jobs []Job) (found core.Diagnostics) {
	if inOrder(jobs, func(a, b *Job) bool { return a.Spec.Name < b.Spec.Name }) {
		return nil
	}
	first := make(map[string]int, len(jobs))
	for i := range jobs {
		job := &jobs[i]
		if k, twice := first[job.Spec.Name]; twice {
			found = append(found, core.Diagnostic{
				Position: job.At,
				Summary:  fmt.Sprintf("job name %q appears twice", job.Spec.Name),
				Hint:     fmt.Sprintf("first on line %d", jobs[k].At.Line),
			})
			continue
		}
		first[job.Spec.Name] = i
	}
	return found
}

// inOrder reports whether each job and the next are in an order. Jobs are large, and are compared where they lie.
func inOrder(jobs []Job, ordered func(a, b *Job) bool) bool {
	for i := 1; i < len(jobs); i++ {
		if !ordered(&jobs[i-1], &jobs[i]) {
			return false
		}
	}
	return true
}

func inSubmissionOrder(a, b *Job) bool { return compareJobs(a, b) <= 0 }

// compareJobs is submission order: by time, then by the trailing number of the name, then by name.
func compareJobs(a, b *Job) int {
	if c := cmp.Compare(a.Spec.SubmitSeconds, b.Spec.SubmitSeconds); c != 0 {
		return c
	}
	numberA, numberB := trailingNumber(a.Spec.Name), trailingNumber(b.Spec.Name)
	return cmp.Or(
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
