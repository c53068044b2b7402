package sim

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

type opener struct {
	config   Config
	settings core.Settings
}

// Capabilities lists what the simulator knows that a real cluster would not.
func (o *opener) Capabilities() []core.Capability {
	return []core.Capability{
		core.CapabilityRemainingWork, core.CapabilityStepTimes, core.CapabilityMeasurements, core.CapabilityScaleCluster,
		core.CapabilityShares, core.CapabilitySlices, core.CapabilityResources, core.CapabilityPairRates,
	}
}

// Check refuses publication options that need rounds of another kind, and events on nodes that there are not.
func (o *opener) Check(c *core.Cluster, r core.RoundOptions) core.Diagnostics {
	return slices.Concat(o.config.checkRounds(r.IntervalSeconds, r.OnEvents), o.config.checkNodes(c), o.config.checkMig(c.Sharing))
}

// Open starts the virtual clock over a cluster and a workload.
func (o *opener) Open(ctx context.Context, c *core.Cluster, w *workload.Workload) (core.Backend, error) {
	if err := o.config.checkNodes(c).Err(); err != nil {
		return nil, err
	}
	if err := checkEnds(w).Err(); err != nil {
		return nil, err
	}
	if err := o.config.checkReacting(w); err != nil {
		return nil, err
	}
	s := &Simulator{config: o.config, settings: o.settings, seen: c, workload: w.Jobs, jobs: make([]*simJob, len(w.Jobs)), owed: math.Inf(1)}
	is := *c
	is.MayGrow, is.Accelerators, is.Nodes, is.Pools = false, slices.Clone(c.Accelerators), slices.Clone(c.Nodes), slices.Clone(c.Pools)
	s.cluster = &is
	if o.config.MeasurementNoise.any() {
		s.noise = newStream(o.settings.Seed, o.settings.ID+"/measurement_noise")
	}
	s.measured = slices.ContainsFunc(w.Jobs, func(j workload.Job) bool {
		_, measures := j.Model.(workload.Measurer)
		return measures
	})
	s.nodes = newNodeEvents(o.config, c, newStream(o.settings.Seed, o.settings.ID))
	if c.Sharing != core.Exclusive {
		s.sharing = &sharing{model: withMemory(o.config.CoLocation.model(), s.cluster), cluster: s.cluster, on: make(map[deviceAt][]*simJob)}
		if err := s.readPairs(ctx); err != nil {
			return nil, err
		}
	}
	if c.Sharing == core.Mig {
		s.slicing = &slicing{into: make(map[deviceAt]division)}
	}
	s.openPools()
	c.MayGrow = s.mayGrow()
	s.outages = sortedOutages(o.config.Outages)
	if o.config.StartDelaySpread > 0 {
		s.delays = newStream(o.settings.Seed, o.settings.ID+"/start_delay")
	}
	if w.React != nil {
		to, err := w.React(ctx, "")
		if err != nil {
			return nil, err
		}
		s.reaction, s.measured = &reaction{to: to, ids: map[string]core.JobID{}}, true
	}
	return s, nil
}

// checkEnds refuses jobs of unknown length: virtual time would pass without end.
func checkEnds(w *workload.Workload) (found core.Diagnostics) {
	for i := range w.Jobs {
		j := &w.Jobs[i]
		if math.IsInf(j.Model.PhaseEnd(j.Model.Phases()-1), 1) {
			found = append(found, core.Diagnostic{
				Position: j.At, Summary: fmt.Sprintf("job %q does not say how long it takes, and would never end in a simulation", j.Spec.Name),
				Hint: "give it \"seconds\"",
			})
		}
	}
	return found
}

