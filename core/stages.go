package core

import (
	"context"
	"slices"
)

// The four stages. Each is called once a round with everything it decides on, returns data, and keeps no reference
// into the View. A returned slice belongs to the stage and is valid until its next call, so that a stage can reuse
// its buffers. A "no" is a Verdict; an error is a malfunction and ends the run.

// Admitter decides which submitted jobs may compete for devices.
type Admitter interface {
	// Admit answers for waiting jobs, in JobID order; a job without a verdict is admitted. Jobs already admitted are
	// not asked about again. Deferred ones come back next round.
	Admit(ctx context.Context, v *View, waiting []*Job) ([]Verdict, error)
}

// CurveAdmitter is implemented by an admitter that looks at what jobs do with accelerators. It is asked by AdmitCandidates, and not
// by Admit.
type CurveAdmitter interface {
	Admitter
	// AdmitCandidates answers as Admit does. Admitted are the jobs admitted already, and waiting those that it is asked about, both
	// in JobID order.
	AdmitCandidates(ctx context.Context, v *View, admitted, waiting []Candidate) ([]Verdict, error)
}

// Promiser is implemented by an admitter that may admit a job with a deadline only if the deadline will be met, and reports
// whether it does.
type Promiser interface {
	// Promises reports whether a job with a deadline is admitted only if the deadline will be met.
	Promises() bool
}

// Reviewer is implemented by an admitter that looks at jobs as they go on: it ends those that are good enough, or not worth more, and holds others
// back.
type Reviewer interface {
	Admitter
	// Review answers for admitted jobs and for those that a reviewer holds back, in JobID order; one without a verdict stays as it is. It is asked before
	// the other stages of a round, when admitted jobs reported their metrics since the round before, or jobs are held back; jobs are all of these, by
	// JobID. While some are held back, a round in which anything happened is followed by another, so that a reviewer can wait for what comes of it; it is
	// also asked again at the moment up to which its answer stands, if it is Steady.
	// End ends a job, which counts as completed, with the reason of the verdict. Defer takes the devices and the admission of a job that is not pinned:
	// it is held back until Admit, which is asked about it from the next round on, lets it go on. A job that Admit defers as awaiting results is held back as
	// well. The Admit of reviewers is asked before that of other admitters. Admit, and Defer for one that is held back, do nothing.
	Review(ctx context.Context, v *View, jobs []*Job) ([]Verdict, error)
}

// Allocator decides how many devices of which type each job gets.
type Allocator interface {
	// Allocate answers with grants in seating order, at most one per candidate. Candidates are the admitted jobs in
	// JobID order, running ones included, but for those that wait to be tried again after they failed; a running job without a grant is preempted. Grants may exceed capacity.
	Allocate(ctx context.Context, v *View, candidates []Candidate) ([]Grant, error)
}

// OncePerRound is implemented by an allocator that goes on by being asked, as one that hands out turns: it is not asked again in a round in
// which grants found no devices.
type OncePerRound interface {
	// AskedOnce reports whether it must not be asked again.
	AskedOnce() bool
}

// ReservedKeeper is implemented by a placer that looks at what is reserved: nothing is reserved beside any other.
type ReservedKeeper interface {
	// KeepsReserved reports whether it seats nobody on View.Reserved but jobs that stay there. What is reserved for a job is not in the view where that job gets
	// devices.
	KeepsReserved() bool
}

// SomeAllocator is implemented by an allocator that also has to know the other candidates where it is asked about some of them, as one that
// keeps a copy of the view in another process. It is then asked by AllocateSome.
type SomeAllocator interface {
	// AllocateSome answers for some of all candidates as Allocate does for all; ranges of responses may be smaller in some. Both are in JobID order.
	AllocateSome(ctx context.Context, v *View, all, some []Candidate) ([]Grant, error)
}

// Precedent is implemented by an allocator whose grants come in order of precedence: a job that finds no devices may take those of
// running jobs that were granted after it.
type Precedent interface {
	// Precedes reports whether they do.
	Precedes() bool
}

// Placer decides which devices a grant is seated on.
type Placer interface {
	// Place seats grants in their order. It skips a grant that does not fit, unless it is Blocking: then it places
	// nothing that does not already run on the types that the grant could use. Every grant ends in Placed or Unseated.
	Place(ctx context.Context, v *View, grants []Grant) (Seating, error)
}

// Elasticity says what a job does with accelerators, and tunes it to those it got.
type Elasticity interface {
	// Respond answers for each of jobs, in their order. It is asked about a job when it is submitted, whenever an event
	// touched it, and while it runs at the moment that Standing names; otherwise the last response stands, so its Curves stay
	// valid until the job's next response.
	Respond(ctx context.Context, v *View, jobs []*Job) ([]Response, error)
	// Tune answers for those placements whose batch settings change; the others keep theirs.
	Tune(ctx context.Context, v *View, placements []Placement) ([]Tuning, error)
}

