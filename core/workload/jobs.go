package workload

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// jobFile is the form of a job file.
type jobFile struct {
	Version int        `config:"version" doc:"version of the form of this file, 1" required:"true"`
	Jobs    []jobEntry `config:"jobs" doc:"the jobs" required:"true"`
}

type jobEntry struct {
	Name         string        `config:"name" doc:"name of the job: letters, digits, -, _ and ." required:"true"`
	Command      []string      `config:"command" doc:"program and arguments of each replica; no shell reads them" required:"true"`
	Dir          string        `config:"dir" doc:"working folder; that of the scheduler if left out"`
	Environment  []Variable    `config:"environment" doc:"variables besides those that the scheduler hands down"`
	Submit       time.Duration `config:"submit" doc:"moment of submission, since the start of the run" min:"0s"`
	Tenant       string        `config:"tenant" doc:"whose job it is"`
	Application  string        `config:"application" doc:"what it trains"`
	Weight       float64       `config:"weight" doc:"its share against other jobs; 0 or left out: 1" min:"0" max:"1e6"`
	Replicas     int           `config:"replicas" doc:"replicas it asks for; 0 or left out: 1" min:"0" max:"1000000"`
	MinReplicas  int           `config:"min_replicas" doc:"least replicas it can run with; 0 or left out: as many as it asks for" min:"0"`
	MaxReplicas  int           `config:"max_replicas" doc:"most replicas it can use; 0 or left out: as many as it asks for" min:"0" max:"1000000"`
	Accelerators []string      `config:"accelerators" doc:"types it can run on; all if left out"`
	CPUs         float64       `config:"cpus" doc:"processors that a replica may use; 0 or left out: no limit" min:"0" max:"1e6"`
	MemoryGB     float64       `config:"memory_gb" doc:"memory that a replica may use, in GB of 2^30 bytes; 0 or left out: no limit" min:"0" max:"1e6"`
	Pinned       bool          `config:"pinned" doc:"never preempted"`
	Batch        jobBatch      `config:"batch" doc:"bounds of its batch, in samples"`
	Seconds      float64       `config:"seconds" doc:"how long it takes on the replicas it asks for, as far as known; 0: unknown" min:"0" max:"1e12"`
	Iterations   float64       `config:"iterations" doc:"work it has to do, in iterations at its initial batch, for a job that reports its progress so; instead of seconds" min:"0" max:"1e15"`
	Retries      int           `config:"retries" doc:"failed runs that are repeated" min:"0" max:"1000"`
	Checkpoint   bool          `config:"checkpoint" doc:"a run goes on where the one before stopped, from the folder QUARTET_CHECKPOINT"`
}

type jobBatch struct {
	Requested    int `config:"requested" doc:"total batch it asks for; 0: the batch is its own affair" min:"0"`
	Initial      int `config:"initial" doc:"total batch its learning rate was tuned for; 0: the requested one" min:"0"`
	Max          int `config:"max" doc:"largest total batch that still trains; 0: the requested one" min:"0"`
	MinPerDevice int `config:"min_per_device" doc:"least batch of a device; 0: 1" min:"0"`
	MaxPerDevice int `config:"max_per_device" doc:"largest batch of a device; 0: the largest total" min:"0"`
}

// NewJobs makes the factory of the source `jobs`.
func NewJobs() core.Factory[Source] {
	return newTraceFactory(core.Info{
		Type:    "jobs",
		Summary: "job file: commands to run on real machines",
		Description: "A YAML file with one item for each job; docs/run.md tells its keys. In a simulation a job runs for the " +
			"seconds it declares, and without end when it declares none.",
	}, readJobs)
}

func readJobs(in *input) (*Workload, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, cannotRead(in.Path, err)
	}
	jobs, err := DecodeJobs(in.Path, text)
	if err != nil {
		return nil, err
	}
	return assemble(jobs, []Input{in.Input}, nil)
}

// DecodeJobs reads the text of a job file, in the order of its items. Their moments of submission count from when they are
// taken in.
func DecodeJobs(file string, text []byte) ([]Job, error) {
	var f jobFile
	if err := goodput.DecodeYAML(file, text, &f); err != nil {
		return nil, err
	}
	jobs := make([]Job, len(f.Jobs))
	for i := range f.Jobs {
		jobs[i] = f.Jobs[i].job()
		jobs[i].At = core.Position{File: file}
	}
	return jobs, nil
}

// submitted is a workload that is yet to come.
type submitted struct{}

