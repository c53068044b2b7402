package workload

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// decodeJobs reads the content of a job file, and finds everything that is wrong with it.
func decodeJobs(raw map[string]any) (entries []jobEntry, found core.Diagnostics) {
	var f jobFile
	found = core.Decode(&f, raw)
	if version, given := raw["version"].(int); given && version != 1 {
		found = append(found, core.Diagnostic{Path: "version", Summary: fmt.Sprintf("unknown version %d; this program reads version 1", version)})
	}
	list, given := raw["jobs"].([]any)
	if given && len(list) == 0 {
		found = append(found, core.Diagnostic{Path: "jobs", Summary: "holds no job"})
	}
	entries = make([]jobEntry, len(list))
	first := make(map[string]int, len(list))
	for i := range list {
		item, mapping := list[i].(map[string]any)
		if !mapping {
			continue // told above
		}
		path := fmt.Sprintf("jobs[%d]", i)
		for _, problem := range entries[i].decode(item) {
			problem.Path = core.JoinPath(path, problem.Path)
			found = append(found, problem)
		}
		name := entries[i].Name
		if k, twice := first[name]; twice && name != "" {
			found = append(found, core.Diagnostic{
				Path: path + ".name", Summary: fmt.Sprintf("job name %q appears twice", name), Hint: fmt.Sprintf("first in jobs[%d]", k),
			})
			continue
		}
		first[name] = i
	}
	return entries, found
}

// decode reads a job. What is of the wrong form does not keep the rest from being checked, but for what makes sense only
// together with it.
func (e *jobEntry) decode(raw map[string]any) (found core.Diagnostics) {
	e.Weight, e.ShareMilli, e.LostRetries, e.StartRetries = 1, wholeDevice, noLimit, noLimit
	found = core.Decode(e, raw)
	wrong := make(map[string]bool, len(found))
	for i := range found {
		wrong[topic(found[i].Path)] = true
		if command, text := raw["command"].(string); text && found[i].Path == "command" {
			found[i].Hint = fmt.Sprintf("write [sh, -c, %q]", command)
		}
	}
	if len(found) > 0 {
		rest := maps.Clone(raw)
		maps.DeleteFunc(rest, func(key string, _ any) bool { return wrong[topic(key)] })
		_ = core.Decode(e, rest) // its problems are told above
	}
	problem := func(key, summary, hint string) {
		if !wrong[topic(key)] {
			found = append(found, core.Diagnostic{Path: key, Summary: summary, Hint: hint})
		}
	}
	if replicas, given := raw["replicas"].(int); given && replicas == 0 {
		problem("replicas", "must be at least 1, got 0", "")
	}
	if _, given := raw["deadline"]; given && e.Deadline == 0 {
		problem("deadline", "must be above 0s, got 0s", "leave it out for a job that may be done whenever")
	}
	e.check(problem)
	return found
}

// topic is the setting of a job that a path leads into, one for all that must agree.
func topic(path string) string {
	if end := strings.IndexAny(path, ".["); end >= 0 {
		path = path[:end]
	}
	switch path {
	case "min_replicas", "max_replicas":
		return "replicas"
	case "iterations":
		return "seconds"
	}
	return path
}

// longestName leaves room for a job's name in the path of a socket.
const longestName = 60

// nameRule says what PlainName accepts.
var nameRule = fmt.Sprintf("up to %d letters, digits, \"-\", \"_\" and \".\", the first a letter, digit or \"_\"", longestName)

