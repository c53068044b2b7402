package kube

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// progress is how far a job is: done at from, in the unit of its work, growing with rate.
type progress struct {
	done, rate, from float64
	kept             float64 // what a checkpoint holds
}

// said is what a job said of itself.
type said struct {
	run       int64 // in which it spoke
	worlds    bool  // it takes another world while it runs
	counted   bool  // it said how far it is
	latest    agent.Report
	fresh     bool // latest was not told
	at        float64
	told      core.Measurement // the last that was told
	metrics   []agent.Metric   // the latest value of each
	writtenAt float64          // when the status last got a checkpoint
}

// at is what is done at a moment, and no more than there is to do.
func (p *progress) at(now, total float64) float64 {
	done := p.done + max(now-p.from, 0)*p.rate
	if total > 0 {
		done = min(done, total)
	}
	return done
}

// advance reckons from a moment on.
func (p *progress) advance(now, total float64) { p.done, p.from = p.at(now, total), now }

// lose takes back what no checkpoint holds.
func (p *progress) lose(now float64) { p.done, p.rate, p.from = p.kept, 0, now }

// How often the status gets a checkpoint at most, and how long a job may take between reports before its progress is no longer
// taken to go on.
const (
	writeEvery = time.Minute
	silence    = time.Minute
)

// listen takes in what jobs said.
func (b *Backend) listen(now float64) {
	heard := slices.DeleteFunc(b.door.heard(), func(s *speech) bool {
		j := b.jobs[s.job]
		return j == nil || j.spec == nil || j.ended || j.losing
	})
	slices.SortFunc(heard, func(x, y *speech) int {
		return cmp.Or(cmp.Compare(b.jobs[x.job].id, b.jobs[y.job].id), cmp.Compare(x.run, y.run))
	})
	for _, s := range heard {
		b.take(b.jobs[s.job], s, now)
	}
}

// take takes in what a run of a job said.
func (b *Backend) take(j *job, s *speech, now float64) {
	j.mutex.Lock()
	run, seats := j.decision().Run, len(j.seats)
	j.mutex.Unlock()
	if s.run == run && j.said.run != run {
		j.said = said{run: run, writtenAt: j.said.writtenAt}
	}
	if s.checkpointed != nil {
		b.takeCheckpoint(j, *s.checkpointed, s.run != run || seats == 0, now)
	}
	if s.run != run {
		return
	}
	j.said.worlds = j.said.worlds || s.worlds
	b.takeMetrics(j, s.metrics, now)
	if r := s.report; r != nil && seats > 0 && r.Replicas*j.perReplica == j.account.held {
		b.takeReport(j, r, now)
	}
}

// takeCheckpoint takes in how much work the checkpoint of a job holds. Last is that of a run that was stopped.
func (b *Backend) takeCheckpoint(j *job, work float64, last bool, now float64) {
	a := &j.account
	if work == a.kept {
		return
	}
	a.kept = work
	if last {
		a.lose(now)
		b.progressed(j, now)
		b.keep(j, now)
	} else if now-j.said.writtenAt >= writeEvery.Seconds() {
		b.keep(j, now)
	}
}

// takeMetrics reports the metrics of a job that were not reported before.
func (b *Backend) takeMetrics(j *job, metrics []heardMetric, now float64) {
	for _, said := range metrics {
		m := said.Metric
		known := slices.IndexFunc(j.said.metrics, func(o agent.Metric) bool { return o.Name == m.Name })
		switch {
		case known >= 0 && said.again && m.Step <= j.said.metrics[known].Step && !m.Equal(j.said.metrics[known]):
			continue // it was heard, and others after it
		case known < 0:
			j.said.metrics = append(j.said.metrics, m)
		case j.said.metrics[known].Equal(m):
			continue // said again, to a scheduler that may not have heard it
		default:
			j.said.metrics[known] = m
		}
		b.report(core.Event{Kind: core.JobReported, AtSeconds: now, Job: j.id, Metric: m.Name, Step: m.Step, Value: m.Value})
	}
}

// takeReport takes in how far and how fast a job is.
func (b *Backend) takeReport(j *job, r *agent.Report, now float64) {
	a := &j.account
	if !j.said.counted { // what it took to begin says nothing of how fast it is
		j.said.counted, a.done, a.from = true, max(r.Progress, a.done), now
	}
	if now > a.from && r.Progress > a.done {
		first := a.rate == 0
		a.rate = (r.Progress - a.done) / (now - a.from)
		a.done, a.from = r.Progress, now
		if first { // from now on whoever looks can reckon
			b.progressed(j, now)
			b.keep(j, now)
		}
	}
	j.said.latest, j.said.fresh, j.said.at = *r, true, now
	if m := b.measurement(j); m.PassSeconds > 0 && !sameConfiguration(m, j.said.told) {
		b.reportMeasurement(j, now)
	}
}

// keep writes how far a job is.
func (b *Backend) keep(j *job, now float64) {
	j.said.writtenAt = now
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.status.Progress, j.dirty = j.account.entry(), true
	b.work.write(j.uid)
}

// sameConfiguration reports whether two measurements are of the same replicas and batch.
func sameConfiguration(a, b core.Measurement) bool {
	a.PassSeconds, a.StepSeconds = b.PassSeconds, b.StepSeconds
	return a == b
}

// measurement is the latest report in the terms of the pipeline, for which a replica is a device.
func (b *Backend) measurement(j *job) core.Measurement {
	r := &j.said.latest
	m := core.Measurement{Nodes: r.Nodes, Replicas: r.Replicas * j.perReplica, PerDevice: r.BatchPerDevice, PassSeconds: r.PassSeconds, StepSeconds: r.StepSeconds}
	if seats := b.holds[j.uid]; len(seats) > 0 && b.nodes.severalTypes() {
		m.Accelerator = b.nodes.told[seats[0].Node].accelerator
	}
	return m
}

// reportMeasurement reports how far a job is, and what it measured.
func (b *Backend) reportMeasurement(j *job, now float64) {
	j.said.fresh = false
	b.progressed(j, now)
	m := b.measurement(j)
	if m.PassSeconds == 0 || m.StepSeconds == 0 {
		return
	}
	j.said.told = m
	b.report(core.Event{
		Kind: core.JobMeasured, AtSeconds: j.said.at, Job: j.id, Measurement: m, StepsLeft: math.NaN(),
		Gradients: core.Gradients{SquaredNorm: j.said.latest.GradientSquare, Variance: j.said.latest.GradientVariance},
	})
}

// reportMeasurements reports what jobs said since the last round, and which do not speak any more.
func (b *Backend) reportMeasurements(now float64) {
	for _, j := range b.byID {
		if j == nil || j.ended || j.losing || len(b.holds[j.uid]) == 0 {
			continue
		}
		if a := &j.account; a.rate > 0 && now-max(j.said.at, a.from) > silence.Seconds() {
			a.rate = 0
			b.progressed(j, now)
		}
		if j.said.fresh {
			b.reportMeasurement(j, now)
		}
	}
}

// progressed says how far a job is.
func (b *Backend) progressed(j *job, now float64) {
	a := &j.account
	b.report(core.Event{
		Kind: core.JobProgressed, AtSeconds: now, Job: j.id, Progress: a.done, Rate: a.rate, FromSeconds: a.from, StepsLeft: math.NaN(),
	})
}

// leave takes back what a run did since its last checkpoint: it ends.
func (b *Backend) leave(j *job) {
	if a := &j.account; a.done != a.kept || a.rate > 0 {
		a.lose(b.now)
		b.progressed(j, b.now)
	}
}

// resize gives a run that goes on other members, if some can stay and the job takes another world.
func (b *Backend) resize(j *job, next *trainingjob.Decision, c *core.Change) bool {
	if j.adopts != nil {
		return b.reseat(j, next, c)
	}
	if !b.takesWorlds(j, next.Run) || len(c.Tuning.BatchByReplica) > 0 {
		return false
	}
	number := next.NextMember
	for _, s := range j.seats {
		number = max(number, s.Member+1)
	}
	seats, number := gang.Resize(j.seats, b.seatsOf(c.Seats), number)
	if len(seats) == 0 {
		return false
	}
	if each := j.perPod(); each > 0 {
		seats, number = gang.Split(seats, each, number)
	}
	j.seats, next.NextMember, j.resizing = seats, number, true
	next.World++
	return true
}

