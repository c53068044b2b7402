package allocation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/queue"
)

// The orders inside a queue of tiresias.
const (
	insideFIFO         = "fifo"
	insideRunningFirst = "running_first"
	insideGittins      = "gittins"
)

// TiresiasConfig configures NewTiresias.
type TiresiasConfig struct {
	Thresholds     []float64 `config:"thresholds" doc:"service at which a running job moves to the next queue, ascending, one queue more than thresholds; in device-seconds, or in seconds where service is wall_time" min:"0"`
	Service        string    `config:"service" doc:"what thresholds count: device_time is executed seconds times requested replicas, wall_time executed seconds alone" enum:"device_time|wall_time"`
	PromoteFactor  float64   `config:"promote_factor" doc:"a job that has waited this many times the time it ran returns to the first queue with its service forgotten; 0 for never" min:"0"`
	Inside         string    `config:"inside" doc:"order inside a queue: fifo by time of joining it, running_first with running jobs ahead, gittins by Gittins index" enum:"fifo|running_first|gittins"`
	Samples        []float64 `config:"samples" doc:"service that past jobs needed, in device-seconds, from which gittins learns how much jobs need" min:"0"`
	GittinsQuantum float64   `config:"gittins_quantum" doc:"service, in device-seconds, that the Gittins index looks ahead" min:"0"`
	Queue          string    `config:"queue" doc:"what happens to the jobs behind one that does not fit: backfill lets them pass, blocking makes them wait, all leaves it to placement" enum:"backfill|blocking|all"`
}

// Validate checks what single fields cannot.
func (c TiresiasConfig) Validate() error {
	var problems []error
	for i, threshold := range c.Thresholds {
		if !(threshold > 0) || i > 0 && threshold <= c.Thresholds[i-1] {
			problems = append(problems, fmt.Errorf("thresholds[%d]: must be positive and above the one before, got %v", i, threshold))
		}
	}
	if c.Inside == insideGittins && len(c.Samples) == 0 {
		problems = append(problems, errors.New("samples: required with inside gittins"))
	}
	if c.Inside == insideGittins && !(c.GittinsQuantum > 0) {
		problems = append(problems, errors.New("gittins_quantum: must be positive with inside gittins"))
	}
	return errors.Join(problems...)
}

// NewTiresias serves jobs by discretised attained service: a job starts in the first queue and sinks as it consumes.
//
// Source: Tiresias (NSDI'19), discretised 2D-LAS, in the form of the Pollux artifact by default (two queues, FIFO
// inside, smaller jobs behind one that does not fit pass it) and in that of its own simulator with running_first.
// New jobs join the first queue in JobID order; then running jobs past a threshold join the tail of their new queue in
// JobID order. Service counts requested replicas, not held ones. A job is promoted by its wait since it last ran.
// O(candidates) a round; gittins sorts, O(candidates log candidates).
func NewTiresias() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "tiresias",
		Summary: "discretised least attained service: queues that jobs sink through, preemptive",
		Description: "A job starts in the first queue and moves to the tail of the next one when its service reaches a threshold. Queues are served in order. " +
			"A job does not rise again unless promote_factor says so; it is then measured by its wait since it last ran. " +
			"Service counts the replicas a job requests, not those it holds, and jobs of one moment join a queue in submission order. " +
			"By default it is the form of the Pollux artifact; running_first is that of the publication's simulator. " +
			"O(candidates) a round; gittins sorts, O(candidates log candidates).",
		Source: "Tiresias, NSDI'19; Pollux artifact, OSDI'21",
	}, TiresiasConfig{
		Thresholds: []float64{57600}, Service: deviceTime, Inside: insideFIFO, GittinsQuantum: 3250, Queue: queue.Backfill,
	}, func(c TiresiasConfig, _ core.Settings) (core.Allocator, error) {
		return &tiresias{
			thresholds: slices.Clone(c.Thresholds), wall: c.Service == wallTime, promoteFactor: c.PromoteFactor,
			inside: c.Inside, index: newGittins(c.Samples, c.GittinsQuantum),
			queues: make([][]core.JobID, len(c.Thresholds)+1), walk: queue.Walk{Discipline: c.Queue},
			standing: core.Standing{UntilSeconds: math.Inf(1)},
		}, nil
	})
}

type tiresias struct {
	thresholds    []float64
	wall          bool
	promoteFactor float64
	inside        string
	index         gittins

	queues   [][]core.JobID // each in the order of joining
	jobs     []queued       // by JobID
	ranks    []queue.Rank
	walk     queue.Walk
	standing core.Standing
}

// queued is what is known of a job besides the View.
type queued struct {
	slot      int32   // among the candidates of this round
	queue     int32   // 1 + index of its queue; 0 for none
	forgotten float64 // executed seconds up to the last promotion
}

func (p *tiresias) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.requeue(v.NowSeconds, candidates)
	p.walk.Begin(v)
	p.walk.KeepPinned(v, candidates)
	for _, queue := range p.queues {
		if !p.serve(v, queue, candidates) {
			break
		}
	}
	p.standing = p.stand(v.NowSeconds, candidates)
	return p.walk.Grants(), nil
}