// ReportFollower is implemented by an elasticity whose responses may follow from what jobs report of their metrics.
type ReportFollower interface {
	Elasticity
	// FollowsReports reports whether they do. Then a report wakes the pipeline, and the job is asked about again: see Wake.OnReports.
	FollowsReports() bool
}

// FileReader is implemented by a component that reads files when it is made, and decides by them, and by a backend that reads them when it
// is opened, and goes by them: a run is repeated only with the same ones.
type FileReader interface {
	// FilesRead lists the files with their digests.
	FilesRead() []FileRead
}

// FileRead is a file as a component found it.
type FileRead struct {
	Path   string // as the config names it
	SHA256 string // of its bytes, hex; "" where there was no such file
}

// Discarder is implemented by a stage that leaves what it learned to later runs when it is closed.
type Discarder interface {
	// Discard ends the stage and leaves nothing: the run is resumed later and replayed, or it was none. It is called instead
	// of Close.
	Discard() error
}

// Historian is implemented by an elasticity, or a Reviewer, that learns from how jobs end.
type Historian interface {
	// Ended passes the jobs that ended since the round before, by JobID, before Respond, or before Review, and also when no job is asked about.
	// Progress is the work done and State says how they ended; a reviewer does not see those that reviewers ended, or admission rejected. The jobs are
	// valid during the call only.
	Ended(ctx context.Context, v *View, jobs []*Job) error
}

// ClusterScaler decides how many nodes the cluster should have. A backend without CapabilityScaleCluster drops the
// answer; a scaler that makes no sense there declares the capability.
type ClusterScaler interface {
	// Scale is asked at the end of a round, with what the other stages decided.
	Scale(ctx context.Context, v *View, plan *Plan) (ClusterTarget, error)
}

// Steady is implemented by a stage that knows how long its answers stand. When every stage that a round asked is
// steady, the pipeline sleeps until something happens or the earliest of these moments, instead of repeating itself
// every interval. A stage that does not know is asked every round.
type Steady interface {
	// Standing is part of the last answer and rests on what the stage was shown for it, not on what came of it. Before
	// the first answer it is for ever.
	Standing() Standing
}

// Standing is how long an answer stands while no event comes.
type Standing struct {
	// UntilSeconds is the moment up to which asking again would change nothing: +Inf for ever, and the moment of the
	// round, or one before it, to be asked again in the next. A moment to come that an elasticity gives with its tunings is
	// kept without an interval too, and Respond is then asked about every running job: what a job can do may change as time
	// passes, as when it says nothing for too long.
	UntilSeconds float64
	// IfSeated is a condition that allocators may make: the answer stands if its first so many grants run after the
	// round, and otherwise until now. 0 for no condition.
	IfSeated int
}

// Certifier is implemented by an allocator that can bound what a better answer could still gain.
type Certifier interface {
	// GapRatio is the certified gap of the last answer: no answer can raise the policy's objective by more than this part
	// of the bound. It is between 0, for an answer proven best, and 1; NaN when nothing is known.
	GapRatio() float64
}

// Candidate is an admitted job together with what it can do with accelerators.
type Candidate struct {
	*Job
	Response *Response // range and curves of the job; nil before the elasticity answered
}

// Response is a job's elastic range and what it gains from more devices.
type Response struct {
	Job         JobID // that it is about
	MinReplicas int   // at least 1
	MaxReplicas int   // at least MinReplicas
	// Curves holds the rate by accelerator type, indexed by AcceleratorID; the last entry stands for all further types.
	// nil when only the range is known.
	Curves []Curve
	// RemainingWork is the work left in the unit of the curves; NaN when unknown.
	RemainingWork float64
	// MixedTypes is the rate on devices of different types; nil for a job that does not mix types, or when unknown.
	MixedTypes *MixedTypeRates
	// SingleDeviceRate is the rate on one device at the best batch of the job's range, where the curves are those of a single batch: what
	// speed-ups are against. 0 when the curves give it, or it is unknown.
	SingleDeviceRate float64
}

// MixedTypeRates are the rate of a job on devices of different types, each with its part of the batch: a unit of work takes
// 1/Σ SingleDeviceRates seconds, and SyncSeconds more.
type MixedTypeRates struct {
	SingleDeviceRates []float64 // work per second of one device, by AcceleratorID; 0 where it cannot run
	SyncSeconds       []float64 // for a unit of work, by replicas, index r-1 for r; its length bounds the replicas
}

