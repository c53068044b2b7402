package metrics

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Outputs is where a collector writes; nil for what is not wanted.
type Outputs struct {
	Jobs, Rounds, Decisions, Accelerators, Fairness io.Writer // where each table goes; nil for tables that are not wanted

	// ExclusiveTime is what fairness takes of jobs whose run time is not declared, and Sia's measure of all. nil leaves both out.
	ExclusiveTime ExclusiveTime
	// True returns what is so of a job in the place of what policies knew of it; nil when that is the same.
	True func(told *core.JobSpec) *core.JobSpec
	// StartPause is how many seconds a job pauses when it first starts, wherever it runs; nil for not at all.
	StartPause func(core.JobID) float64

	Tenants io.Writer // per-tenant fairness table; nil when it is not wanted
}

// Collector is the observer that measures a run. In a round in which nothing changed it allocates nothing.
type Collector struct {
	components Components
	earlier    []EarlierComponents
	window     Window

	jobs, rounds, decisions, accelerators, fairness, tenants *bufio.Writer // nil for what is not wanted

	records    []record // by JobID; an empty spec is an id not yet submitted
	demand     demand
	alone      ExclusiveTime
	truth      func(*core.JobSpec) *core.JobSpec
	startPause func(core.JobID) float64
	types      *typeBooks // nil while neither the cluster nor an output calls for them
	capacity   capacity
	bill       *bill         // nil without pools
	tiers      *tierBooks    // nil while no job has a tier
	sharing    *sharingBooks // nil while each device is one job's
	quality    *qualityBooks // nil while no job reports
	early      earlyEnds
	deadlines  bool          // some job has one
	searches   bool          // some job is a trial of one
	promises   bool          // admission promises deadlines
	cluster    *core.Cluster // nil before the first round
	roundsHeld int

	decisionTimes durations
	gaps          gaps
	stageTotal    [len(core.StageNames)]time.Duration
	stageMax      [len(core.StageNames)]time.Duration
}

var _ core.Observer = (*Collector)(nil)

const bufferSize = 64 << 10

// NewCollector returns a collector for one run of the given components.
func NewCollector(components Components, o Outputs) *Collector {
	return &Collector{
		components:   components,
		window:       AllJobs,
		alone:        o.ExclusiveTime,
		truth:        o.True,
		startPause:   o.StartPause,
		jobs:         buffered(o.Jobs, ""), // its header depends on the cluster
		rounds:       buffered(o.Rounds, roundsHeader),
		decisions:    buffered(o.Decisions, ""),
		accelerators: buffered(o.Accelerators, acceleratorsHeader),
		fairness:     buffered(o.Fairness, fairnessHeader),
		tenants:      buffered(o.Tenants, tenantsHeader),
	}
}

// Expect makes room for the records of so many jobs at once, which a large workload would outgrow many times. It comes
// before the first round, and more jobs may come.
func (c *Collector) Expect(jobs int) { c.records = slices.Grow(c.records, jobs) }

// Bill begins the bill of a cluster with pools. It comes before the first round, so that a run that holds none has one, too.
func (c *Collector) Bill(of *core.Cluster) {
	if c.bill == nil && len(of.Pools) > 0 {
		c.bill = newBill(of)
	}
}

// Measure makes the summary cover only a part of the jobs in what it says about jobs. It comes before the first round.
func (c *Collector) Measure(w Window) { c.window = w }

func buffered(w io.Writer, header string) *bufio.Writer {
	if w == nil {
		return nil
	}
	b := bufio.NewWriterSize(w, bufferSize)
	_, _ = b.WriteString(header) // fits the buffer
	return b
}

// ObserveRound takes in one round.
func (c *Collector) ObserveRound(r *core.Report) error {
	if c.cluster == nil && (c.accelerators != nil || mixesTypes(r.View.Cluster) || r.View.Cluster.MayGrow || divides(r.View.Cluster) || r.Repeated) {
		c.types = &typeBooks{}
	}
	if c.cluster == nil && r.View.Cluster.Sharing != core.Exclusive {
		c.sharing = &sharingBooks{}
	}
	c.cluster = r.View.Cluster
	c.promises = r.Promises
	c.roundsHeld++
	if s := r.Resumed; s != nil && s.Now != nil {
		c.takeOver(s, r.View.Round)
	}
	c.measure(r)
	c.gaps.add(r.GapRatio)
	c.follow(r)
	if c.sharing != nil {
		c.sharing.follow(r)
	}
	c.capacity.follow(r)
	c.Bill(r.View.Cluster)
	if c.bill != nil {
		c.bill.follow(r)
	}
	if c.types != nil {
		c.types.follow(r)
	}
	if c.rounds != nil {
		if err := writeRound(c.rounds, r); err != nil {
			return fmt.Errorf("write rounds: %w", err)
		}
	}
	if c.decisions != nil {
		if err := c.writeDecisions(r); err != nil {
			return fmt.Errorf("write decisions: %w", err)
		}
	}
	return nil
}

