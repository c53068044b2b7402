package coretest

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// JobBuilder builds a core.Job. Its methods return it, so that a job reads as one sentence.
type JobBuilder struct{ job core.Job }

// MakeJob starts a pending job of one replica that was submitted at 0 s.
func MakeJob(name string) *JobBuilder {
	spec := &core.JobSpec{Name: name, Weight: 1, Requested: 1, MinReplicas: 1, MaxReplicas: 1}
	return &JobBuilder{job: *core.NewJob(spec)}
}

// ID sets the identifier; ViewBuilder.Jobs overrides it.
func (b *JobBuilder) ID(id core.JobID) *JobBuilder { b.job.ID = id; return b }

// Tenant sets the tenant.
func (b *JobBuilder) Tenant(name string) *JobBuilder { b.job.Tenant = name; return b }

// Application sets the application.
func (b *JobBuilder) Application(name string) *JobBuilder { b.job.Application = name; return b }

// Weight sets the weight.
func (b *JobBuilder) Weight(w float64) *JobBuilder { b.job.Weight = w; return b }

// Replicas makes the job rigid: it asks for n and can run with nothing else.
func (b *JobBuilder) Replicas(n int) *JobBuilder { return b.Elastic(n, n, n) }

// Elastic makes the job ask for a number of replicas and able to run with a range of them.
func (b *JobBuilder) Elastic(least, requested, most int) *JobBuilder {
	b.job.MinReplicas, b.job.Requested, b.job.MaxReplicas = least, requested, most
	return b
}

// Accelerators lists the types that the job can run on.
func (b *JobBuilder) Accelerators(types ...string) *JobBuilder { b.job.Accelerators = types; return b }

// Deadline sets how many seconds after its submission the job is to be done.
func (b *JobBuilder) Deadline(seconds float64) *JobBuilder { b.job.DeadlineSeconds = seconds; return b }

// BestEffort has the job take what others leave.
func (b *JobBuilder) BestEffort() *JobBuilder { b.job.BestEffort = true; return b }

// Tier sets the service that the job is guaranteed.
func (b *JobBuilder) Tier(tier string) *JobBuilder { b.job.Tier = tier; return b }

// Experiment sets the search that the job is a trial of.
func (b *JobBuilder) Experiment(name string) *JobBuilder { b.job.Experiment = name; return b }

// Pinned has no policy take the job's devices away.
func (b *JobBuilder) Pinned() *JobBuilder { b.job.Pinned = true; return b }

// MixesTypes lets the replicas of the job run on devices of different types at once.
func (b *JobBuilder) MixesTypes() *JobBuilder { b.job.MixesTypes = true; return b }

// Batch sets the batch bounds.
func (b *JobBuilder) Batch(spec core.BatchSpec) *JobBuilder { b.job.Batch = spec; return b }

// Share has each replica ask for so many thousandths of a device.
func (b *JobBuilder) Share(milli int) *JobBuilder { b.job.Share = &core.Share{Milli: milli}; return b }

// Utilisation sets the part of a device that a replica keeps busy.
func (b *JobBuilder) Utilisation(part float64) *JobBuilder { b.job.Utilisation = part; return b }

// DeviceMemory sets the gigabytes of its device that a replica needs.
func (b *JobBuilder) DeviceMemory(gb float64) *JobBuilder { b.job.DeviceMemoryGB = gb; return b }

// Tolerance sets the part of its speed alone that the job lets go.
func (b *JobBuilder) Tolerance(part float64) *JobBuilder { b.job.SlowdownTolerance = part; return b }

// Iteration sets what an iteration takes of each kind of resource.
func (b *JobBuilder) Iteration(of core.Iteration) *JobBuilder { b.job.Iteration = of; return b }

// Asks sets the CPUs and the memory in GB that each replica asks for.
func (b *JobBuilder) Asks(cpus, memoryGB float64) *JobBuilder {
	b.job.CPUs, b.job.MemoryGB = cpus, memoryGB
	return b
}

// Sensitive sets how fast the job is by the CPUs and the memory of its replicas.
func (b *JobBuilder) Sensitive(t *core.Sensitivity) *JobBuilder { b.job.Sensitivity = t; return b }

// Given sets what each replica of a running job was given.
func (b *JobBuilder) Given(cpus, memoryGB float64) *JobBuilder {
	b.job.Resources = &core.Resources{CPUs: cpus, MemoryGB: memoryGB}
	return b
}

// Work sets the declared total work.
func (b *JobBuilder) Work(total float64) *JobBuilder { b.job.TotalWork = total; return b }

// StepTimes sets the true step times and the steps left.
func (b *JobBuilder) StepTimes(table *core.StepTimes, left float64) *JobBuilder {
	b.job.StepTimes, b.job.StepsLeft = table, left
	return b
}

// Submit sets the moment of submission. It comes before Running.
func (b *JobBuilder) Submit(at float64) *JobBuilder {
	b.job.SubmitSeconds, b.job.AsOfSeconds, b.job.ProgressAsOf, b.job.LastChange = at, at, at, at
	return b
}

// Waiting makes the job admitted and without devices.
func (b *JobBuilder) Waiting() *JobBuilder {
	b.job.State, b.job.WaitingReason = core.Waiting, core.WaitingForDevices
	return b
}

// Running makes the job hold seats since a moment.
func (b *JobBuilder) Running(since float64, seats ...core.Seat) *JobBuilder {
	j := &b.job
	j.State, j.Seats, j.Held = core.Running, seats, core.Replicas(seats)
	j.FirstStart, j.LastChange, j.AsOfSeconds, j.ProgressAsOf = since, since, since, since
	return b
}

