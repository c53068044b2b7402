package metrics

import (
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Run is what a collector cannot know of the run it measures. Its functions may be nil.
type Run struct {
	Name     string               // name of the run
	Seed     uint64               // seed of the run
	Wall     func() time.Duration // how long the run has taken; called from any goroutine
	Now      func() float64       // present of the run in seconds, likewise; nil where time stands still between rounds
	Troubles func() []Trouble     // of the plugins; called between the stages of rounds only
	Tuning   func() *Tuning       // what a search for hyper-parameters has come to, nil for none; called from any goroutine
}

// Live is a collector that any goroutine may ask what the run has come to. It keeps copies of the jobs that have not
// ended, for the pipeline changes its own between rounds.
type Live struct {
	run Run

	mu        sync.Mutex
	collector *Collector
	jobs      map[core.JobID]*core.Job
	cursor    int // of the changes that were copied
	reported  map[core.JobID][]ReportedValue
	troubles  []Trouble
	forecast  *Forecast
	round     Snapshot  // but for what is counted on demand
	latest    *Snapshot // nil when a round came after it
	finished  bool
}

// Snapshot is what a run has come to, by what is known since its last round.
type Snapshot struct {
	Summary       *Summary        // as Finish would return it, had the run ended now
	NowSeconds    float64         // present of the run, in seconds
	RoundSeconds  float64         // moment of the last round
	Started       int             // jobs that ever held devices: those that Summary.QueueingSeconds describes
	Running       int             // jobs that hold devices
	Pending       map[string]int  // jobs that hold none, by each of core.Reasons
	DevicesUsed   int             // devices that jobs hold
	DevicesUsable int             // of ready nodes
	Reported      []ReportedValue // latest reports of jobs that have not ended, in the order of submission
	Forecast      *Forecast       // latest forecast; nil where there is none
}

var _ core.Observer = (*Live)(nil)

// NewLive makes a collector live. From then on it is called through Live alone.
func NewLive(c *Collector, r Run) *Live {
	return &Live{run: r, collector: c, jobs: map[core.JobID]*core.Job{}, reported: map[core.JobID][]ReportedValue{}}
}

// ObserveRound takes in one round. It copies the jobs that changed.
func (l *Live) ObserveRound(r *core.Report) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest = nil
	l.round = Snapshot{RoundSeconds: r.View.NowSeconds, DevicesUsed: r.DevicesUsed, DevicesUsable: r.View.Devices}
	if l.run.Troubles != nil {
		l.troubles = l.run.Troubles()
	}
	l.follow(r.View)
	return l.collector.ObserveRound(r)
}

func (l *Live) follow(v *core.View) {
	changed, next, complete := v.ChangesSince(l.cursor)
	l.cursor = next
	if !complete {
		for id := range v.Jobs {
			l.copy(v, core.JobID(id))
		}
		return
	}
	for _, id := range changed {
		l.copy(v, id)
	}
}

func (l *Live) copy(v *core.View, id core.JobID) {
	j := v.Job(id)
	if j == nil {
		delete(l.jobs, id)
		delete(l.reported, id)
		return
	}
	kept := l.jobs[id]
	if kept == nil {
		kept = &core.Job{}
		l.jobs[id] = kept
	}
	*kept = *j
	kept.Seats, kept.Measured, kept.Reported, kept.Tuning = nil, nil, nil, core.Tuning{} // they are the pipeline's
	if len(j.Reported) > 0 {
		l.reported[id] = latestOf(j)
	}
}

// Snapshot is what the run has come to. It is not to be changed. It costs time in proportion to the jobs submitted so far,
// once a moment, for which the next round waits.
func (l *Live) Snapshot() *Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); !l.finished && (l.latest == nil || l.latest.NowSeconds != now) {
		l.latest = l.count(now)
	}
	snapshot, summary := *l.latest, *l.latest.Summary
	if l.run.Wall != nil {
		summary.WallSeconds = Number(l.run.Wall().Seconds())
	}
	snapshot.Summary, snapshot.Forecast = &summary, l.forecast.unfinished(l.jobs)
	return &snapshot
}

