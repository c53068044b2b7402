package kube

import (
	"cmp"
	"math"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/fit"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

var inf = math.Inf(1)

// job is what a scheduler knows of a TrainingJob. The goroutine of the pipeline changes it, under the lock; workers read it.
type job struct {
	uid             types.UID
	namespace, name string
	id              core.JobID
	spec            *core.JobSpec // as the pipeline was last told it
	wide            *core.JobSpec // as its owner has it
	adopts          *gang.Unit    // whose pods it has; nil for a job with pods of its own
	perReplica      int           // devices of a replica, which never change
	eachReplica     bool          // each has a pod of its own, which never changes

	// Of the pipeline's goroutine alone.
	generation int64
	ended      bool // the pipeline was told, or never will be told of it
	losing     bool // it is about to be told that the job lost its devices
	started    bool // it was told that all pods of the run run
	starting   bool // it was told that they do not yet
	refusals   int
	heldUntil  float64         // a refused job is held back until then, in seconds of the run; 0 for none
	resizing   bool            // members join or leave a run that goes on
	absent     bool            // others have yet to make its pods
	asks       *fit.Pod        // what a pod asks of nodes
	unfit      string          // why it could not run on idle nodes; empty where it could
	most       int             // devices that it can have at most; 0 for as many as it wants
	shunned    map[string]bool // nodes that refused its pods since it last ran
	fewer      bool            // its Job wants fewer pods, and has yet to choose which
	account    account
	said       said
	refused    refused // its status, by the API server

	writing sync.Mutex // one at a time writes the status

	mutex      sync.Mutex
	object     *trainingjob.TrainingJob // the newest that was seen or written
	status     trainingjob.Status       // as it is to be
	expected   *trainingjob.Forecast    // the newest forecast; nil for none
	dirty      bool                     // it is not written
	outlookAt  time.Time                // when that is to be written, or was last, for its own sake
	outlookDue bool                     // it was not
	withheld   bool                     // it is not to be written yet: others have the devices by what is written
	after      []*job                   // nor until theirs are
	deleted    bool
	template   corev1.PodTemplateSpec
	agent      gang.Agent
	past       gang.Past // the last run that was told to stop
	driven     int64     // the last run whose pods were driven
	overtook   gang.End  // how that had ended; the zero value if it had not
	seats      []gang.Seat
	state      gang.State // of the decision with stateOf
	stateOf    decisionID
	seen       bool // a state is known
}

// decisionID names a decision.
type decisionID struct{ epoch, run, round, world int64 }

// account is what a job has behind it.
type account struct {
	firstStart, lastChange, executed, attained float64
	asOf                                       float64
	held                                       int
	restarts, preemptions                      int
	progress
}

// settle brings the account up to a moment.
func (a *account) settle(now float64) {
	if a.held > 0 {
		a.executed += now - a.asOf
		a.attained += (now - a.asOf) * float64(a.held)
	}
	a.asOf = now
}

// hold gives the job so many devices from a moment on.
func (a *account) hold(devices int, now float64) {
	a.settle(now)
	if devices > 0 {
		if math.IsNaN(a.firstStart) {
			a.firstStart = now
		} else {
			a.restarts++
		}
	}
	a.held, a.lastChange = devices, now
}

func newJob(object *trainingjob.TrainingJob) *job {
	return &job{
		asks: new(fit.Pod), adopts: unitOf(object), perReplica: object.DevicesPerReplica(), eachReplica: object.Spec.PodPer == trainingjob.PodPerReplica,
		uid: object.UID, namespace: object.Namespace, name: object.Name, object: object, status: *object.Status.DeepCopy(),
		account: account{firstStart: math.NaN()},
	}
}

// perPod is how many devices a pod has; 0 where one has all devices of a node that the job has.
func (j *job) perPod() int {
	if j.adopts != nil || j.eachReplica {
		return j.perReplica
	}
	return 0
}

// podsOn is how many pods have so many devices of a node.
func (j *job) podsOn(devices int) int {
	if each := j.perPod(); each > 0 {
		return devices / each
	}
	return min(devices, 1)
}

// unstarted reports whether it never had devices.
func (j *job) unstarted() bool { return math.IsNaN(j.account.firstStart) }

// see takes in how the job is on the API server, if that is news.
func (j *job) see(object *trainingjob.TrainingJob) {
	if !gang.Older(object.ResourceVersion, j.object.ResourceVersion) {
		j.object = object
	}
}

// decision is what was last decided; never nil.
func (j *job) decision() *trainingjob.Decision {
	if j.status.Decision == nil {
		return new(trainingjob.Decision)
	}
	return j.status.Decision
}

func (j *job) decisionID() decisionID {
	d := j.decision()
	return decisionID{d.Epoch, d.Run, d.Round, d.World}
}

// written reports whether what is decided is what the API server knows, but for what an older definition of jobs does not keep.
func (j *job) written() bool {
	a, b := j.object.Status.Decision, j.status.Decision
	if a != nil && b != nil && a.Stopped == nil && b.Stopped != nil {
		kept := *b
		kept.Stopped = nil
		b = &kept
	}
	return equality.Semantic.DeepEqual(a, b)
}

// startTimeout is how long a start may take; 0 for ever. The lock is held.
func (j *job) startTimeout(usual time.Duration) time.Duration {
	if s := j.object.Spec.StartTimeoutSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return usual
}

// gang is the job as its pods are driven.
func (j *job) gang(startTimeout time.Duration) gang.Job {
	d := j.decision()
	yes := true
	g := gang.Job{
		Namespace: j.namespace, Name: j.name, UID: j.uid, Run: d.Run, Round: d.Round, Epoch: d.Epoch, Template: j.template,
		Seats: j.seats, DevicesPerReplica: j.object.DevicesPerReplica(), StartTimeout: j.startTimeout(startTimeout),
		Owner: metav1.OwnerReference{
			APIVersion: trainingjob.GroupVersion().String(), Kind: trainingjob.Kind, Name: j.name, UID: j.uid, Controller: &yes, BlockOwnerDeletion: &yes,
		},
		Keep: j.status.State.Ended() && !j.deleted, Agent: j.agent, PodPerReplica: j.eachReplica,
	}
	if j.adopts != nil {
		g.Adopts = &gang.Adoption{Unit: *j.adopts, Wants: len(j.seats)}
	}
	if s := j.object.Spec.GraceSeconds; s != nil {
		g.Grace = time.Duration(*s) * time.Second
	}
	if d.Stop || g.Keep || j.deleted {
		g.Seats = nil
	}
	return g
}

// seatsOf are the seats of a decision; ok is false when one of them makes no sense.
func seatsOf(d *trainingjob.Decision) (seats []gang.Seat, ok bool) {
	for _, s := range d.Seats {
		devices, err := trainingjob.ParseDevices(s.Devices)
		if err != nil || devices == 0 {
			return nil, false
		}
		seats = append(seats, gang.Seat{Member: s.Member, Node: s.Node, Devices: devices})
	}
	return seats, true
}

// known is the account of a status, as of a moment. Anybody with the right to may have edited it: no number of it is believed
// that makes no sense.
func known(s *trainingjob.Status, now float64) account {
	a := account{firstStart: math.NaN(), asOf: now}
	if p := s.Progress; p != nil {
		a.executed, a.attained, a.restarts, a.preemptions = max(p.ExecutedSeconds, 0), max(p.AttainedSeconds, 0), max(p.Restarts, 0), max(p.Preemptions, 0)
		a.progress = progress{done: max(p.Done, 0), rate: max(p.Rate, 0), from: min(max(p.FromSeconds, 0), now), kept: max(p.Checkpoint, 0)}
		if p.FirstStartSeconds != nil {
			a.firstStart = min(max(*p.FirstStartSeconds, 0), now)
		}
	}
	if d := s.Decision; d != nil {
		a.lastChange = min(max(d.AtSeconds, 0), now)
		if !d.Stop {
			if seats, ok := seatsOf(d); ok {
				for _, seat := range seats {
					a.held += seat.Devices.Count()
				}
			}
			if a.held > 0 && math.IsNaN(a.firstStart) { // somebody edited it
				a.firstStart = a.lastChange
			}
			a.asOf = a.lastChange
			a.settle(now)
		}
	}
	return a
}

// entry is the account as the status keeps it.
func (a *account) entry() *trainingjob.Progress {
	since := 0.0 // the decision
	if a.held > 0 {
		since = a.asOf - a.lastChange
	}
	p := &trainingjob.Progress{
		ExecutedSeconds: max(a.executed-since, 0), AttainedSeconds: max(a.attained-since*float64(a.held), 0), Restarts: a.restarts, Preemptions: a.preemptions,
		Done: a.done, Rate: a.rate, FromSeconds: a.from, Checkpoint: a.kept,
	}
	if !math.IsNaN(a.firstStart) {
		p.FirstStartSeconds = &a.firstStart
	}
	return p
}

// camel makes a reason, such as waiting_for_devices or what a kubelet says, one of a condition: letters and digits, and a letter
// first.
func camel(reason string) string {
	var b strings.Builder
	first := true // of a word
	for _, c := range []byte(reason) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9' || b.Len() == 0) {
			first = true
			continue
		}
		if first && 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		b.WriteByte(c)
		first = false
	}
	return cmp.Or(b.String(), "None")
}