// NewSubmitted makes the factory of the source `submitted`.
func NewSubmitted() core.Factory[Source] {
	return core.NewFactory(core.Info{
		Type:        "submitted",
		Summary:     "no jobs of its own: they are submitted while the run goes on",
		Description: "For `quartet run`, which then goes on until it is stopped; docs/run.md. A simulation of it has no jobs.",
	}, core.None{}, func(core.None, core.Settings) (Source, error) { return submitted{}, nil })
}

func (submitted) Load(context.Context) (*Workload, error) { return &Workload{Open: true}, nil }

// Validate reports everything that the form alone cannot refuse.
func (f jobFile) Validate() error {
	var found core.Diagnostics
	if f.Version != 1 {
		found = append(found, core.Diagnostic{Path: "version", Summary: fmt.Sprintf("unknown version %d; this program reads version 1", f.Version)})
	}
	if len(f.Jobs) == 0 {
		found = append(found, core.Diagnostic{Path: "jobs", Summary: "holds no job"})
	}
	first := make(map[string]int, len(f.Jobs))
	for i := range f.Jobs {
		f.Jobs[i].check(func(key, summary, hint string) {
			found = append(found, core.Diagnostic{Path: fmt.Sprintf("jobs[%d].%s", i, key), Summary: summary, Hint: hint})
		})
		if k, twice := first[f.Jobs[i].Name]; twice {
			found = append(found, core.Diagnostic{
				Path: fmt.Sprintf("jobs[%d].name", i), Summary: fmt.Sprintf("job name %q appears twice", f.Jobs[i].Name),
				Hint: fmt.Sprintf("first in jobs[%d]", k),
			})
			continue
		}
		first[f.Jobs[i].Name] = i
	}
	return found.Err()
}

// longestName leaves room for a job's name in the path of a socket.
const longestName = 60

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

func (e *jobEntry) check(problem func(key, summary, hint string)) {
	if !PlainName(e.Name) {
		problem("name", fmt.Sprintf("%q cannot name a job", e.Name),
			fmt.Sprintf("use up to %d letters, digits, \"-\", \"_\" and \".\", the first a letter, digit or \"_\"", longestName))
	}
	if len(e.Command) == 0 || e.Command[0] == "" {
		problem("command", "names no program", "")
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
		}
	}
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
	e.Batch.check(problem)
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
		least, most  int
		lower, upper string
	}{
		{"batch.max", s.Requested, s.Max, "requested", "max"},
		{"batch.max", s.Initial, s.Max, "initial", "max"},
		{"batch.max_per_device", s.MinPerDevice, s.MaxPerDevice, "min_per_device", "max_per_device"},
		{"batch.min_per_device", s.MinPerDevice, s.Requested, "min_per_device", "requested"},
	} {
		if order.least > order.most {
			problem(order.key, fmt.Sprintf("%s must be at most %s, got %d and %d", order.lower, order.upper, order.least, order.most), "")
		}
	}
}

func (b *jobBatch) spec() core.BatchSpec {
	if b.Requested == 0 {
		return core.BatchSpec{}
	}
	most := cmp.Or(b.Max, max(b.Requested, b.Initial))
	return core.BatchSpec{
		Requested: b.Requested, Initial: cmp.Or(b.Initial, b.Requested), Max: most,
		MinPerDevice: cmp.Or(b.MinPerDevice, 1), MaxPerDevice: cmp.Or(b.MaxPerDevice, most),
	}
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

func (e *jobEntry) job() Job {
	replicas := max(e.Replicas, 1)
	job := Job{
		Spec: core.JobSpec{
			Name: e.Name, Tenant: e.Tenant, Application: e.Application, Weight: cmp.Or(e.Weight, 1),
			SubmitSeconds: e.Submit.Seconds(), Requested: replicas,
			MinReplicas: cmp.Or(e.MinReplicas, replicas), MaxReplicas: cmp.Or(e.MaxReplicas, replicas),
			Accelerators: e.Accelerators, CPUs: e.CPUs, MemoryGB: e.MemoryGB, Pinned: e.Pinned, Batch: e.Batch.spec(), Command: e.Command,
			TotalWork: max(e.Seconds, e.Iterations),
		},
		Process: Process{Dir: e.Dir, Environment: e.Environment, Retries: e.Retries, Checkpoints: e.Checkpoint, Reports: e.Iterations > 0},
	}
	job.Model = NewDurationModel(cmp.Or(e.Seconds, math.Inf(1)), replicas)
	return job
}
