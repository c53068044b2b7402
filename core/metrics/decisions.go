package metrics

import (
	"bufio"
	"strconv"

	"github.com/quartet-sched/quartet/core"
)

// A line of decisions.jsonl is one JSON object: an event, a verdict, a change or a size of a pool, in this order within a round.

// line is a JSON object that grows at its end. Methods append one member each.
type line []byte

func startLine(w *bufio.Writer, round int, atSeconds float64) line {
	b := append(w.AvailableBuffer(), `{"round":`...)
	b = strconv.AppendInt(b, int64(round), 10)
	return line(b).number("t_s", atSeconds)
}

func (l line) key(name string) line {
	l = append(l, `,"`...)
	l = append(l, name...)
	return append(l, `":`...)
}

func (l line) text(name, value string) line { return appendString(l.key(name), value) }

func (l line) number(name string, value float64) line {
	if !Number(value).Known() {
		return append(l.key(name), "null"...)
	}
	return AppendNumber(l.key(name), value)
}

func (l line) count(name string, value int) line {
	return strconv.AppendInt(l.key(name), int64(value), 10)
}

func (l line) end(w *bufio.Writer) error {
	_, err := w.Write(append(l, '}', '\n'))
	return err
}

// writeDecisions writes the lines of one round.
func (c *Collector) writeDecisions(r *core.Report) error {
	for i := range r.Events {
		if err := c.writeEvent(r, &r.Events[i]); err != nil {
			return err
		}
	}
	for i := range r.Verdicts {
		if err := c.writeVerdict(r, &r.Verdicts[i]); err != nil {
			return err
		}
	}
	for i := range r.Changes {
		if err := c.writeChange(r, &r.Changes[i]); err != nil {
			return err
		}
	}
	for i := range r.Scaled {
		if err := c.writeSize(r, &r.Scaled[i]); err != nil {
			return err
		}
	}
	return nil
}

// writeSize writes how many nodes a pool is to have, and why.
func (c *Collector) writeSize(r *core.Report, t *core.PoolTarget) error {
	l := startLine(c.decisions, r.View.Round, r.View.NowSeconds).
		text("pool", t.Pool).
		text("action", "scale").
		count("nodes", t.Nodes)
	if t.Message != "" {
		l = l.text("message", t.Message)
	}
	return l.text("by", r.ScaledBy).end(c.decisions)
}

func (c *Collector) writeEvent(r *core.Report, e *core.Event) error {
	if e.Kind == core.JobProgressed && e.Message == "" {
		return nil // nothing was decided, and nothing went wrong
	}
	switch e.Kind {
	case core.JobFinished, core.JobFailed, core.JobCancelled, core.JobInterrupted, core.JobProgressed:
		l := startLine(c.decisions, r.View.Round, e.AtSeconds).
			text("job", c.jobName(e.Job)).
			text("event", e.Kind.String())
		if e.Cause != core.CauseUnknown {
			l = l.text("cause", e.Cause.String())
		}
		if e.Message != "" {
			l = l.text("message", e.Message)
		}
		return l.end(c.decisions)
	case core.NodeChanged, core.NodeAdded, core.NodeRemoved:
		return c.writeNode(r, e)
	case core.JobStarting, core.JobStarted, core.JobShrunk, core.DevicesReleased, core.JobChanged:
		return c.writeStart(r, e)
	case core.JobSubmitted:
		if e.Held != nil {
			return c.writeStart(r, e)
		}
		return nil // submissions are in jobs.csv
	default:
		return nil
	}
}

// writeNode writes what became of a node.
func (c *Collector) writeNode(r *core.Report, e *core.Event) error {
	n := &r.View.Cluster.Nodes[e.Node]
	l := startLine(c.decisions, r.View.Round, e.AtSeconds).
		text("node", n.Name).
		text("event", e.Kind.String())
	unusable := e.Unusable
	switch e.Kind {
	case core.NodeAdded:
		l = l.text("accelerator", e.Added.Accelerator).count("devices", e.Added.Devices).text("health", e.Added.Health.String())
		unusable = e.Added.Unusable
		if e.Added.ExpectedSeconds > 0 {
			l = l.number("expected_s", e.Added.ExpectedSeconds)
		}
	case core.NodeChanged:
		l = l.text("health", e.Health.String())
	}
	if unusable &= core.FirstDevices(n.Devices); unusable != 0 {
		l = append(l.key("unusable"), '"')
		l = append(appendDevices(l, unusable), '"')
	}
	return l.end(c.decisions)
}

