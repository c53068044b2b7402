package local

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// job is what the backend knows of a job.
type job struct {
	*workload.Job

	// What is decided: seats is nil for none.
	seats   []core.Seat
	tuning  core.Tuning
	decided int // round that decided the seats
	changed int // round of the last change

	submitted   bool // the pipeline was told, or is about to be
	told        bool // it was
	ended       bool
	cancelled   bool
	cancelledAt float64 // when that ended it
	reported    report
	news        int // run that said something that is not recorded; 0 for none
	spokeIn     int // last run that is recorded to have said anything

	run     run          // the last one; Number 0 for none
	shrunk  int          // round that took in that replicas of it were killed, the last one; 0 for none
	rigid   bool         // when it had lost replicas it was given as many as before at once: it does not continue with fewer
	vain    float64      // longest life of its runs that ended without success since it last got further, at least startNoise
	deepest float64      // most progress that a checkpoint kept
	watched bool         // this process waits for the keeper of run to end
	gone    chan float64 // receives when it did
	watch

	// Work done, in the unit of TotalWork: progress at asOf seconds, growing with rate.
	progress, rate, asOf float64
}

// watch is what is seen of a run while this process waits for its end. Times are seconds of the run of the scheduler.
type watch struct {
	spoke, done  bool    // its rank 0 said anything, and that all work is done
	kept         bool    // it made a checkpoint that is further than all before
	silent       bool    // it spoke to a scheduler before this one
	connected    bool    // rank 0 may have more to say
	beganAt      float64 // when it was first seen
	spokeAt      float64 // when it last said something
	before       bool    // it had ended before this scheduler began
	exited       bool    // its keeper has ended,
	exitedAt     float64 // and when
	hung         bool
	evicted      bool    // a node that it ran on was taken away
	checkpointBy float64 // when it is asked for a checkpoint
	stopBy       float64 // when it should be gone; 0 while it was not told to stop
	slow         bool    // its keeper was killed, for it is not
	lingers      float64 // until when its final report is waited for; 0 while it runs
}

// wanted reports whether the last run is the one that was decided.
func (j *job) wanted() bool { return j.seats != nil && !j.ended && j.run.Round == j.decided }

// due reports whether a run is to be started, after so many rounds.
func (j *job) due(rounds int) bool {
	return j.seats != nil && !j.ended && !j.watched && j.run.Round != j.decided && j.decided <= rounds
}

// live reports whether the keeper of the last run has not been seen to end.
func (j *job) live() bool { return j.watched }

// How a run is told from those before it that came to nothing. It must live clearly longer, not just as much longer as a busy
// machine makes it: each run that does so raises the mark for the next to the double, at least.
const (
	clearly    = 2
	startNoise = time.Second // lives below it say nothing but how long processes take to start
)

// proves is for how long a run must live to count as work: the job was thrown back before, each time after at most vain. One
// that lives as long as a run may stall works, whatever was before.
func (j *job) proves(stall float64) float64 { return min(clearly*j.vain, stall) }

// advances reports whether the run that is under way gets further than those that came to nothing.
func (j *job) advances(now, stall float64) bool {
	return j.vain == 0 || now-j.beganAt > j.proves(stall)
}

// workDone is the progress at a moment, as far as is known.
func (j *job) workDone(now float64) float64 {
	done := j.progress
	if now > j.asOf {
		done += (now - j.asOf) * j.rate
	}
	if j.Spec.TotalWork > 0 {
		done = min(done, j.Spec.TotalWork)
	}
	return done
}

// keeps is what is left of the progress when the replicas end before the work is done.
func (j *job) keeps(now float64) float64 {
	switch {
	case j.reported.checkpointed:
		return j.reported.checkpoint
	case j.Process.Checkpoints:
		return j.workDone(now)
	default:
		return 0
	}
}

// begin notes that the replicas start at a moment: with a rate where the job declared how long it takes.
func (j *job) begin(now float64) {
	j.asOf, j.rate = now, 0
	if j.Spec.TotalWork > 0 && !j.Process.Reports {
		j.rate = float64(core.Replicas(j.seats)) / float64(j.Spec.Requested)
	}
}

// leave notes that the replicas ended at a moment.
func (j *job) leave(now float64) {
	j.progress = j.keeps(now)
	j.asOf, j.rate, j.seats = now, 0, nil
}

func (j *job) progressed(now float64) core.Event {
	return core.Event{
		Kind: core.JobProgressed, AtSeconds: now, Job: j.Spec.ID, Progress: j.progress, Rate: j.rate, FromSeconds: j.asOf, Checkpointing: j.checkpointing(),
	}
}

// checkpointing is whether a run goes on where the one before stopped: as declared, or because it was seen to make a checkpoint.
func (j *job) checkpointing() core.Checkpointing {
	if j.Process.Checkpoints || j.reported.checkpointed {
		return core.KeepsProgress
	}
	return core.BeginsAnew
}

// The files of a backend.
const (
	storeFile   = backend.StoreFile
	agentSocket = "agent.sock"
	peersFolder = "peers" // of a run: where its replicas meet
)

// The folders of a job.
func (b *Backend) folder(j *job) string { return filepath.Join(b.dir, "jobs", j.Spec.Name) }

func (b *Backend) runFolder(j *job, number int) string {
	return filepath.Join(b.folder(j), fmt.Sprintf("run-%d", number))
}
