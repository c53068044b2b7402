package placement

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/seating"
	"github.com/quartet-sched/quartet/policykit/synergy"
)

// The modes of Synergy.
const (
	synergyFair   = "fair"
	synergyGreedy = "greedy"
	synergyTune   = "tune"
)

// SynergyConfig configures NewSynergy.
type SynergyConfig struct {
	// Mode says how CPUs and memory are divided: fair, greedy or tune.
	Mode string `config:"mode" doc:"how CPUs and memory are divided. fair: everyone has the part of a node that belongs to its devices; greedy: everyone has what it runs best with, or waits; tune: what it runs best with while that is left, else the part that belongs to its devices, which those give back that have more" enum:"fair|greedy|tune"`
	// Consolidate looks for one node first, that with the fewest free devices.
	Consolidate bool `config:"consolidate" doc:"look for one node first, that with the fewest free devices, and take the rest from the nodes with the fewest; otherwise devices are taken in the order of the nodes, as published without it"`
	// Replan seats all jobs anew in every round, as published.
	Replan bool `config:"replan" doc:"seat all jobs anew in every round, in the order of their grants, as published; otherwise those that run stay, and only their CPUs and their memory change"`
}

// NewSynergy seats whole devices, and gives each job CPUs and memory beside them by how sensitive it is to them.
//
// Source: Mohan et al., Synergy (OSDI'22), sections 4 and 5, and the answers of its simulator. The part that belongs to a device is the least of
// the nodes that its job can run on, so that it is there on each of them. Jobs without a known sensitivity want what they ask for, and the part of their devices where they
// ask for nothing. Deviation: jobs stay where they are unless replan is set, and among those that stay CPUs and memory are divided in the order of the grants.
// O(grants × nodes) a round, and with tune, for each job that takes from others, a sort of those on a node.
func NewSynergy() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:    "synergy",
		Summary: "whole devices, with CPUs and memory by how sensitive each job is to them",
		Description: "With tune no job is slower than with the part of the CPUs and the memory that belongs to its devices, and who gains by more has more while it is there. " +
			"Jobs without a known sensitivity want what they ask for. The reason of a pending job names what is short: devices, CPUs or memory. Needs cluster.count_resources. O(grants × nodes) a round.",
		Source: "Synergy, OSDI'22",
		Counts: true, Divides: true,
	}, SynergyConfig{Mode: synergyTune}, func(c SynergyConfig, _ core.Settings) (core.Placer, error) {
		p := &synergyPlacer{replan: c.Replan, standing: core.Standing{UntilSeconds: math.Inf(1)}}
		p.packer = synergy.Packer{Mode: synergyModes[c.Mode], Consolidate: c.Consolidate}
		return p, nil
	})
}

var synergyModes = map[string]synergy.Mode{synergyFair: synergy.Fair, synergyGreedy: synergy.Greedy, synergyTune: synergy.Tune}

type synergyPlacer struct {
	packer synergy.Packer
	fleet  synergy.Fleet
	replan bool

	servers  []synergy.Server
	jobs     []synergy.Job
	stays    []synergy.Seat
	ledger   core.Ledger
	seats    []core.Seat
	given    []core.Resources
	placed   []core.Placement
	unseated []core.Verdict
	standing core.Standing
}

// maxKinds is how many accelerator types a packer tells apart.
const maxKinds = 64

// Place seats grants in their order; without replan first those that stay.
func (p *synergyPlacer) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	if types := len(v.Cluster.Accelerators); types > maxKinds {
		return core.Seating{}, fmt.Errorf("the cluster has %d accelerator types, and placement synergy knows %d", types, maxKinds)
	}
	p.fleet.CountIn(v)
	p.servers, p.jobs, p.stays = p.servers[:0], p.jobs[:0], p.stays[:0]
	for i := range v.Cluster.Nodes {
		p.servers = append(p.servers, p.fleet.Server(&v.Cluster.Nodes[i]))
	}
	for i := range grants {
		p.jobs = append(p.jobs, p.job(v, &grants[i]))
	}
	rest := p.stays
	for i := range p.jobs { // the list of seats may have moved while it grew
		if n := len(p.jobs[i].Stays); n > 0 {
			p.jobs[i].Stays, rest = rest[:n:n], rest[n:]
		}
	}
	p.answer(v, grants, p.packer.Round(p.servers, p.jobs))
	return core.Seating{Placed: p.placed, Unseated: p.unseated}, nil
}

// Standing is for ever while everybody has what it wants. Otherwise it is for this round: who has it depends on the order of the grants.
func (p *synergyPlacer) Standing() core.Standing { return p.standing }

// job is a grant as the packer sees it.
func (p *synergyPlacer) job(v *core.View, g *core.Grant) synergy.Job {
	j := v.Jobs[g.Job]
	job := p.fleet.Job(j.JobSpec, g.Replicas, g.Accelerator)
	if job.Runs, job.Blocking = j.State == core.Running, g.Blocking; job.Kinds == 0 {
		job.Devices = 0 // no node is ready that it can run on
	}
	if j.Held != g.Replicas || j.Held == 0 || p.replan && !j.Pinned || !seating.Within(v, g, j.Seats) {
		return job
	}
	for _, s := range j.Seats {
		if s.Devices&^v.Cluster.Nodes[s.Node].Usable() != 0 {
			return job
		}
	}
	first := len(p.stays)
	for _, s := range j.Seats {
		p.stays = append(p.stays, synergy.Seat{Server: int(s.Node), Devices: s.Devices.Count()})
	}
	job.Stays = p.stays[first:]
	return job
}