// Simulator is a core.Backend over virtual time.
type Simulator struct {
	config   Config
	settings core.Settings
	cluster  *core.Cluster // as it is
	seen     *core.Cluster // as the pipeline knows it
	nodes    nodeEvents
	pools    pools
	grows    bool // nodes may join of which nothing is known

	workload []workload.Job // in order of submission
	base     int            // id of the first of them: those before it were there when the simulation began
	reaction *reaction      // nil for a list of jobs
	jobs     []*simJob      // by JobID; nil before the submission and after the end

	measured bool    // some jobs report what they measure
	noise    *stream // of measurements; nil without
	begun    bool    // the first round was held
	now      float64
	arrived  int       // jobs[:arrived] were submitted
	active   int       // submitted and not ended
	running  []*simJob // jobs with devices, by JobID
	queue    jobQueue  // running jobs by the moment of their next phase end
	churned  int       // rounds that gave somebody devices since a job came further, or was submitted
	advanced float64   // last moment at which work was known to be done, or a job was submitted
	events   []core.Event
	notes    []core.Event // consequences of Apply, told with the next observation
	sharing  *sharing     // nil where no device is shared
	slicing  *slicing     // nil where devices are not divided into slices
	spanning []int        // by node: jobs that span nodes and hold devices there; nil without interference

	starting []*simJob // jobs with devices whose replicas do not run yet
	leaving  []leaving // devices that jobs lost and still hold, by time
	delays   *stream   // of starts; nil without

	outages     []outage  // by time
	toldOutages int       // of them
	appliesAt   float64   // end of the outage in which changes were to be applied
	owed        float64   // moment of a round that an outage kept from being told; +Inf for none
	wake        core.Wake // as last asked for

	filesRead []core.FileRead
}

var (
	_ core.Backend    = (*Simulator)(nil)
	_ core.FileReader = (*Simulator)(nil)
	_ core.Keeping    = (*Simulator)(nil)
	_ core.Scaling    = (*Simulator)(nil)
)

// FilesRead are the pairs of the user's own.
func (s *Simulator) FilesRead() []core.FileRead { return s.filesRead }

// KeepsDevices is as the config has it.
func (s *Simulator) KeepsDevices() bool { return s.config.Resize.Keep }

// Capabilities repeats what the opener told.
func (s *Simulator) Capabilities() []core.Capability { return (&opener{}).Capabilities() }

// Next moves the clock to the next round and tells what happened up to it.
func (s *Simulator) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if err := s.config.checkRounds(w.IntervalSeconds, w.OnEvents).Err(); err != nil {
		return core.Observation{}, err
	}
	s.events = append(s.events[:0], s.notes...)
	s.notes = s.notes[:0]
	advance := s.advanceByEvents
	switch s.config.Publication.Progress {
	case perRound, wholeSteps:
		advance = s.advanceByRounds
	case backToBack:
		advance = s.advanceBackToBack
	}
	s.wake = w
	now, err := advance(ctx, w)
	if err == nil {
		err = s.unavailable(now)
	}
	if err != nil {
		s.notes = append(s.notes, s.events...) // nothing is lost when the context ended
		return core.Observation{}, err
	}
	if p := s.config.Publication.Progress; p != perRound && p != wholeSteps {
		s.reportAll(now)
	}
	s.pauseForRound(now, &s.events)
	s.now, s.begun, s.owed = now, true, math.Inf(1)
	return core.Observation{NowSeconds: now, Events: s.events}, nil
}

// advanceByEvents goes from event to event until one of them, or the wake-up, calls for a round.
func (s *Simulator) advanceByEvents(ctx context.Context, w core.Wake) (float64, error) {
	due, happened := min(s.onGrid(w.BySeconds, w), s.owed), !math.IsInf(s.owed, 1)
	if at, reacted, owed, err := s.catchUp(ctx); err != nil {
		return 0, err
	} else if reacted || owed {
		due, happened = min(due, s.moment(at, w)), true
	}
	due = s.available(due, w)
	for {
		at := s.nextEvent()
		if report := s.nextReport(w); report < due {
			due = report
		}
		if !happened && s.over(min(at, due)) || math.IsInf(min(at, due), 1) {
			return 0, io.EOF
		}
		if at > due {
			return due, nil
		}
		if err := ctx.Err(); err != nil && !happened { // what happened is told
			return 0, err
		}
		wakes := s.happen(at, w)
		if reacted, err := s.react(ctx, at); err != nil {
			return 0, err
		} else if reacted {
			wakes = min(wakes, s.moment(at, w))
		}
		if wakes = s.available(wakes, w); wakes <= due {
			due, happened = wakes, true
		}
	}
}

// moment is that of the round of which something is told that happens at a moment.
func (s *Simulator) moment(at float64, w core.Wake) float64 {
	if w.OnEvents {
		return at
	}
	return s.onGrid(at, w)
}

// nextEvent is the moment of the earliest event, +Inf if there is none.
func (s *Simulator) nextEvent() float64 {
	at := s.nodes.next()
	if s.arrived < len(s.jobs) {
		at = min(at, s.workload[s.arrived-s.base].Spec.SubmitSeconds)
	}
	if len(s.queue) > 0 {
		at = min(at, s.queue[0].nextAt)
	}
	return min(at, s.nextStart())
}

// happen lets everything of one moment happen, and returns when that wakes the pipeline.
func (s *Simulator) happen(at float64, w core.Wake) (wakes float64) {
	wakes = math.Inf(1)
	moment := s.moment(at, w)
	for len(s.queue) > 0 && s.queue[0].nextAt <= at {
		j := s.queue[0]
		if s.endPhase(j, w) {
			wakes = moment
		} else if w.IntervalSeconds > 0 {
			wakes = min(wakes, s.onGrid(at, w))
		}
	}
	if s.letGo(at) || s.begin(at) {
		wakes = moment
	}
	s.removeEmpty(at)
	if s.happenToNodes(at) {
		wakes = moment
	}
	if s.arrive(at) {
		wakes = moment
	}
	return wakes
}

// arrive submits the jobs whose time has come.
func (s *Simulator) arrive(at float64) bool {
	any := false
	for s.arrived < len(s.jobs) && s.workload[s.arrived-s.base].Spec.SubmitSeconds <= at {
		j := s.newJob(&s.workload[s.arrived-s.base])
		s.jobs[s.arrived] = j
		s.events = append(s.events, core.Event{
			Kind: core.JobSubmitted, AtSeconds: j.Spec.SubmitSeconds, Job: j.Spec.ID, Spec: j.Told(),
			StepsLeft: j.StepsLeft(0),
		})
		s.arrived++
		s.active++
		s.came(j.Spec.SubmitSeconds)
		any = true
	}
	return any
}

// onGrid is the first moment of the round grid not before t.
func (s *Simulator) onGrid(t float64, w core.Wake) float64 {
	if w.IntervalSeconds > 0 {
		t = core.OnGrid(t, w.IntervalSeconds)
	}
	if s.config.Publication.FirstRound == oneInterval {
		return max(t, w.IntervalSeconds)
	}
	return t
}

// over reports whether nothing will ever happen again, or nothing but failing nodes and rounds that lead to no work. No
// event comes before next.
func (s *Simulator) over(next float64) bool {
	if s.arrived < len(s.jobs) {
		return false
	}
	if s.active == 0 || math.IsInf(next, 1) {
		return true
	}
	if !s.inVain(next) || s.nodes.scheduled() {
		return false
	}
	if s.works(next) {
		s.churned = 0
		return false
	}
	s.pools.hopeless = s.pools.asks > mostAsks || s.churned > mostChurned
	return true
}

// works reports whether a running job comes further than ever before a moment, if nothing happens until then. At rate 0, or
// in no time, no job comes further than it was.
func (s *Simulator) works(before float64) bool {
	return slices.ContainsFunc(s.running, func(j *simJob) bool {
		return j.progress+(before-max(j.asOf, j.pausedUntil))*j.rate > j.furthest
	})
}

// Apply carries out the changes of a round at the moment of the last observation, or at the end of an outage that began then.
func (s *Simulator) Apply(_ context.Context, changes []core.Change) error {
	late, err := s.failToApply()
	if err != nil {
		return err
	}
	for i := range changes {
		if c := &changes[i]; c.Job < 0 || int(c.Job) >= s.arrived {
			return fmt.Errorf("%v job %d, which was never submitted", c.Action, c.Job)
		}
	}
	s.vacate(changes)
	for i := range changes {
		c := &changes[i]
		j := s.jobs[c.Job]
		if void(j, c) {
			continue
		}
		j.changed = c.Round
		if late && j.seats == nil && c.Action != core.Start && c.Action != core.Discard && c.Action != core.Finish {
			continue // it lost its devices meanwhile
		}
		seated := gives(j, c)
		if c.Action == core.Discard || c.Action == core.Finish {
			s.advance(j, s.now)
			s.unseat(j)
			s.end(j)
			s.reaction.ended(j, c, s.now)
			continue
		}
		s.carryOut(j, c)
		s.reaction.changed(j, c, s.now)
		s.notes = append(s.notes, j.progressed(s.now))
		if seated {
			s.noteStart(j)
		}
	}
	if len(changes) > 0 {
		s.churned++
		s.disturb(s.now, &s.notes)
		s.pauseForRound(s.now, &s.notes)
	}
	s.removeEmpty(s.now)
	return nil
}

