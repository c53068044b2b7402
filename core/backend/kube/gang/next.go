package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
)

// Phase is where a gang is on the way to its decision.
type Phase string

// The phases. The first of these that holds is reported: Refused, Interrupted, Shrunk, Failed, Completed; then what the members that are
// furthest behind wait for.
const (
	Gone        Phase = "Gone"        // it has no seats, and nothing of it is left that matters
	Stopping    Phase = "Stopping"    // it has no seats, and something of it holds devices, or is to be deleted
	Creating    Phase = "Creating"    // members are missing, or their claims
	Queued      Phase = "Queued"      // all members are there, and some of their devices are held by others
	Binding     Phase = "Binding"     // their devices are free
	Pulling     Phase = "Pulling"     // all are bound, and not all run
	NotReady    Phase = "NotReady"    // all run, and some say that they are not ready
	Running     Phase = "Running"     // all run and are ready, or have succeeded
	Completed   Phase = "Completed"   // all have succeeded
	Failed      Phase = "Failed"      // one ended by itself, and not well
	Interrupted Phase = "Interrupted" // members were lost, and none is left that runs
	Shrunk      Phase = "Shrunk"      // members were lost, and others run on
	Refused     Phase = "Refused"     // the API server does not let the job begin, see Message; what was begun is taken back
)

// State is what is known of a gang.
type State struct {
	Phase   Phase    // on the way to the decision
	Reason  string   // a word; empty where the phase says it all
	Message string   // one sentence for people
	Behind  []Holder // what holds devices that members wait for
	Lost    []Loss   // of a gang that was interrupted, shrank, or failed
	Members []Member // members in the order of their seats
	Leaving int      // pods without a seat that still hold devices or are to be deleted
	Past    End      // how the run ended that was asked to stop, if it had: then all else of the job is let go

	LateIn time.Duration // after which a member that does not run yet is late, the first one; 0 for none
}

// Kept are the seats whose members are there and were not lost: those that a later decision of the same run may keep.
func (s State) Kept() []Seat {
	var kept []Seat
	for _, m := range s.Members {
		if m.UID != "" && m.Phase != Failed {
			kept = append(kept, m.Seat)
		}
	}
	return kept
}

// Member is what is known of the pod of a seat.
type Member struct {
	Seat
	Pod   string    // name of the pod
	UID   types.UID // empty when there is none
	Phase Phase     // Creating, Queued (on no node), Pulling, NotReady, Running, Completed, or Failed for one that was lost
}

// Kind is a kind of call.
type Kind string

// The kinds of calls.
const (
	CreateService Kind = "create service"
	CreatePod     Kind = "create pod"
	CreateClaim   Kind = "create claim"
	Allocate      Kind = "allocate"
	Bind          Kind = "bind"
	Delete        Kind = "delete"
	Drop          Kind = "drop finalizer"

	// Of pods that others made.
	Adopt   Kind = "adopt"   // give it a seat
	Release Kind = "release" // take it back
	Disrupt Kind = "disrupt" // say that it is not its fault
	Excuse  Kind = "excuse"  // have its Job not count it
)

// Step is a call that is due.
type Step struct {
	Kind  Kind                      // of the call
	Pod   *corev1.Pod               // to create, or as it was seen
	Claim *resourcev1.ResourceClaim // to create or to allocate
	Need  Need                      // of Allocate and Bind: it has to be taken first
	Seat  int                       // of Adopt: its index
}

// Plan is what is due now, in any order, and what is known.
type Plan struct {
	Steps []Step // calls that are due
	State State  // of the gang before them
}

// Next says what is due for a job, and what state it is in. It asks the ledger and takes nothing.
func Next(job *Job, look Look, ledger Ledger, o Options) Plan {
	return next(job, look, ledger, o, false)
}

// next with withdrawn takes back what the decision began: it was refused.
func next(job *Job, look Look, ledger Ledger, o Options, withdrawn bool) Plan {
	p := planner{job: job, look: &look, o: o}
	if p.state.Past = p.end(); p.state.Past.Phase != "" {
		over := *job
		over.Seats, over.Keep = nil, true
		p.job, job = &over, &over
	}
	p.pods = make([]*corev1.Pod, len(job.Seats))
	if job.Adopts != nil {
		p.takeIn(withdrawn)
	} else {
		p.find(withdrawn)
	}
	p.describe()
	switch {
	case len(job.Seats) == 0:
		p.state.Phase = Gone
		if p.state.Leaving > 0 {
			p.state.Phase = Stopping
		}
	case withdrawn:
		p.state.Phase = Refused
	case !p.settled():
		p.start(ledger)
	}
	return Plan{Steps: p.steps, State: p.state}
}

