package kube

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/kube/fit"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

var _ backend.Reseating = (*Backend)(nil)

// Reasons of jobs that wait, and of what their pods ask for in vain.
const (
	noNodeFits         = "NoNodeFits"    // no nodes could hold its pods, even idle ones
	nodesTaken         = "NodesDoNotFit" // at present
	constraintsIgnored = "ConstraintsIgnored"
)

// constraints is what is known of what pods ask of nodes besides devices. It is for the pipeline's goroutine.
type constraints struct {
	learned []corev1.Toleration     // of jobs, each once: taints that a job tolerates say nothing of how a node is
	others  map[types.UID]*fit.Pod  // pods that no job's seats stand for
	nodes   map[string]*corev1.Node // as rooms were last looked at
	idle    *fit.Cluster            // of these nodes, without pods
	due     map[types.UID]bool      // jobs whose room is to be looked at
	refused map[types.UID]bool      // jobs without seats for the sake of what nodes have left
	why     map[core.JobID]string   // by the last answer
	said    map[core.JobID]bool     // jobs that were warned in the round before
}

func newConstraints() constraints {
	return constraints{refused: map[types.UID]bool{}, why: map[core.JobID]string{}, said: map[core.JobID]bool{}}
}

// lookAt has the room of a job looked at.
func (c *constraints) lookAt(uid types.UID) {
	if c.due == nil {
		c.due = map[types.UID]bool{}
	}
	c.due[uid] = true
}

// asksOf is what a pod of a job asks of nodes, and what it asks for in vain.
func (b *Backend) asksOf(namespace string, t *corev1.PodTemplateSpec) (*fit.Pod, []string, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: t.Labels}, Spec: t.Spec}
	asks, err := fit.New(pod, corev1.ResourceName(b.config.Resource))
	return asks, fit.Unheeded(&t.Spec), err
}

// unholdable finds what a template asks of nodes that cannot be held.
func (b *Backend) unholdable(t *trainingjob.TrainingJob) core.Diagnostics {
	template, _ := t.Spec.PodTemplate()
	if template == nil {
		return nil
	}
	if _, _, err := b.asksOf(t.Namespace, template); err != nil {
		return core.Diagnostics{{Path: "spec.template.spec", Summary: err.Error()}}
	}
	return nil
}

