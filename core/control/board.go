package control

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// The bounds of what a board keeps.
const (
	keptDecisions = 50     // of a job, the last ones
	keptEnded     = 10_000 // jobs that have ended, the last ones
	keptExpected  = 100_000
)

// Board is a copy of what a pipeline knows, for readers in other goroutines. It observes the rounds, each in time
// proportional to the jobs that changed. Of the jobs that have ended it keeps the last 10,000.
type Board struct {
	mutex  sync.RWMutex
	now    float64
	cursor int      // in the journal of the view
	jobs   []*entry // by JobID; nil before submission and once forgotten
	named  map[string]core.JobID
	ended  []core.JobID // in the order in which they ended
	nodes  []node
	types  []string // of accelerators
	pools  []core.Pool
	grows  bool // some pool has fewer nodes than it may have
	shares bool // devices are shared
	shared bool // they may have been, in rounds that were told again
	counts bool // nodes count CPUs and memory

	expected map[string]bool // submitted, and not yet seen by a round

	outlooks    atomic.Pointer[map[core.JobID]*controlv1.Outlook]
	notForecast atomic.Pointer[string] // why; nil for nothing said
}

// SetForecasts replaces what is expected of jobs. It is not to be changed.
func (b *Board) SetForecasts(of map[core.JobID]*controlv1.Outlook) { b.outlooks.Store(&of) }

// SetNoForecast says why nothing is expected of jobs from now on; empty where that is over. What was expected is withdrawn.
func (b *Board) SetNoForecast(why string) {
	b.outlooks.Store(nil)
	b.notForecast.Store(&why)
}

// outlook is what is expected of a job; nil for nothing.
func (b *Board) outlook(id core.JobID) *controlv1.Outlook {
	if of := b.outlooks.Load(); of != nil {
		return (*of)[id]
	}
	return nil
}

// entry is a job on the board. The facts are replaced, never changed: a reader may keep them.
type entry struct {
	*facts
	decisions []decision // the last ones, oldest first
}

// facts are a job as it was after a round.
type facts struct {
	core.Job    // without Measured and Reported
	measurement *core.Measurement
	metrics     []metric // what it reported; replaced, never changed
	message     string   // what last went wrong
	failures    int      // runs of its command that failed
}

type node struct {
	core.Node
	used         int
	jobs         []int // by device, where devices are shared
	milli        int   // thousandths of devices that jobs have, where devices are shared
	cpus, memory int   // thousandths that jobs have of CPUs and of a GB, where they are counted
}

// decision is one thing that was decided about a job, or happened to it.
type decision struct {
	round             int
	at                float64
	what, by          string
	reason            core.Reason
	message           string
	wanted, available float64
	expected          float64 // when nodes should be ready; 0 for none
	unit              string
	seats             []core.Seat
	with              []string // jobs on these devices
	tuning            *core.Tuning
}

// NewBoard returns a board of the nodes of a cluster, and no job yet.
func NewBoard(c *core.Cluster) *Board {
	b := &Board{named: make(map[string]core.JobID), expected: make(map[string]bool), types: slices.Clone(c.Accelerators), pools: c.Pools, grows: c.MayGrow}
	b.shares, b.counts = c.Sharing != core.Exclusive, c.CountsResources
	for i := range c.Nodes {
		b.nodes = append(b.nodes, node{Node: c.Nodes[i]})
	}
	return b
}

// ObserveRound brings the board up to date.
func (b *Board) ObserveRound(r *core.Report) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	v := r.View
	b.now, b.shared = v.NowSeconds, b.shared || r.Repeated
	b.join(v.Cluster)
	changed, next, complete := v.ChangesSince(b.cursor)
	b.cursor = next
	if complete {
		for _, id := range changed {
			b.take(v.Job(id))
		}
	} else {
		for _, j := range v.Jobs {
			b.take(j)
		}
	}
	for _, j := range r.Ended {
		b.take(j)
	}
	for i := range r.Events {
		b.record(v.Round, &r.Events[i])
	}
	for i := range r.Verdicts {
		b.judge(v, &r.Verdicts[i])
	}
	for i := range r.Changes {
		b.move(v, &r.Changes[i])
	}
	for _, j := range r.Ended {
		b.retire(j.ID)
	}
	return nil
}

// join takes in the nodes that joined, and whether more may.
func (b *Board) join(c *core.Cluster) {
	b.types, b.grows = c.Accelerators, c.MayGrow
	for i := len(b.nodes); i < len(c.Nodes); i++ {
		b.nodes = append(b.nodes, node{Node: c.Nodes[i]})
	}
}

