// Package pace measures how fast jobs run alone, and what sharing devices costs them. gandiva and lucid decide by it.
package pace

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Paces keeps how fast jobs ran while they had their devices alone, which is what sharing is compared with. A rate holds for the same
// number of devices, over as many nodes, of the same type. The zero value knows nothing.
type Paces struct {
	alone map[core.JobID]pace
}

// pace is a rate, where it was measured.
type pace struct {
	rate            float64 // work per second
	replicas, nodes int
	accelerator     core.AcceleratorID
}

// Reports reports whether the backend knows how fast a job runs now: false while it pauses, and where it reports no progress.
func Reports(v *core.View, j *core.Job) bool {
	_, reported := paceOf(v, j)
	return reported
}

// paceOf returns the rate of a running job as it was reported last; false while it pauses, or reports nothing.
func paceOf(v *core.View, j *core.Job) (pace, bool) {
	if j.State != core.Running || j.Starting || j.ProgressRate <= 0 || v.NowSeconds <= j.ProgressAsOf {
		return pace{}, false
	}
	return pace{j.ProgressRate, j.Held, len(j.Seats), v.Cluster.Nodes[j.Seats[0].Node].Accelerator}, true
}

// Forget drops jobs that ended. left is how many jobs there are: no search is made while fewer rates are kept.
func (p *Paces) Forget(v *core.View, left int) {
	if len(p.alone) <= left {
		return
	}
	for id := range p.alone {
		if v.Job(id) == nil {
			delete(p.alone, id)
		}
	}
}

// Note takes in the rate of a job that has its devices alone.
func (p *Paces) Note(v *core.View, j *core.Job) {
	now, reported := paceOf(v, j)
	if !reported {
		return
	}
	if p.alone == nil {
		p.alone = make(map[core.JobID]pace)
	}
	p.alone[j.ID] = now
}

// Known reports whether it was measured how fast a job is alone on so many devices.
func (p *Paces) Known(j *core.Job, replicas int) bool {
	before, measured := p.alone[j.ID]
	return measured && before.replicas == replicas
}

// Part returns the rate of a job that shares its devices as a part of its rate alone; false when one of the two is unknown.
func (p *Paces) Part(v *core.View, j *core.Job) (float64, bool) {
	now, reported := paceOf(v, j)
	before, measured := p.alone[j.ID]
	if !reported || !measured || now.replicas != before.replicas || now.nodes != before.nodes || now.accelerator != before.accelerator {
		return 0, false
	}
	return now.rate / before.rate, true
}

// FirstDevice returns a device of a job, the same one for all jobs that are on the same devices.
func FirstDevice(j *core.Job) Device {
	lowest := Device{j.Seats[0].Node, j.Seats[0].Devices.First()}
	for _, s := range j.Seats[1:] {
		if s.Node < lowest.node {
			lowest = Device{s.Node, s.Devices.First()}
		}
	}
	return lowest
}

// Device is one device of a cluster.
type Device struct {
	node  core.NodeID
	index int
}

// Learned is how fast a job was alone, as a snapshot keeps it.
type Learned struct {
	// Job is the job that was measured.
	Job             core.JobID
	Rate            float64            // work per second, in the unit of its progress
	Replicas, Nodes int                // that it ran on
	Accelerator     core.AcceleratorID // the type of its devices
}

// Learned lists what is known, in JobID order.
func (p *Paces) Learned() []Learned {
	var list []Learned
	for _, id := range slices.Sorted(maps.Keys(p.alone)) {
		a := p.alone[id]
		list = append(list, Learned{id, a.rate, a.replicas, a.nodes, a.accelerator})
	}
	return list
}

// Restored takes up what Learned listed, and refuses a list that is broken.
func Restored(list []Learned) (Paces, error) {
	p := Paces{alone: make(map[core.JobID]pace, len(list))}
	for i, l := range list {
		if l.Job < 0 || i > 0 && l.Job <= list[i-1].Job || !(l.Rate > 0) || l.Replicas < 1 || l.Nodes < 1 {
			return Paces{}, fmt.Errorf("job %d has no rate of its own: %+v", l.Job, l)
		}
		p.alone[l.Job] = pace{l.Rate, l.Replicas, l.Nodes, l.Accelerator}
	}
	return p, nil
}
