package kube

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// look compares what there is with what the pipeline was told, and adds what differs to the events.
func (b *Backend) look(now float64) {
	changes := b.world.changes()
	first := now < b.firstLook
	if first {
		b.firstLook, b.nodes.ran = now, b.world.nodesOfJobs()
	}
	b.forgetHung()
	b.learnTolerations(changes.jobs)
	if changes.nodes || b.recount || b.nodes.wake(b.lastLook) <= now {
		b.compareNodes(now)
	}
	b.lastLook, b.recount = now, false
	b.meet(now, changes.jobs)
	if first {
		b.nodes.ran = nil
		b.compareNodes(now) // by what jobs were found to hold
	}
	b.listen(now)
	for _, uid := range changes.driven {
		if j := b.jobs[uid]; j != nil && !j.ended && !b.attend(j, now) {
			b.judge(j, now)
		}
	}
	b.letGo(now)
	b.checkRooms(changes.nodes || first, now)
	b.askAgain(now)
}

// compareNodes reports what is different of the nodes.
func (b *Backend) compareNodes(now float64) {
	changes := b.nodes.compare(now, b.world.nodeList(), b.world.foreign)
	if down, was := b.nodes.down(), b.down.Load(); was == nil || !maps.Equal(down, *was) {
		b.down.Store(&down)
		b.world.stir() // of what is down nobody waits for the end
	}
	b.report(changes...)
	b.bereave(changes, now)
}

// bereave tells of jobs whose node is not there any more, or out of service, that they lost their devices. From other nodes that
// they cannot have any more the pipeline takes them itself.
func (b *Backend) bereave(told []core.Event, now float64) {
	for i := range told {
		b.deprive(&told[i], now)
		n, why := b.nodes.told[told[i].Node], "gone"
		if object := b.world.node(n.name); told[i].Kind == core.NodeChanged && object != nil && gang.OutOfService(object) {
			why = "out of service"
		} else if told[i].Kind != core.NodeRemoved || object != nil {
			continue
		}
		for _, j := range b.byID {
			if j != nil && !j.ended && !j.losing && slices.ContainsFunc(b.holds[j.uid], func(s core.Seat) bool { return s.Node == n.id }) {
				message := fmt.Sprintf("the node %s is %s", n.name, why)
				left := slices.DeleteFunc(slices.Clone(j.seats), func(s gang.Seat) bool { return s.Node == n.name })
				if !b.shrink(j, left, now, core.CauseNodeFailed, gang.ReasonNodeGone, message) {
					b.lose(j, now, core.CauseNodeFailed, gang.ReasonNodeGone, message)
				}
			}
		}
	}
}

// report keeps events for the next observation.
func (b *Backend) report(events ...core.Event) { b.events = append(b.events, events...) }

// meet takes in TrainingJobs that are new, edited or gone. New ones are met in the order of their creation.
func (b *Backend) meet(now float64, changed []types.UID) {
	var fresh []*trainingjob.TrainingJob
	for _, uid := range changed {
		object := b.world.job(uid)
		j := b.jobs[uid]
		switch {
		case (object == nil || object.DeletionTimestamp != nil) && j != nil: // or its pods go first
			b.gone(j, now)
		case object == nil:
		case j == nil:
			fresh = append(fresh, object)
		default:
			b.update(j, object, now)
		}
	}
	slices.SortStableFunc(fresh, func(x, y *trainingjob.TrainingJob) int { // moments of creation are whole seconds
		return cmp.Or(cmp.Compare(idOf(x), idOf(y)), x.CreationTimestamp.Compare(y.CreationTimestamp.Time))
	})
	for _, object := range fresh {
		b.welcome(object, now)
	}
}

func idOf(t *trainingjob.TrainingJob) int64 {
	if t.Status.ID == nil {
		return math.MaxInt64
	}
	return int64(*t.Status.ID)
}

// welcome submits a job, with what it has behind it. Workers get to know it when all is known: what has no seats has its pods
// deleted.
func (b *Backend) welcome(object *trainingjob.TrainingJob, now float64) {
	j := newJob(object)
	if b.door != nil && j.adopts == nil {
		j.agent = b.door.agent
	}
	b.jobs[j.uid] = j
	b.meetJob(j, now)
	b.mutex.Lock()
	b.known[j.uid] = j
	b.mutex.Unlock()
	if j.ended {
		b.work.write(j.uid)
	} else {
		b.work.writes.AddAfter(j.uid, soon) // most are decided about before
	}
	b.work.add(j.uid)
}

