package journal

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// Announce returns an observer that logs, when other policies take over a run, why they did, what they lost, and each decision of
// theirs that changes what a job holds.
func Announce(log *slog.Logger, c *core.Cluster) core.Observer {
	return &announcer{log: log, cluster: c}
}

type announcer struct {
	log     *slog.Logger
	cluster *core.Cluster
	names   []string
	seats   []string // by JobID, as of the last round
}

// ObserveRound logs a takeover and what the policies decide in its round.
func (a *announcer) ObserveRound(r *core.Report) error {
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == core.JobSubmitted {
			for int(e.Job) >= len(a.names) {
				a.names, a.seats = append(a.names, ""), append(a.seats, "")
			}
			a.names[e.Job] = e.Spec.Name
		} else if e.Kind == core.JobInterrupted {
			a.seats[e.Job] = ""
		}
	}
	if s := r.Resumed; s != nil && !r.Repeated {
		attributes := []any{"why", s.Why, "round", r.View.Round}
		if len(s.Restored) > 0 {
			attributes = append(attributes, "keep_what_was_learned", strings.Join(s.Restored, " "))
		}
		a.log.Warn("other policies resume the run", attributes...)
		for _, why := range s.Lost {
			a.log.Warn("a policy resumes without what it had learned", "why", why)
		}
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		now := a.describe(c.Seats)
		if c.Action == core.Tune {
			now = a.seats[c.Job]
		}
		if r.Resumed != nil && !r.Repeated {
			a.log.Warn("new policy decides differently", "job", a.names[c.Job], "before", orNone(a.seats[c.Job]), "now", decision(c.Action, now), "by", c.By)
		}
		a.seats[c.Job] = now
	}
	return nil
}

// decision writes what becomes of a job as "start on node:0,1".
func decision(action core.Action, seats string) string {
	if seats == "" {
		return action.String()
	}
	return action.String() + " on " + seats
}

// orNone writes the seats of a job that has none as "-".
func orNone(seats string) string {
	if seats == "" {
		return "-"
	}
	return seats
}

// describe writes seats as "node:0,1 other:1".
func (a *announcer) describe(seats []core.Seat) string {
	parts := make([]string, len(seats))
	for i, s := range seats {
		parts[i] = fmt.Sprintf("%s:%v", a.cluster.Nodes[s.Node].Name, s.Devices)
	}
	return strings.Join(parts, " ")
}
