package tiresias

import (
	"context"
	"errors"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/feedback"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// The orders inside a queue of tiresias.
const (
	insideFIFO         = "fifo"
	insideRunningFirst = "running_first"
	insideGittins      = "gittins"
	insidePassedOver   = "passed_over_last"
)

// When a running job of tiresias sinks.
const (
	sinksAtThreshold  = "at_threshold"
	sinksWholeSeconds = "whole_seconds"
)

// Config configures New.
type Config struct {
	feedback.QueuesConfig
	// Inside is the order inside a queue: fifo, running_first, passed_over_last or gittins.
	Inside string `config:"inside" doc:"order inside a queue: fifo by time of joining it, running_first with running jobs ahead, passed_over_last with those that were granted nothing gone to the end, gittins by Gittins index" enum:"fifo|running_first|passed_over_last|gittins"`
	// Samples are the service that past jobs needed, in device-seconds, for the Gittins index.
	Samples []float64 `config:"samples" doc:"service that past jobs needed, in device-seconds, from which gittins learns how much jobs need" min:"0"`
	// GittinsQuantum is the service, in device-seconds, that the Gittins index looks ahead.
	GittinsQuantum float64 `config:"gittins_quantum" doc:"service, in device-seconds, that the Gittins index looks ahead" min:"0"`
	// Sinks says when a running job moves to the next queue: at_threshold or whole_seconds.
	Sinks string `config:"sinks" doc:"when a running job moves to the next queue: at_threshold, as soon as its service is there; whole_seconds, at a round of its own once the seconds that takes, rounded up, are over, and at any other round that comes between, as in Muri's simulator; for reproductions" enum:"at_threshold|whole_seconds"`
	// Queue says what happens to the jobs behind one that does not fit; see package queue.
	Queue string `config:"queue" doc:"what happens to the jobs behind one that does not fit: backfill lets them pass, blocking makes them wait, all leaves it to placement" enum:"backfill|blocking|all"`
}

// CountsFractions says that its walk does.
func (Config) CountsFractions() {}

// Validate checks what single fields cannot.
func (c Config) Validate() error {
	problems := c.Problems()
	if c.Inside == insideGittins && len(c.Samples) == 0 {
		problems = append(problems, errors.New("samples: required with inside gittins"))
	}
	if c.Inside == insideGittins && !(c.GittinsQuantum > 0) {
		problems = append(problems, errors.New("gittins_quantum: must be positive with inside gittins"))
	}
	return errors.Join(problems...)
}

// New serves jobs by discretised attained service: a job starts in the first queue and sinks as it consumes.
//
// Source: Tiresias (NSDI'19), discretised 2D-LAS, in the form of the Pollux artifact by default (two queues, FIFO
// inside, smaller jobs behind one that does not fit pass it) and in that of its own simulator with running_first.
// passed_over_last with sinks whole_seconds is the form of Muri's simulator (SIGCOMM'22), which follows from its published means: a job of g devices
// has a round of its own after the limit over g seconds of service, rounded up, wherever it was interrupted.
// New jobs join the first queue in JobID order; then running jobs past a threshold join the tail of their new queue in
// JobID order. Service counts requested replicas, not held ones. A job is promoted by its wait since it last ran.
// O(candidates) a round; gittins sorts, O(candidates log candidates).
func New() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "tiresias",
		Summary: "discretised least attained service: queues that jobs sink through, preemptive",
		Description: "A job starts in the first queue and moves to the tail of the next one when its service reaches a threshold. Queues are served in order. " +
			"A job does not rise again unless promote_factor says so; it is then measured by its wait since it last ran. " +
			"Service counts the replicas a job requests, not those it holds, and jobs of one moment join a queue in submission order. " +
			"By default it is the form of the Pollux artifact; running_first is that of the publication's simulator, passed_over_last with sinks whole_seconds that of Muri's. " +
			"O(candidates) a round; gittins sorts, O(candidates log candidates).",
		Source: "Tiresias, NSDI'19; Pollux artifact, OSDI'21",
	}, Config{
		QueuesConfig: feedback.Usual(), Inside: insideFIFO, GittinsQuantum: 3250, Sinks: sinksAtThreshold, Queue: queue.Backfill,
	}, func(c Config, _ core.Settings) (core.Allocator, error) {
		queues := feedback.New(c.QueuesConfig)
		queues.WholeSeconds = c.Sinks == sinksWholeSeconds
		return &tiresias{
			Queues: queues, inside: c.Inside, index: newGittins(c.Samples, c.GittinsQuantum),
			walk: queue.Walk{Discipline: c.Queue}, standing: core.Standing{UntilSeconds: math.Inf(1)},
		}, nil
	})
}

type tiresias struct {
	feedback.Queues

	inside   string
	index    gittins
	ranks    []queue.Rank
	walk     queue.Walk
	standing core.Standing
}

func (p *tiresias) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.Requeue(v.NowSeconds, candidates)
	p.walk.Begin(v)
	p.walk.KeepPinned(v, candidates)
	for _, queue := range p.Lists {
		if !p.serve(v, queue, candidates) {
			break
		}
	}
	if p.inside == insidePassedOver {
		p.PassOver(v.Round, p.walk.Grants()[:p.walk.Fitted()])
	}
	p.standing = p.stand(v.NowSeconds, candidates)
	return p.walk.Grants(), nil
}

// serve walks along one queue and reports whether the walk goes on.
func (p *tiresias) serve(v *core.View, queue []core.JobID, candidates []core.Candidate) bool {
	switch p.inside {
	case insideRunningFirst:
		for _, running := range [...]bool{true, false} {
			for _, id := range queue {
				if c := &candidates[p.Slot(id)]; (c.State == core.Running) == running && !p.walk.Offer(v, c) {
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
			if !p.walk.Offer(v, &candidates[p.Slot(id)]) {
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
		slot := p.Slot(id)
		c := &candidates[slot]
		service := p.Executed(c.Job, now) * float64(c.Requested)
		p.ranks = append(p.ranks, queue.Rank{Key: -p.index.at(service), Job: core.JobID(i), Index: slot})
	}
	queue.SortRanks(p.ranks)
	return p.ranks
}

// Standing is up to the next moment at which a job may change queue, for the order of joining must be that of the
// moments. Between two such moments, fifo order stands still, whoever is seated; a pinned job that starts is served ahead of all
// others from then on, beside whom it fitted. With running_first a job that is seated
// moves ahead of waiting ones, as do the granted with passed_over_last; those see fewer devices, so nothing changes if every fitting grant runs. A Gittins index
// moves all the time, which matters unless everyone runs after the round. With sinks whole_seconds, a round that an event causes may have a job sink
// before the moment that was given; that option is for reproductions.
func (p *tiresias) Standing() core.Standing { return p.walk.Standing(p.standing) }

func (p *tiresias) stand(now float64, candidates []core.Candidate) core.Standing {
	granted := len(p.walk.Grants())
	s := core.Standing{UntilSeconds: p.NextChange(now, candidates, p.walk.Grants())}
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