func (b *Backend) meetJob(j *job, now float64) {
	object := j.object
	j.generation = object.Generation
	id := b.idOf(object)
	if j.deleted = object.DeletionTimestamp != nil; j.deleted || j.status.State.Ended() {
		if j.ended = true; object.Status.ID != nil {
			b.nextID = max(b.nextID, core.JobID(*object.Status.ID)+1)
		}
		return
	}
	spec, faults := object.JobSpec(id, now)
	faults = append(faults, b.strange(object)...)
	if object.Status.Decision == nil { // one of before ran, with as many devices as it was decided
		faults = append(append(faults, b.disputed(object)...), b.unholdable(object)...)
	}
	if at := object.CreationTimestamp.Time; !at.IsZero() { // on another clock, and in whole seconds
		spec.SubmitSeconds = min(max(b.state.Load().seconds(at), 0), now)
	}
	template, unfit := object.Spec.PodTemplate()
	switch {
	case len(faults) == 0:
		j.template = *template
	case object.Status.Decision != nil && len(faults) == len(unfit): // an edit of one that was let in: it goes on until it needs pods
		b.degrade(j, "Invalid", faults.Error())
	default:
		b.refuse(j, faults)
		return
	}
	j.absent = b.lacksPods(j)
	spec.Suspended = object.Spec.Suspend || j.absent
	j.id, j.spec, j.wide = id, &spec, &spec
	b.takeConstraints(j)
	number := int32(id)
	j.status.ID = &number
	b.nextID = id + 1
	for int(id) >= len(b.byID) {
		b.byID = append(b.byID, nil)
	}
	b.byID[id] = j
	e := core.Event{Kind: core.JobSubmitted, AtSeconds: now, Job: id, Spec: &spec, StepsLeft: math.NaN()}
	if object.Status.Decision != nil {
		e.Held = b.heldBy(j, now)
		b.cede(j, &spec)
		e.Progress, e.Rate, e.FromSeconds = j.account.done, j.account.rate, now
	}
	b.report(e)
	if object.Status.Decision != nil && j.seen && !j.losing {
		b.judge(j, now) // no round is held before: what has ended is neither moved nor started again
	}
}

// idOf is the id of a job: the one that it had, or the next. No id is given twice.
func (b *Backend) idOf(object *trainingjob.TrainingJob) core.JobID {
	if had := object.Status.ID; had != nil {
		return max(b.nextID, core.JobID(*had))
	}
	return b.nextID
}

// refuse ends a job that makes no sense.
func (b *Backend) refuse(j *job, faults core.Diagnostics) {
	j.ended = true
	j.mutex.Lock()
	j.status.State = trainingjob.Rejected
	j.status.SetCondition(trainingjob.ConditionFinished, metav1.ConditionTrue, "Invalid", faults.Error(), j.generation, b.clock.Now())
	j.dirty = true
	j.mutex.Unlock()
}

// heldBy is what a job has behind it according to its status, and what it holds if all of that is there. Otherwise it is decided
// that it holds nothing.
func (b *Backend) heldBy(j *job, now float64) *core.Held {
	j.account = known(&j.status, now)
	j.account.advance(now, j.spec.TotalWork)
	d := j.decision()
	if s := d.Stopped; s != nil {
		j.past = gang.Past{Run: s.Run, Pods: s.Pods}
	}
	j.driven = d.Run
	h := &core.Held{
		FirstStart: j.account.firstStart, LastChange: j.account.lastChange, Executed: j.account.executed, Attained: j.account.attained,
		Restarts: j.account.restarts, Preemptions: j.account.preemptions, Tuning: tuningFrom(d.Tuning),
	}
	ended := b.firstLookAt(j)
	if d.Stop || len(d.Seats) == 0 {
		j.account.held, j.account.rate = 0, 0
		return h
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if !j.object.Spec.Suspend {
		h.Seats = b.seatsOn(j.seats)
	}
	if h.Seats == nil || b.takenByOthers(h.Seats) {
		if h.Seats = nil; ended {
			return h
		}
		next := *d
		b.own(&next)
		j.leaves(&next)
		reason, message := b.missing(j.seats)
		b.stop(j, &next, now, trainingjob.Waiting, reason, message)
		j.status.Decision, j.status.Progress, j.dirty = &next, j.account.entry(), true
		return h
	}
	b.hold(j, h.Seats)
	return h
}

// firstLookAt looks at the pods of a job that somebody else decided about, and reports whether it has ended.
func (b *Backend) firstLookAt(j *job) (ended bool) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if d := j.decision(); !d.Stop {
		j.seats, _ = seatsOf(d)
	}
	g := b.gangOf(j)
	if g.Adopts != nil {
		g.Adopts.Wants = b.world.wants(&g.Adopts.Unit, g.Adopts.Wants)
	}
	state := gang.Next(&g, b.lookAt(&g), b.book, b.options()).State
	if state.Past.Phase == "" && state.Phase != gang.Completed && state.Phase != gang.Failed {
		return false
	}
	j.keepState(j.decisionID(), &state)
	return true
}

// seatsOn are seats as the pipeline knows them; nil when a node or device of them is not there.
func (b *Backend) seatsOn(seats []gang.Seat) []core.Seat {
	var list []core.Seat
	for _, s := range seats {
		n := b.nodes.byName[s.Node]
		if n == nil || s.Devices == 0 || s.Devices&^core.FirstDevices(n.devices) != 0 {
			return nil
		}
		i := slices.IndexFunc(list, func(o core.Seat) bool { return o.Node == n.id })
		switch {
		case i < 0:
			list = append(list, core.Seat{Node: n.id, Devices: s.Devices})
		case list[i].Devices&s.Devices != 0:
			return nil
		default:
			list[i].Devices |= s.Devices // members of a run that was resized
		}
	}
	return list
}

// missing is why a job cannot go on with seats that somebody else decided.
func (b *Backend) missing(seats []gang.Seat) (reason, message string) {
	for _, s := range seats {
		switch n := b.nodes.byName[s.Node]; {
		case b.world.node(s.Node) == nil:
			return gang.ReasonNodeGone, "the node " + s.Node + " is gone"
		case n == nil:
			return "NodeLeft", "the node " + s.Node + " offers no devices to Quartet any more"
		case s.Devices&^core.FirstDevices(n.devices) != 0:
			return "DevicesGone", "the node " + s.Node + " has fewer devices than before"
		}
	}
	return "Takeover", "what it ran on is not known, or others have it by what is written"
}

func (b *Backend) takenByOthers(seats []core.Seat) bool {
	return slices.ContainsFunc(seats, func(s core.Seat) bool { return b.held[s.Node]&s.Devices != 0 })
}

// hold notes which devices a job holds from now on.
func (b *Backend) hold(j *job, seats []core.Seat) {
	for _, s := range b.holds[j.uid] {
		b.held[s.Node] &^= s.Devices
		n := b.nodes.told[s.Node]
		b.recount = b.recount || n.closed != "" || b.world.foreign(n.name) > 0 // they may be nobody's, or taken for those of others now
	}
	delete(b.holds, j.uid)
	if len(seats) > 0 {
		b.holds[j.uid] = slices.Clone(seats)
	}
	for _, s := range seats {
		b.held[s.Node] |= s.Devices
	}
}

// gone takes in that somebody deleted a job.
func (b *Backend) gone(j *job, now float64) {
	j.mutex.Lock()
	j.deleted = true
	j.mutex.Unlock()
	b.work.add(j.uid)
	b.hold(j, nil)
	if b.world.job(j.uid) == nil {
		delete(b.jobs, j.uid)
	}
	if !j.ended && j.spec != nil {
		j.ended = true
		b.report(core.Event{Kind: core.JobCancelled, AtSeconds: now, Job: j.id, StepsLeft: math.NaN()})
	}
	j.ended = true
}

// update takes in what its owner edited.
func (b *Backend) update(j *job, object *trainingjob.TrainingJob, now float64) {
	j.mutex.Lock()
	j.see(object)
	if !j.dirty && !sameStatus(j.object.Status, j.status) { // somebody edited it: it is not theirs
		j.dirty = true
		b.work.write(j.uid)
	}
	j.mutex.Unlock()
	if object.Generation == j.generation || j.ended {
		return
	}
	j.generation = object.Generation
	spec, faults := object.JobSpec(j.id, j.spec.SubmitSeconds)
	template, unfit := object.Spec.PodTemplate()
	if wrong := slices.Concat(faults, b.disputed(object), b.unholdable(object)); len(wrong) > 0 {
		b.degrade(j, "Invalid", wrong.Error())
	} else {
		b.degrade(j, "", "")
		j.mutex.Lock()
		j.template = *template // of the pods to come
		j.mutex.Unlock()
		b.takeConstraints(j)
	}
	if len(faults) > len(unfit) {
		return // it is not the template alone that makes no sense
	}
	b.cede(j, &spec)
	b.change(j, &spec, now)
}

// change tells the pipeline of an edited job, if it is edited in what the pipeline knows.
func (b *Backend) change(j *job, spec *core.JobSpec, now float64) {
	j.mutex.Lock()
	suspended := j.object.Spec.Suspend
	j.mutex.Unlock()
	if spec != j.spec {
		j.wide = spec
	}
	next := *j.spec
	spec = j.within()
	next.Weight, next.MinReplicas, next.MaxReplicas, next.Requested = spec.Weight, spec.MinReplicas, spec.MaxReplicas, spec.Requested
	next.Suspended = suspended || j.heldUntil > now || j.absent || j.unfit != ""
	was := j.spec
	if next.Weight == was.Weight && next.MinReplicas == was.MinReplicas && next.MaxReplicas == was.MaxReplicas &&
		next.Requested == was.Requested && next.Suspended == was.Suspended {
		return
	}
	j.spec = &next
	b.report(core.Event{Kind: core.JobChanged, AtSeconds: now, Job: j.id, Spec: &next, StepsLeft: math.NaN()})
}

// degrade says what is wrong with a job that the scheduler cannot mend; an empty reason that nothing is.
func (b *Backend) degrade(j *job, reason, message string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	status := metav1.ConditionTrue
	if reason == "" {
		if c := j.status.Condition(trainingjob.ConditionDegraded); c == nil || c.Status == metav1.ConditionFalse || c.Reason == podsFail {
			return
		}
		status, reason = metav1.ConditionFalse, "Mended"
	}
	if j.status.SetCondition(trainingjob.ConditionDegraded, status, reason, message, j.generation, b.clock.Now()) {
		j.dirty = true
		b.work.write(j.uid)
	}
}

// judge says what became of the pods of a job.
func (b *Backend) judge(j *job, now float64) {
	j.mutex.Lock()
	state, of, seen, is := j.state, j.stateOf, j.seen, j.decisionID()
	stopped, overtook := j.decision().Stop || len(j.seats) == 0, j.overtook
	j.mutex.Unlock()
	switch {
	case j.losing:
		return
	case overtook.Phase == gang.Completed:
		b.finish(j, now, core.JobFinished, trainingjob.Completed, overtook.Message, core.CauseUnknown)
		return
	case overtook.Phase == gang.Failed:
		b.finish(j, now, core.JobFailed, trainingjob.Failed, overtook.Message, core.CauseExited)
		return
	}
	if !seen || of != is || stopped {
		return
	}
	switch state.Phase {
	case gang.Running:
		b.judgeRunning(j, &state, now)
	case gang.Completed:
		b.finish(j, now, core.JobFinished, trainingjob.Completed, "all pods succeeded", core.CauseUnknown)
	case gang.Failed:
		b.finish(j, now, core.JobFailed, trainingjob.Failed, state.Message, core.CauseExited)
	case gang.Interrupted, gang.Shrunk:
		b.judgeLoss(j, &state, now)
	case gang.Refused:
		if state.Reason == gang.ReasonTemplate {
			b.finish(j, now, core.JobFailed, trainingjob.Failed, state.Message, core.CauseRefused)
			return
		}
		b.lose(j, now, core.CauseRefused, state.Reason, state.Message)
		b.holdBack(j, now)
	default:
		b.judgeStarting(j, &state, now)
	}
}

// judgeRunning reports that all pods of a job run, once, and has its members learn who the others are.
func (b *Backend) judgeRunning(j *job, state *gang.State, now float64) {
	if !j.started {
		j.started, j.starting, j.refusals, j.shunned = true, false, 0, nil
		b.report(core.Event{Kind: core.JobStarted, AtSeconds: now, Job: j.id, StepsLeft: math.NaN()})
		b.note(j, trainingjob.Running, metav1.ConditionTrue, "Running", fmt.Sprintf("all %d pods run", len(state.Members)))
		j.resizing = true // who was there before the scheduler may not know the others
	}
	if j.resizing {
		j.resizing = false
		b.introduce(j)
	}
}

// judgeLoss interrupts a job that lost members, but for one that can go on with those that are left.
func (b *Backend) judgeLoss(j *job, state *gang.State, now float64) {
	cause := causeOf(state)
	if state.Phase == gang.Shrunk && b.shrink(j, state.Kept(), now, cause, state.Reason, state.Message) {
		return
	}
	b.lose(j, now, cause, state.Reason, state.Message)
	if cause == core.CauseRefused { // by a kubelet
		j.shun(state.Lost)
		b.holdBack(j, now)
	}
}

