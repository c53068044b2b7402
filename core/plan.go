package core

// Plan is the outcome of the stages of one round, before it is compared with what runs.
type Plan struct {
	Grants     []Grant       // of the allocation, in its order
	Placements []Placement   // of the grants that were seated
	Tunings    []Tuning      // of jobs whose batch the elasticity sets
	Cluster    ClusterTarget // that the scaler wants
	// Candidates are those that devices were divided among, and the jobs that an admission has wait for more nodes, by JobID.
	Candidates []Candidate
}

// Action is what a Change does to a job.
type Action uint8

// The actions. Start gives devices to a job without any, Stop takes all away, Move replaces them (more, fewer or
// other ones), Tune changes only the batch setting, or the CPUs and the memory, Discard says that a job was rejected and never comes back.
// Finish ends a job early, wherever it is: it lets go of its devices as a stopped one does, and never comes back. Pause is a Stop, of a job that is to
// be admitted again before it goes on; it may be without devices already.
const (
	Start Action = iota
	Stop
	Move
	Tune
	Discard
	Finish
	Pause
)

var actionNames = [...]string{"start", "stop", "move", "tune", "discard", "finish", "pause"}

// String returns the name of the action, such as "start".
func (a Action) String() string { return name(actionNames[:], int(a)) }

// Change is one difference between the plan and what runs. The backend applies changes in order; stops come first. A round
// has at most one for each job.
type Change struct {
	// Round is the round that decided it. A backend that remembers the last one it carried out for a job does nothing for a
	// change that is not of a later round: it was carried out before. 0 is unknown, and always carried out.
	Round  int
	Action Action // what the backend does to the job
	Job    JobID  // that is changed
	Seats  []Seat // seats to run on; of Start and Move only
	// Slices is where the slices of the job begin there, as in Job. It follows from the changes before, so that no record needs it.
	Slices []uint8
	Tuning Tuning // batch setting from then on
	// Resources is the CPUs and the memory that each replica is to have; nil for what the job asks for.
	Resources *Resources
	Reason    Reason // for Stop, Discard, Finish and Pause
	By        string // component that decided it
}

// EventKind is what happened.
type EventKind uint8

// The kinds of event, in the order in which events of one moment are reported.
const (
	JobProgressed  EventKind = iota // the rate, the progress or the steps left changed
	JobMeasured                     // the job ran on a configuration, or its gradient statistics changed
	JobFinished                     // all work is done
	JobFailed                       // the job ended without finishing
	NodeChanged                     // the health of a node changed
	JobInterrupted                  // a running job lost its devices, and waits again; Cause says why
	JobSubmitted
	JobCancelled    // nobody wants the job any more
	NodeAdded       // a node joined; its id is the next one
	NodeRemoved     // a node left for good
	JobStarting     // some replicas of a running job do not run yet; Message says what they wait for
	JobStarted      // all replicas of a running job run
	JobShrunk       // a running job lost some of its devices, and goes on with the rest
	DevicesReleased // a job that was stopped or moved let go of devices
	JobChanged      // its owner edited the job
	JobReported     // the job reported a value of a metric
)

var eventNames = [...]string{
	"job_progressed", "job_measured", "job_finished", "job_failed", "node_changed", "job_interrupted", "job_submitted", "job_cancelled",
	"node_added", "node_removed", "job_starting", "job_started", "job_shrunk", "devices_released", "job_changed",
	"job_reported",
}

// String returns the name of the kind, such as "job_finished".
func (k EventKind) String() string { return name(eventNames[:], int(k)) }

// OfNode reports whether events of the kind are about a node, not about a job.
func (k EventKind) OfNode() bool { return k == NodeChanged || k == NodeAdded || k == NodeRemoved }

// Checkpointing is whether a job that is stopped, moved or interrupted goes on from where it was.
type Checkpointing uint8

// The values of Checkpointing.
const (
	CheckpointingUnknown Checkpointing = iota
	KeepsProgress                      // it goes on from a checkpoint
	BeginsAnew                         // it keeps none
)

