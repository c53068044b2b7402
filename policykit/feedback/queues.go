package feedback

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// QueuesConfig configures the queues that jobs sink through.
type QueuesConfig struct {
	// Thresholds are the service at which a running job moves to the next queue, ascending: device-seconds, or seconds with wall time.
	Thresholds []float64 `config:"thresholds" doc:"service at which a running job moves to the next queue, ascending, one queue more than thresholds; in device-seconds, or in seconds where service is wall_time" min:"0"`
	// Service is what thresholds count: queue.DeviceTime or queue.WallTime.
	Service string `config:"service" doc:"what thresholds count: device_time is executed seconds times requested replicas, wall_time executed seconds alone" enum:"device_time|wall_time"`
	// PromoteFactor returns a job to the first queue once it has waited this many times the time that it ran; 0 for never.
	PromoteFactor float64 `config:"promote_factor" doc:"a job that has waited this many times the time it ran returns to the first queue with its service forgotten; 0 for never" min:"0"`
}

// Usual returns the queues that tiresias and elastic_tiresias have by default: two, with a threshold of 57,600 device-seconds.
func Usual() QueuesConfig {
	return QueuesConfig{Thresholds: []float64{57600}, Service: queue.DeviceTime}
}

// LeastTurn returns what a job on one device consumes before it leaves the first queue. Without promotions jobs sink to the last one, and take no turns there.
func (c QueuesConfig) LeastTurn() (seconds float64, setting string, turns bool) {
	if len(c.Thresholds) > 0 {
		seconds = c.Thresholds[0]
	}
	return seconds, "thresholds", c.PromoteFactor > 0 && seconds > 0
}

// Validate checks what single fields cannot.
func (c QueuesConfig) Validate() error { return errors.Join(c.Problems()...) }

// Problems lists what Validate finds, for a config that embeds this one.
func (c QueuesConfig) Problems() []error {
	var problems []error
	for i, threshold := range c.Thresholds {
		if !(threshold > 0) || i > 0 && threshold <= c.Thresholds[i-1] {
			problems = append(problems, fmt.Errorf("thresholds[%d]: must be positive and above the one before, got %v", i, threshold))
		}
	}
	return problems
}

// Queues are the queues of Tiresias (NSDI'19): a job starts in the first one and sinks as it consumes. New jobs join in JobID
// order; then running jobs past a threshold join the tail of their new queue in JobID order. Service counts requested replicas, not
// held ones. A job is promoted by its wait since it last ran. O(candidates) a round.
type Queues struct {
	Lists        [][]core.JobID // the jobs of each queue, in the order of joining
	WholeSeconds bool           // a running job has a round of its own only after whole seconds of service

	thresholds    []float64
	wall          bool
	promoteFactor float64
	jobs          []queued     // by JobID
	absent        bool         // some are in a queue that are no candidates of this round
	passed        []core.JobID // scratch
	present       []core.JobID // scratch: see Among
}

// New creates empty queues.
func New(c QueuesConfig) Queues {
	return Queues{
		thresholds: slices.Clone(c.Thresholds), wall: c.Service == queue.WallTime, promoteFactor: c.PromoteFactor,
		Lists: make([][]core.JobID, len(c.Thresholds)+1),
	}
}

// queued is what is known of a job besides the View.
type queued struct {
	slot      int32   // among the candidates of this round
	queue     int32   // 1 + index of its queue; 0 for none
	forgotten float64 // executed seconds up to the last promotion
	granted   int     // the last round that granted it something; kept for PassOver
}

// Requeue brings the queues up to date: new jobs join, some change queue, ended ones leave. Those that may run, and are not among the
// candidates, keep their places.
func (p *Queues) Requeue(v *core.View, candidates []core.Candidate) {
	now := v.NowSeconds
	for i := range candidates {
		c := &candidates[i]
		p.jobs = queue.Grown(p.jobs, c.ID)
		q := &p.jobs[c.ID]
		q.slot = int32(i)
		switch {
		case q.queue == 0:
			p.join(c.ID, p.reached(q, c.Job, now)) // the first, unless this policy joined late
		case c.State == core.Running:
			if reached := p.reached(q, c.Job, now); reached > int(q.queue)-1 {
				p.join(c.ID, reached)
			}
		case q.queue > 1 && now >= p.promotion(q, c.Job, now):
			q.forgotten = c.ExecutedSeconds(now)
			p.join(c.ID, 0)
		}
	}
	p.absent = false
	for i, queue := range p.Lists {
		p.Lists[i] = slices.DeleteFunc(queue, func(id core.JobID) bool {
			q := &p.jobs[id]
			if q.slot < 0 || int(q.slot) >= len(candidates) || candidates[q.slot].ID != id {
				if j := v.Job(id); j != nil && (j.State == core.Waiting || j.State == core.Running) {
					p.absent, q.slot = true, -1
				} else {
					q.queue, q.forgotten, q.granted = 0, 0, 0
				}
			}
			return int(q.queue)-1 != i
		})
	}
}