// judgeStarting reports what the start of a job waits for, and takes back one that took too long.
func (b *Backend) judgeStarting(j *job, state *gang.State, now float64) {
	if waited, tooLong := b.waited(j, now); tooLong && starts(state) && !(j.started && j.adopts != nil) {
		b.giveUp(j, state, waited, now)
		return
	}
	if j.started && (j.resizing || j.adopts != nil) {
		return // those that stay go on
	}
	if !j.starting {
		j.starting = true
		b.report(core.Event{Kind: core.JobStarting, AtSeconds: now, Job: j.id, Message: waitsFor(state), StepsLeft: math.NaN()})
	}
	if j.started = false; state.Phase != gang.Creating && state.Phase != gang.Binding { // those pass at once
		b.note(j, trainingjob.Starting, metav1.ConditionFalse, cmp.Or(state.Reason, string(state.Phase)), state.Message)
	}
}

// longestHeldBack is for how many seconds a job is held back at most.
const longestHeldBack = 3600

// holdBack suspends a job that was refused for a while, longer each time.
func (b *Backend) holdBack(j *job, now float64) {
	j.heldUntil = now + min(b.config.RetryRefused.Seconds()*math.Exp2(float64(j.refusals)), longestHeldBack)
	j.refusals++
	b.heldBack = append(b.heldBack, j)
	b.change(j, j.spec, now)
}

// waitsFor says what a gang waits for.
func waitsFor(s *gang.State) string {
	if s.Message == "" {
		return strings.ToLower(string(s.Phase))
	}
	return strings.ToLower(string(s.Phase)) + ": " + s.Message
}

// causeOf is why a gang lost its first member, as the contract has it.
func causeOf(s *gang.State) core.Cause {
	if len(s.Lost) == 0 {
		return core.CauseUnknown
	}
	switch first := s.Lost[0]; {
	case first.Reason == gang.ReasonStartTimeout && strings.Contains(first.Message, "Image"):
		return core.CauseNoImage
	case first.Reason == gang.ReasonStartTimeout:
		return core.CauseStartTimeout
	case first.Reason == "EvictionByEvictionAPI":
		return core.CauseEvicted
	case first.Cause == core.CauseNeverBegan:
		return core.CauseRefused
	default:
		return first.Cause
	}
}

// note changes what people see of a job, with one write for a change.
func (b *Backend) note(j *job, state trainingjob.State, running metav1.ConditionStatus, reason, message string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	changed := j.status.State != state
	j.status.State, reason = state, camel(reason)
	if j.status.SetCondition(trainingjob.ConditionRunning, running, reason, message, j.generation, b.clock.Now()) || changed {
		j.dirty = true
		switch {
		case running == metav1.ConditionTrue:
			b.work.write(j.uid)
		case state == trainingjob.Starting:
			b.work.writes.AddAfter(j.uid, later)
		default:
			b.work.writes.AddAfter(j.uid, soon)
		}
	}
}

// finish ends a job.
func (b *Backend) finish(j *job, now float64, kind core.EventKind, state trainingjob.State, message string, cause core.Cause) {
	j.ended = true
	b.report(core.Event{
		Kind: kind, AtSeconds: now, Job: j.id, Message: message, Cause: cause, StepsLeft: math.NaN(), Progress: j.account.at(now, j.spec.TotalWork),
	})
	b.end(j, now, state, string(state), message)
}

// lose says that a job lost its devices, and decides that it has none: its pods that are left go.
func (b *Backend) lose(j *job, now float64, cause core.Cause, reason, message string) {
	j.losing = true
	j.account.lose(now)
	b.report(core.Event{
		Kind: core.JobInterrupted, AtSeconds: now, Job: j.id, Cause: cause, Message: message, StepsLeft: math.NaN(), FromSeconds: now,
		Progress: j.account.done,
	})
	b.end(j, now, trainingjob.Waiting, reason, message)
	b.await(j, now)
}

// end writes that a job has no devices any more.
func (b *Backend) end(j *job, now float64, state trainingjob.State, reason, message string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	next := *j.decision()
	b.own(&next)
	if !state.Ended() {
		j.leaves(&next) // it may have ended before it lost anything
	}
	b.stop(j, &next, now, state, reason, message)
	j.status.Decision, j.status.Progress, j.dirty = &next, j.account.entry(), true
	b.work.write(j.uid)
	b.work.add(j.uid)
}

// letGo lets refused jobs be tried again whose time has come.
func (b *Backend) letGo(now float64) {
	b.retryAt = inf
	b.heldBack = slices.DeleteFunc(b.heldBack, func(j *job) bool {
		if j.heldUntil > now && !j.ended {
			b.retryAt = min(b.retryAt, j.heldUntil)
			return false
		}
		if j.heldUntil = 0; !j.ended {
			b.change(j, j.spec, now)
		}
		return true
	})
}