// requeue brings the queues up to date: new jobs join, some change queue, ended ones leave.
func (p *tiresias) requeue(now float64, candidates []core.Candidate) {
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
	for i, queue := range p.queues {
		p.queues[i] = slices.DeleteFunc(queue, func(id core.JobID) bool {
			q := &p.jobs[id]
			if int(q.slot) >= len(candidates) || candidates[q.slot].ID != id {
				q.queue, q.forgotten = 0, 0
			}
			return int(q.queue)-1 != i
		})
	}
}

// join appends the job to a queue. The old one drops it at the end of requeue.
func (p *tiresias) join(id core.JobID, queue int) {
	p.jobs[id].queue = int32(queue) + 1
	p.queues[queue] = append(p.queues[queue], id)
}

// weight is the service that a job consumes in a second.
func (p *tiresias) weight(j *core.Job) float64 {
	if p.wall {
		return 1
	}
	return float64(j.Requested)
}

// reached is the queue that the service of a job entitles it to.
func (p *tiresias) reached(q *queued, j *core.Job, now float64) int {
	service := (j.ExecutedSeconds(now) - q.forgotten) * p.weight(j)
	queue := 0
	for queue < len(p.thresholds) && service >= p.thresholds[queue] {
		queue++
	}
	return queue
}

// promotion is the moment at which a job will have waited long enough to return to the first queue. One that runs would
// begin to wait now.
func (p *tiresias) promotion(q *queued, j *core.Job, now float64) float64 {
	if p.promoteFactor == 0 {
		return math.Inf(1)
	}
	since := j.LastChange
	if j.State == core.Running {
		since = now
	}
	return since + p.promoteFactor*(j.ExecutedSeconds(now)-q.forgotten)
}

// serve walks along one queue and reports whether the walk goes on.
func (p *tiresias) serve(v *core.View, queue []core.JobID, candidates []core.Candidate) bool {
	switch p.inside {
	case insideRunningFirst:
		for _, running := range [...]bool{true, false} {
			for _, id := range queue {
				if c := &candidates[p.jobs[id].slot]; (c.State == core.Running) == running && !p.walk.Offer(v, c) {
					return false
				}
			}
		}
	case insideGittins:
		for _, r := range p.byIndex(v.NowSeconds, queue, candidates) {
			if !p.walk.Offer(v, &candidates[r.Index]) {
				return false
			}
		}
	default:
		for _, id := range queue {
			if !p.walk.Offer(v, &candidates[p.jobs[id].slot]) {
				return false
			}
		}
	}
	return true
}

// byIndex orders a queue by descending Gittins index, ties by time of joining.
func (p *tiresias) byIndex(now float64, waiting []core.JobID, candidates []core.Candidate) []queue.Rank {
	p.ranks = p.ranks[:0]
	for i, id := range waiting {
		q := &p.jobs[id]
		c := &candidates[q.slot]
		service := (c.ExecutedSeconds(now) - q.forgotten) * float64(c.Requested)
		p.ranks = append(p.ranks, queue.Rank{Key: -p.index.at(service), Job: core.JobID(i), Index: q.slot})
	}
	queue.SortRanks(p.ranks)
	return p.ranks
}

// early is how long before a computed moment to wake, so that rounding cannot make a round late.
const early = 1e-6

// Standing is up to the next moment at which a job may change queue, for the order of joining must be that of the
// moments. Between two such moments, fifo order stands still, whoever is seated. With running_first a job that is seated
// moves ahead of waiting ones; those see fewer devices, so nothing changes if every fitting grant runs. A Gittins index
// moves all the time, which matters unless everyone runs after the round.
func (p *tiresias) Standing() core.Standing { return p.standing }

func (p *tiresias) stand(now float64, candidates []core.Candidate) core.Standing {
	granted := len(p.walk.Grants())
	s := core.Standing{UntilSeconds: p.nextChange(now, candidates)}
	switch p.inside {
	case insideRunningFirst:
		s.IfSeated = p.walk.Fitted()
	case insideGittins:
		s.IfSeated = granted
		if granted < len(candidates) {
			s.UntilSeconds = now
		}
	}
	return s
}

// nextChange is the first moment at which a granted candidate sinks, if it runs from now on, or any one rises, if it
// waits: which of the two a granted one does is for the placer to say.
func (p *tiresias) nextChange(now float64, candidates []core.Candidate) float64 {
	next := math.Inf(1)
	for i := range p.walk.Grants() {
		q := &p.jobs[p.walk.Grants()[i].Job]
		if queue := int(q.queue) - 1; queue < len(p.thresholds) {
			j := candidates[q.slot].Job
			missing := p.thresholds[queue]/p.weight(j) - (j.ExecutedSeconds(now) - q.forgotten)
			next = min(next, now+missing-early)
		}
	}
	for i := range candidates {
		j := candidates[i].Job
		if q := &p.jobs[j.ID]; q.queue > 1 {
			next = min(next, p.promotion(q, j, now)-early)
		}
	}
	return next
}