// Event is something that happened on the backend since the round before.
type Event struct {
	// ID is 0 from a backend that delivers each event once. One that may deliver an event again numbers its events in the order
	// in which it delivers them first, and delivers an event again under the same number: the pipeline skips what is not above
	// the highest number it has taken.
	ID uint64

	Kind      EventKind  // what happened to the job or node
	AtSeconds float64    // moment, in seconds of the run
	Job       JobID      // that it happened to, for kinds of jobs
	Spec      *JobSpec   // of JobSubmitted and JobChanged: the job as it is specified now
	Held      *Held      // JobSubmitted: of a job that was there before; nil for all others
	Added     *AddedNode // of NodeAdded: the node that joined
	Node      NodeID     // NodeChanged, NodeAdded, NodeRemoved
	Health    Health     // of NodeChanged: the health that the node has now
	Unusable  DeviceSet  // NodeChanged: see Node.Unusable
	// Seats is, of JobShrunk, those left; of DevicesReleased, those let go of; of JobInterrupted, those on which it failed: it gets them again only where no others
	// are free. None of a job that failed for another reason than its devices.
	Seats []Seat
	// NotBeforeSeconds is when a job that was interrupted may get devices again, or one that shrank more of them, in seconds of the run; 0 for at once.
	NotBeforeSeconds float64 `json:",omitempty"`

	// JobProgressed, JobInterrupted and JobShrunk, and JobSubmitted with Held: the job's progress is Progress at FromSeconds and
	// grows with Rate.
	Progress, Rate, FromSeconds float64
	StepsLeft                   float64 // NaN when unknown; of JobSubmitted, too
	// Slowed is the part of its rate alone, 0..1, that a job loses from FromSeconds on to those on its devices, as far as the backend knows: of
	// JobProgressed. It is for people: no decision depends on it.
	Slowed float64 `json:",omitempty"`

	// Message says in one sentence why, of a job that failed, was interrupted or begins again; empty when nobody knows. It
	// is for people: no decision depends on it.
	Message string
	// Cause is why, of a job that was interrupted or failed. Absent, it is CauseUnknown.
	Cause Cause
	// Early is why a job that finished was ended before its work was done, with the progress that it reports; NoReason where it came to its own end.
	Early Reason `json:",omitempty"`

	// Checkpointing is whether the job keeps what it did when its replicas end, as far as the backend knows: of JobSubmitted and JobProgressed. It is for forecasts: no
	// decision depends on it.
	Checkpointing Checkpointing `json:",omitzero"`

	Measurement Measurement // of JobMeasured: what was measured of an iteration
	Gradients   Gradients   // of JobMeasured: what is known of the gradients

	// Metric, Step and Value are what a job reported: see Series. Step is not negative, and Value is NaN where it is not finite; of JobReported.
	Metric      string  `json:",omitempty"`
	Step, Value float64 `json:",omitempty"` // of JobReported: the optimizer step, and the value of the metric at it
}

// AddedNode is a node that joins. Its type may be new to the cluster.
type AddedNode struct {
	Name           string    // unique among the nodes that are not gone
	Accelerator    string    // name of the type of its devices
	Devices        int       // number of devices, from 1 to MaxDevicesPerNode
	CPUs           float64   // cores; 0 when unknown
	MemoryGB       float64   // main memory in GB; 0 when unknown
	DeviceMemoryGB float64   `json:",omitempty"` // of each device; 0 when unknown
	Rack           string    // name of its rack; empty when unknown
	Health         Health    // health of the node as it joins, any but Gone
	Unusable       DeviceSet // devices that are broken, or held by others
	Pool           string    // that the node belongs to; empty for none
	// ExpectedSeconds is when it should be ready, of one that is being provisioned; 0 when nobody knows.
	ExpectedSeconds float64 `json:",omitempty"`
}

// Held is what a job has behind it that was there before it is submitted, as after the scheduler was replaced, and what it
// holds.
type Held struct {
	Seats       []Seat        // none of a job that waits
	Tuning      Tuning        // batch setting in force
	Resources   *Resources    `json:",omitempty"` // of each replica, where they are not what the job asks for
	FirstStart  float64       // seconds, as all moments; NaN of a job that never started
	LastChange  float64       // seconds of the last start, stop or move
	Executed    float64       // seconds with devices, up to the event
	Attained    float64       // device-seconds, up to the event
	Restarts    int           // starts and moves after the first start
	Preemptions int           // times its devices were taken away
	Measured    []Measurement // measurements that the job reported so far
	Gradients   Gradients     // latest statistics reported
}
