package elasticity

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// What an agent does where a rule chooses the batches.

// beginRuled chooses the first batch of a job by what is known of it, unless it is known from before.
func (p *goodputAgent) beginRuled(a *agent, j *core.Job) {
	switch {
	case p.ruled == nil:
	case a.batch.Batch > 0:
		a.batch.Limits, a.batch.Epochs = j.Batch, p.ruled.of(j)
	case a.past != nil:
		a.batch = p.ruled.begin(j, a.past.gradients)
	default:
		a.batch = p.ruled.begin(j, j.Gradients)
	}
}

// follow chooses the batch anew if an epoch of the job ended, and reports whether it is another.
func (p *goodputAgent) follow(a *agent, j *core.Job, now float64) bool {
	if p.ruled == nil {
		return false
	}
	epoch := p.ruled.epoch(j, now)
	if epoch <= a.batch.Epoch {
		return false
	}
	gradients := a.gradients // those of now may be of the epoch that begins
	if gradients == (core.Gradients{}) {
		gradients = j.Gradients
	}
	if gradients == (core.Gradients{}) && p.ruled.looks {
		p.noteUngraded(j)
	}
	return p.ruled.follow(&a.batch, j, gradients, epoch)
}

// ruledBatch is the total batch that a job is to have; 0 where no rule chooses it.
func (p *goodputAgent) ruledBatch(a *agent, j *core.Job) int {
	if p.ruled != nil && j.Batch.Requested > 0 && slices.Contains(p.config.FixedBatch, j.Application) {
		return j.Batch.Requested
	}
	return a.batch.Batch
}

// standUntilEpoch ends the standing when the epoch of a job does, and early in the epoch, when the job has told of it: how fast it
// is with another batch or on other devices, and what its gradients are.
func (p *goodputAgent) standUntilEpoch(v *core.View, j *core.Job, seats []core.Seat, t core.Tuning) {
	if p.ruled == nil {
		return
	}
	s := &p.agents[j.ID].batch
	if s.Epoch+1 >= s.Epochs || !(j.TotalWork > 0) {
		return
	}
	until := v.NowSeconds // to be asked again in the next round
	epoch := j.TotalWork / float64(s.Epochs)
	same := t.BatchPerDevice == j.Tuning.BatchPerDevice && t.AccumulationSteps == j.Tuning.AccumulationSteps && core.SameSeats(j.Seats, seats)
	if same && j.ProgressRate > 0 {
		next := float64(s.Epoch) + early
		if j.WorkDone(v.NowSeconds) > epoch*(next-early/2) {
			next = float64(s.Epoch + 1)
		}
		until = j.ProgressAsOf + (epoch*next-j.Progress)/j.ProgressRate
	} else if rate := p.rate(v, j, seats); rate > 0 {
		until += early * epoch / rate
	}
	p.standing.UntilSeconds = min(p.standing.UntilSeconds, max(until, v.NowSeconds))
}

// rate is the work per second that a job is told to do on seats; 0 when that is not known.
func (p *goodputAgent) rate(v *core.View, j *core.Job, seats []core.Seat) float64 {
	shape := goodput.OneNode
	if len(seats) > 1 {
		shape = goodput.ManyNodes
	}
	choice := p.agents[j.ID].choice(v.Cluster.Nodes[seats[0].Node].Accelerator, shape, core.Replicas(seats))
	return choice.Goodput / float64(j.Batch.Initial)
}

// handedBatch is what one policy tells the next of the batch of a job.
type handedBatch struct {
	Epoch, Batch int
	Gradients    core.Gradients // seen last
	Memory       BatchMemory
}

func handedBatchOf(a *agent) *handedBatch {
	if a.batch.Batch == 0 {
		return nil
	}
	return &handedBatch{a.batch.Epoch, a.batch.Batch, a.gradients, a.batch.Memory}
}

// state is that of a job that goes on, and the gradients seen last; zero for a job that was under no rule.
func (h *handedBatch) state() (BatchState, core.Gradients) {
	if h == nil || h.Batch < 1 || h.Epoch < 0 {
		return BatchState{}, core.Gradients{}
	}
	return BatchState{Epoch: h.Epoch, Batch: h.Batch, Memory: h.Memory}, h.Gradients
}