type planner struct {
	job   *Job
	look  *Look
	o     Options
	pods  []*corev1.Pod // by seat; nil for one that is not there
	last  *corev1.Pod   // one of an earlier run that may still run; nil for none
	steps []Step
	state State
	began bool // a pod of others was bound in this run
}

// find finds the pod of each seat, and lets the others go.
func (p *planner) find(withdrawn bool) {
	job := p.job
	pods := slices.Clone(p.look.Pods)
	slices.SortFunc(pods, byName)
	for _, pod := range pods {
		if !isOf(pod, job.UID) || pod.Namespace != job.Namespace {
			continue
		}
		seat := job.seat(pod)
		if seat < 0 || pod.Name != job.name(job.Seats[seat].Member) || withdrawn && (!bound(pod) || p.roundOf(pod) == job.Round) {
			p.leave(pod)
			continue
		}
		p.pods[seat] = pod
	}
}

func (p *planner) step(s Step) { p.steps = append(p.steps, s) }

func (p *planner) roundOf(pod *corev1.Pod) int64 {
	round, err := strconv.ParseInt(pod.Annotations[RoundAnnotation], 10, 64)
	if err != nil {
		return -1
	}
	return round
}

// runsElse reports whether a pod is of an earlier run, and may still run.
func (p *planner) runsElse(pod *corev1.Pod) bool {
	return pod.Labels[RunLabel] != strconv.FormatInt(p.job.Run, 10) && !(bound(pod) && p.look.Down != nil && p.look.Down(pod.Spec.NodeName))
}

// leave lets a pod go that has no seat.
func (p *planner) leave(pod *corev1.Pod) {
	finalizer := slices.Contains(pod.Finalizers, Finalizer)
	freed := Freed(pod, p.look.Node)
	if !freed && p.runsElse(pod) {
		p.last = pod
	}
	stays := final(pod) && (p.job.Keep || p.job.Past.has(pod) && byItself(pod))
	switch {
	case pod.DeletionTimestamp == nil && !stays:
		p.step(Step{Kind: Delete, Pod: pod})
	case !freed:
	case finalizer:
		p.step(Step{Kind: Drop, Pod: pod})
	default:
		return
	}
	p.state.Leaving++
}

// describe says what the members are, each for itself.
func (p *planner) describe() {
	started := -1 // the highest member that was ever bound: all below it were there
	for i, pod := range p.pods {
		if pod != nil && (bound(pod) || final(pod)) {
			started = max(started, p.job.Seats[i].Member)
		}
	}
	for i, s := range p.job.Seats {
		m := Member{Seat: s, Pod: p.job.name(s.Member), Phase: Creating}
		pod := p.pods[i]
		if pod != nil {
			m.Pod, m.UID, m.Phase = pod.Name, pod.UID, phaseOf(pod)
		}
		if loss, ok := p.lossOf(s, pod, started); !ok {
			m.Phase = Failed
			p.state.Lost = append(p.state.Lost, loss)
		}
		p.state.Members = append(p.state.Members, m)
	}
}

func phaseOf(pod *corev1.Pod) Phase {
	switch ready := condition(pod, corev1.PodReady); {
	case !bound(pod):
		return Queued
	case pod.Status.Phase == corev1.PodSucceeded:
		return Completed
	case pod.Status.Phase != corev1.PodRunning:
		return Pulling
	case ready != nil && ready.Status == corev1.ConditionFalse:
		return NotReady
	default:
		return Running
	}
}