// answer turns what the packer gives into devices of nodes. A job keeps those that it has of a node on which it stays.
func (p *synergyPlacer) answer(v *core.View, grants []core.Grant, packed []synergy.Grant) {
	p.seats, p.placed, p.unseated = p.seats[:0], p.placed[:0], p.unseated[:0]
	p.given = slices.Grow(p.given[:0], len(grants))[:len(grants)]
	p.ledger.ResetTo(v)
	total := 0
	for i := range packed {
		total += len(packed[i].Seats)
		for _, s := range packed[i].Seats {
			kept := held(v.Jobs[grants[i].Job], s.Server) & v.Cluster.Nodes[s.Server].Usable()
			p.ledger.Occupy([]core.Seat{{Node: core.NodeID(s.Server), Devices: kept.Lowest(s.Devices)}})
		}
	}
	p.seats = slices.Grow(p.seats, total)
	least := false
	for i := range packed {
		g, at := &grants[i], &packed[i]
		j := v.Jobs[g.Job]
		if len(at.Seats) == 0 {
			p.refuse(v, g, &p.jobs[i])
			continue
		}
		first := len(p.seats)
		for _, s := range at.Seats {
			n := core.NodeID(s.Server)
			kept := (held(j, s.Server) & v.Cluster.Nodes[n].Usable()).Lowest(s.Devices)
			p.seats = append(p.seats, core.Seat{Node: n, Devices: kept | p.ledger.Take(n, s.Devices-kept.Count()).Devices})
		}
		placement := core.Placement{Job: g.Job, Seats: p.seats[first:len(p.seats):len(p.seats)]}
		if core.SameDevices(placement.Seats, j.Seats) {
			placement.Seats = j.Seats
		}
		if v.Cluster.CountsResources {
			each := at.Times(1 / float64(g.Replicas)).Thousandths()
			if p.given[i] = each; each != j.Asks() {
				placement.Resources = &p.given[i]
			}
		}
		least = least || p.jobs[i].Demand.Over(at.Resources)
		p.placed = append(p.placed, placement)
	}
	p.standing.UntilSeconds = math.Inf(1)
	if least && p.packer.Mode != synergy.Fair || p.replan && len(p.unseated) > 0 {
		p.standing.UntilSeconds = v.NowSeconds
	}
}

// held is the devices that a job has of a node.
func held(j *core.Job, node int) core.DeviceSet {
	for _, s := range j.Seats {
		if int(s.Node) == node {
			return s.Devices
		}
	}
	return 0
}

// refuse answers a grant with the reason why it has no seats, in what is short: devices, CPUs or memory.
func (p *synergyPlacer) refuse(v *core.View, g *core.Grant, job *synergy.Job) {
	verdict := core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.AcceleratorMissing, Wanted: float64(g.Replicas), Unit: "devices"}
	open, available := 0, 0 // devices that are free, of the best type, or of all that it mixes
	kinds := job.Kinds
	for t := range v.Cluster.Accelerators {
		kind := uint64(1) << uint(t)
		if job.Kinds&kind == 0 {
			continue
		}
		verdict.Reason = core.WaitingForDevices
		left := p.packer.Left(kind).Devices
		available = combined(available, left, job.Mixes)
		if p.packer.Closed(t) && !job.Runs {
			kinds &^= kind
			continue
		}
		open = combined(open, left, job.Mixes)
	}
	switch verdict.Available = float64(available); {
	case available < g.Replicas:
	case open < g.Replicas:
		verdict.Reason = core.BlockedByEarlier
	default:
		verdict.Reason = core.Fragmented
		blameResources(&verdict, p.packer.Left(kinds).Resources, job.Demand.Resources)
	}
	p.unseated = append(p.unseated, verdict)
}

func combined(a, b int, sum bool) int {
	if sum {
		return a + b
	}
	return max(a, b)
}

// blameResources says which of CPUs and memory a job lacks that there are devices for, by the larger part of it that is missing; neither where what is
// left of them together is enough.
func blameResources(verdict *core.Verdict, left, wanted core.Resources) {
	lacks := func(left, wanted float64) float64 {
		if wanted <= 0 {
			return 0
		}
		return max(1-left/wanted, 0)
	}
	cpus, memory := lacks(left.CPUs, wanted.CPUs), lacks(left.MemoryGB, wanted.MemoryGB)
	rounded := func(x float64) float64 { return math.Round(x*1000) / 1000 }
	switch {
	case cpus == 0 && memory == 0:
		verdict.Message = "what is left of CPUs and memory beside free devices is on too many nodes"
	case cpus >= memory:
		verdict.Message = "devices are free, and CPUs are short"
		verdict.Wanted, verdict.Available, verdict.Unit = rounded(wanted.CPUs), rounded(left.CPUs), "cpus"
	default:
		verdict.Message = "devices are free, and memory is short"
		verdict.Wanted, verdict.Available, verdict.Unit = rounded(wanted.MemoryGB), rounded(left.MemoryGB), "GB"
	}
}