// takeOver notes that other components decide from a round on.
func (c *Collector) takeOver(s *core.Resumed, round int) {
	c.earlier = append(c.earlier, EarlierComponents{c.components, round - 1})
	c.components.set(s.Now)
}

// measure adds up how long the stages took.
func (c *Collector) measure(r *core.Report) {
	var decision time.Duration
	for i, spent := range r.StageTime {
		decision += spent
		c.stageTotal[i] += spent
		c.stageMax[i] = max(c.stageMax[i], spent)
	}
	c.decisionTimes.add(decision)
}

// follow keeps the records of the jobs that came and went.
func (c *Collector) follow(r *core.Report) {
	for i := range r.Events {
		e := &r.Events[i]
		if c.tiers != nil {
			c.tiers.event(e)
		}
		switch e.Kind {
		case core.JobSubmitted:
			c.enter(e.Spec, e.AtSeconds)
			held := 0
			if e.Held != nil {
				c.records[e.Job].before = e.Held.Attained
				held = core.Replicas(e.Held.Seats)
			}
			c.enterTier(r, e.Job, e.AtSeconds, held)
		case core.JobFinished, core.JobFailed, core.JobCancelled:
			c.leave(e.Job, e.AtSeconds)
		case core.JobReported:
			if c.quality == nil {
				c.quality = &qualityBooks{}
			}
		case core.JobChanged:
			c.edit(e.Spec, e.AtSeconds)
			c.enterTier(r, e.Job, e.AtSeconds, 0)
		}
	}
	for _, j := range r.Ended {
		c.leave(j.ID, r.View.NowSeconds) // unless an event told of it, as of those that this round ended none does
		c.records[j.ID].settle(j, r.View.NowSeconds)
		if c.quality != nil {
			c.quality.leave(j)
		}
	}
	c.early.follow(r.Changes)
	if c.tiers != nil {
		c.tiers.follow(r)
	}
}

// enterTier begins the books of a job with a tier, or takes in that its owner edited it.
func (c *Collector) enterTier(r *core.Report, id core.JobID, atSeconds float64, held int) {
	spec := c.records[id].spec
	if c.tiers == nil && spec.Tier == "" {
		return
	}
	if c.tiers == nil {
		c.tiers = &tierBooks{guarantees: r.Guarantees, asOf: atSeconds, devices: r.View.Devices}
	}
	if slices.ContainsFunc(r.Ended, func(j *core.Job) bool { return j.ID == id && j.State == core.Rejected }) {
		return // nobody guaranteed anything to one that is rejected at once
	}
	c.tiers.enter(spec, c.records[id].part, atSeconds, held)
}

// enter begins the record and the demand of a job.
func (c *Collector) enter(spec *core.JobSpec, atSeconds float64) {
	for int(spec.ID) >= len(c.records) {
		c.records = append(c.records, record{firstStart: math.NaN(), finish: math.NaN()})
	}
	if c.truth != nil {
		spec = c.truth(spec)
	}
	job := &c.records[spec.ID]
	job.spec = spec
	c.deadlines = c.deadlines || spec.DeadlineSeconds > 0
	c.searches = c.searches || spec.Experiment != ""
	job.part = c.partOf(spec)
	job.demanded = c.demand.add(finely(spec.Requested, job.part), 1, atSeconds)
}

// partOf is the part that a job has of each of its devices, or as it asks for it before the first round.
func (c *Collector) partOf(spec *core.JobSpec) float64 {
	if c.cluster == nil {
		return spec.Part()
	}
	return c.cluster.Part(spec)
}

// edit changes the demand of a job that its owner edited.
func (c *Collector) edit(spec *core.JobSpec, atSeconds float64) {
	job := &c.records[spec.ID]
	if job.left {
		return
	}
	if c.truth != nil {
		spec = c.truth(spec)
	}
	had := finely(job.spec.Requested, job.part)
	job.spec, job.part = spec, c.partOf(spec)
	c.demand.add(finely(spec.Requested, job.part)-had, 0, atSeconds)
}

// leave ends the demand of a job.
func (c *Collector) leave(id core.JobID, atSeconds float64) {
	job := &c.records[id]
	if job.left { // told twice
		return
	}
	job.left = true
	job.demanded = c.demand.add(-finely(job.spec.Requested, job.part), -1, atSeconds).since(job.demanded)
}

func (c *Collector) jobName(id core.JobID) string { return c.records[id].spec.Name }

