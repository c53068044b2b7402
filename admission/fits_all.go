package admission

import (
	"context"

	"github.com/quartet-sched/quartet/core"
)

// FitsAllConfig configures NewFitsAll.
type FitsAllConfig struct {
	// Misfits says what happens to a job that does not fit: drop rejects it, queue lets it wait.
	Misfits string `config:"misfits" doc:"what becomes of a job that does not fit: drop rejects it, queue lets it wait" enum:"drop|queue"`
	// Batch is the batch that devices are counted for: the smallest of the range, or the requested one.
	Batch string `config:"batch" doc:"the batch that a job needs devices for at least: of its range the smallest, or the one that its user asked for" enum:"smallest|requested"`
}

// The values of FitsAllConfig.
const (
	dropMisfits    = "drop"
	queueMisfits   = "queue"
	smallestBatch  = "smallest"
	requestedBatch = "requested"
)

// NewFitsAll admits jobs, in submission order, while all that are admitted can run at the same time on their least numbers of devices.
// One that does not fit is dropped or waits, and those behind it are tried.
//
// Source: Saxena et al., Effective Elastic Scaling of Deep Learning Workloads (MASCOTS'20), by its patent (US 11,586,475), claims 1,
// 5, 6 and 8: a job is scheduled only if there are devices for it and for all that run, and is dropped otherwise. The least number is
// that of the job, or more where so few devices do not hold the batch at once. Where nodes may join, nobody is dropped who would fit
// with them: he waits for nodes, and scalers see him. O(active + waiting jobs).
func NewFitsAll() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "fits_all",
		Summary: "admits while all jobs can run at once on their least devices, and drops or queues the rest",
		Description: "A job is admitted in submission order if the least numbers of devices of all admitted jobs, its own included, fit on the ready nodes. " +
			"With misfits: drop one that does not fit is rejected, as in the publication; with queue it waits, and those behind it are tried. " +
			"A batch that so few devices do not hold at once raises the number. One that would fit with the nodes that pools may still get waits for them; with drop, one that would not beside the others is rejected then too. Devices of all types count alike, and where jobs have parts of devices these count. O(active + waiting jobs) a round.",
		Source: "Saxena et al., MASCOTS'20",
	}, FitsAllConfig{Misfits: queueMisfits, Batch: smallestBatch}, func(c FitsAllConfig, _ core.Settings) (core.Admitter, error) {
		return &fitsAll{config: c}, nil
	})
}

type fitsAll struct {
	onEvents
	config   FitsAllConfig
	misfits  []misfit
	verdicts []core.Verdict
}

// misfit is a job that does not fit: what it needs of devices, and what was left when it was its turn, in core.PartUnits.
type misfit struct {
	job         core.JobID
	least, left int
}

func (p *fitsAll) Admit(_ context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	p.verdicts = p.verdicts[:0]
	left := v.Devices * core.PartUnits
	for _, id := range v.Active {
		left -= taken(v.Cluster, v.Jobs[id].JobSpec, p.least(v.Jobs[id].JobSpec))
	}
	p.misfits = p.misfits[:0]
	for _, j := range waiting {
		if least := taken(v.Cluster, j.JobSpec, p.least(j.JobSpec)); least <= left {
			left -= least
		} else {
			p.misfits = append(p.misfits, misfit{j.ID, least, max(left, 0)})
		}
	}
	hoped, grows := left, grows(v.Cluster)
	if grows {
		hoped += (v.Cluster.MayHave() - v.Devices) * core.PartUnits
	}
	for _, m := range p.misfits {
		verdict := core.Verdict{
			Job: m.job, Code: core.Defer, Reason: core.LoadLimit, Wanted: devices(m.least), Available: devices(m.left), Unit: "devices",
		}
		switch large := m.least > v.Devices*core.PartUnits; {
		case grows && (large || m.least <= hoped):
			if verdict.Reason = core.AwaitingNodes; m.least <= hoped { // who needs more than may come takes nothing from those that wait for less
				hoped -= m.least
			}
		case p.config.Misfits == dropMisfits:
			verdict.Code = core.Reject
		}
		p.verdicts = append(p.verdicts, verdict)
	}
	return p.verdicts, nil
}

// least is how many devices a job needs at least.
func (p *fitsAll) least(j *core.JobSpec) int {
	batch := j.Batch.Initial
	if p.config.Batch == requestedBatch {
		batch = max(j.Batch.Requested, batch)
	}
	least := max(j.MinReplicas, 1)
	if most := j.Batch.MaxPerDevice; most > 0 {
		least = max(least, (batch+most-1)/most)
	}
	return least
}
