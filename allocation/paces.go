package allocation

import "github.com/quartet-sched/quartet/core"

// paces keeps how fast jobs were while they had their devices alone, so that it can be measured what sharing costs them. What is known of
// a job holds for as many devices, over as many nodes, of the same type. The zero value knows nothing.
type paces struct {
	alone map[core.JobID]pace
}

// pace is a rate, where it was measured.
type pace struct {
	rate            float64 // work per second
	replicas, nodes int
	accelerator     core.AcceleratorID
}

// paceOf is the rate of a running job as it was told last; false while it pauses, or tells nothing.
func paceOf(v *core.View, j *core.Job) (pace, bool) {
	if j.State != core.Running || j.Starting || j.ProgressRate <= 0 || v.NowSeconds <= j.ProgressAsOf {
		return pace{}, false
	}
	return pace{j.ProgressRate, j.Held, len(j.Seats), v.Cluster.Nodes[j.Seats[0].Node].Accelerator}, true
}

// forget drops jobs that ended, of which at least so many are left.
func (p *paces) forget(v *core.View, left int) {
	if len(p.alone) <= left {
		return
	}
	for id := range p.alone {
		if v.Job(id) == nil {
			delete(p.alone, id)
		}
	}
}

// note takes in the rate of a job that has its devices alone.
func (p *paces) note(v *core.View, j *core.Job) {
	now, told := paceOf(v, j)
	if !told {
		return
	}
	if p.alone == nil {
		p.alone = make(map[core.JobID]pace)
	}
	p.alone[j.ID] = now
}

// known reports whether it was measured how fast a job is alone on so many devices.
func (p *paces) known(j *core.Job, replicas int) bool {
	before, measured := p.alone[j.ID]
	return measured && before.replicas == replicas
}

// part is the rate of a job that shares its devices, as a part of that alone; false when one of the two is not known.
func (p *paces) part(v *core.View, j *core.Job) (float64, bool) {
	now, told := paceOf(v, j)
	before, measured := p.alone[j.ID]
	if !told || !measured || now.replicas != before.replicas || now.nodes != before.nodes || now.accelerator != before.accelerator {
		return 0, false
	}
	return now.rate / before.rate, true
}

// firstDevice is a device of a job, the same for all jobs that are on the same devices.
func firstDevice(j *core.Job) device {
	lowest := device{j.Seats[0].Node, j.Seats[0].Devices.First()}
	for _, s := range j.Seats[1:] {
		if s.Node < lowest.node {
			lowest = device{s.Node, s.Devices.First()}
		}
	}
	return lowest
}

type device struct {
	node  core.NodeID
	index int
}