// writeStart writes how far a job is with devices that it was given or lost, and that its owner edited it.
func (c *Collector) writeStart(r *core.Report, e *core.Event) error {
	l := startLine(c.decisions, r.View.Round, e.AtSeconds).
		text("job", c.jobName(e.Job)).
		text("event", e.Kind.String())
	seats := e.Seats
	if e.Held != nil {
		seats = e.Held.Seats
	}
	if e.Cause != core.CauseUnknown {
		l = l.text("cause", e.Cause.String())
	}
	if e.Message != "" {
		l = l.text("message", e.Message)
	}
	if e.Kind == core.JobChanged {
		l = l.count("min_replicas", e.Spec.MinReplicas).count("max_replicas", e.Spec.MaxReplicas).number("weight", e.Spec.Weight)
		if e.Spec.Suspended {
			l = append(l.key("suspended"), "true"...)
		}
	}
	if len(seats) > 0 {
		l = l.count("replicas", core.Replicas(seats)).seats(r.View.Cluster, seats)
	}
	if e.Held != nil {
		l = l.tuning(e.Held.Tuning).resources(e.Held.Resources)
	}
	return l.end(c.decisions)
}

func (c *Collector) writeVerdict(r *core.Report, v *core.Verdict) error {
	l := startLine(c.decisions, r.View.Round, r.View.NowSeconds).
		text("job", c.jobName(v.Job)).
		text("verdict", v.Code.String()).
		text("reason", v.Reason.String())
	if v.Unit != "" {
		l = l.number("wanted", v.Wanted).number("available", v.Available).text("unit", v.Unit)
	}
	if v.Message != "" {
		l = l.text("message", v.Message)
	}
	if v.ExpectedSeconds > 0 {
		l = l.number("expected_s", v.ExpectedSeconds)
	}
	return l.text("by", v.By).end(c.decisions)
}

func (c *Collector) writeChange(r *core.Report, change *core.Change) error {
	if change.Action == core.Discard {
		return nil // the verdict said it
	}
	l := startLine(c.decisions, r.View.Round, r.View.NowSeconds).
		text("job", c.jobName(change.Job)).
		text("action", change.Action.String())
	switch change.Action {
	case core.Stop, core.Finish, core.Pause:
		l = l.text("reason", change.Reason.String())
	case core.Start, core.Move:
		l = l.count("replicas", core.Replicas(change.Seats)).seats(r.View.Cluster, change.Seats)
		l = c.appendSharing(l, r.View.Job(change.Job))
		l = l.tuning(change.Tuning).resources(change.Resources)
	case core.Tune:
		l = l.tuning(change.Tuning).resources(change.Resources)
	}
	return l.text("by", change.By).end(c.decisions)
}

// appendSharing appends what a job has of its devices, and with whom after the round.
func (c *Collector) appendSharing(l line, j *core.Job) line {
	if j == nil {
		return l
	}
	switch {
	case c.cluster.Sharing == core.Mig:
		if j.Part() > 0 {
			l = l.text(profileColumn, profileOf(j.Share))
		}
	case j.Share != nil: // none where devices are whole
		l = l.count(shareColumn, j.Share.Milli)
	}
	if c.sharing == nil {
		return l
	}
	others := c.sharing.with(j.ID)
	if len(others) == 0 {
		return l
	}
	l = append(l.key("with"), '[')
	for i, other := range others {
		if i > 0 {
			l = append(l, ',')
		}
		l = appendString(l, c.jobName(other))
	}
	return append(l, ']')
}

func (l line) seats(c *core.Cluster, seats []core.Seat) line {
	l = append(l.key("seats"), '[')
	for i, s := range seats {
		if i > 0 {
			l = append(l, ',')
		}
		l = append(l, '[')
		l = appendString(l, c.Nodes[s.Node].Name)
		l = append(l, `,"`...)
		l = appendDevices(l, s.Devices)
		l = append(l, `"]`...)
	}
	return append(l, ']')
}

// resources appends the CPUs and the memory of each replica, where they are not what the job asks for.
func (l line) resources(each *core.Resources) line {
	if each == nil {
		return l
	}
	return l.number("cpus", each.CPUs).number("memory_gb", each.MemoryGB)
}

// tuning appends the batch setting, unless everything was left to the job.
func (l line) tuning(t core.Tuning) line {
	if t.BatchPerDevice == 0 && t.AccumulationSteps == 0 && t.LearningRateFactor == 0 {
		return l
	}
	return l.count("batch_per_device", t.BatchPerDevice).
		count("accumulation_steps", t.AccumulationSteps).
		number("learning_rate_factor", t.LearningRateFactor)
}
