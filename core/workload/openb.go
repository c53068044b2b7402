package workload

import (
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

const (
	openbName = iota
	openbCPU
	openbMemory
	openbDevices
	openbMilli
	openbTypes
	openbQoS
	openbPhase
	openbCreated
	openbDeleted
	openbScheduled
)

var openbColumns = columns{required: []string{
	"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time",
}}

// NewOpenB makes the factory of the source `openb`.
func NewOpenB() core.Factory[Source] {
	return core.NewFactory(core.Info{
		Type:    "openb",
		Summary: "tasks of Alibaba's openb cluster of 2023",
		Description: "Each row is a rigid task from its creation, for as long as it ran: from its scheduling, or its creation where it was never scheduled, to its deletion, and a second at least. " +
			"gpu_spec lists the types it may run on. Devices are exclusive unless shares is set: a task that takes part of one gets a whole one, and tasks without devices are left out. " +
			"CPUs and memory are divided evenly among the devices, and the class of service is the tenant.",
		Source: "Weng et al., ATC 2023; Alibaba cluster-trace-gpu-v2023",
	}, OpenBConfig{}, func(c OpenBConfig, _ core.Settings) (Source, error) {
		return traceFile{path: c.Path, read: func(in *input) (*Workload, error) { return readOpenB(in, c.Shares) }}, nil
	})
}

// OpenBConfig configures NewOpenB.
type OpenBConfig struct {
	// Path: file to read.
	Path string `config:"path" doc:"File to read; one compressed by gzip is recognised by its content." required:"true"`
	// Shares: tasks have the parts of devices that they asked for, and those without devices run as well, for a cluster whose devices are shared.
	Shares bool `config:"shares" doc:"tasks have the parts of devices that they asked for, and those without devices run as well, for a cluster whose devices are shared"`
}

// Validate reports an empty path.
func (c OpenBConfig) Validate() error { return TraceConfig{Path: c.Path}.Validate() }

func readOpenB(in *input, shares bool) (*Workload, error) {
	t := openTable(in, openbColumns)
	var jobs []Job
	for t.next() {
		devices := int(t.whole(openbDevices, maxCount, "a number of devices"))
		milli := int(t.whole(openbMilli, core.WholeDevice, "thousandths of a device"))
		t.label(openbPhase)
		created, deleted := t.moment(openbCreated), t.moment(openbDeleted)
		scheduled := created
		if t.cell(openbScheduled) != "" {
			scheduled = t.moment(openbScheduled)
		}
		cpus, memory := t.number(openbCPU, 0, maxCount*1000, "a number"), t.number(openbMemory, 0, maxCount*1024, "a number")
		tenant := t.label(openbQoS)
		if t.ok() && deleted < scheduled {
			t.reject(openbDeleted, "a moment not before the task was scheduled")
		}
		name, types := t.text(openbName), openbTypeList(t)
		if !t.ok() || devices == 0 && !shares {
			continue
		}
		replicas := max(devices, 1)
		job := newDurationJob(name, created, max(deleted-scheduled, 1), replicas)
		if shares && milli < core.WholeDevice {
			job.Spec.Share = &core.Share{Milli: milli}
		}
		job.Spec.Accelerators, job.Spec.Tenant = types, tenant
		job.Spec.CPUs, job.Spec.MemoryGB = cpus/1000/float64(replicas), memory/1024/float64(replicas)
		job.At = t.declaration()
		jobs = append(jobs, job)
	}
	problems := t.finish()
	if len(jobs) == 0 && len(problems) == 0 {
		problems = core.Diagnostics{{Position: core.Position{File: in.Path}, Summary: "no task has a device"}}
	}
	return assemble(jobs, []Input{in.Input}, problems)
}

// openbTypeList is the accelerator types of a row; nil for any.
func openbTypeList(t *table) []string {
	if t.cell(openbTypes) == "" {
		return nil
	}
	types := strings.Split(t.label(openbTypes), acceleratorSeparator)
	for i, accelerator := range types {
		if accelerator == "" || slices.Contains(types[:i], accelerator) {
			t.reject(openbTypes, "different accelerator types with | between them")
			break
		}
	}
	return types
}