func (p *planner) lossOf(s Seat, pod *corev1.Pod, started int) (Loss, bool) {
	loss := Loss{Member: s.Member, Node: s.Node}
	if pod != nil {
		if told, ok := p.look.lost(s, pod); !ok {
			return told, false
		}
		if !bound(pod) && p.o.Class != "" {
			return p.unallocatable(loss, pod)
		}
		if took := p.look.bound[pod.UID]; p.late(pod, took) {
			reason, message := waits(pod)
			loss.Cause, loss.Reason = core.CauseNeverBegan, ReasonStartTimeout
			loss.Message = fmt.Sprintf("it does not run %v after it was bound: %s: %s", took.Round(time.Second), reason, message)
			return loss, false
		} else if p.job.StartTimeout > 0 && bound(pod) && phaseOf(pod) == Pulling {
			p.state.LateIn = sooner(p.state.LateIn, p.job.StartTimeout-took+time.Millisecond)
		}
		return loss, true
	}
	if s.Member <= started && !p.job.Adopts.remade() {
		loss.Cause, loss.Reason, loss.Message = core.CauseKilled, ReasonGone, "the pod was deleted and its finalizer removed"
		return loss, false
	}
	if why := useless(p.look.Node(s.Node)); why != "" {
		loss.Cause, loss.Reason, loss.Message = core.CauseNodeFailed, ReasonNodeGone, "the node is "+why
		return loss, false
	}
	return loss, true
}

// sooner is the shorter one of two times, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// late reports whether a member has not begun in time.
func (p *planner) late(pod *corev1.Pod, took time.Duration) bool {
	return p.job.StartTimeout > 0 && took > p.job.StartTimeout && phaseOf(pod) == Pulling
}

// unallocatable finds devices that no claim can be given.
func (p *planner) unallocatable(loss Loss, pod *corev1.Pod) (Loss, bool) {
	devices, ok := p.devices(loss.Member)
	if !ok {
		loss.Cause, loss.Reason = core.CauseDeviceLost, ReasonDeviceGone
		loss.Message = "no ResourceSlice has all of these devices of the node"
		return loss, false
	}
	claim := p.look.claim(pod)
	if claim != nil && isOf(claim, pod.UID) && claim.Status.Allocation != nil && !allocated(claim, devices) {
		loss.Cause, loss.Reason, loss.Message = core.CauseDeviceLost, ReasonClaim, "its resource claim was given other devices"
		return loss, false
	}
	return loss, true
}

// devices are those of a member, by their names in claims.
func (p *planner) devices(member int) (devices []Device, ok bool) {
	s := p.job.Seats[slices.IndexFunc(p.job.Seats, func(s Seat) bool { return s.Member == member })]
	known := p.look.Devices(s.Node)
	for _, index := range s.Devices.List() {
		if index >= len(known) || known[index] == (Device{}) {
			return nil, false
		}
		devices = append(devices, known[index])
	}
	return devices, true
}

// allocated reports whether a claim has exactly these devices.
func allocated(claim *resourcev1.ResourceClaim, devices []Device) bool {
	has := Allocated(claim)
	return len(has) == len(devices) && !slices.ContainsFunc(has, func(d Device) bool { return !slices.Contains(devices, d) })
}

// settled says how a gang ended that did.
func (p *planner) settled() bool {
	alive := slices.ContainsFunc(p.state.Members, func(m Member) bool { return m.Phase == Running || m.Phase == NotReady || m.Phase == Pulling })
	isExit := func(l Loss) bool { return l.Cause == core.CauseExited }
	switch lost := p.state.Lost; {
	case len(lost) > 0 && slices.ContainsFunc(lost, func(l Loss) bool { return !isExit(l) }):
		p.state.Phase = Interrupted
		if alive {
			p.state.Phase = Shrunk
		}
		// What befell some may be why others exited.
		slices.SortStableFunc(lost, func(a, b Loss) int {
			return cmp.Compare(map[bool]int{true: 1}[isExit(a)], map[bool]int{true: 1}[isExit(b)])
		})
	case len(lost) > 0:
		p.state.Phase = Failed
	case !slices.ContainsFunc(p.state.Members, func(m Member) bool { return m.Phase != Completed }):
		p.state.Phase = Completed
		return true
	default:
		return false
	}
	first := p.state.Lost[0]
	p.state.Reason, p.state.Message = first.Reason, first.String()
	if more := len(p.state.Lost) - 1; more > 0 {
		p.state.Message += fmt.Sprintf("; and %d more", more)
	}
	return true
}

