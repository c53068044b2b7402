package control

import (
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// submitted is the state of a job that no round has seen.
const submitted = "submitted"

// clean makes a text one that a message can hold.
func clean(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// render is the job at a moment, which may lie after the last round. The names of nodes never change.
func (b *Board) render(f *facts, now float64) *controlv1.Job {
	if now < f.AsOfSeconds {
		now = f.AsOfSeconds
	}
	id := int32(f.ID)
	j := &controlv1.Job{
		Id: &id, Name: clean(f.Name), Tenant: clean(f.Tenant), Application: clean(f.Application), Experiment: clean(f.Experiment), State: f.State.String(),
		Requested: uint32(f.Requested), MinReplicas: uint32(f.MinReplicas), MaxReplicas: uint32(f.MaxReplicas), Pinned: f.Pinned,
		Seats: b.renderSeats(f.Seats), Tuning: renderTuning(&f.Tuning),
		SubmitSeconds: known(f.SubmitSeconds), FirstStartSeconds: known(f.FirstStart), FinishSeconds: known(f.FinishSeconds),
		ChangeSeconds: known(f.LastChange), ExecutedSeconds: f.ExecutedSeconds(now), AttainedSeconds: f.AttainedService(now),
		Restarts: uint32(f.Restarts), Preemptions: uint32(f.Preemptions), Progress: f.WorkDone(now), TotalWork: f.TotalWork,
		Message: clean(f.message), Failures: uint32(f.failures), Starting: f.Starting,
	}
	if f.TotalWork > 0 {
		j.Progress = min(j.Progress, f.TotalWork)
	}
	b.renderDemand(j, f.JobSpec)
	for _, word := range f.Command {
		j.Command = append(j.Command, clean(word))
	}
	if !f.State.Ended() {
		j.Outlook = b.outlook(f.ID)
	}
	if f.State != core.Running {
		j.Reason = renderReason(f.WaitingReason)
	}
	if m := f.measurement; m != nil {
		j.Measurement = &controlv1.Measurement{
			Accelerator: clean(m.Accelerator), Nodes: uint32(m.Nodes), Replicas: uint32(m.Replicas), BatchPerDevice: uint32(m.PerDevice),
			PassSeconds: m.PassSeconds, StepSeconds: m.StepSeconds,
		}
	}
	for i := range f.metrics {
		j.Metrics = append(j.Metrics, f.metrics[i].render())
	}
	if f.Gradients != (core.Gradients{}) {
		j.Gradients = &controlv1.Gradients{Square: f.Gradients.SquaredNorm, Variance: f.Gradients.Variance}
	}
	return j
}

// renderDemand adds what each replica has of its device and its node, as far as the cluster counts it.
func (b *Board) renderDemand(j *controlv1.Job, spec *core.JobSpec) {
	if b.shares {
		j.DeviceMemoryGb = spec.DeviceMemoryGB
		if spec.Share != nil {
			milli := uint32(spec.Share.Milli)
			j.ShareMilli = &milli
		}
	}
	if b.counts {
		j.Cpus, j.MemoryGb = spec.CPUs, spec.MemoryGB
	}
}

func (b *Board) renderSeats(seats []core.Seat) []*controlv1.Seat {
	var list []*controlv1.Seat
	for _, s := range seats {
		seat := &controlv1.Seat{Node: clean(b.nodes[s.Node].Name)}
		for _, device := range s.Devices.List() {
			seat.Devices = append(seat.Devices, uint32(device))
		}
		list = append(list, seat)
	}
	return list
}

// renderTuning is nil when everything is left to the job.
func renderTuning(t *core.Tuning) *controlv1.Tuning {
	if t == nil || t.BatchPerDevice == 0 && t.AccumulationSteps == 0 && t.LearningRateFactor == 0 {
		return nil
	}
	tuning := &controlv1.Tuning{
		BatchPerDevice: uint32(t.BatchPerDevice), AccumulationSteps: uint32(t.AccumulationSteps), LearningRateFactor: t.LearningRateFactor,
	}
	for _, batch := range t.BatchByReplica {
		tuning.BatchByReplica = append(tuning.BatchByReplica, uint32(batch))
	}
	return tuning
}

func renderReason(r core.Reason) string {
	if r == core.NoReason {
		return ""
	}
	return r.String()
}

func (b *Board) renderDecisions(decisions []decision) []*controlv1.Decision {
	list := make([]*controlv1.Decision, len(decisions))
	for i, d := range decisions {
		list[i] = &controlv1.Decision{
			Round: uint32(d.round), AtSeconds: d.at, What: d.what, By: clean(d.by), Reason: renderReason(d.reason), Message: clean(d.message),
			Wanted: d.wanted, Available: d.available, Unit: clean(d.unit), ExpectedSeconds: d.expected, Seats: b.renderSeats(d.seats), Tuning: renderTuning(d.tuning),
		}
		for _, name := range d.with {
			list[i].With = append(list[i].With, clean(name))
		}
	}
	return list
}

// renderComing is a job whose moment of submission has not come.
func renderComing(c backend.Coming) *controlv1.Job {
	id := int32(c.ID)
	j := &controlv1.Job{
		Id: &id, Name: clean(c.Name), Tenant: clean(c.Tenant), Application: clean(c.Application), Experiment: clean(c.Experiment), State: submitted, Requested: uint32(c.Requested),
		MinReplicas: uint32(c.MinReplicas), MaxReplicas: uint32(c.MaxReplicas), SubmitSeconds: &c.SubmitSeconds, TotalWork: c.TotalWork,
	}
	if c.Cancelled {
		j.State = core.Cancelled.String()
	}
	for _, word := range c.Command {
		j.Command = append(j.Command, clean(word))
	}
	return j
}