// take replaces the facts of a job; nil for one that has ended, whose facts the report brings.
func (b *Board) take(j *core.Job) {
	if j == nil {
		return
	}
	for int(j.ID) >= len(b.jobs) {
		b.jobs = append(b.jobs, nil)
	}
	e := b.jobs[j.ID]
	if e == nil {
		e = &entry{facts: &facts{}}
		b.jobs[j.ID] = e
		b.named[j.Name] = j.ID
		delete(b.expected, j.Name)
	}
	b.use(&e.Job, -1)
	e.facts = &facts{Job: *j, measurement: e.measurement, metrics: metricsOf(j, e.metrics), message: e.message, failures: e.failures}
	e.Measured, e.Reported = nil, nil // they are the pipeline's
	b.use(&e.Job, 1)
}

// use counts what a job has in (1) or out (-1).
func (b *Board) use(j *core.Job, sign int) {
	for _, s := range j.Seats {
		n, replicas := &b.nodes[s.Node], sign*s.Devices.Count()
		if b.counts {
			n.cpus += replicas * thousandths(j.CPUs)
			n.memory += replicas * thousandths(j.MemoryGB)
		}
		if !b.shares && !b.shared {
			n.used += replicas
			continue
		}
		part := thousandths(j.Part())
		if part == 0 {
			continue // it computes on CPUs
		}
		if n.jobs == nil {
			n.jobs = make([]int, core.MaxDevicesPerNode)
		}
		n.milli += replicas * part
		for rest := s.Devices; rest != 0; rest &= rest - 1 {
			before := min(n.jobs[rest.First()], 1)
			n.jobs[rest.First()] += sign
			n.used += min(n.jobs[rest.First()], 1) - before
		}
	}
}

func thousandths(x float64) int { return int(math.Round(x * 1000)) }

func (b *Board) record(round int, e *core.Event) {
	switch e.Kind {
	case core.NodeChanged:
		n := &b.nodes[e.Node]
		if n.Health, n.Unusable = e.Health, e.Unusable; e.Health != core.Provisioning {
			n.ExpectedSeconds = 0
		}
	case core.NodeRemoved:
		b.nodes[e.Node].Health = core.Gone
	case core.JobMeasured:
		if j := b.job(e.Job); j != nil && e.Measurement != (core.Measurement{}) {
			m, copied := e.Measurement, *j.facts // the event is the backend's
			copied.measurement = &m
			j.facts = &copied
		}
	case core.JobSubmitted, core.JobFinished, core.JobFailed, core.JobCancelled, core.JobInterrupted, core.JobStarting, core.JobStarted,
		core.JobShrunk, core.JobChanged:
		d := decision{round: round, at: e.AtSeconds, what: e.Kind.String(), message: e.Message}
		if e.Kind == core.JobInterrupted {
			d.reason = e.Cause.Reason()
		}
		b.note(e.Job, d)
	case core.JobProgressed:
		if e.Message != "" { // it begins again; other progress is no decision
			b.note(e.Job, decision{round: round, at: e.AtSeconds, what: e.Kind.String(), message: e.Message})
		}
	}
	b.blame(e)
}

// blame keeps what went wrong with a job.
func (b *Board) blame(e *core.Event) {
	failed := e.Kind == core.JobFailed || e.Kind == core.JobProgressed && e.Message != "" || e.Kind == core.JobInterrupted && e.Cause == core.CauseExited
	j := b.job(e.Job)
	if j == nil || !failed && e.Kind != core.JobInterrupted {
		return
	}
	copied := *j.facts
	copied.message = e.Message
	if failed {
		copied.failures++
	}
	j.facts = &copied
}

func (b *Board) judge(v *core.View, verdict *core.Verdict) {
	b.note(verdict.Job, decision{
		round: v.Round, at: v.NowSeconds, what: verdict.Code.String(), by: verdict.By, reason: verdict.Reason,
		message: verdict.Message, wanted: verdict.Wanted, available: verdict.Available, unit: verdict.Unit, expected: verdict.ExpectedSeconds,
	})
}

func (b *Board) move(v *core.View, c *core.Change) {
	if c.Action == core.Discard {
		return // the verdict said it
	}
	d := decision{round: v.Round, at: v.NowSeconds, what: c.Action.String(), by: c.By, reason: c.Reason, seats: c.Seats}
	if c.Action == core.Start || c.Action == core.Move || c.Action == core.Tune {
		tuning := c.Tuning
		d.tuning = &tuning
	}
	if len(c.Seats) > 0 && v.Cluster.Sharing != core.Exclusive {
		d.with = beside(v, c)
	}
	b.note(c.Job, d)
}

// beside names the jobs that compute on devices of one that starts or moves. O(active jobs).
func beside(v *core.View, c *core.Change) (names []string) {
	computes := func(id core.JobID) *core.Job {
		if j := v.Job(id); j != nil && j.Part() > 0 {
			return j
		}
		return nil
	}
	if computes(c.Job) == nil {
		return nil
	}
	for _, id := range v.Active {
		other := computes(id)
		if other != nil && id != c.Job && slices.ContainsFunc(other.Seats, func(had core.Seat) bool {
			return slices.ContainsFunc(c.Seats, func(s core.Seat) bool { return s.Node == had.Node && s.Devices&had.Devices != 0 })
		}) {
			names = append(names, other.Name)
		}
	}
	return names
}

