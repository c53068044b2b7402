package journal

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// Announce returns an observer that says, when other stages take over, how they did, and in one line each what they decide about
// jobs otherwise than it was.
func Announce(log *slog.Logger, c *core.Cluster) core.Observer {
	return &announcer{log: log, cluster: c}
}

type announcer struct {
	log     *slog.Logger
	cluster *core.Cluster
	names   []string
	seats   []string // by JobID, as of the last round
}

// ObserveRound says what changed.
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
		told := []any{"why", s.Why, "round", r.View.Round}
		if len(s.Restored) > 0 {
			told = append(told, "keep_what_was_learned", strings.Join(s.Restored, " "))
		}
		a.log.Warn("other policies go on with the run", told...)
		for _, why := range s.Lost {
			a.log.Warn("a policy goes on without what was learned", "why", why)
		}
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		now := a.describe(c.Seats)
		if c.Action == core.Tune {
			now = a.seats[c.Job]
		}
		if r.Resumed != nil && !r.Repeated {
			a.log.Warn("a job is decided about anew", "job", a.names[c.Job], "decision", c.Action.String(), "was", a.seats[c.Job], "is", now, "by", c.By)
		}
		a.seats[c.Job] = now
	}
	return nil
}

// describe writes seats as "node:0,1 other:1".
func (a *announcer) describe(seats []core.Seat) string {
	parts := make([]string, len(seats))
	for i, s := range seats {
		parts[i] = fmt.Sprintf("%s:%v", a.cluster.Nodes[s.Node].Name, s.Devices)
	}
	return strings.Join(parts, " ")
}
