package allocation

import (
	"context"
	"math"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// LASConfig configures NewLAS.
type LASConfig struct {
	// Service says what counts as service: queue.DeviceTime or queue.WallTime.
	Service string `config:"service" doc:"what counts as service: device_time is seconds times devices, wall_time seconds alone" enum:"device_time|wall_time"`
	// QuantumSeconds is the multiple in which service is compared, in device-seconds, or seconds with wall time; 0 compares it exactly, as
	// publications do. Nil compares it in steps of one, two, four device-hours and so on: a job gives way once each time its service has doubled.
	QuantumSeconds *float64 `config:"quantum_seconds" doc:"service is compared in whole multiples of this, so that jobs within one do not take turns; in device-seconds, or in seconds where service is wall_time. 0 compares it exactly, as publications do: jobs that received about as much then take turns at every round. Left out, it is compared in steps of 3600, 7200, 14400 and so on, each twice the one before: a job of any length then gives way a few times only" min:"0"`
	// StarvationAfter is the wait since it last ran after which a job comes first; 0 for never.
	StarvationAfter time.Duration `config:"starvation_after" doc:"a job that has waited this long since it last ran comes first, the longest wait ahead; 0 for never" min:"0"`
	// Queue says what happens to the jobs behind one that does not fit; see package queue.
	Queue string `config:"queue" doc:"what happens to the jobs behind one that does not fit: backfill lets them pass, blocking makes them wait, all leaves it to placement" enum:"backfill|blocking|all"`
}

// firstStep is the first step in which service is compared where no quantum is given, in seconds.
const firstStep = 3600

// CountsFractions says that its walk does.
func (LASConfig) CountsFractions() {}

// LeastTurn is the quantum of a job on one device. Rounds alone decide where a job that has waited comes first.
func (c LASConfig) LeastTurn() (seconds float64, setting string, turns bool) {
	if c.StarvationAfter > 0 {
		return 0, "", true
	}
	return c.quantum(), "quantum_seconds", true
}

// quantum is the multiple in which service is compared, or the first step.
func (c LASConfig) quantum() float64 {
	if c.QuantumSeconds == nil {
		return firstStep
	}
	return *c.QuantumSeconds
}

// NewLAS serves the job that received the least service so far first.
//
// Source: least attained service, as in Blox (EuroSys'24; wall_time, and its guard against starvation after 3.6e6 s)
// and Tiresias (NSDI'19; device_time). Blox orders starved jobs by service; here the longest wait goes first. The
// guard ends when the job runs, so it buys at least one round. Both compare service exactly (quantum_seconds: 0): jobs that received
// about as much then take turns at every round. Here steps double unless a quantum is given. Jobs without checkpoints that live longer than a turn
// and compete for devices may take turns for ever: each begins anew whenever another has received less. O(candidates) a round
// when few change places.
func NewLAS() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "las",
		Summary: "least attained service first, preemptive",
		Description: "Orders jobs by the service they received; ties go to the job submitted first. Needs to know nothing about a job's length. " +
			"Blox serves starved jobs in the order of their service; here the longest wait goes first. The guard ends when the job runs, so it buys at least one round. " +
			"A job without checkpoints that is preempted begins anew, and what it received still counts: where more jobs wait than run, and turns are shorter than the jobs, " +
			"they may take turns for ever and none end. Set quantum_seconds above what a job takes, or let the jobs keep checkpoints. " +
			"O(candidates) a round when few change places.",
		Source: "Blox, EuroSys'24; Tiresias, NSDI'19",
	}, LASConfig{Service: queue.DeviceTime, Queue: queue.Backfill}, func(c LASConfig, _ core.Settings) (core.Allocator, error) {
		return &las{
			wall: c.Service == queue.WallTime, quantum: c.quantum(), doubling: c.QuantumSeconds == nil, starvation: c.StarvationAfter.Seconds(),
			order: queue.Order{Drifts: c.StarvationAfter > 0}, walk: queue.Walk{Discipline: c.Queue}, standing: core.Standing{UntilSeconds: math.Inf(1)},
		}, nil
	})
}

type las struct {
	wall, doubling      bool
	quantum, starvation float64
	order               queue.Order
	walk                queue.Walk
	standing            core.Standing
}

func (p *las) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	now := v.NowSeconds
	ranks := p.order.ArrangeChanged(v, candidates, func(c *core.Candidate) float64 { return p.key(c.Job, now) })
	p.walk.Begin(v)
	p.walk.KeepPinned(v, candidates)
	for _, r := range ranks {
		if !p.walk.Offer(v, &candidates[r.Index]) {
			break
		}
	}
	p.standing = core.Standing{UntilSeconds: now}
	if granted := len(p.walk.Grants()); granted == len(candidates) {
		p.standing = core.Standing{UntilSeconds: math.Inf(1), IfSeated: granted}
	}
	return p.walk.Grants(), nil
}

// key is the attained service in quanta or steps, or minus the wait of a starved job.
func (p *las) key(j *core.Job, now float64) float64 {
	if waited := now - j.LastChange; p.starvation > 0 && j.State == core.Waiting && waited >= p.starvation {
		return -waited
	}
	service := 0.0
	if p.wall {
		service = j.ExecutedSeconds(now)
	} else {
		service = j.AttainedService(now)
	}
	switch {
	case p.doubling:
		return steps(service / p.quantum)
	case p.quantum > 0:
		return math.Floor(service / p.quantum)
	}
	return service
}

// steps is how many of the steps 1, 2, 4 and so on a ratio has reached.
func steps(ratio float64) float64 {
	_, exponent := math.Frexp(ratio) // ratio = fraction × 2^exponent, the fraction from 1/2 to below 1
	return max(float64(exponent), 0)
}

// Standing is for ever if nobody waits after the round: every order grants everyone the same. Otherwise the service of
// running jobs grows past that of waiting ones, and the next round may differ.
func (p *las) Standing() core.Standing { return p.walk.Standing(p.standing) }

// Precedes is true: a job may take the devices of those behind it.
func (p *las) Precedes() bool { return true }
