package kube

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// unseen is the state of a job that no scheduler has said anything of.
const unseen = "submitted"

// page is how many objects one answer holds.
const page = 500

// Jobs lists jobs by id, those that have none last, and the moment.
func (c *Cluster) Jobs(ctx context.Context, ended bool) ([]*controlv1.Job, float64, error) {
	objects, err := c.list(ctx)
	if err != nil {
		return nil, 0, c.words("list training jobs", err)
	}
	now := c.now()
	jobs := []*controlv1.Job{}
	for i := range objects {
		if t := &objects[i]; ended || !t.Status.State.Ended() {
			jobs = append(jobs, c.job(t, now))
		}
	}
	return jobs, now, nil
}

// list lists the objects in the order of their ids, and else of their creation.
func (c *Cluster) list(ctx context.Context) ([]trainingjob.TrainingJob, error) {
	var all []trainingjob.TrainingJob
	for from := ""; ; {
		list, err := c.jobs.Of(c.namespace).List(ctx, metav1.ListOptions{Limit: page, Continue: from})
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if from = list.Continue; from == "" {
			break
		}
	}
	id := func(t *trainingjob.TrainingJob) int64 {
		if t.Status.ID == nil {
			return math.MaxInt64
		}
		return int64(*t.Status.ID)
	}
	slices.SortFunc(all, func(a, b trainingjob.TrainingJob) int {
		return cmp.Or(cmp.Compare(id(&a), id(&b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.JobName(), b.JobName()))
	})
	return all, nil
}

// get reads one job. The error of one that is not there says which there are.
func (c *Cluster) get(ctx context.Context, name string) (*trainingjob.TrainingJob, error) {
	attempt := fmt.Sprintf("read training job %q", name)
	// A name that is none would be asked for under another path.
	if strings.ContainsAny(name, "/%?#") || name == "." || name == ".." {
		return nil, c.noJob(ctx, name)
	}
	t, err := c.jobs.Of(c.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !nothingNamed(err) {
		return c.adopting(ctx, name)
	}
	return t, c.words(attempt, err)
}

// adopting finds a job by the name of the Job, pod or group whose pods it has, one that has not ended before others.
func (c *Cluster) adopting(ctx context.Context, name string) (found *trainingjob.TrainingJob, err error) {
	objects, err := c.list(ctx)
	if err != nil {
		return nil, c.words("list training jobs", err)
	}
	for i := range objects {
		t := &objects[i]
		if t.Spec.Adopts != nil && t.Spec.Adopts.Name == name && (found == nil || found.Status.State.Ended()) {
			found = t
		}
	}
	if found == nil {
		return nil, c.unknown(name, objects)
	}
	return found, nil
}

func (c *Cluster) noJob(ctx context.Context, name string) error {
	objects, err := c.list(ctx)
	if err != nil {
		return c.words("list training jobs", err)
	}
	return c.unknown(name, objects)
}

func (c *Cluster) unknown(name string, objects []trainingjob.TrainingJob) error {
	var names []string
	for i := range objects {
		names = append(names, objects[i].Name)
		if a := objects[i].Spec.Adopts; a != nil {
			names = append(names, a.Name)
		}
	}
	return core.UnknownName("job", name, " in "+c.where(), names)
}

// Cancel deletes a job that has not ended. One that has stays to be looked at.
func (c *Cluster) Cancel(ctx context.Context, name string) error {
	t, err := c.get(ctx, name)
	if err != nil || t.Status.State.Ended() {
		return err
	}
	if a := t.Spec.Adopts; a != nil && len(t.OwnerReferences) > 0 {
		what, how := strings.ToLower(a.Kind), a.Name
		if a.Kind == gang.GroupUnit {
			what, how = "pods", "--selector "+gang.GroupLabel+"="+a.Name
		}
		return core.Diagnostics{{
			Summary: fmt.Sprintf("job %q mirrors the %s %q, and would be made again", name, a.Kind, a.Name),
			Hint:    fmt.Sprintf("kubectl --namespace %s delete %s %s", t.Namespace, what, how),
		}}
	}
	err = c.jobs.Of(c.namespace).Delete(ctx, t.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &t.UID}})
	if apierrors.IsNotFound(err) {
		return nil // somebody else was faster
	}
	return c.words(fmt.Sprintf("cancel job %q", name), err)
}