// now is the present, never before the last round.
func (l *Live) now() float64 {
	if l.run.Now == nil || l.collector.roundsHeld == 0 {
		return l.round.RoundSeconds
	}
	return max(l.run.Now(), l.round.RoundSeconds)
}

// WriteSoFar writes those of the files that hold a row a job which the run writes, as they would be if it ended now, and returns the
// summary and the moment. It costs what Snapshot costs. Of a run that has ended it is an error: its own files are written.
func (l *Live) WriteSoFar(o Outputs) (s *Summary, nowSeconds float64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.finished {
		return nil, 0, ErrFinished
	}
	nowSeconds = l.now()
	s, err = l.collector.WriteSoFar(o, l.unfinished(), nowSeconds)
	if err != nil {
		return nil, 0, err
	}
	l.complete(s)
	if l.run.Wall != nil {
		s.WallSeconds = Number(l.run.Wall().Seconds())
	}
	return s, nowSeconds, nil
}

// ErrFinished says that a run has ended.
var ErrFinished = errors.New("the run has ended")

// unfinished are the copies by JobID.
func (l *Live) unfinished() []*core.Job {
	list := make([]*core.Job, 0, len(l.jobs))
	for _, id := range slices.Sorted(maps.Keys(l.jobs)) {
		list = append(list, l.jobs[id])
	}
	return list
}

func (l *Live) count(nowSeconds float64) *Snapshot {
	s := l.round
	s.NowSeconds = nowSeconds
	s.Pending = map[string]int{}
	for _, reason := range core.Reasons() {
		s.Pending[reason] = 0
	}
	unfinished := l.unfinished()
	for _, j := range unfinished {
		if j.State == core.Running {
			s.Running++
		} else {
			s.Pending[j.WaitingReason.String()]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.reported)) {
		s.Reported = append(s.Reported, l.reported[id]...)
	}
	s.Started = l.collector.started(l.jobs)
	s.Summary = l.collector.SoFar(unfinished, s.NowSeconds)
	l.complete(s.Summary)
	return &s
}

// complete fills in what the collector does not know.
func (l *Live) complete(s *Summary) {
	s.Name, s.Seed, s.Plugins = l.run.Name, l.run.Seed, l.troubles
	if l.run.Tuning != nil {
		s.Tuning = l.run.Tuning()
	}
}

// MostReportedMetrics is how many metrics of a job a snapshot holds: those it reported first. It bounds the size of what is exported.
const MostReportedMetrics = 4

// ReportedValue is the latest value that a job reported of one of its metrics.
type ReportedValue struct {
	Job, Metric string  // names of the job and of the metric
	Step, Value float64 // step of the job at which it reported, and the value it reported
}

// latestOf lists the latest values of the first metrics of a job.
func latestOf(j *core.Job) []ReportedValue {
	list := make([]ReportedValue, 0, min(len(j.Reported), MostReportedMetrics))
	for i := range min(len(j.Reported), MostReportedMetrics) {
		if p, some := j.Reported[i].Latest(); some {
			list = append(list, ReportedValue{Job: j.Name, Metric: j.Reported[i].Metric, Step: p.Step, Value: p.Value})
		}
	}
	return list
}

// started counts the measured jobs that ever held devices, going by the given jobs where they have not ended.
func (c *Collector) started(unfinished map[core.JobID]*core.Job) int {
	n := 0
	for i := range c.records {
		if r := &c.records[i]; r.spec != nil && c.window.Holds(r.spec.ID) && r.started() {
			n++
		}
	}
	for id, j := range unfinished {
		if c.window.Holds(id) && !math.IsNaN(j.FirstStart) {
			n++
		}
	}
	return n
}

// Finish ends the collector, as Collector.Finish. There is no round after it, and every later snapshot is of the end.
func (l *Live) Finish(unfinishedJobs []*core.Job, endSeconds float64) (*Summary, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest, l.finished = l.count(endSeconds), true
	return l.collector.Finish(unfinishedJobs, endSeconds)
}