// Executed sets the seconds with devices before the last change, and the device-seconds attained in them.
func (b *JobBuilder) Executed(seconds, deviceSeconds float64) *JobBuilder {
	b.job.Executed, b.job.Attained = seconds, deviceSeconds
	return b
}

// Progress sets the work done by the last change and the work per second since.
func (b *JobBuilder) Progress(work, rate float64) *JobBuilder {
	b.job.Progress, b.job.ProgressRate = work, rate
	return b
}

// Tuned sets the batch setting.
func (b *JobBuilder) Tuned(t core.Tuning) *JobBuilder { b.job.Tuning = t; return b }

// Obj returns the job. Each call returns another one.
func (b *JobBuilder) Obj() *core.Job {
	j := cloneJob(&b.job)
	if !j.Tuning.Equal(core.Tuning{}) {
		j.Tuning.Job = j.ID
	}
	return j
}

// Seat is devices on a node.
func Seat(node core.NodeID, devices ...int) core.Seat {
	s := core.Seat{Node: node}
	for _, d := range devices {
		s.Devices |= 1 << d
	}
	return s
}

// ClusterBuilder builds a core.Cluster.
type ClusterBuilder struct{ cluster core.Cluster }

// MakeCluster starts a cluster without nodes.
func MakeCluster() *ClusterBuilder { return &ClusterBuilder{} }

// Nodes adds ready nodes of one accelerator type, named after it: t4-0, t4-1, …
func (b *ClusterBuilder) Nodes(count int, accelerator string, devices int) *ClusterBuilder {
	c := &b.cluster
	t := slices.Index(c.Accelerators, accelerator)
	if t < 0 {
		t = len(c.Accelerators)
		c.Accelerators = append(c.Accelerators, accelerator)
	}
	named := 0
	for i := range c.Nodes {
		if int(c.Nodes[i].Accelerator) == t {
			named++
		}
	}
	for range count {
		c.Nodes = append(c.Nodes, core.Node{
			ID: core.NodeID(len(c.Nodes)), Name: fmt.Sprintf("%s-%d", accelerator, named),
			Accelerator: core.AcceleratorID(t), Devices: devices, CPUs: 64, MemoryGB: 256,
		})
		named++
	}
	return b
}

// TakesTurns lets so many jobs at most be on a device together, and gives each device so many gigabytes; 0 for unknown.
func (b *ClusterBuilder) TakesTurns(owners int, deviceMemoryGB float64) *ClusterBuilder {
	b.cluster.Sharing, b.cluster.MaxOwners = core.TimeSlice, owners
	for i := range b.cluster.Nodes {
		b.cluster.Nodes[i].DeviceMemoryGB = deviceMemoryGB
	}
	return b
}

// Health sets the health of a node that was added before.
func (b *ClusterBuilder) Health(node core.NodeID, h core.Health) *ClusterBuilder {
	b.cluster.Nodes[node].Health = h
	return b
}

// Obj returns the cluster. Each call returns another one.
func (b *ClusterBuilder) Obj() *core.Cluster { return cloneCluster(&b.cluster) }

// ViewBuilder builds a core.View.
type ViewBuilder struct{ view core.View }

// MakeView starts a view of round 1 at 0 s, with rounds of 60 s and no jobs.
func MakeView(c *core.Cluster) *ViewBuilder {
	return &ViewBuilder{view: core.View{Round: 1, IntervalSeconds: 60, Cluster: c, Devices: c.UsableDevices()}}
}

// Now sets the moment of the round.
func (b *ViewBuilder) Now(seconds float64) *ViewBuilder { b.view.NowSeconds = seconds; return b }

// Round sets the number of the round.
func (b *ViewBuilder) Round(n int) *ViewBuilder { b.view.Round = n; return b }

// Interval sets the length of a round.
func (b *ViewBuilder) Interval(seconds float64) *ViewBuilder {
	b.view.IntervalSeconds = seconds
	return b
}

// Jobs adds jobs, giving them the next identifiers, and lists each as changed.
func (b *ViewBuilder) Jobs(jobs ...*JobBuilder) *ViewBuilder {
	v := &b.view
	for _, builder := range jobs {
		j := builder.ID(core.JobID(len(v.Jobs))).Obj()
		v.Jobs = append(v.Jobs, j)
		v.Changed = append(v.Changed, j.ID)
		switch j.State {
		case core.Waiting:
			v.Waiting++
			v.Active = append(v.Active, j.ID)
		case core.Running:
			v.Active = append(v.Active, j.ID)
		}
	}
	return b
}

// Obj returns the view. Each call returns another one.
func (b *ViewBuilder) Obj() *core.View {
	v := cloneView(&b.view)
	v.LookForPinned()
	return v
}

// Candidates are the active jobs of a view together with their responses, as an allocator is handed them.
func Candidates(v *core.View, respond func(*core.Job) core.Response) []core.Candidate {
	candidates := make([]core.Candidate, 0, len(v.Active))
	for _, id := range v.Active {
		response := respond(v.Jobs[id])
		candidates = append(candidates, core.Candidate{Job: v.Jobs[id], Response: &response})
	}
	return candidates
}

// Rigid responds with exactly the requested replicas.
func Rigid(j *core.Job) core.Response {
	return core.Response{Job: j.ID, MinReplicas: j.Requested, MaxReplicas: j.Requested, RemainingWork: unknown}
}