// Describe returns all that is known of a job. Of what was decided before, its object keeps the last of each kind.
func (c *Cluster) Describe(ctx context.Context, name string) (*controlv1.DescribeResponse, error) {
	t, err := c.get(ctx, name)
	if err != nil {
		return nil, err
	}
	now := c.now()
	return &controlv1.DescribeResponse{NowSeconds: now, Job: c.job(t, now), Decisions: history(t)}, nil
}

// job is a TrainingJob in the form of a scheduler's answer.
func (c *Cluster) job(t *trainingjob.TrainingJob, now float64) *controlv1.Job {
	spec, _ := t.JobSpec(0, 0) // what is wrong with it is in its conditions
	created := seconds(t.CreationTimestamp.Time)
	j := &controlv1.Job{
		Id: t.Status.ID, Name: t.Name, Tenant: t.Tenant(), Application: t.Spec.Application, Experiment: t.Spec.Experiment,
		State:     cmp.Or(string(t.Status.State), unseen),
		Requested: count(spec.Requested), MinReplicas: count(spec.MinReplicas), MaxReplicas: count(spec.MaxReplicas), Pinned: t.Spec.Pinned,
		TotalWork: t.Spec.Work,
	}
	if t.Status.State != "" {
		j.SubmitSeconds = &created
	}
	if c.namespace == "" {
		j.Name = t.JobName()
	}
	if template, _ := t.Spec.PodTemplate(); template != nil && len(template.Spec.Containers) > 0 {
		main := &template.Spec.Containers[0]
		j.Command = append(slices.Clone(main.Command), main.Args...)
	}
	j.Starting = t.Status.State == trainingjob.Starting
	if d := t.Status.Decision; d != nil && !d.Stop {
		j.Seats, j.Tuning = seatsOf(d), tuningOf(d.Tuning)
	}
	c.fate(j, t)
	c.account(j, t, now)
	j.Outlook = outlookOf(t)
	return j
}

// outlookOf is what the scheduler expects of a job; nil where it says nothing, as one does that is older.
func outlookOf(t *trainingjob.TrainingJob) *controlv1.Outlook {
	f := t.Status.Forecast
	if f == nil || t.Status.State.Ended() {
		return nil
	}
	band := func(b *trainingjob.Band) *controlv1.Band {
		at := func(moment *metav1.Time) *float64 {
			if moment == nil {
				return nil
			}
			x := seconds(moment.Time)
			return &x
		}
		if b == nil {
			return nil
		}
		return &controlv1.Band{Low: at(b.Low), Median: at(b.Median), High: at(b.High)}
	}
	o := &controlv1.Outlook{AtSeconds: seconds(f.At.Time), End: band(f.End), Judged: count(f.Judged), Held: count(f.Held)}
	if s := t.Status.State; s != trainingjob.Running && s != trainingjob.Starting {
		o.Start, o.Position = band(f.Start), count(f.Position)
	}
	return o
}

// fate says why a job is where it is.
func (c *Cluster) fate(j *controlv1.Job, t *trainingjob.TrainingJob) {
	if f := t.Status.Condition(trainingjob.ConditionFinished); f != nil && f.Status == metav1.ConditionTrue {
		at := seconds(f.LastTransitionTime.Time)
		j.FinishSeconds = &at
		if t.Status.State != trainingjob.Completed {
			j.Message = f.Message
		}
		if t.Status.State == trainingjob.Rejected {
			j.Reason = verdict(f.Reason, f.Message).Reason
		}
		return
	}
	if r := t.Status.Condition(trainingjob.ConditionRunning); r != nil && r.Status != metav1.ConditionTrue && t.Status.State != trainingjob.Running {
		v := verdict(r.Reason, r.Message)
		j.Reason = v.Reason
		if _, known := core.ParseReason(v.Reason); !known {
			j.Message = r.Message // what happened to it, and not what it waits for
		}
	}
	if d := t.Status.Condition(trainingjob.ConditionDegraded); d != nil && d.Status == metav1.ConditionTrue {
		j.Message = d.Reason + ": " + d.Message
	}
}