func (b *Board) note(id core.JobID, d decision) {
	e := b.job(id)
	if e == nil {
		return
	}
	if len(e.decisions) == keptDecisions {
		e.decisions = slices.Delete(e.decisions, 0, 1)
	}
	e.decisions = append(e.decisions, d)
}

func (b *Board) job(id core.JobID) *entry {
	if id < 0 || int(id) >= len(b.jobs) {
		return nil
	}
	return b.jobs[id]
}

// retire counts a job as ended, and forgets the one that ended first when there are too many.
func (b *Board) retire(id core.JobID) {
	b.ended = append(b.ended, id)
	if len(b.ended) <= keptEnded {
		return
	}
	first := b.ended[0]
	b.ended = b.ended[1:]
	name := b.jobs[first].Name
	if b.named[name] == first {
		delete(b.named, name)
	}
	b.jobs[first] = nil
}

// expect lists jobs that the backend has taken in and no round has seen.
func (b *Board) expect(names []string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, name := range names {
		if _, seen := b.named[name]; !seen && len(b.expected) < keptExpected {
			b.expected[name] = true
		}
	}
}

// list returns the facts of all jobs by JobID, with or without those that have ended, the names of those that are
// expected, sorted, and the moment of the last round.
func (b *Board) list(ended bool) (jobs []*facts, expected []string, now float64) {
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	for _, e := range b.jobs {
		if e != nil && (ended || !e.State.Ended()) {
			jobs = append(jobs, e.facts)
		}
	}
	for name := range b.expected {
		expected = append(expected, name)
	}
	slices.Sort(expected)
	return jobs, expected, b.now
}

// find returns what is known of a job. Facts are nil for one that is only expected.
func (b *Board) find(name string) (f *facts, decisions []decision, now float64, known bool) {
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	if id, ok := b.named[name]; ok {
		e := b.jobs[id]
		return e.facts, slices.Clone(e.decisions), b.now, true
	}
	return nil, nil, b.now, b.expected[name]
}

// jobNames lists names to suggest: those of the jobs submitted last, at most n, by id.
func (b *Board) jobNames(n int) []string {
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	var names []string
	for _, e := range slices.Backward(b.jobs) {
		if e != nil && len(names) < n {
			names = append(names, e.Name)
		}
	}
	slices.Reverse(names)
	return names
}

// hasEnded reports whether a round has seen a job end.
func (b *Board) hasEnded(name string) bool {
	f, _, _, _ := b.find(name)
	return f != nil && f.State.Ended()
}

// has reports whether a round has seen a job, and it is not forgotten.
func (b *Board) has(id core.JobID) bool {
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	return b.job(id) != nil
}

func (b *Board) hasNode(name string) bool { return slices.Contains(b.nodeNames(), name) }

func (b *Board) nodeNames() []string {
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	var names []string
	for i := range b.nodes {
		if b.nodes[i].Health != core.Gone {
			names = append(names, b.nodes[i].Name)
		}
	}
	return names
}

// listNodes renders the nodes that are not gone, in the order of the config, and then as they joined. A moment at which a node should
// have been ready by now is left out: who said so was wrong.
func (b *Board) listNodes(now float64) []*controlv1.Node {
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	list := make([]*controlv1.Node, 0, len(b.nodes))
	for i := range b.nodes {
		n := &b.nodes[i]
		if n.Health == core.Gone {
			continue
		}
		listed := &controlv1.Node{
			Name: clean(n.Name), Accelerator: clean(b.types[n.Accelerator]), Rack: clean(n.Rack), Pool: clean(n.Pool),
			Devices: uint32(n.Devices), Used: uint32(n.used), Health: n.Health.String(), Unusable: uint32(n.Unusable.Count()),
		}
		if n.ExpectedSeconds > now {
			listed.ExpectedSeconds = n.ExpectedSeconds
		}
		if b.shares {
			milli := uint32(n.milli)
			listed.UsedMilli = &milli
		}
		if b.counts {
			listed.Resources = &controlv1.Resources{
				Cpus: n.CPUs, CpusUsed: float64(n.cpus) / 1000, MemoryGb: n.MemoryGB, MemoryGbUsed: float64(n.memory) / 1000,
			}
		}
		list = append(list, listed)
	}
	return list
}

// listPools renders the pools, and reports whether one of them may have more nodes than it has.
func (b *Board) listPools() (list []*controlv1.Pool, grows bool) {
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	for i := range b.pools {
		p := &b.pools[i]
		list = append(list, &controlv1.Pool{
			Name: clean(p.Name), Accelerator: clean(b.types[p.Accelerator]), Devices: uint32(p.Devices), MaxNodes: uint32(p.Max),
			ProvisioningSeconds: p.ProvisioningSeconds,
		})
	}
	return list, b.grows && len(list) > 0
}

// moment is that of the last round.
func (b *Board) moment() float64 {
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	return b.now
}

// known is x unless it stands for not known.
func known(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}