// Finish adds the jobs that never ended, or whose end no round saw, writes the files that hold a row a job, flushes every output and sums up. It is
// called once, also after a run that was cut short. Name, Seed and WallSeconds of the summary are the caller's to fill in.
func (c *Collector) Finish(unfinishedJobs []*core.Job, endSeconds float64) (*Summary, error) {
	shares := c.close(unfinishedJobs, endSeconds)
	summary := c.summarise(shares, endSeconds)
	c.bill = c.bill.ended(endSeconds)
	if c.jobs != nil {
		_, _ = c.jobs.WriteString(c.more().header()) // fits the buffer
	}
	for i := range c.records {
		if c.records[i].spec == nil {
			continue
		}
		if err := c.writeJob(&c.records[i], shares); err != nil {
			return nil, err
		}
	}
	if c.tenants != nil {
		if err := c.writeTenants(c.tenants, shares); err != nil {
			return nil, err
		}
	}
	return summary, flushed(c.jobs, c.rounds, c.decisions, c.accelerators, c.fairness, c.tenants)
}

// Flush writes out what is known of rounds and decisions, for who reads them while the run goes on.
func (c *Collector) Flush() error { return flushed(c.rounds, c.decisions) }

func flushed(files ...*bufio.Writer) error {
	for _, w := range files {
		if w == nil {
			continue
		}
		if err := w.Flush(); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	return nil
}

// close ends the accounts of the jobs that have not ended, and says what jobs are measured by.
func (c *Collector) close(unfinishedJobs []*core.Job, endSeconds float64) *shares {
	for _, j := range unfinishedJobs {
		if int(j.ID) >= len(c.records) || c.records[j.ID].spec == nil { // submitted in a round that was not completed
			c.enter(j.JobSpec, j.SubmitSeconds)
		}
		c.records[j.ID].settle(j, endSeconds)
		if c.types != nil {
			c.types.finish(j, endSeconds)
		}
		if c.sharing != nil {
			c.sharing.leave(j.ID, min(endSeconds, atEnd(j)))
		}
	}
	return newShares(c.cluster, &c.capacity, c.alone, c.startPause)
}

// atEnd is when a job ended; +Inf of one that has not.
func atEnd(j *core.Job) float64 {
	if math.IsNaN(j.FinishSeconds) {
		return math.Inf(1)
	}
	return j.FinishSeconds
}

// SoFar sums up as Finish would if the run ended now, and leaves the collector and its files as they are.
func (c *Collector) SoFar(unfinishedJobs []*core.Job, nowSeconds float64) *Summary {
	copied := c.clone(unfinishedJobs)
	return copied.summarise(copied.close(unfinishedJobs, nowSeconds), nowSeconds)
}

// WriteSoFar is SoFar, and writes those of the files that hold a row a job which the run writes, as Finish would.
func (c *Collector) WriteSoFar(o Outputs, unfinishedJobs []*core.Job, nowSeconds float64) (*Summary, error) {
	copied := c.clone(unfinishedJobs)
	copied.rounds, copied.decisions = nil, nil
	for _, f := range [...]struct {
		slot   **bufio.Writer
		to     io.Writer
		header string
	}{
		{&copied.jobs, o.Jobs, ""},
		{&copied.accelerators, o.Accelerators, acceleratorsHeader},
		{&copied.fairness, o.Fairness, fairnessHeader},
		{&copied.tenants, o.Tenants, tenantsHeader},
	} {
		if *f.slot != nil {
			*f.slot = buffered(f.to, f.header)
		}
	}
	return copied.Finish(unfinishedJobs, nowSeconds)
}

// clone is a collector with accounts of its own, and the same files.
func (c *Collector) clone(unfinishedJobs []*core.Job) *Collector {
	copied := *c
	copied.records = slices.Clone(c.records)
	copied.types, copied.bill, copied.tiers, copied.sharing = c.types.clone(unfinishedJobs), c.bill.clone(), c.tiers.clone(), c.sharing.clone()
	copied.quality, copied.early = c.quality.clone(), maps.Clone(c.early)
	return &copied
}

// more is which further columns jobs.csv has.
func (c *Collector) more() more {
	return more{c.deadlines, c.bill, c.tiers != nil, c.sharing, c.cluster, c.searches}
}

// writeJob writes what each file holds of a job.
func (c *Collector) writeJob(r *record, s *shares) error {
	if c.jobs != nil {
		if err := r.write(c.jobs, c.more(), c.types); err != nil {
			return fmt.Errorf("write jobs: %w", err)
		}
	}
	if c.accelerators != nil && c.types != nil && r.started() {
		if err := c.types.write(c.accelerators, r.spec.ID, c.cluster); err != nil {
			return fmt.Errorf("write accelerators: %w", err)
		}
	}
	if c.fairness != nil && r.outcome == completed {
		f := s.of(r)
		if err := writeFairness(c.fairness, r.spec.ID, &f); err != nil {
			return fmt.Errorf("write fairness: %w", err)
		}
	}
	return nil
}
