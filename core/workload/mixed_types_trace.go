package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// read takes submission, length and size of the jobs from a trace. Draws fall in the order of submission, so
// that the order of the rows does not matter.
func (g *mixedGenerator) read(ctx context.Context) (*Workload, error) {
	in, err := openInput(ctx, g.config.Path)
	if err != nil {
		return nil, err
	}
	trace, err := readCSV(in)
	if err != nil {
		return nil, err
	}
	var problems core.Diagnostics
	for i := range trace.Jobs {
		row := &trace.Jobs[i]
		tasks, problem := g.fitting(&row.Spec)
		if problem != nil {
			problem.Position = row.At
			problems = append(problems, *problem)
			continue
		}
		task, spec, at := tasks[g.rand.IntN(len(tasks))], row.Spec, row.At
		spec.Accelerators = common(task.types, spec.Accelerators)
		spec.Requested = min(spec.Requested, len(task.sync))
		*row = g.training(task, spec, row.Model.PhaseEnd(0))
		row.At = at
	}
	return assemble(trace.Jobs, trace.Inputs, problems)
}

// fitting lists the applications that a row of a trace may train, or says why there are none.
func (g *mixedGenerator) fitting(row *core.JobSpec) ([]*mixedTask, *core.Diagnostic) {
	var named, fitting []*mixedTask
	for _, task := range g.tasks {
		if row.Application == "" || row.Application == task.kind.name {
			named = append(named, task)
		}
	}
	for _, task := range named {
		if len(common(task.types, row.Accelerators)) > 0 {
			fitting = append(fitting, task)
		}
	}
	switch {
	case len(named) == 0:
		var names []string
		for _, task := range g.tasks {
			names = append(names, task.kind.name)
		}
		return nil, &core.Diagnostic{
			Summary: fmt.Sprintf("job %q trains unknown application %q", row.Name, row.Application),
			Hint:    core.SuggestHint(row.Application, "names", names) + "; leave it empty to have one drawn",
		}
	case len(fitting) == 0:
		return nil, &core.Diagnostic{
			Summary: fmt.Sprintf("job %q can run on none of its types, %s", row.Name, strings.Join(row.Accelerators, ", ")),
			Hint:    "its application runs on " + strings.Join(named[0].types, ", "),
		}
	}
	return fitting, nil
}

// common is the types that are among those allowed; all if allowed lists none.
func common(types, allowed []string) []string {
	if len(allowed) == 0 {
		return types
	}
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return !slices.Contains(allowed, t) })
}