// Rate is the work per second on so many devices of each type, by AcceleratorID; 0 when it cannot run so.
func (u *MixedTypeRates) Rate(devices []int) float64 {
	replicas, sum := 0, 0.0
	for t, n := range devices {
		if n > 0 && (t >= len(u.SingleDeviceRates) || u.SingleDeviceRates[t] <= 0) {
			return 0
		}
		if n > 0 {
			replicas += n
			sum += float64(n) * u.SingleDeviceRates[t]
		}
	}
	if replicas < 1 || replicas > len(u.SyncSeconds) {
		return 0
	}
	return 1 / (1/sum + u.SyncSeconds[replicas-1])
}

// Curve is the rate of a job in work per second by number of replicas, index r-1 for r. 0 means it cannot run so.
type Curve struct {
	OneNode   []float64 // all replicas on one node
	ManyNodes []float64 // consolidated over as few nodes as possible, at least two
}

// Rate is the work per second of replicas replicas of a type on a consolidated placement; 0 when it cannot run so, or
// when nothing is known.
func (r *Response) Rate(t AcceleratorID, replicas, devicesPerNode int) float64 {
	if len(r.Curves) == 0 || replicas < 1 {
		return 0
	}
	curve := &r.Curves[min(max(int(t), 0), len(r.Curves)-1)]
	rates := curve.ManyNodes
	if replicas <= devicesPerNode {
		rates = curve.OneNode
	}
	if replicas > len(rates) {
		return 0
	}
	return rates[replicas-1]
}

// Grant is a number of devices given to a job.
type Grant struct {
	Job         JobID         // that gets devices
	Accelerator AcceleratorID // AnyAccelerator leaves the type to placement
	Replicas    int           // devices, one for each replica
	Blocking    bool          // if it does not fit, nothing new is seated after it on a type that it could use
	Proposed    []Seat        // seating of a policy that decides jointly; may be ignored
	// Group is the number of the group of jobs that share devices, where the cluster lets jobs take turns; 0 for a job that has its
	// devices alone, unless the placement decides who shares. Grants of a group follow one another, are of as many replicas and of the same type, at most Cluster.MaxOwners of
	// them, and numbers ascend. Those of a group that are seated are seated on the same devices;
	// where some are, no other one of it keeps a turn by Blocking, and one that joins those that run takes nobody's.
	Group int
}

// GroupOf is how many grants from the one at an index on are of its group: 1 for one without a group.
func GroupOf(grants []Grant, first int) int {
	end := first + 1
	for end < len(grants) && grants[first].Group != 0 && grants[end].Group == grants[first].Group {
		end++
	}
	return end - first
}

// Placement seats a grant.
type Placement struct {
	Job   JobID  // that is seated
	Seats []Seat // in the order that the job sees its replicas
	// Evicted says that the job lost its devices on the way to these, which counts as a preemption, even when it got
	// the same ones again.
	Evicted bool
	// Resources is the CPUs and the memory that each replica is given, where the cluster counts them; nil for what the job asks for.
	Resources *Resources
}

// Seating is the answer of a Placer.
type Seating struct {
	Placed   []Placement // grants that were seated
	Unseated []Verdict   // for grants without a placement; Code Defer
}

// Tuning is the batch setting of a job. The zero value leaves everything to the job.
type Tuning struct {
	Job                JobID   // that is tuned
	BatchPerDevice     int     // samples on one device in a pass; 0 leaves it to the job
	AccumulationSteps  int     // extra passes per step; total batch = replicas × BatchPerDevice × (AccumulationSteps+1)
	LearningRateFactor float64 // ratio to the learning rate at the initial batch
	// BatchByReplica splits the batch of a pass unevenly, in the order of the seats and of their devices; BatchPerDevice is
	// then its mean, rounded up. nil for an even split.
	BatchByReplica []int
}

// Equal reports whether two tunings are the same setting of the same job.
func (t Tuning) Equal(o Tuning) bool {
	return t.Job == o.Job && t.BatchPerDevice == o.BatchPerDevice && t.AccumulationSteps == o.AccumulationSteps &&
		t.LearningRateFactor == o.LearningRateFactor && slices.Equal(t.BatchByReplica, o.BatchByReplica)
}

// ClusterTarget is what is wanted of a cluster. The zero value means no opinion.
type ClusterTarget struct {
	Nodes int          // in all, of a cluster with one pool; used where Pools is empty
	Pools []PoolTarget // at most one of each pool
}

// Recoverer is implemented by a stage that can do something about an answer of its own that broke a rule: one that lives
// in another process, which can be started again, or replaced.
type Recoverer interface {
	// Recover is given the rule that was broken. It reports whether the same question must be asked again; if not, the error it
	// returns ends the run.
	Recover(ctx context.Context, broken error) (again bool, err error)
}
