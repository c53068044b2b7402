package workload

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/yamlpos"
)

// jobFile is the form of a job file, each of its jobs a jobEntry.
type jobFile struct {
	Version int              `config:"version" doc:"version of the form of this file, 1" required:"true"`
	Jobs    []map[string]any `config:"jobs" doc:"the jobs" required:"true"`
}

type jobEntry struct {
	Name         string        `config:"name" doc:"name of the job: letters, digits, -, _ and ."`
	Command      []string      `config:"command" doc:"program and arguments of each replica; no shell reads them"`
	Dir          string        `config:"dir" doc:"working folder; that of the scheduler if left out"`
	Environment  []Variable    `config:"environment" doc:"variables besides those that the scheduler hands down"`
	Submit       time.Duration `config:"submit" doc:"moment of submission, since the start of the run" min:"0s"`
	Tenant       string        `config:"tenant" doc:"whose job it is"`
	Application  string        `config:"application" doc:"what it trains"`
	Experiment   string        `config:"experiment" doc:"search that it is a trial of: letters, digits, -, _ and .; left out: none"`
	Weight       float64       `config:"weight" doc:"its share against other jobs; left out: 1" min:"1e-6" max:"1e6"`
	Replicas     int           `config:"replicas" doc:"replicas it asks for; left out: 1" min:"0" max:"1000000"`
	MinReplicas  int           `config:"min_replicas" doc:"least replicas it can run with; 0 or left out: as many as it asks for" min:"0"`
	MaxReplicas  int           `config:"max_replicas" doc:"most replicas it can use; 0 or left out: as many as it asks for" min:"0" max:"1000000"`
	Accelerators []string      `config:"accelerators" doc:"types it can run on; all if left out"`
	CPUs         float64       `config:"cpus" doc:"processors that a replica may use; 0 or left out: no limit" min:"0" max:"1e6"`
	MemoryGB     float64       `config:"memory_gb" doc:"memory that a replica may use, in GB of 2^30 bytes; 0 or left out: no limit" min:"0" max:"1e6"`
	ShareMilli   int           `config:"share_milli" doc:"thousandths of its device that a replica has where the cluster shares devices; 0: none, it computes on CPUs; left out: the whole device" min:"0" max:"1000"`
	DeviceMemory float64       `config:"device_memory_gb" doc:"memory of its device that a replica needs, in GB of 2^30 bytes; 0 or left out: unknown" min:"0" max:"1e6"`
	Pinned       bool          `config:"pinned" doc:"never preempted"`
	Deadline     time.Duration `config:"deadline" doc:"how long after its submission it must be done, above 0; left out: whenever" min:"0s"`
	BestEffort   bool          `config:"best_effort" doc:"takes what the others leave, and is promised nothing"`
	Tier         string        `config:"tier" doc:"service that it is guaranteed, by policies that look at tiers; left out: none, as basic" enum:"premium|standard|basic"`
	Batch        jobBatch      `config:"batch" doc:"bounds of its batch, in samples"`
	Seconds      float64       `config:"seconds" doc:"how long it takes on the replicas it asks for, as far as known; 0: unknown" min:"0" max:"1e12"`
	Iterations   float64       `config:"iterations" doc:"work it has to do, in iterations at its initial batch, for a job that reports its progress so; instead of seconds" min:"0" max:"1e15"`
	Retries      int           `config:"retries" doc:"runs that its own exit ended which are repeated, each after a wait, on other devices if some are free" min:"0" max:"1000"`
	LostRetries  int           `config:"lost_retries" doc:"times that it is started again after it lost a node, a device or its keeper; left out: as often as that happens" min:"0" max:"1000"`
	StartRetries int           `config:"start_retries" doc:"starts that are repeated which failed, each after a wait; left out: as many as retries, and none where its program or folder is not there" min:"0" max:"1000"`
	Checkpoint   bool          `config:"checkpoint" doc:"a run resumes where the one before stopped, from the folder QUARTET_CHECKPOINT"`
}

// wholeDevice is the share of a job that says nothing of it.
const wholeDevice = -1

// noLimit is a limit of a job that says nothing of it.
const noLimit = -1

type jobBatch struct {
	Requested    int `config:"requested" doc:"total batch it asks for; 0: the batch is its own affair" min:"0"`
	Initial      int `config:"initial" doc:"total batch its learning rate was tuned for; 0: the requested one" min:"0"`
	Max          int `config:"max" doc:"largest total batch that still trains; 0: the requested one" min:"0"`
	MinPerDevice int `config:"min_per_device" doc:"least batch of a device; 0: 1" min:"0"`
	MaxPerDevice int `config:"max_per_device" doc:"largest batch of a device; 0: the largest total" min:"0"`
}

