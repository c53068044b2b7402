package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// wait is how long a job was pending for one reason.
type wait struct {
	reason  string
	seconds float64
}

// waits adds up how long a job waited for each reason, by what was decided about it, oldest first. The time before the first
// reason was given has none.
func waits(decisions []*controlv1.Decision, nowSeconds float64) (list []wait) {
	waiting, reason, since := false, "", 0.0
	end := func(at float64) {
		if !waiting || at <= since {
			return
		}
		i := slices.IndexFunc(list, func(w wait) bool { return w.reason == reason })
		if i < 0 {
			i, list = len(list), append(list, wait{reason: reason})
		}
		list[i].seconds += at - since
	}
	for _, d := range decisions {
		now := false
		switch d.GetWhat() {
		case core.JobSubmitted.String(), core.Defer.String(), core.Stop.String(), core.Pause.String(), core.JobInterrupted.String():
			now = true
		case core.Start.String(), core.Move.String(), core.Reject.String(), core.JobFinished.String(), core.JobFailed.String(), core.JobCancelled.String(), core.Finish.String():
		default:
			continue
		}
		end(d.GetAtSeconds())
		waiting, reason, since = now, d.GetReason(), max(since, d.GetAtSeconds())
	}
	end(nowSeconds)
	slices.SortStableFunc(list, func(a, b wait) int { return cmp.Compare(b.seconds, a.seconds) })
	return list
}

// wordWaits says how long a job was pending for which reason; empty if it never was.
func wordWaits(list []wait) string {
	total := 0.0
	var parts []string
	for _, w := range list {
		total += w.seconds
		parts = append(parts, render.Span(w.seconds)+" "+waitWords(w.reason))
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("Pending for %s: %s.", render.Span(total), strings.Join(parts, ", "))
}

// waitWords says what a job was pending for.
func waitWords(reason string) string {
	if reason == "" {
		return "for the next round"
	}
	if r, known := core.ParseReason(reason); known {
		return reasonWords(r).wait
	}
	return "for " + reason
}

// inFront lists the jobs whose turn a job waits for that is blocked by earlier ones: those that wait for something else.
func inFront(ctx context.Context, client cluster.Orders, job *controlv1.Job) ([]string, error) {
	if job.GetReason() != core.BlockedByEarlier.String() {
		return nil, nil
	}
	jobs, _, err := client.Jobs(ctx, false)
	var names []string
	for _, j := range jobs {
		if j.GetState() == core.Waiting.String() && j.GetReason() != job.GetReason() && j.GetReason() != "" {
			names = append(names, fmt.Sprintf("%s (%s)", j.GetName(), j.GetReason()))
		}
	}
	return names, err
}