// account says how far a job came, and what it has behind it.
func (c *Cluster) account(j *controlv1.Job, t *trainingjob.TrainingJob, now float64) {
	p := t.Status.Progress
	if p == nil {
		return
	}
	j.ExecutedSeconds, j.AttainedSeconds = p.ExecutedSeconds, p.AttainedSeconds
	j.Restarts, j.Preemptions, j.Progress = count(p.Restarts), count(p.Preemptions), p.Done
	first, known := firstStart(t)
	if !known {
		return
	}
	j.FirstStartSeconds = &first
	d := t.Status.Decision
	if d == nil {
		return
	}
	changed := clock(t, d.AtSeconds)
	j.ChangeSeconds = &changed
	if d.Stop {
		return
	}
	// What was written is as of the decision; since then the job holds its devices.
	held := 0
	for _, s := range j.GetSeats() {
		held += len(s.GetDevices())
	}
	since := max(now-changed, 0)
	j.ExecutedSeconds += since
	j.AttainedSeconds += since * float64(held)
	if p.Rate > 0 {
		j.Progress += p.Rate * max(now-clock(t, p.FromSeconds), 0)
		if t.Spec.Work > 0 {
			j.Progress = min(j.Progress, t.Spec.Work)
		}
	}
}

// firstStart is when a job first was given devices: a job is admitted with that.
func firstStart(t *trainingjob.TrainingJob) (float64, bool) {
	a := t.Status.Condition(trainingjob.ConditionAdmitted)
	if a == nil || a.Status != metav1.ConditionTrue || t.Status.Progress == nil || t.Status.Progress.FirstStartSeconds == nil {
		return 0, false
	}
	return seconds(a.LastTransitionTime.Time), true
}

// clock is a moment of the scheduler's run as the rest of the world has it: the first start is known in both, to the second.
func clock(t *trainingjob.TrainingJob, at float64) float64 {
	first, known := firstStart(t)
	if !known {
		return seconds(t.CreationTimestamp.Time)
	}
	return first + max(at-*t.Status.Progress.FirstStartSeconds, 0)
}

// history is what the object of a job keeps of what was decided, oldest first.
func history(t *trainingjob.TrainingJob) []*controlv1.Decision {
	list := []*controlv1.Decision{{AtSeconds: seconds(t.CreationTimestamp.Time), What: core.JobSubmitted.String()}}
	d, decided := t.Status.Decision, 0.0
	if first, known := firstStart(t); known && (d == nil || d.Run > 1 || d.Stop) {
		list = append(list, &controlv1.Decision{AtSeconds: first, What: core.Start.String()})
	}
	if d != nil {
		one := decisionOf(t, d)
		decided = one.GetAtSeconds()
		if !d.Stop || !t.Status.State.Ended() { // how it ended is told below
			list = append(list, one)
		}
	}
	for _, kind := range [...]string{
		trainingjob.ConditionInterrupted, trainingjob.ConditionRunning, trainingjob.ConditionDegraded, trainingjob.ConditionFinished,
	} {
		condition := t.Status.Condition(kind)
		if condition == nil {
			continue
		}
		one := verdict(condition.Reason, condition.Message)
		one.AtSeconds = seconds(condition.LastTransitionTime.Time)
		if kind != trainingjob.ConditionInterrupted && decided-one.GetAtSeconds() < 1 { // conditions have whole seconds: what follows from a decision does not come before it
			one.AtSeconds = max(one.GetAtSeconds(), decided)
		}
		if nameCondition(one, condition, t.Status.State) {
			list = append(list, one)
		}
	}
	slices.SortStableFunc(list, func(a, b *controlv1.Decision) int { return cmp.Compare(a.GetAtSeconds(), b.GetAtSeconds()) })
	return list
}