// Among lists the candidates of a queue in the order of joining. It is valid until the next call.
func (p *Queues) Among(queue int) []core.JobID {
	if !p.absent {
		return p.Lists[queue]
	}
	p.present = p.present[:0]
	for _, id := range p.Lists[queue] {
		if p.jobs[id].slot >= 0 {
			p.present = append(p.present, id)
		}
	}
	return p.present
}

// Slot returns the index of a queued job among the candidates of the last Requeue.
func (p *Queues) Slot(id core.JobID) int32 { return p.jobs[id].slot }

// Executed returns how many seconds a queued job has run since its last promotion.
func (p *Queues) Executed(j *core.Job, now float64) float64 {
	return j.ExecutedSeconds(now) - p.jobs[j.ID].forgotten
}

// PassOver moves the jobs that are not among the grants of a round to the end of their queues, in their order.
func (p *Queues) PassOver(round int, grants []core.Grant) {
	for _, g := range grants {
		p.jobs[g.Job].granted = round
	}
	for _, list := range p.Lists {
		p.passed = p.passed[:0]
		kept := list[:0]
		for _, id := range list {
			if p.jobs[id].granted == round {
				kept = append(kept, id)
			} else {
				p.passed = append(p.passed, id)
			}
		}
		copy(list[len(kept):], p.passed)
	}
}

// join appends the job to a queue. The old one drops it at the end of Requeue.
func (p *Queues) join(id core.JobID, queue int) {
	p.jobs[id].queue = int32(queue) + 1
	p.Lists[queue] = append(p.Lists[queue], id)
}

// weight is the service that a job consumes in a second.
func (p *Queues) weight(j *core.Job) float64 {
	if p.wall {
		return 1
	}
	return float64(j.Requested)
}

// reached is the queue that the service of a job entitles it to.
func (p *Queues) reached(q *queued, j *core.Job, now float64) int {
	executed := j.ExecutedSeconds(now) - q.forgotten
	if p.WholeSeconds {
		executed += queue.EarlySeconds // sums of many spans end a hair below the whole second at which all that reach it are to sink together
	}
	service := executed * p.weight(j)
	queue := 0
	for queue < len(p.thresholds) && service >= p.thresholds[queue] {
		queue++
	}
	return queue
}

// promotion is the moment at which a job will have waited long enough to return to the first queue. One that runs would
// begin to wait now.
func (p *Queues) promotion(q *queued, j *core.Job, now float64) float64 {
	if p.promoteFactor == 0 {
		return math.Inf(1)
	}
	since := j.LastChange
	if j.State == core.Running {
		since = now
	}
	return since + p.promoteFactor*(j.ExecutedSeconds(now)-q.forgotten)
}

// NextChange returns the first moment at which a granted candidate sinks, if it runs from now on, or any one rises, if it
// waits: which of the two a granted one does is for the placer to say.
func (p *Queues) NextChange(now float64, candidates []core.Candidate, grants []core.Grant) float64 {
	next := math.Inf(1)
	for i := range grants {
		q := &p.jobs[grants[i].Job]
		if list := int(q.queue) - 1; list < len(p.thresholds) {
			j := candidates[q.slot].Job
			needs, before := p.thresholds[list]/p.weight(j), queue.EarlySeconds
			if p.WholeSeconds {
				needs, before = math.Ceil(needs), queue.EarlySeconds/2
			}
			next = min(next, now+needs-(j.ExecutedSeconds(now)-q.forgotten)-before)
		}
	}
	for i := range candidates {
		j := candidates[i].Job
		if q := &p.jobs[j.ID]; q.queue > 1 {
			next = min(next, p.promotion(q, j, now)-queue.EarlySeconds)
		}
	}
	return next
}