// NewJobs makes the factory of the source `jobs`.
func NewJobs() core.Factory[Source] {
	return core.NewFactory(core.Info{
		Type:    "jobs",
		Summary: "job file: commands to run on real machines",
		Description: "A YAML file with one item for each job; docs/run.md lists its keys. In a simulation a job runs for the " +
			"seconds it declares, or goes by the profile of its application; one that has neither is refused there.",
	}, JobsConfig{}, func(c JobsConfig, _ core.Settings) (Source, error) { return jobsSource(c), nil })
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
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Spec.SubmitSeconds, b.Spec.SubmitSeconds) }) // as if submitted so
	for i := range jobs {
		jobs[i].Spec.ID = core.JobID(i)
	}
	return &Workload{Jobs: jobs, Inputs: []Input{in.Input}}, nil
}

// DecodeJobs reads the text of a job file, in the order of its items. Their moments of submission count from when they are
// taken in.
func DecodeJobs(file string, text []byte) ([]Job, error) {
	if err := notKubernetes(file, text); err != nil {
		return nil, err
	}
	d, values, err := yamlpos.Parse(file, text)
	if err != nil {
		return nil, err
	}
	entries, problems := decodeJobs(values)
	if err := d.Locate(problems).Err(); err != nil {
		return nil, err
	}
	jobs := make([]Job, len(entries))
	for i := range entries {
		jobs[i] = entries[i].job()
		jobs[i].At = d.At(fmt.Sprintf("jobs[%d].name", i))
	}
	return jobs, nil
}

// Unwritten is a job of which a job file says no more than how many replicas it asks for and which total batch: all else of it is as it is where
// its owner wrote nothing.
func Unwritten(replicas, batch int) *Job {
	var e jobEntry
	_ = e.decode(map[string]any{}) // that it has neither a name nor a command is what is wanted
	e.Replicas, e.Batch.Requested = replicas, batch
	job := e.job()
	return &job
}

// notKubernetes refuses a file whose first document is an object of Kubernetes.
func notKubernetes(file string, text []byte) error {
	if !bytes.Contains(text, []byte("apiVersion")) {
		return nil // it need not be read twice
	}
	d, err := yamlpos.Read(file, text)
	if err != nil {
		return nil // reported where it is read as a job file
	}
	if object := d.KubernetesObject(); object != "" {
		return core.Diagnostics{{
			Position: d.At("apiVersion"), Summary: "is a " + object + ", not a job file",
			Hint: "a local run starts commands, not containers: write a job file (docs/run.md), or create the object with kubectl on a cluster that Quartet schedules (docs/kubernetes.md)",
		}}
	}
	return nil
}

// submitted is a workload that is yet to come.
type submitted struct{}

// NewSubmitted makes the factory of the source `submitted`.
func NewSubmitted() core.Factory[Source] {
	return core.NewFactory(core.Info{
		Type:        "submitted",
		Summary:     "no jobs of its own: they are submitted while the run is in progress",
		Description: "For `quartet run`, which then runs until it is stopped; docs/run.md. A simulation of it has no jobs.",
	}, core.None{}, func(core.None, core.Settings) (Source, error) { return submitted{}, nil })
}

func (submitted) Load(context.Context) (*Workload, error) { return &Workload{Open: true}, nil }

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

func (e *jobEntry) job() Job {
	replicas := max(e.Replicas, 1)
	job := Job{
		Spec: core.JobSpec{
			Name: e.Name, Tenant: e.Tenant, Application: e.Application, Experiment: e.Experiment, Weight: e.Weight,
			SubmitSeconds: e.Submit.Seconds(), Requested: replicas,
			MinReplicas: cmp.Or(e.MinReplicas, replicas), MaxReplicas: cmp.Or(e.MaxReplicas, replicas),
			Accelerators: e.Accelerators, CPUs: e.CPUs, MemoryGB: e.MemoryGB, DeviceMemoryGB: e.DeviceMemory, Pinned: e.Pinned, Batch: e.Batch.spec(), Command: e.Command,
			TotalWork: max(e.Seconds, e.Iterations), DeadlineSeconds: e.Deadline.Seconds(), BestEffort: e.BestEffort, Tier: e.Tier,
		},
		Process: Process{Dir: e.Dir, Environment: e.Environment, Retries: e.Retries, Checkpoints: e.Checkpoint, Reports: e.Iterations > 0},
	}
	job.Process.LostRetries, job.Process.StartRetries = limit(e.LostRetries), limit(e.StartRetries)
	if e.ShareMilli != wholeDevice {
		job.Spec.Share = &core.Share{Milli: e.ShareMilli}
	}
	job.Model = NewDurationModel(cmp.Or(e.Seconds, math.Inf(1)), replicas)
	return job
}

// limit is a limit of a job; nil where it says nothing of it.
func limit(most int) *int {
	if most == noLimit {
		return nil
	}
	return &most
}
