package coretest

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// What happens on clusters that grow and shrink, with jobs that are edited, lose some of their devices, or run already when they
// are submitted.

// drawJoining has a node join now and then, perhaps with a type that is new.
func (w *world) drawJoining(from float64) {
	if intRange(0, 7).Draw(w.t, "node joins") > 0 || len(w.cluster.Nodes) >= maxWorldNodes {
		return
	}
	id := core.NodeID(len(w.cluster.Nodes))
	n := &core.AddedNode{
		Name: fmt.Sprintf("node-%d", id), Devices: intRange(1, 8).Draw(w.t, "devices"), CPUs: 64, MemoryGB: 256,
		Rack: fmt.Sprintf("rack-%d", id/4), Health: sampledFrom([]core.Health{core.Ready, core.Ready, core.Provisioning}).Draw(w.t, "health of a node that joins"),
		Accelerator: sampledFrom(append([]string{"h100"}, w.cluster.Accelerators...)).Draw(w.t, "type of a node that joins"),
	}
	if w.cluster.Accelerator(n.Accelerator) == core.AnyAccelerator {
		w.cluster.Accelerators = append(w.cluster.Accelerators, n.Accelerator)
	}
	w.enter(n, from)
	if t := int(w.cluster.Accelerator(n.Accelerator)); t < len(w.deviceMemory) {
		n.DeviceMemoryGB = w.deviceMemory[t]
	}
	w.cluster.Nodes = append(w.cluster.Nodes, core.Node{
		ID: id, Name: n.Name, Devices: n.Devices, Accelerator: w.cluster.Accelerator(n.Accelerator), Health: n.Health, Pool: n.Pool, DeviceMemoryGB: n.DeviceMemoryGB,
	})
	w.events = append(w.events, core.Event{Kind: core.NodeAdded, AtSeconds: w.drawMoment(from), Node: id, Added: n})
}

// maxWorldNodes bounds how many nodes a random world ever has.
const maxWorldNodes = 12

// shift is e as one of the events that no simulation of a fixed cluster tells; false for none.
func (w *world) shift(j *core.Job, e core.Event, edited bool) (core.Event, bool) {
	e.Job, e.StepsLeft = j.ID, j.StepsLeft
	switch {
	case edited:
		e.Kind, e.Spec = core.JobChanged, w.drawEdit(j.JobSpec)
	case j.State != core.Running:
		return e, false
	case anyBool().Draw(w.t, "starts"):
		e.Kind = core.JobStarted
		if !j.Starting {
			e.Kind = core.JobStarting
		}
	case anyBool().Draw(w.t, "fails"):
		e.Kind, e.Cause, e.FromSeconds = core.JobInterrupted, core.CauseExited, e.AtSeconds
		e.Seats = slices.Clone(j.Seats[:intRange(0, len(j.Seats)).Draw(w.t, "seats it failed on")])
		e.NotBeforeSeconds = e.AtSeconds + sampledFrom([]float64{0, 1, 100}).Draw(w.t, "until it is tried again")
	case w.cluster.Sharing == core.TimeSlice: // no engine shrinks jobs that take turns: pinned ones would have to have devices of different numbers together
		return e, false
	default:
		left := slices.Clone(j.Seats[:intRange(1, len(j.Seats)).Draw(w.t, "seats left")])
		last := &left[len(left)-1]
		last.Devices = last.Devices.Lowest(intRange(1, last.Devices.Count()).Draw(w.t, "devices left"))
		e.Kind, e.Seats, e.FromSeconds = core.JobShrunk, left, e.AtSeconds
		e.Cause = sampledFrom([]core.Cause{core.CauseUnknown, core.CauseKilled}).Draw(w.t, "why it shrank")
		e.NotBeforeSeconds = e.AtSeconds + sampledFrom([]float64{0, 0, 100}).Draw(w.t, "until it has more")
	}
	return e, true
}

// drawEdit is a job as its owner edits it.
func (w *world) drawEdit(s *core.JobSpec) *core.JobSpec {
	edited := *s
	edited.Weight = sampledFrom([]float64{0.5, 1, 3}).Draw(w.t, "weight")
	edited.MinReplicas = intRange(1, s.Requested).Draw(w.t, "min replicas")
	edited.MaxReplicas = intRange(s.Requested, 2*s.Requested).Draw(w.t, "max replicas")
	edited.Suspended = intRange(0, 2).Draw(w.t, "suspended") == 0
	return &edited
}

// drawHeld has a job that is submitted run already, on devices that nobody holds, now and then.
func (w *world) drawHeld(e *core.Event) {
	if intRange(0, 7).Draw(w.t, "runs already") > 0 {
		return
	}
	var free room
	free.devices.Reset(w.view.Cluster) // whole ones: a job that is submitted so shares none
	take := func(seats []core.Seat) {
		for _, s := range seats {
			free.devices.Occupy([]core.Seat{{Node: s.Node, Devices: s.Devices & free.devices.FreeDevices(s.Node)}})
		}
	}
	for _, j := range w.view.Jobs {
		if j != nil {
			take(j.Seats)
		}
	}
	for i := range w.events {
		if h := w.events[i].Held; h != nil {
			take(h.Seats)
		}
	}
	spec := e.Spec
	if w.cluster.CountsResources && !w.divides {
		spec.CPUs, spec.MemoryGB = 0, 0 // others may have all that there is
	}
	if w.shares {
		spec.DeviceMemoryGB = 0 // a device may have less
	}
	want := core.Grant{Job: e.Job, Accelerator: core.AnyAccelerator, Replicas: spec.Requested}
	seats := firstFit(&free, w.view.Cluster, w.view.Cluster.Nodes, core.NewJob(spec), &want)
	if seats == nil {
		return
	}
	e.Held = &core.Held{
		Seats: seats, FirstStart: e.AtSeconds, LastChange: e.AtSeconds,
		Executed: sampledFrom([]float64{0, 3600}).Draw(w.t, "executed"),
		Restarts: intRange(0, 2).Draw(w.t, "restarts"),
	}
	e.Held.Attained = e.Held.Executed * float64(core.Replicas(seats))
	e.Progress, e.Rate, e.FromSeconds = sampledFrom([]float64{0, 0.5}).Draw(w.t, "done"), 1, e.AtSeconds
}
