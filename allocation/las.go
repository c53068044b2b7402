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
	// QuantumSeconds is the multiple in which service is compared, in device-seconds, or seconds with wall time; 0 compares it exactly.
	QuantumSeconds float64 `config:"quantum_seconds" doc:"service is compared in whole multiples of this, so that jobs within one do not take turns; in device-seconds, or in seconds where service is wall_time; 0 compares it exactly" min:"0"`
	// StarvationAfter is the wait since it last ran after which a job comes first; 0 for never.
	StarvationAfter time.Duration `config:"starvation_after" doc:"a job that has waited this long since it last ran comes first, the longest wait ahead; 0 for never" min:"0"`
	// Queue says what happens to the jobs behind one that does not fit; see package queue.
	Queue string `config:"queue" doc:"what happens to the jobs behind one that does not fit: backfill lets them pass, blocking makes them wait, all leaves it to placement" enum:"backfill|blocking|all"`
}

// CountsFractions says that its walk does.
func (LASConfig) CountsFractions() {}

// LeastTurn is the quantum of a job on one device.
func (c LASConfig) LeastTurn() (seconds float64, setting string, turns bool) {
	return c.QuantumSeconds, "quantum_seconds", true
}

// NewLAS serves the job that received the least service so far first.
//
// Source: least attained service, as in Blox (EuroSys'24; wall_time, and its guard against starvation after 3.6e6 s)
// and Tiresias (NSDI'19; device_time). Blox orders starved jobs by service; here the longest wait goes first. The
// guard ends when the job runs, so it buys at least one round. Jobs without checkpoints that live longer than a round and
// compete for devices may take turns for ever: each begins anew whenever another has received less. O(candidates) a round
// when few change places.
func NewLAS() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "las",
		Summary: "least attained service first, preemptive",
		Description: "Orders jobs by the service they received; ties go to the job submitted first. Needs to know nothing about a job's length. " +
			"Blox serves starved jobs in the order of their service; here the longest wait goes first. The guard ends when the job runs, so it buys at least one round. " +
			"A job without checkpoints that is preempted begins anew, and what it received still counts: where more jobs wait than run, and rounds are shorter than the jobs, " +
			"they may take turns for ever and none end. Set quantum_seconds above what a job takes, or let the jobs keep checkpoints. " +
			"O(candidates) a round when few change places.",
		Source: "Blox, EuroSys'24; Tiresias, NSDI'19",
	}, LASConfig{Service: queue.DeviceTime, Queue: queue.Backfill}, func(c LASConfig, _ core.Settings) (core.Allocator, error) {
		return &las{
			wall: c.Service == queue.WallTime, quantum: c.QuantumSeconds, starvation: c.StarvationAfter.Seconds(),
			order: queue.Order{Drifts: c.StarvationAfter > 0}, walk: queue.Walk{Discipline: c.Queue}, standing: core.Standing{UntilSeconds: math.Inf(1)},
		}, nil
	})
}

type las struct {
	wall                bool
	quantum, starvation float64
	order               queue.Order
	walk                queue.Walk
	standing            core.Standing
}

func (p *las) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	now := v.NowSeconds
	ranks := p.order.Arrange(v, candidates, func(c *core.Candidate) float64 { return p.key(c.Job, now) })
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

// key is the attained service, or minus the wait of a starved job.
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
	if p.quantum > 0 {
		return math.Floor(service / p.quantum)
	}
	return service
}

// Standing is for ever if nobody waits after the round: every order grants everyone the same. Otherwise the service of
// running jobs grows past that of waiting ones, and the next round may differ.
func (p *las) Standing() core.Standing { return p.walk.Standing(p.standing) }

// Precedes is true: a job may take the devices of those behind it.
func (p *las) Precedes() bool { return true }