// takesWorlds reports whether members of a run can leave it and join it.
func (b *Backend) takesWorlds(j *job, run int64) bool {
	return j.started && j.said.worlds && j.said.run == run && b.roomForResizes()
}

// shrink says that a run lost members and goes on with the others, if it can.
func (b *Backend) shrink(j *job, left []gang.Seat, now float64, cause core.Cause, reason, message string) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if count := core.Replicas(b.seatsOn(left)); !b.takesWorlds(j, j.decision().Run) || count == 0 || count < j.spec.MinReplicas {
		return false
	}
	b.narrow(j, left, now, cause, reason, message)
	return true
}

// narrow leaves a run those seats of its own that it goes on with. The lock is held.
func (b *Backend) narrow(j *job, left []gang.Seat, now float64, cause core.Cause, reason, message string) {
	seats, next := b.seatsOn(left), *j.decision()
	count := core.Replicas(seats)
	a := &j.account
	a.advance(now, j.spec.TotalWork)
	a.settle(now)
	a.rate *= float64(count) / float64(a.held) // until it says itself
	a.held, a.lastChange = count, now
	b.report(core.Event{
		Kind: core.JobShrunk, AtSeconds: now, Job: j.id, Seats: seats, Cause: cause, Message: message,
		Progress: a.done, Rate: a.rate, FromSeconds: now, StepsLeft: math.NaN(),
	})
	b.own(&next)
	for _, s := range j.seats { // what a cluster with an older definition of jobs did not keep
		next.NextMember = max(next.NextMember, s.Member+1)
	}
	next.AtSeconds, next.Seats = now, seatsTo(left)
	next.World++
	j.losing, j.resizing, j.seats = true, true, left
	b.hold(j, seats)
	b.released[j.uid] = j
	j.status.Decision, j.status.Replicas, j.status.Progress, j.dirty = &next, count, a.entry(), true
	if j.started {
		j.status.SetCondition(trainingjob.ConditionRunning, metav1.ConditionTrue, camel(reason), message, j.generation, b.clock.Now())
	}
	b.work.write(j.uid)
	b.work.add(j.uid)
}

// introduce tells the members of a run who the others are, if these are not those it began with.
func (b *Backend) introduce(j *job) {
	if j.adopts != nil {
		return
	}
	j.mutex.Lock()
	g, world := b.gangOf(j), j.decision().World
	j.mutex.Unlock()
	if err := b.door.meet(&g, world); err != nil {
		b.log.Warn("cannot send the list of members to the agents of a job", "job", j.namespace+"/"+j.name, "error", err)
	}
}

// room is what is known of the definition of TrainingJobs in the cluster.
type room struct {
	known   bool
	askAt   float64
	refused bool // it was told that there is none
}

// definitionPath is where an API server says what it knows of TrainingJobs, a while after it was told.
const (
	definitionPath = "/openapi/v3/apis/quartet.sched/v1alpha1"
	askEvery       = 10 // seconds
)

// roomForResizes reports whether the cluster's definition of TrainingJobs has the fields of a resize. An older one drops them.
func (b *Backend) roomForResizes() bool {
	r := &b.resizes
	now := b.Present()
	if r.known || now < r.askAt {
		return r.known
	}
	r.askAt = now + askEvery
	call, cancel := context.WithTimeout(b.life, b.patience())
	defer cancel()
	definition, err := b.clients.Raw(call, definitionPath)
	if r.known = err == nil && strings.Contains(string(definition), `"nextMember"`); !r.known && !r.refused {
		r.refused = true
		b.log.Warn("restarting a job to resize it: the TrainingJob definition of the cluster is too old; apply what `quartet kube crd` prints", "error", err)
	}
	return r.known
}