// takeConstraints takes in what the template of a job asks of nodes, and says what of it makes no difference.
func (b *Backend) takeConstraints(j *job) {
	asks, ignored, err := b.asksOf(j.namespace, &j.template)
	if err != nil {
		ignored = append(ignored, err.Error()) // of one that was let in before this was looked at
	}
	j.asks = asks
	b.fits.lookAt(j.uid)
	if len(ignored) == 0 && j.status.Condition(trainingjob.ConditionIgnored) == nil {
		return
	}
	status, reason, message := metav1.ConditionTrue, constraintsIgnored, "Quartet does not look at "+strings.Join(ignored, "; ")
	if len(ignored) == 0 {
		status, reason, message = metav1.ConditionFalse, "Respected", ""
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.status.SetCondition(trainingjob.ConditionIgnored, status, reason, message, j.generation, b.clock.Now()) {
		j.dirty = true
		b.work.writes.AddAfter(j.uid, soon)
	}
}

// learnTolerations takes in which taints jobs tolerate: nodes with these are for some jobs, and out of bounds for others.
func (b *Backend) learnTolerations(changed []types.UID) {
	before := len(b.fits.learned)
	for _, uid := range changed {
		object := b.world.job(uid)
		if object == nil || object.Status.State.Ended() || !bytes.Contains(object.Spec.Template.Raw, []byte(`"tolerations"`)) {
			continue
		}
		template, _ := object.Spec.PodTemplate()
		if template == nil {
			continue
		}
		for _, t := range template.Spec.Tolerations {
			if mayTolerate(&t) && !slices.ContainsFunc(b.fits.learned, func(o corev1.Toleration) bool { return equality.Semantic.DeepEqual(t, o) }) {
				b.fits.learned = append(b.fits.learned, t)
			}
		}
	}
	b.recount = b.recount || len(b.fits.learned) > before
}

// mayTolerate reports whether a toleration may be of a NoSchedule taint that somebody puts on nodes: not those that the API server gives every pod.
func mayTolerate(t *corev1.Toleration) bool {
	return (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule) && t.Key != corev1.TaintNodeNotReady && t.Key != corev1.TaintNodeUnreachable
}

// tolerates reports whether a taint keeps only some jobs from a node: one that is NoSchedule, and that a job tolerates.
func (b *Backend) tolerates(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule && fit.Tolerated(t, b.fits.learned)
}

// everyPodTolerates are the keys of taints that make no difference to jobs.
func (b *Backend) everyPodTolerates() []string {
	return append([]string{gang.NodesTaint}, b.config.Tolerate...)
}

// checkRooms looks at the jobs whose pods, or whose nodes, are others: one that could not run on idle nodes is held back, and one that could
// run with fewer replicas than it asks for gets no more. Nodes says that something about a node is another.
func (b *Backend) checkRooms(nodes bool, now float64) {
	if (nodes || b.fits.nodes == nil) && b.nodesDiffer() {
		for _, j := range b.byID {
			if j != nil && !j.ended {
				b.fits.lookAt(j.uid)
			}
		}
	}
	if len(b.fits.due) == 0 {
		return
	}
	for _, uid := range keys(b.fits.due) {
		if j := b.jobs[uid]; j != nil && !j.ended && j.spec != nil {
			b.checkRoom(j, now)
		}
	}
	clear(b.fits.due)
}

// nodesDiffer reports whether the nodes are others than when this was last asked, in what pods ask of them.
func (b *Backend) nodesDiffer() bool {
	list := b.world.nodeList()
	differ := len(list) != len(b.fits.nodes)
	now := make(map[string]*corev1.Node, len(list))
	for _, n := range list {
		was := b.fits.nodes[n.Name]
		differ = differ || was == nil || was != n && (!maps.Equal(was.Labels, n.Labels) ||
			!equality.Semantic.DeepEqual(was.Spec.Taints, n.Spec.Taints) || !equality.Semantic.DeepEqual(was.Status.Allocatable, n.Status.Allocatable))
		now[n.Name] = n
	}
	if b.fits.nodes = now; differ || b.fits.idle == nil {
		b.fits.idle = fit.NewCluster(list, b.everyPodTolerates())
	}
	return differ
}

// checkRoom finds how many devices a job can have at most.
func (b *Backend) checkRoom(j *job, now float64) {
	idle, room := b.fits.idle, 0
	j.unfit, j.most = "", 0
	for _, n := range b.nodes.told {
		if room >= j.wide.MaxReplicas {
			break
		}
		if n.health != core.Gone {
			room += max(b.devicesFor(j, n.devices, func() int { most, _ := idle.Room(j.asks, n.name); return most }), b.heldOn(j, n.id))
		}
	}
	if len(b.nodes.byName) == 0 {
		room = j.wide.MaxReplicas // nothing is known of nodes to come
	}
	switch {
	case room >= j.wide.MaxReplicas:
	case room >= j.wide.MinReplicas || len(b.holds[j.uid]) > 0:
		j.most = room
	default:
		b.explainNodes(j, room)
	}
	if b.change(j, j.spec, now); j.unfit == "" {
		return
	}
	state := trainingjob.Waiting
	if j.unstarted() {
		state = trainingjob.Pending
	}
	if !j.heldByOwner() && !j.absent {
		b.note(j, state, metav1.ConditionFalse, noNodeFits, j.unfit)
	}
}

// within is the specification of its owner, with no more devices than it can have.
func (j *job) within() *core.JobSpec {
	spec := *j.wide
	if j.most > 0 {
		spec.MaxReplicas = max(min(spec.MaxReplicas, j.most), spec.MinReplicas)
		spec.Requested = min(spec.Requested, spec.MaxReplicas)
	}
	return &spec
}

// shun keeps a job from nodes that refused its pods.
func (j *job) shun(lost []gang.Loss) {
	for _, l := range lost {
		if l.Cause == core.CauseRefused || l.Cause == core.CauseNeverBegan {
			if j.shunned == nil {
				j.shunned = map[string]bool{}
			}
			j.shunned[l.Node] = true
		}
	}
}

// explainNodes says of a job that too few nodes fit, if it would run were it not for what its pods ask of them. That there are too few nodes, or too small
// ones, is said elsewhere.
func (b *Backend) explainNodes(j *job, room int) {
	names := slices.Sorted(maps.Keys(b.nodes.byName))
	all := 0
	for _, name := range names {
		all += b.devicesFor(j, b.nodes.byName[name].devices, func() int { return core.MaxDevicesPerNode })
	}
	if all < j.wide.MinReplicas {
		return
	}
	why := fit.Explain(names, func(name string) string {
		n, why := b.fits.idle.Room(j.asks, name)
		if n > 0 && b.devicesFor(j, b.nodes.byName[name].devices, func() int { return n }) == 0 {
			return "with too few devices for a pod"
		}
		return why
	})
	j.unfit = fmt.Sprintf("its pods need %d devices and can have %d at most: %s", j.wide.MinReplicas, room, why)
	if strings.Contains(why, "taint") {
		j.unfit += "; tolerate the taint in the pod template, or name its key in backend.config.tolerate"
	}
}

// devicesFor is how many of so many devices of a node pods of a job can have, of which the node takes so many.
func (b *Backend) devicesFor(j *job, devices int, pods func() int) int {
	each := j.perPod()
	if devices == 0 || each > devices {
		return 0
	}
	n := pods()
	switch {
	case n <= 0:
		return 0
	case each == 0: // one pod has all of them
		return devices
	default:
		return min(n, devices/each) * each
	}
}

// heldOn is how many devices of a node a job has.
func (b *Backend) heldOn(j *job, id core.NodeID) (n int) {
	for _, s := range b.holds[j.uid] {
		if s.Node == id {
			n += s.Devices.Count()
		}
	}
	return n
}

// seats is a round's search for nodes that take the pods of jobs.
type seats struct {
	b       *Backend
	view    *core.View
	ledger  core.Ledger
	cluster *fit.Cluster
}

// Reseat holds the answer of a placer to what the pods of jobs ask of nodes. Jobs that stay where they are stay. Of the others, in the order of
// their grants, each keeps the devices that the placer chose if nodes take its pods and nobody before it has them; otherwise it gets others, on as few
// nodes as possible; and one that can be nowhere is refused.
func (b *Backend) Reseat(v *core.View, grants []core.Grant, answer core.Seating) core.Seating {
	clear(b.fits.why)
	at := make(map[core.JobID]*core.Placement, len(answer.Placed))
	some := false
	for i := range answer.Placed {
		p := &answer.Placed[i]
		at[p.Job] = p
		some = some || !stays(v, p) && b.asksForMore(b.job(p.Job))
	}
	if !some {
		return answer
	}
	s := &seats{b: b, view: v}
	s.ledger.ResetTo(v)
	s.ledger.Reserve(v.Reserved)
	s.begin(at)
	out := core.Seating{Unseated: slices.Clone(answer.Unseated)}
	for i := range grants {
		p := at[grants[i].Job]
		if p == nil {
			continue
		}
		if stays(v, p) {
			out.Placed = append(out.Placed, *p)
			continue
		}
		if where := s.seat(b.job(p.Job), &grants[i], p.Seats); len(where) > 0 {
			moved := *p
			moved.Seats = where
			out.Placed = append(out.Placed, moved)
			continue
		}
		out.Unseated = append(out.Unseated, s.refuse(&grants[i]))
	}
	return out
}

// stays reports whether a placement leaves a running job where it is.
func stays(v *core.View, p *core.Placement) bool {
	j := v.Job(p.Job)
	return j != nil && j.State == core.Running && core.SameDevices(j.Seats, p.Seats)
}

// asksForMore reports whether not every node may take the pods of a job.
func (b *Backend) asksForMore(j *job) bool {
	if j == nil {
		return false
	}
	return !j.asks.Plain() || len(j.shunned) > 0 || j.eachReplica && j.perReplica > 1 || len(b.fits.learned) > 0 || b.repels()
}

// repels reports whether there is a pod, or is soon to be, that keeps others away.
func (b *Backend) repels() bool {
	return b.world.repels() || slices.ContainsFunc(b.byID, func(j *job) bool { return j != nil && j.asks.Repels() })
}

// begin counts who stays.
func (s *seats) begin(at map[core.JobID]*core.Placement) {
	b := s.b
	s.cluster = fit.NewCluster(b.world.nodeList(), b.everyPodTolerates())
	others := make(map[types.UID]*fit.Pod, len(b.fits.others))
	for _, p := range every[*corev1.Pod](b.world.pods.GetStore()) {
		if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || len(b.holds[b.world.memberOf(p)]) > 0 {
			continue
		}
		asks := b.fits.others[p.UID]
		if asks == nil {
			asks, _ = fit.New(p, corev1.ResourceName(b.config.Resource)) // of an error the rest counts
		}
		others[p.UID] = asks
		s.cluster.Add(asks, p.Spec.NodeName, 1)
	}
	b.fits.others = others
	for _, j := range b.byID {
		if j == nil || at[j.id] == nil || !stays(s.view, at[j.id]) {
			continue
		}
		s.ledger.Occupy(at[j.id].Seats)
		for _, seat := range b.holds[j.uid] {
			s.cluster.Add(j.asks, b.nodes.told[seat.Node].name, j.podsOn(seat.Devices.Count()))
		}
	}
}

// seat finds devices for a grant: those that the placer chose, or others.
func (s *seats) seat(j *job, g *core.Grant, chosen []core.Seat) []core.Seat {
	if j == nil {
		return chosen // the pipeline's check finds that
	}
	if s.ledger.Occupy(chosen) {
		if s.takes(j, chosen) {
			return chosen
		}
		s.ledger.Release(chosen)
	}
	for t := range s.view.Cluster.Accelerators {
		kind := core.AcceleratorID(t)
		if g.Accelerator != core.AnyAccelerator && g.Accelerator != kind || !j.spec.Accepts(s.view.Cluster, kind) {
			continue
		}
		if where := s.choose(j, kind, g.Replicas); where != nil {
			return where
		}
	}
	return nil
}

// takes counts the pods of seats, if their nodes take them.
func (s *seats) takes(j *job, chosen []core.Seat) bool {
	for i, seat := range chosen {
		n := seat.Devices.Count()
		if each := j.perPod(); each > 0 && n%each != 0 || s.room(j, seat.Node, n) < n {
			s.count(j, chosen[:i], -1)
			return false
		}
		s.count(j, chosen[i:i+1], 1)
	}
	return true
}

// count adds the pods of seats, or takes them away.
func (s *seats) count(j *job, list []core.Seat, sign int) {
	for _, seat := range list {
		s.cluster.Add(j.asks, s.b.nodes.told[seat.Node].name, sign*j.podsOn(seat.Devices.Count()))
	}
}

// room is how many of so many devices of a node pods of a job can have.
func (s *seats) room(j *job, node core.NodeID, devices int) int {
	name := s.b.nodes.told[node].name
	if j.shunned[name] {
		return 0
	}
	return s.b.devicesFor(j, devices, func() int { return s.cluster.Most(j.asks, name) })
}

// choose takes n devices of a type, on as few nodes as possible; nil if there are not as many.
func (s *seats) choose(j *job, kind core.AcceleratorID, n int) (where []core.Seat) {
	var taken []core.Seat // one for each time that devices were taken
	for left := n; left > 0; {
		best, most := core.NodeID(-1), 0
		for i := range s.view.Cluster.Nodes {
			node := core.NodeID(i)
			if s.view.Cluster.Nodes[i].Accelerator != kind || s.ledger.Free(node) == 0 {
				continue
			}
			room := s.room(j, node, min(s.ledger.Free(node), left))
			if room > most || room == most && room > 0 && s.ledger.Free(node) < s.ledger.Free(best) {
				best, most = node, room
			}
		}
		if most == 0 {
			s.ledger.Release(taken)
			s.count(j, taken, -1)
			return nil
		}
		seat := s.ledger.Take(best, most)
		s.count(j, []core.Seat{seat}, 1)
		taken = append(taken, seat)
		if at := slices.IndexFunc(where, func(o core.Seat) bool { return o.Node == best }); at >= 0 {
			where[at].Devices |= seat.Devices
		} else {
			where = append(where, seat)
		}
		left -= most
	}
	return where
}

// refuse says why a grant finds no devices.
func (s *seats) refuse(g *core.Grant) core.Verdict {
	j, available := s.b.job(g.Job), 0
	why := fit.Explain(slices.Sorted(maps.Keys(s.b.nodes.byName)), func(name string) string {
		n := s.b.nodes.byName[name]
		free := s.ledger.Free(n.id)
		room := s.room(j, n.id, free)
		available += room
		switch {
		case room > 0:
			return ""
		case j.shunned[name]:
			return "whose kubelet refused its pods"
		default:
			return cmp.Or(s.cluster.Why(j.asks, name), "without free devices")
		}
	})
	if len(j.shunned) > 0 {
		clear(j.shunned) // rather there than nowhere
	}
	s.b.fits.why[g.Job], s.b.fits.refused[j.uid] = why, true
	return core.Verdict{
		Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices, Wanted: float64(g.Replicas), Available: float64(available), Unit: "devices",
		Message: why, By: "kubernetes",
	}
}

// explainRefusals says of the jobs that the last round found no nodes for what these lack.
func (b *Backend) explainRefusals() {
	waits := func(id core.JobID) *job {
		if j := b.job(id); j != nil && !j.ended && !j.losing && !j.absent && j.unfit == "" && j.heldUntil == 0 && len(b.holds[j.uid]) == 0 && !j.heldByOwner() {
			return j
		}
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(b.fits.said)) {
		if j := waits(id); j != nil && b.fits.why[id] == "" {
			b.note(j, trainingjob.Waiting, metav1.ConditionFalse, camel(core.WaitingForDevices.String()), "")
		}
	}
	clear(b.fits.said)
	for _, id := range slices.Sorted(maps.Keys(b.fits.why)) {
		if j := waits(id); j != nil {
			b.note(j, trainingjob.Waiting, metav1.ConditionFalse, nodesTaken, b.fits.why[id])
			b.fits.said[id] = true
		}
	}
}

// askAgain has a round held about the jobs that nodes had too little left for, when nodes or pods are others.
func (b *Backend) askAgain(now float64) {
	if len(b.fits.refused) == 0 || !b.world.roomChanged() {
		return
	}
	for _, uid := range keys(b.fits.refused) {
		if j := b.jobs[uid]; j != nil && !j.ended && !j.losing && j.spec != nil && len(b.holds[uid]) == 0 {
			spec := *j.spec
			b.report(core.Event{Kind: core.JobChanged, AtSeconds: now, Job: j.id, Spec: &spec, StepsLeft: math.NaN()})
		}
	}
	clear(b.fits.refused)
}