var (
	jobName      = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// PlainName reports whether a job's name can be that of a folder and leads nowhere else.
func PlainName(name string) bool { return len(name) <= longestName && jobName.MatchString(name) }

// ours reports whether a variable is for the scheduler to set.
func ours(name string) bool {
	return strings.HasPrefix(name, "QUARTET_") || name == "CUDA_VISIBLE_DEVICES"
}

// The least limits of a replica: the system enforces none below, or nothing starts within them.
const (
	leastCPUs     = 0.01
	leastMemoryGB = 0.01
)

// check reports what is wrong with a job of a file.
func (e *jobEntry) check(problem func(key, summary, hint string)) {
	switch {
	case e.Name == "":
		problem("name", "required but missing", "it must be unique in the file")
	case !PlainName(e.Name):
		problem("name", fmt.Sprintf("%q cannot name a job", e.Name),
			"use "+nameRule)
	}
	if e.Experiment != "" && !PlainName(e.Experiment) {
		problem("experiment", fmt.Sprintf("%q cannot name an experiment", e.Experiment), "use "+nameRule)
	}
	e.checkProcess(problem)
	e.checkNeeds(problem)
	e.Batch.check(problem)
}

// checkProcess reports what is wrong with the command and the variables of a job.
func (e *jobEntry) checkProcess(problem func(key, summary, hint string)) {
	if len(e.Command) == 0 || e.Command[0] == "" {
		problem("command", "names no program", "write [program, argument, …]")
	}
	if slices.ContainsFunc(append(slices.Clone(e.Command), e.Dir), hasNUL) {
		problem("command", "holds a NUL character", "")
	}
	for i, v := range e.Environment {
		key := fmt.Sprintf("environment[%d]", i)
		switch {
		case !variableName.MatchString(v.Name) || hasNUL(v.Value):
			problem(key, fmt.Sprintf("%q is no variable", v.Name), "a name is letters, digits and \"_\"; a value holds no NUL")
		case ours(v.Name):
			problem(key, fmt.Sprintf("%q is set by the scheduler", v.Name), "")
		case slices.ContainsFunc(e.Environment[:i], func(other Variable) bool { return other.Name == v.Name }):
			problem(key, fmt.Sprintf("%q is set twice", v.Name), "")
		}
	}
}

// checkNeeds reports what is wrong with what a job asks for.
func (e *jobEntry) checkNeeds(problem func(key, summary, hint string)) {
	replicas := max(e.Replicas, 1)
	if e.MinReplicas > replicas {
		problem("min_replicas", fmt.Sprintf("must be at most the %d of replicas, got %d", replicas, e.MinReplicas), "")
	}
	if e.MaxReplicas > 0 && e.MaxReplicas < replicas {
		problem("max_replicas", fmt.Sprintf("must be at least the %d of replicas, got %d", replicas, e.MaxReplicas), "")
	}
	if e.Seconds > 0 && e.Iterations > 0 {
		problem("iterations", "must not be given together with seconds", "work is counted in one of them")
	}
	for i, accelerator := range e.Accelerators {
		if accelerator == "" || slices.Contains(e.Accelerators[:i], accelerator) {
			problem(fmt.Sprintf("accelerators[%d]", i), fmt.Sprintf("%q is empty or named before", accelerator), "")
		}
	}
	if e.CPUs > 0 && e.CPUs < leastCPUs {
		problem("cpus", fmt.Sprintf("must be 0 or at least %v, got %v", leastCPUs, e.CPUs), "")
	}
	if e.MemoryGB > 0 && e.MemoryGB < leastMemoryGB {
		problem("memory_gb", fmt.Sprintf("must be 0 or at least %v, got %v", leastMemoryGB, e.MemoryGB), "")
	}
}

func (b *jobBatch) check(problem func(key, summary, hint string)) {
	if *b == (jobBatch{}) {
		return
	}
	if b.Requested == 0 {
		problem("batch.requested", "must be given with the other bounds of the batch", "")
		return
	}
	s := b.spec()
	for _, order := range [...]struct {
		key          string
		given        bool
		least, most  int
		lower, upper string
	}{
		{"batch.max", b.Max > 0, s.Requested, s.Max, "requested", "max"},
		{"batch.max", b.Max > 0 && b.Initial > 0, s.Initial, s.Max, "initial", "max"},
		{"batch.max_per_device", b.MinPerDevice > 0 && b.MaxPerDevice > 0, s.MinPerDevice, s.MaxPerDevice, "min_per_device", "max_per_device"},
		{"batch.min_per_device", b.MinPerDevice > 0, s.MinPerDevice, s.Requested, "min_per_device", "requested"},
	} {
		if order.given && order.least > order.most {
			problem(order.key, fmt.Sprintf("%s must be at most %s, got %d and %d", order.lower, order.upper, order.least, order.most), "")
		}
	}
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }
