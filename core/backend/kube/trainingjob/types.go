package trainingjob

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// TrainingJob is a job on Kubernetes.
type TrainingJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   Spec   `json:"spec"`            // what its owner asks for
	Status Status `json:"status,omitzero"` // what the scheduler reports; a subresource
}

// TrainingJobList is the answer to a list.
type TrainingJobList struct { //nolint:revive // the API machinery expects the kind's name with List behind it
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []TrainingJob `json:"items"` // jobs of the list
}

// Spec is what people say of a job. What is left out stands for its default, see JobSpec.
type Spec struct {
	Queue   string  `json:"queue,omitempty"`   // tenant; the namespace if left out; never changed
	Weight  float64 `json:"weight,omitempty"`  // share against other jobs; 1 if left out
	Suspend bool    `json:"suspend,omitempty"` // its owner wants it to have no devices for now

	// Work is the declared work, in the unit in which the job reports its progress. 0 when unknown.
	Work float64 `json:"work,omitempty"`

	Replicas     Replicas `json:"replicas,omitzero"`      // how many replicas it can run with
	Requested    int      `json:"requested,omitempty"`    // replicas the job asks for
	Pinned       bool     `json:"pinned,omitempty"`       // the job is never preempted
	Accelerators []string `json:"accelerators,omitempty"` // types of devices it can run on; all if empty
	Batch        Batch    `json:"batch,omitzero"`         // bounds of its batch
	Application  string   `json:"application,omitempty"`  // what it trains
	Experiment   string   `json:"experiment,omitempty"`   // search that it is a trial of

	DeadlineSeconds float64 `json:"deadlineSeconds,omitempty"` // after its submission; 0 for none
	BestEffort      bool    `json:"bestEffort,omitempty"`      // takes what the others leave, and is promised nothing
	Tier            string  `json:"tier,omitempty"`            // service that it is guaranteed

	GraceSeconds        *int64 `json:"graceSeconds,omitempty"`        // between the request to stop and the end of a pod
	StartTimeoutSeconds *int64 `json:"startTimeoutSeconds,omitempty"` // until all pods of a start have to run

	// Adopts is set by the scheduler, for a job whose pods others make. It never changes.
	Adopts *Adopts `json:"adopts,omitempty"`

	// PodPer says what a pod is: PodPerNode, which is what it stands for when empty, or PodPerReplica. It never changes.
	PodPer string `json:"podPer,omitempty"`

	// Template is the template of every pod, whatever number of devices it has. It is kept as it was written: PodTemplate reads it, so that one that is wrong
	// does not keep the others from being read.
	Template runtime.RawExtension `json:"template"`
}

// Adopts names whose pods a job has: a batch Job, a pod, or a group of pods, which is no object and has the UID of its first pod.
type Adopts struct {
	APIVersion string    `json:"apiVersion"` // of the object, such as batch/v1
	Kind       string    `json:"kind"`       // Job, Pod or PodGroup
	Name       string    `json:"name"`       // of the object, in the namespace of the job
	UID        types.UID `json:"uid"`        // of the object, or of the first pod of a group
}

// The values of Spec.PodPer.
const (
	PodPerNode    = "Node"    // a pod has all devices that the job gets on a node at once
	PodPerReplica = "Replica" // a pod has the devices of one replica
)

// Replicas bound how many replicas a job runs with.
type Replicas struct {
	Min               int `json:"min,omitempty"`               // fewest replicas; as many as the job asks for if 0
	Max               int `json:"max,omitempty"`               // most replicas; as many as the job asks for if 0
	DevicesPerReplica int `json:"devicesPerReplica,omitempty"` // devices of a replica, all on one node; 1 if 0
}

// Batch bounds the batch of a job, in samples. The zero value is a job without batch elasticity.
type Batch struct {
	Requested    int `json:"requested,omitempty"`    // total batch the job asks for
	Initial      int `json:"initial,omitempty"`      // total batch that the learning rate was tuned for
	Min          int `json:"min,omitempty"`          // smallest total batch
	Max          int `json:"max,omitempty"`          // largest total batch that still trains
	MinPerDevice int `json:"minPerDevice,omitempty"` // smallest batch of a device; 1 if 0
	MaxPerDevice int `json:"maxPerDevice,omitempty"` // largest batch of a device; Max if 0
}

// State is the single state a job is in.
type State string

// The states of a job.
const (
	Pending   State = "pending"  // the job awaits admission
	Waiting   State = "waiting"  // the job awaits devices
	Starting  State = "starting" // has devices, and not all of its pods run
	Running   State = "running"
	Completed State = "completed"
	Rejected  State = "rejected"
	Failed    State = "failed"
	Suspended State = "suspended" // by its owner
)

// Ended reports whether the state is final.
func (s State) Ended() bool {
	return s == Completed || s == Rejected || s == Failed
}

// Status is what the scheduler says of a job. A field that is not set is not known.
type Status struct {
	ID       *int32    `json:"id,omitempty"`       // core.JobID; never changed once set
	State    State     `json:"state,omitempty"`    // where the job is between its submission and its end
	Replicas int       `json:"replicas,omitempty"` // that the decision gives
	Decision *Decision `json:"decision,omitempty"` // last decision on the job; nil before the first
	Progress *Progress `json:"progress,omitempty"` // how far it came; nil before it had devices
	Forecast *Forecast `json:"forecast,omitempty"` // when it is expected to start and end; nil if nothing is

	Conditions []metav1.Condition `json:"conditions,omitempty"` // Admitted, Running, Degraded, Finished and Interrupted, with reasons
}

// Decision is what was last decided of a job. Pods are driven to it, whoever leads.
type Decision struct {
	Epoch     int64   `json:"epoch"`     // of the leader that decided
	Round     int64   `json:"round"`     // in which it was decided
	Run       int64   `json:"run"`       // counts the starts of the job from 1; part of the names of its pods
	AtSeconds float64 `json:"atSeconds"` // since the run of the scheduler began

	Seats  []Seat  `json:"seats,omitempty"`  // in order of rank
	Tuning *Tuning `json:"tuning,omitempty"` // batch settings; nil where the job keeps its own
	By     string  `json:"by,omitempty"`     // component that decided
	Stop   bool    `json:"stop,omitempty"`   // the job is to have no devices

	NextMember int   `json:"nextMember,omitempty"` // number of the next member of the run; 0: one more than the highest of the seats
	World      int64 `json:"world,omitempty"`      // how often the run was resized with members that stayed

	Stopped *Stopped `json:"stopped,omitempty"` // the run that was last asked to stop; nil where it is not known
}

// Stopped is a run that was asked to stop: it may have ended well before.
type Stopped struct {
	Run  int64 `json:"run"`  // number of the run, as in Decision
	Pods int   `json:"pods"` // how many it had
}

// Seat is devices of a node.
type Seat struct {
	Member  int    `json:"member,omitempty"` // number of the pod, within the run
	Node    string `json:"node"`             // name of the node
	Devices string `json:"devices"`          // ranges, such as "0-3,6"
}

// Tuning is the batch setting of a job, see core.Tuning.
type Tuning struct {
	BatchPerDevice     int     `json:"batchPerDevice,omitempty"`     // samples of a device in one pass
	AccumulationSteps  int     `json:"accumulationSteps,omitempty"`  // passes beyond the first whose gradients are added up before an update
	LearningRateFactor float64 `json:"learningRateFactor,omitempty"` // by which the learning rate is multiplied
	BatchByReplica     []int   `json:"batchByReplica,omitempty"`     // samples of each replica in one pass, where replicas differ
}

// Progress is how far a job came.
type Progress struct {
	Done        float64 `json:"done,omitempty"`        // in the unit of Spec.Work
	Rate        float64 `json:"rate,omitempty"`        // work per second
	FromSeconds float64 `json:"fromSeconds,omitempty"` // moment at which Done was reached and from which Rate holds
	Checkpoint  float64 `json:"checkpoint,omitempty"`  // work that a checkpoint holds

	ExecutedSeconds   float64  `json:"executedSeconds,omitempty"`   // with devices, as of the decision: while the job holds devices, more by the time since
	AttainedSeconds   float64  `json:"attainedSeconds,omitempty"`   // device-seconds, the same
	FirstStartSeconds *float64 `json:"firstStartSeconds,omitempty"` // when it first had devices, in seconds of the scheduler's run; nil if never
	Restarts          int      `json:"restarts,omitempty"`          // starts and moves after the first start
	Preemptions       int      `json:"preemptions,omitempty"`       // times its devices were taken away before it ended
}

// Forecast is what the scheduler expects of a job that has not ended, as it was when it last changed by more than a little.
type Forecast struct {
	At       metav1.Time `json:"at"`                 // when it was made
	Position int         `json:"position,omitempty"` // among the jobs that wait: 1 for the one that starts first
	Start    *Band       `json:"start,omitempty"`    // nil for a job that has devices
	End      *Band       `json:"end,omitempty"`      // nil if no end can be foreseen

	Judged int `json:"judged,omitempty"` // bands of jobs like it that could be judged so far
	Held   int `json:"held,omitempty"`   // those of them that were right
}

// Band is where a moment lies with a probability of 80 %. One that is left out is not forecast.
type Band struct {
	Low    *metav1.Time `json:"low,omitempty"`    // lower end of the interval
	Median *metav1.Time `json:"median,omitempty"` // half of the futures are earlier
	High   *metav1.Time `json:"high,omitempty"`   // upper end of the interval
}