func (s *Simulator) carryOut(j *simJob, c *core.Change) {
	s.advance(j, s.now)
	switch c.Action {
	case core.Stop, core.Pause:
		s.unseat(j)
		j.lose()
	case core.Tune:
		if pause := s.config.TuneOverhead.Seconds(); pause > 0 && !j.running.Tuning.Equal(c.Tuning) {
			j.pausedUntil = max(j.pausedUntil, s.now+pause)
		}
		j.running.Tuning, j.unmeasured = c.Tuning, true
		s.give(j, c.Resources)
	case core.Start, core.Move:
		if core.SameSeats(j.seats, c.Seats) && j.running.Tuning.Equal(c.Tuning) && core.SameResources(j.resources, c.Resources) {
			return // applied before
		}
		from := s.startOf(j, c.Seats)
		j.pausedUntil = s.pauseUntil(j, c.Seats, from)
		if !s.inPlace(j, c.Seats) {
			j.lose()
		}
		s.unseat(j)
		j.seats, j.running.Tuning = c.Seats, c.Tuning
		s.give(j, c.Resources)
		j.running.Replicas = core.Replicas(c.Seats)
		j.running.Shape, j.running.Accelerators = j.running.Shape[:0], j.running.Accelerators[:0]
		for _, seat := range c.Seats {
			j.running.Shape = append(j.running.Shape, seat.Devices.Count())
			j.running.Accelerators = append(j.running.Accelerators, s.cluster.Accelerators[s.cluster.Nodes[seat.Node].Accelerator])
		}
		j.started, j.progressAtStart, j.unmeasured, j.fresh = true, j.progress, true, true
		at, _ := slices.BinarySearchFunc(s.running, j, compareJobs)
		s.running = slices.Insert(s.running, at, j)
		if j.runsFrom = from; from > s.now {
			s.starting = append(s.starting, j)
		}
		s.span(j, +1)
		if s.sharing != nil {
			s.sharing.join(j)
		}
		if s.slicing != nil && s.slicing.divide(j.Spec.Slice(), c.Seats, c.Slices) {
			j.pausedUntil = max(j.pausedUntil, from) + s.config.Mig.Repartition.Seconds()
		}
	}
	s.schedule(j)
}

// pauseUntil is when a job works on other seats than it has, whose replicas run from a moment on: a restart begins anew, a
// resize in place only prolongs what is left of a pause.
func (s *Simulator) pauseUntil(j *simJob, seats []core.Seat, from float64) float64 {
	switch {
	case !j.started && s.config.FreeFirstStart:
		return from
	case s.config.Publication.Moves == freeAlike && s.alike(j.seats, seats):
		return j.pausedUntil
	case s.inPlace(j, seats):
		return max(j.pausedUntil, from+min(s.config.Resize.Overhead.Seconds(), j.overhead))
	default:
		return from + j.overhead
	}
}

// alike reports whether two seatings have as many devices of the same type on each of their nodes.
func (s *Simulator) alike(a, b []core.Seat) bool {
	return slices.EqualFunc(a, b, func(x, y core.Seat) bool {
		return x.Devices.Count() == y.Devices.Count() && s.cluster.Nodes[x.Node].Accelerator == s.cluster.Nodes[y.Node].Accelerator
	})
}

// shareDevice reports whether two seatings have a device in common.
func shareDevice(a, b []core.Seat) bool {
	return slices.ContainsFunc(a, func(x core.Seat) bool {
		return slices.ContainsFunc(b, func(y core.Seat) bool { return x.Node == y.Node && x.Devices&y.Devices != 0 })
	})
}

// unseat takes a job's devices away.
func (s *Simulator) unseat(j *simJob) {
	if j.seats == nil {
		return
	}
	s.span(j, -1)
	if s.sharing != nil {
		s.sharing.part(j)
	}
	j.seats = nil
	j.rate = 0
	s.starting = slices.DeleteFunc(s.starting, func(o *simJob) bool { return o == j })
	at, _ := slices.BinarySearchFunc(s.running, j, compareJobs)
	s.running = slices.Delete(s.running, at, at+1)
	if j.heapIndex >= 0 {
		heap.Remove(&s.queue, j.heapIndex)
	}
}

func compareJobs(a, b *simJob) int { return cmp.Compare(a.Spec.ID, b.Spec.ID) }
