package kube

import (
	"fmt"
	"math"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// adoptions is what is known of pods that others make and that name our scheduler. The mutex of the world guards it.
type adoptions struct {
	jobs    cache.SharedIndexInformer
	byUID   map[types.UID]*batchv1.Job
	mirrors map[string]types.UID // TrainingJobs by the units whose pods they have
	look    func(unit string)    // has a unit looked at
}

func newAdoptions(jobs cache.SharedIndexInformer) *adoptions {
	return &adoptions{jobs: jobs, byUID: map[types.UID]*batchv1.Job{}, mirrors: map[string]types.UID{}, look: func(string) {}}
}

// adoptBy has units looked at from now on, all that are known first.
func (w *world) adoptBy(look func(unit string)) {
	if w.adopted == nil {
		return
	}
	w.mutex.Lock()
	w.adopted.look = look
	for _, j := range w.adopted.byUID {
		look(jobUnit(j).Key())
	}
	w.mutex.Unlock()
	for _, key := range w.pods.GetIndexer().ListIndexFuncValues(unitIndex) {
		look(key)
	}
}

// unitOf is whose pods a TrainingJob has; nil for one with pods of its own.
func unitOf(t *trainingjob.TrainingJob) *gang.Unit {
	a := t.Spec.Adopts
	if a == nil {
		return nil
	}
	u := gang.Unit{Kind: a.Kind, Namespace: t.Namespace, Name: a.Name, UID: a.UID}
	if a.Kind == gang.GroupUnit {
		u.UID = ""
	}
	return &u
}

// unit is the unit that a pod is of, if pods of others are adopted. Jobs of another namespace are none of ours.
func (w *world) unit(p *corev1.Pod) (gang.Unit, bool) {
	if w.adopted == nil || w.config.Watch != "" && p.Namespace != w.config.Watch {
		return gang.Unit{}, false
	}
	return gang.UnitOf(p)
}

// indexByUnit finds the pods of a unit by its key.
func (w *world) indexByUnit(object any) ([]string, error) {
	if p, is := object.(*corev1.Pod); is {
		if u, ok := w.unit(p); ok {
			return []string{u.Key()}, nil
		}
	}
	return nil, nil
}

// unitPod notes that the pods of a unit are others. The mutex is held.
func (w *world) unitPod(p *corev1.Pod) {
	u, ok := w.unit(p)
	if !ok {
		return
	}
	w.unitChanged(u.Key())
}

// unitChanged notes that a unit, or what mirrors it, is another. The mutex is held.
func (w *world) unitChanged(key string) {
	w.adopted.look(key)
	if mirror := w.adopted.mirrors[key]; mirror != "" {
		w.podsChanged[mirror], w.driven[mirror] = true, true
		wake(w.stirred)
		wake(w.happened)
	}
}

// batchJob notes that a batch Job is another.
func (w *world) batchJob(j *batchv1.Job, gone bool) {
	w.note(func() {
		if j.Spec.Template.Spec.SchedulerName != trainingjob.SchedulerName || w.config.Watch != "" && j.Namespace != w.config.Watch {
			return
		}
		if w.adopted.byUID[j.UID] = j; gone {
			delete(w.adopted.byUID, j.UID)
		}
		w.unitChanged(jobUnit(j).Key())
	})
}

func jobUnit(j *batchv1.Job) gang.Unit {
	return gang.Unit{Kind: gang.JobUnit, Namespace: j.Namespace, Name: j.Name, UID: j.UID}
}

// mirrored notes that a TrainingJob is another. The mutex is held.
func (w *world) mirrored(t *trainingjob.TrainingJob, gone bool) {
	u := unitOf(t)
	if w.adopted == nil || u == nil || t.Name != mirrorName(t.Spec.Adopts) {
		return
	}
	key := u.Key()
	switch {
	case !gone:
		w.adopted.mirrors[key] = t.UID
	case w.adopted.mirrors[key] == t.UID:
		delete(w.adopted.mirrors, key)
	}
	w.unitChanged(key)
}

// batch is a batch Job of ours; nil for one that is not known.
func (w *world) batch(u *gang.Unit) *batchv1.Job {
	if w.adopted == nil {
		return nil
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if j := w.adopted.byUID[u.UID]; j != nil && j.Namespace == u.Namespace {
		return j
	}
	return nil // what others have in their namespaces is not for those of this one
}

// mirror is the TrainingJob of a unit; nil for none.
func (w *world) mirror(key string) *trainingjob.TrainingJob {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.byUID[w.adopted.mirrors[key]]
}

// podsOfUnit are the pods of a unit.
func (w *world) podsOfUnit(key string) []*corev1.Pod {
	objects, err := w.pods.GetIndexer().ByIndex(unitIndex, key)
	if err != nil {
		return nil // there is such an index
	}
	list := make([]*corev1.Pod, 0, len(objects))
	for _, object := range objects {
		if p, is := object.(*corev1.Pod); is {
			list = append(list, p)
		}
	}
	return list
}

// podsFor are the pods among which those of a job are.
func (w *world) podsFor(job *gang.Job) []*corev1.Pod {
	pods := w.podsOf(job.UID)
	if job.Adopts == nil {
		return pods
	}
	for _, p := range w.podsOfUnit(job.Adopts.Unit.Key()) {
		if gang.AdoptedBy(p) != job.UID { // or it is among them
			pods = append(pods, p)
		}
	}
	return pods
}

// wants is how many pods a unit wants to have at present, at most so many.
func (w *world) wants(u *gang.Unit, most int) int {
	if j := w.batch(u); j != nil && u.Kind == gang.JobUnit {
		return min(most, wantedPods(j, j.Status.Succeeded))
	}
	return most
}

// wantedPods is how many pods a Job wants to have at the same time when so many have succeeded.
func wantedPods(j *batchv1.Job, succeeded int32) int {
	wanted := int32(1)
	if j.Spec.Parallelism != nil {
		wanted = *j.Spec.Parallelism
	}
	if j.Spec.Completions != nil {
		wanted = min(wanted, max(*j.Spec.Completions-succeeded, 0))
	}
	return int(wanted)
}

// finished is the condition by which a Job ended; nil when it did not.
func finished(j *batchv1.Job) *batchv1.JobCondition {
	i := slices.IndexFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
	if i < 0 {
		return nil
	}
	return &j.Status.Conditions[i]
}

// strange finds what is wrong with a job that has pods of others and was not made by a scheduler.
func (b *Backend) strange(t *trainingjob.TrainingJob) core.Diagnostics {
	if a := t.Spec.Adopts; a != nil && t.Name != mirrorName(a) {
		return core.Diagnostics{{
			Path: "spec.adopts", Summary: "is set by the scheduler only", Hint: "give the pods schedulerName: " + trainingjob.SchedulerName,
		}}
	}
	return nil
}

// disputed finds what a template says of devices that the job says otherwise.
func (b *Backend) disputed(t *trainingjob.TrainingJob) core.Diagnostics {
	if b.config.DeviceClass != "" {
		return nil // they are given by claims
	}
	return t.Disputed(corev1.ResourceName(b.config.Resource))
}

// lacksPods reports whether others have yet to make the pods of a job that has no devices. It competes for none then.
func (b *Backend) lacksPods(j *job) bool {
	have, wanted := b.countPods(j)
	return have < wanted
}

// countPods counts the pods of a job that wait to be bound, and those without which it cannot begin; none for one that has devices.
func (b *Backend) countPods(j *job) (have, wanted int) {
	j.mutex.Lock()
	g := gang.Job{UID: j.uid, Namespace: j.namespace}
	holds, most := len(j.decision().Seats) > 0, j.object.Spec.Replicas.Min
	j.mutex.Unlock()
	if j.adopts == nil || holds {
		return 0, 0
	}
	if b.world.adopted == nil {
		return 0, math.MaxInt
	}
	g.Adopts = &gang.Adoption{Unit: *j.adopts}
	for _, p := range b.world.podsFor(&g) {
		by := gang.AdoptedBy(p)
		if fits := b.config.DeviceClass != "" || b.requested(&p.Spec) == j.perReplica; fits && gang.Free(p) && (by == "" || by == j.uid) {
			have++
		}
	}
	return have, most
}

// attend looks at whose pods a job has, and reports whether it ended by that.
func (b *Backend) attend(j *job, now float64) bool {
	if j.adopts == nil || j.losing {
		return false
	}
	if kind, state, message := b.endOf(j); state != "" {
		cause := core.CauseUnknown
		if kind == core.JobFailed {
			cause = core.CauseExited
		}
		b.finish(j, now, kind, state, message, cause)
		return true
	}
	if j.fewer {
		b.keepLiving(j, now)
	}
	have, wanted := b.await(j, now)
	if j.absent && !j.heldByOwner() {
		state := trainingjob.Waiting
		if math.IsNaN(j.account.firstStart) { // it never had devices
			state = trainingjob.Pending
		}
		b.note(j, state, metav1.ConditionFalse, gang.ReasonPodsMissing, fmt.Sprintf("%d of %d pods are there", have, wanted))
	}
	return false
}

// await holds a job back that lacks pods, and lets it compete when it has them.
func (b *Backend) await(j *job, now float64) (have, wanted int) {
	have, wanted = b.countPods(j)
	if absent := have < wanted; absent != j.absent {
		j.absent = absent
		b.fits.lookAt(j.uid) // what is said of it was that pods are missing
		b.change(j, j.spec, now)
	}
	return have, wanted
}

// heldByOwner reports whether its owner holds a job back.
func (j *job) heldByOwner() bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.object.Spec.Suspend
}

// endOf is how whose pods a job has ended; an empty state when it did not.
func (b *Backend) endOf(j *job) (kind core.EventKind, state trainingjob.State, message string) {
	batch := b.world.batch(j.adopts)
	if batch != nil {
		switch c := finished(batch); {
		case c == nil:
			return 0, "", ""
		case c.Type == batchv1.JobFailed:
			return core.JobFailed, trainingjob.Failed, c.Reason + ": " + c.Message
		default:
			return core.JobFinished, trainingjob.Completed, "the Job completed"
		}
	}
	j.mutex.Lock()
	holds := len(j.decision().Seats) > 0
	j.mutex.Unlock()
	pods := b.world.podsOf(j.uid)
	ofJob := j.adopts.Kind == gang.JobUnit // that is gone: it may have left its pods behind
	if len(pods) == 0 || holds && !ofJob {
		return 0, "", "" // it is seen by its gang
	}
	kind, state, message = core.JobFinished, trainingjob.Completed, "all pods succeeded"
	for _, p := range pods {
		switch {
		case ofJob && p.DeletionTimestamp != nil: // it goes with it
			return 0, "", ""
		case p.Status.Phase == corev1.PodSucceeded:
		case p.Status.Phase == corev1.PodFailed:
			kind, state, message = core.JobFailed, trainingjob.Failed, "pod "+p.Name+" failed or was stopped, and nothing recreates it"
		default:
			return 0, "", ""
		}
	}
	return kind, state, message
}

// seatsFor are seats as the pods of a job take them: one for each pod, where others made them or each replica has its own.
func (b *Backend) seatsFor(j *job, seats []core.Seat) []gang.Seat {
	whole, each := b.seatsOf(seats), j.perPod()
	if each == 0 {
		return whole
	}
	var list []gang.Seat
	for _, s := range whole {
		for rest := s.Devices; rest != 0; {
			devices := rest.Lowest(each)
			rest &^= devices
			list = append(list, gang.Seat{Node: s.Node, Devices: devices})
		}
	}
	return list
}

// unsplit takes back a start whose devices the pods of others cannot be given: each takes as many as it takes.
func (b *Backend) unsplit(j *job) {
	j.mutex.Lock()
	each, seats := j.object.DevicesPerReplica(), j.seats
	j.mutex.Unlock()
	if j.perPod() == 0 || j.ended || j.losing {
		return
	}
	for _, s := range seats {
		if s.Devices.Count() != each {
			message := fmt.Sprintf("its pods take %d devices each, and it was given others on %s: use a placement that keeps jobs together", each, s.Node)
			if most := b.nodes.largest(); each > most {
				message = fmt.Sprintf("its pods take %d devices each, and no node has more than %d", each, most)
			}
			b.lose(j, b.now, core.CauseRefused, "DevicesSplit", message)
			b.holdBack(j, b.now)
			return
		}
	}
}

// keepOut takes back a start on devices of a node that takes no new work: a job let go of them in the same round.
func (b *Backend) keepOut(j *job, had []core.Seat) {
	if j.ended || j.losing {
		return
	}
	for _, s := range b.holds[j.uid] {
		fresh := s.Devices
		for _, h := range had {
			if h.Node == s.Node {
				fresh &^= h.Devices
			}
		}
		if n := b.nodes.told[s.Node]; n.closed != "" && fresh != 0 {
			b.lose(j, b.now, core.CauseRefused, "NodeClosed", fmt.Sprintf("the node %s %s, and takes no new work", n.name, n.closed))
			return
		}
	}
}

// cede leaves a job whose Job wants fewer pods as it is until that has chosen which: the seats of the others stay.
func (b *Backend) cede(j *job, spec *core.JobSpec) {
	held := core.Replicas(b.holds[j.uid])
	if j.fewer = j.adopts != nil && j.adopts.Kind == gang.JobUnit && !spec.Suspended && spec.MaxReplicas < held; j.fewer {
		spec.MinReplicas, spec.MaxReplicas, spec.Requested = held, held, held
		b.world.drove(j.uid)
	}
}

// keepLiving takes the seats away from a job that its Job wants no pods for any more: not those of pods that are there to stay.
func (b *Backend) keepLiving(j *job, now float64) {
	j.mutex.Lock()
	spec, _ := j.object.JobSpec(j.id, j.spec.SubmitSeconds)
	g := j.gang(0)
	wanted, living := spec.MaxReplicas/j.perReplica, map[int]bool{}
	for _, p := range b.world.podsOf(j.uid) {
		if seat := g.SeatOf(p); seat >= 0 && p.DeletionTimestamp == nil && !gang.Freed(p, b.world.node) {
			living[seat] = true
		}
	}
	if wanted < 1 || len(living) > wanted && len(j.seats) > wanted {
		j.mutex.Unlock()
		return
	}
	var left []gang.Seat
	empty := wanted - len(living)
	for i, s := range j.seats {
		if !living[i] {
			if empty == 0 {
				continue
			}
			empty--
		}
		left = append(left, s)
	}
	if b.seatsOn(left) == nil { // a node of them is not ours any more: the pipeline takes them
		j.mutex.Unlock()
		return
	}
	if j.fewer = false; len(left) < len(j.seats) {
		b.narrow(j, left, now, core.CauseUnknown, "FewerPods", fmt.Sprintf("its Job wants %d pods", wanted))
	}
	j.mutex.Unlock()
	b.change(j, &spec, now)
}

// reseat gives a run other seats. The pods whose seats it keeps stay: more are made by others, and those it has to give are deleted.
func (b *Backend) reseat(j *job, next *trainingjob.Decision, c *core.Change) bool {
	number := next.NextMember
	for _, s := range j.seats {
		number = max(number, s.Member+1)
	}
	j.seats, next.NextMember = gang.Number(j.seats, b.seatsFor(j, c.Seats), number)
	next.World++
	b.reportStopped(j, c)
	return true
}

// reportStopped writes an Event about pods that nothing recreates, with the reason for which they are stopped.
func (b *Backend) reportStopped(j *job, c *core.Change) {
	owner := adoptedFrom(j.object)
	if owner == nil || j.adopts.Kind == gang.JobUnit || b.announcer == nil {
		return
	}
	reason, message, _ := b.whyLeft(j, c)
	b.announcer.recorder.record(owner, corev1.EventTypeWarning, "Stopped", fmt.Sprintf("%s: %s; its creator may make it again", reason, message))
}