// start brings members that are not bound on their way, all together.
func (p *planner) start(ledger Ledger) {
	if p.create(); p.state.Phase != "" {
		return
	}
	var needs []Need
	var waiting []*corev1.Pod
	for i, pod := range p.pods {
		if pod != nil && !bound(pod) { // it may be missing where others make it
			waiting = append(waiting, pod)
			needs = append(needs, Need{
				Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Version: pod.ResourceVersion,
				Node: p.job.Seats[i].Node, Devices: p.job.Seats[i].Devices,
			})
		}
	}
	if len(needs) == 0 {
		p.run()
		return
	}
	if p.last != nil { // it may be writing its last checkpoint
		p.state.Phase, p.state.Reason, p.state.Message = Queued, ReasonLastRun, "behind its own pod "+p.last.Name+" of an earlier run"
		_, devices, _ := Assigned(p.last)
		p.state.Behind = []Holder{{Namespace: p.last.Namespace, Name: p.last.Name, Node: p.last.Spec.NodeName, UID: p.last.UID, Devices: devices}}
		return
	}
	if p.state.Behind = ledger.Blockers(needs); len(p.state.Behind) > 0 {
		p.state.Phase, p.state.Reason, p.state.Message = Queued, "DevicesHeld", "behind "+list(p.state.Behind, p.job.Namespace)
		return
	}
	p.state.Phase = Binding
	if p.o.Class != "" && p.allocate(waiting, needs) {
		return
	}
	for i, pod := range waiting {
		p.step(Step{Kind: Bind, Pod: pod, Need: needs[i]})
	}
}

// create makes what is missing, and says so.
func (p *planner) create() {
	if p.job.Adopts != nil {
		if len(p.steps) > 0 || p.state.Reason == ReasonPodsMissing {
			p.state.Phase = Creating
		}
		return
	}
	missing := 0
	for i, pod := range p.pods {
		if pod == nil {
			missing++
			p.step(Step{Kind: CreatePod, Pod: p.job.newPod(i, p.o)})
			continue
		}
		if p.o.Class == "" || bound(pod) {
			continue
		}
		claim := p.look.claim(pod)
		if claim == nil {
			missing++
			p.step(Step{Kind: CreateClaim, Pod: pod, Claim: newClaim(pod, p.job.Seats[i].Devices.Count(), p.o)})
		} else if !isOf(claim, pod.UID) {
			missing++
			p.state.Reason, p.state.Message = "ClaimInTheWay", "the claim "+claim.Name+" of another pod has to go first"
		}
	}
	if len(p.job.Seats) > 1 && !p.look.Service && p.job.Subdomain == "" {
		p.step(Step{Kind: CreateService})
	}
	if missing > 0 {
		p.state.Phase = Creating
	}
}

// allocate gives claims their devices, and reports whether any had them not yet.
func (p *planner) allocate(waiting []*corev1.Pod, needs []Need) bool {
	missing := false
	for i, pod := range waiting {
		member := p.job.Seats[p.job.seat(pod)].Member
		devices, _ := p.devices(member) // or it would be lost
		claim := p.look.claim(pod)
		if allocated(claim, devices) && slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
			return r.UID == pod.UID
		}) {
			continue
		}
		missing = true
		p.step(Step{Kind: Allocate, Pod: pod, Claim: allocate(claim, pod, needs[i].Node, devices, p.look.Config), Need: needs[i]})
	}
	return missing
}

// run says how far members are that are all bound.
func (p *planner) run() {
	if !slices.ContainsFunc(p.pods, func(pod *corev1.Pod) bool { return pod != nil }) {
		p.state.Phase, p.state.Reason, p.state.Message = Creating, ReasonPodsMissing, "those that ended are not made again yet"
		return
	}
	p.state.Phase = Running
	for i, m := range p.state.Members {
		switch {
		case m.Phase == Pulling && p.state.Phase != Pulling:
			p.state.Phase = Pulling
			p.state.Reason, p.state.Message = waits(p.pods[i])
		case m.Phase == NotReady && p.state.Phase == Running:
			p.state.Phase, p.state.Reason = NotReady, "ContainersNotReady"
			p.state.Message = "member " + strconv.Itoa(m.Member) + " is not ready"
		}
	}
}

// list names holders to those of a namespace, the first of many.
func list(holders []Holder, namespace string) string {
	const most = 4
	var names []string
	for _, h := range holders[:min(len(holders), most)] {
		names = append(names, h.To(namespace))
	}
	text := strings.Join(names, ", ")
	if len(holders) > most {
		text += fmt.Sprintf(" and %d more", len(holders)-most)
	}
	return text
}