// decisionOf is the last decision on a job.
func decisionOf(t *trainingjob.TrainingJob, d *trainingjob.Decision) *controlv1.Decision {
	one := &controlv1.Decision{
		Round: count(int(d.Round)), AtSeconds: clock(t, d.AtSeconds), What: core.Start.String(), By: d.By, Seats: seatsOf(d), Tuning: tuningOf(d.Tuning),
	}
	if d.Stop { // what ends a run leaves round and moment of its decision as they were
		one.What = core.Stop.String()
		if r := t.Status.Condition(trainingjob.ConditionRunning); r != nil {
			one.AtSeconds = max(one.GetAtSeconds(), seconds(r.LastTransitionTime.Time))
		}
	}
	return one
}

// nameCondition names what a condition of a job in a state says; false for nothing.
func nameCondition(one *controlv1.Decision, c *metav1.Condition, state trainingjob.State) bool {
	switch yes := c.Status == metav1.ConditionTrue; {
	case c.Type == trainingjob.ConditionInterrupted && yes:
		one.What = core.JobInterrupted.String()
	case c.Type == trainingjob.ConditionRunning && yes:
		one.What, one.Reason = core.JobStarted.String(), ""
	case c.Type == trainingjob.ConditionRunning && waits(state):
		one.What = core.Defer.String()
	case c.Type == trainingjob.ConditionDegraded && yes:
		one.What = "degraded"
	case c.Type == trainingjob.ConditionFinished && yes:
		one.What = string(state)
		if strings.EqualFold(one.GetReason(), one.GetWhat()) {
			one.Reason = ""
		}
	default:
		return false
	}
	return true
}

// waits reports whether the condition of a job in this state says what it waits for.
func waits(s trainingjob.State) bool {
	return s == trainingjob.Pending || s == trainingjob.Waiting || s == trainingjob.Suspended || s == trainingjob.Starting
}

// counted is how a verdict words its evidence.
var counted = regexp.MustCompile(`^(.*?):? ?\(wants ([0-9.]+) (.+), ([0-9.]+) available\)$`)

// verdict reads a condition: its reason is one of the verdicts' written together, its message begins with that.
func verdict(reason, message string) *controlv1.Decision {
	d := &controlv1.Decision{Reason: reason, Message: message}
	if name := apart(reason); isReason(name) {
		d.Reason, d.Message = name, strings.TrimPrefix(strings.TrimPrefix(message, name), ": ")
	}
	if d.Reason == core.NoReason.String() {
		d.Reason = ""
	}
	match := counted.FindStringSubmatch(d.Message)
	if match == nil {
		return d
	}
	wanted, err1 := strconv.ParseFloat(match[2], 64)
	available, err2 := strconv.ParseFloat(match[4], 64)
	if err1 == nil && err2 == nil {
		d.Message, d.Wanted, d.Unit, d.Available = strings.TrimSpace(match[1]), wanted, match[3], available
	}
	return d
}

func isReason(name string) bool {
	_, is := core.ParseReason(name)
	return is && name != ""
}

// apart writes WaitingForDevices as waiting_for_devices.
func apart(reason string) string {
	var b strings.Builder
	for i, r := range reason {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// seatsOf are the seats of a decision. One that makes no sense has no devices.
func seatsOf(d *trainingjob.Decision) []*controlv1.Seat {
	var list []*controlv1.Seat
	for _, s := range d.Seats {
		seat := &controlv1.Seat{Node: s.Node}
		if devices, err := trainingjob.ParseDevices(s.Devices); err == nil {
			for _, device := range devices.List() {
				seat.Devices = append(seat.Devices, uint32(device))
			}
		}
		list = append(list, seat)
	}
	return list
}

func tuningOf(t *trainingjob.Tuning) *controlv1.Tuning {
	if t == nil {
		return nil
	}
	tuning := &controlv1.Tuning{
		BatchPerDevice: count(t.BatchPerDevice), AccumulationSteps: count(t.AccumulationSteps), LearningRateFactor: t.LearningRateFactor,
	}
	for _, batch := range t.BatchByReplica {
		tuning.BatchByReplica = append(tuning.BatchByReplica, count(batch))
	}
	return tuning
}

// count is a number of the API, which may be anything, as a count.
func count(n int) uint32 { return uint32(min(max(n, 0), math.MaxInt32)) }
