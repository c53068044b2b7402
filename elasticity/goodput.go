package elasticity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// Capabilities are those that giving the declared work, or following the progress through a warm-up, needs.
func (c GoodputConfig) Capabilities() []core.Capability {
	var needs []core.Capability
	if c.DeclaredWork || c.warmsUp() {
		needs = append(needs, core.CapabilityRemainingWork)
	}
	if c.knowsTruth() || c.Profiled {
		needs = append(needs, core.CapabilityMeasurements)
	}
	if c.knowsTruth() {
		needs = append(needs, core.CapabilityStepTimes) // of jobs that measure nothing
	}
	return needs
}

// knowsTruth reports whether jobs are known by the truth.
func (c GoodputConfig) knowsTruth() bool { return c.Knowledge == oracle || c.Knowledge == exactly }

// warmsUp reports whether the learning rate depends on how far a job has come.
func (c GoodputConfig) warmsUp() bool {
	return goodput.ScalingRule(c.ScalingRule) == goodput.LEGW && c.WarmupIterations > 0
}

// Validate reports a frozen history without a file.
func (c GoodputConfig) Validate() error {
	if c.Knowledge == history && c.HistoryFrozen && c.HistoryPath == "" {
		return errors.New("history_frozen: needs history_path, the file that is not to be written")
	}
	return nil
}

// The kinds of knowledge.
const (
	learned = "learned"
	history = "history"
	oracle  = "oracle"
	exactly = "exact"
)

// The values of GoodputConfig.Types.
const (
	eachType  = "each"
	blindType = "blind"
)

// NewGoodput learns each job's goodput while it runs, and tunes its batch to what it gets.
//
// Each configuration that a job runs on is measured once and the throughput model fitted anew; the gradient statistics
// of the current epoch say how much a larger batch is worth. What was never measured is taken to scale perfectly, which
// makes a job try it; but its range ends at twice the replicas it ran on, so that it grows by doubling. Before the first
// measurement a job can use one replica.
//
// Measurements that name their accelerator type make a model for each type. On a type that a job was never measured on,
// it is taken to do as on one that it was, in proportion to the speeds of single devices if jobs are profiled.
//
// Source: the agent of Pollux (OSDI'21), sections 3 and 4.1; by type, that of Sia (SOSP'23), section 3.2. Deviations: a
// batch is tuned once a round, where the published simulators tune it also within one. O(types × replicas × batch sizes)
// for a job that measured something new.
func NewGoodput() core.Factory[core.Elasticity] {
	return core.NewFactory(core.Info{
		Type:    "goodput",
		Summary: "learns each job's goodput while it runs, and tunes its batch to it",
		Description: "Fits a throughput model to what a job measures, and combines it with its gradient statistics to the rate at which it learns. " +
			"A job doubles its replicas at most. Measurements that name their accelerator type make a model for each type. " +
			"A batch is tuned once a round; the published simulators tune it within a round as well.",
		Source: "Pollux, OSDI'21, sections 3 and 4.1; Sia, SOSP'23",
	}, GoodputConfig{
		Knowledge: learned, Types: eachType, DeclaredWork: true, UnmeasuredSeconds: 600, ScalingRule: string(goodput.AdaScale), SilentAfter: time.Minute, MostReplicas: 64,
	}, newGoodputAgent)
}

func newGoodputAgent(c GoodputConfig, s core.Settings) (core.Elasticity, error) {
	p := &goodputAgent{
		config: c, standing: core.Standing{UntilSeconds: math.Inf(1)}, grids: map[core.BatchSpec]*goodput.Grid{}, truths: map[*core.Truth]*pastApplication{},
		log: s.Log, id: s.ID,
		rigid: fixed{elastic: true, inherits: true, oracle: c.knowsTruth(), linear: map[span][]core.Curve{}, measured: map[*core.StepTimes]knownTimes{}},
	}
	if c.Knowledge == exactly {
		p.tables, p.latest = map[exactKey]*exactTable{}, map[core.JobID]latestTable{}
	}
	if c.Knowledge != history {
		return p, nil
	}
	if c.HistoryPath == "" {
		p.pool = newPool()
		p.pool.work.unmeasured = max(c.UnmeasuredSeconds, 1)
		return p, nil
	}
	if !c.HistoryFrozen { // better told now than when the run has ended
		if folder, err := os.Stat(filepath.Dir(c.HistoryPath)); err != nil || !folder.IsDir() {
			return nil, fmt.Errorf("history_path: there is no folder %q to write %q to", filepath.Dir(c.HistoryPath), filepath.Base(c.HistoryPath))
		}
	}
	var err error
	var note string
	if p.pool, note, err = readPool(c.HistoryPath); note != "" && s.Log != nil {
		s.Log.Warn("the history knows nothing: jobs start without it", "component", s.ID, "history_path", c.HistoryPath, "because", note)
	}
	if err == nil {
		p.pool.work.unmeasured = max(c.UnmeasuredSeconds, 1)
	}
	return p, err
}

// settle reads the history again before the first question: a policy that this one takes over from wrote it meanwhile, but not
// once it was told which one was read, or took up what the other knew.
func (p *goodputAgent) settle() error {
	if p.settled {
		return nil
	}
	p.settled = true
	if p.pool == nil || p.config.HistoryPath == "" {
		return nil
	}
	again, _, err := readPool(p.config.HistoryPath)
	if err != nil {
		return err
	}
	again.work.unmeasured = p.pool.work.unmeasured
	p.pool = again
	return nil
}

type goodputAgent struct {
	config      GoodputConfig
	everySample bool   // a sample is worth the same at any batch
	ruled       *ruled // chooses the batches; nil where they are the best
	grids       map[core.BatchSpec]*goodput.Grid
	truths      map[*core.Truth]*pastApplication
	tables      map[exactKey]*exactTable // nil unless knowledge is exact
	latest      map[core.JobID]latestTable
	pool        *pool  // nil unless knowledge is history
	silent      []bool // by JobID: the job measures nothing

	settled bool                      // the pool is the one to begin with
	handed  map[core.JobID]learnedJob // what another agent knew of jobs
	// What is noted of jobs, and of how many.
	log                *slog.Logger
	id                 string
	silences, ungraded int
	noted              []bool // by JobID: the job was noted to report no gradient statistics
	endsTold           bool   // how jobs ended, or that nobody tells

	differ bool     // reports of one configuration were seen to
	agents []*agent // by JobID; nil for jobs that have ended or have no batch to tune
	rigid  fixed    // answers for jobs without one

	responses []core.Response
	tunings   []core.Tuning
	standing  core.Standing
}

// agent is what is known of one job.
type agent struct {
	owner       *goodputAgent // the only one that has it; nil once forks share it, and nobody changes it any more
	application string
	limits      core.BatchSpec
	past        *pastApplication   // what was known before; nil for nothing, or once the job proved it wrong
	reported    []core.Measurement // by the job
	seen        []core.Measurement // those that count
	first       core.Gradients     // the first statistics reported
	changed     bool               // the job proved wrong what was known before
	batch       BatchState         // as of when a rule was asked last
	judged      bool               // it was judged, in another process or by other settings, whether that is wrong
	allowed     allowed            // as of when most and models were made
	most        int                // replicas it may use
	gradients   core.Gradients
	everySample bool        // counts the same, whatever the gradients
	models      []typeModel // by AcceleratorID, the last one for all further types; none before anything is known
	curves      []core.Curve
}

// allowed is what its owner and the cluster allow a job. They change when the job is edited, or a node of a new type joins.
type allowed struct{ least, most, types int }

func allowedOf(c *core.Cluster, j *core.Job) allowed {
	return allowed{j.MinReplicas, j.MaxReplicas, len(c.Accelerators)}
}

// Respond returns the curves of each job, in iterations at the initial batch per second.
func (p *goodputAgent) Respond(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	if err := p.settle(); err != nil {
		return nil, err
	}
	p.forget(v)
	p.responses = p.responses[:0]
	for i, j := range jobs {
		if p.knowsExactly(j) {
			p.responses = append(p.responses, p.respondExactly(v, j))
			continue
		}
		if j.Batch.Initial == 0 || j.Batch.Max == 0 || p.reportsNothing(j, v.NowSeconds) {
			rigid, err := p.rigid.Respond(ctx, v, jobs[i:i+1])
			if err != nil {
				return nil, err
			}
			p.responses = append(p.responses, rigid...)
			continue
		}
		a := p.learn(v, j)
		r := core.Response{Job: j.ID, MinReplicas: min(j.MinReplicas, a.most), MaxReplicas: a.most, Curves: a.curves, RemainingWork: math.NaN()}
		r.RemainingWork = p.left(a, j, v.NowSeconds)
		p.responses = append(p.responses, r)
	}
	return p.responses, nil
}

// note says something about the first job that it holds for; Close says for how many it did.
func (p *goodputAgent) note(count *int, j *core.Job, message string) {
	if *count++; *count == 1 && p.log != nil {
		p.log.Warn(message, "component", p.id, "first_job", j.Name)
	}
}

// noteCounts says for how many jobs each note held.
func (p *goodputAgent) noteCounts() {
	if p.log == nil {
		return
	}
	if p.silences > 1 {
		p.log.Warn("jobs reported no measurements", "component", p.id, "jobs", p.silences)
	}
	if p.ungraded > 1 {
		p.log.Warn("jobs reported no gradient statistics", "component", p.id, "jobs", p.ungraded)
	}
}

// left is the work that a job has left, as declared or else as jobs before it had; NaN when neither is known.
func (p *goodputAgent) left(a *agent, j *core.Job, now float64) float64 {
	switch {
	case p.config.DeclaredWork && a.models == nil: // the curve is not in iterations yet
		return p.config.UnmeasuredSeconds
	case p.config.DeclaredWork:
		return j.RemainingWork(now)
	case p.pool == nil:
		return math.NaN()
	}
	if a.models == nil {
		return p.pool.work.whole(j.Application)
	}
	past := p.pool.named(j.Application)
	changed := a.changed || past != nil && !p.pool.believes(past)
	return p.pool.work.left(j.Application, changed, j.WorkDone(now), a.single())
}

// single is the rate on one device, of the first type that it is known of.
func (a *agent) single() float64 {
	for _, c := range a.curves {
		if len(c.OneNode) > 0 && c.OneNode[0] > 0 {
			return c.OneNode[0]
		}
	}
	return 1
}

// Ended keeps how much work the jobs had.
func (p *goodputAgent) Ended(_ context.Context, _ *core.View, jobs []*core.Job) error {
	if p.pool == nil {
		return nil
	}
	if err := p.settle(); err != nil {
		return err
	}
	p.endsTold = true
	for _, j := range jobs {
		if int(j.ID) >= len(p.agents) || p.agents[j.ID] == nil || p.agents[j.ID].models == nil {
			continue
		}
		a := p.agents[j.ID]
		e := ending{work: j.Progress, seconds: j.Progress / a.single(), finished: j.State == core.Completed}
		if !(e.work > 0 && e.work <= mostGradient && e.seconds > 0 && e.seconds <= mostGradient) {
			continue
		}
		p.pool.work.add(j.Application, e)
		fresh := p.pool.extend(a)
		fresh.endings = newest(append(fresh.endings, e))
	}
	return nil
}

// forget drops the agents of jobs that have ended, and keeps what they learned.
func (p *goodputAgent) forget(v *core.View) {
	for _, id := range v.Changed {
		if p.latest != nil && v.Job(id) == nil {
			delete(p.latest, id)
		}
		if int(id) >= len(p.agents) || p.agents[id] == nil || v.Job(id) != nil {
			continue
		}
		if p.pool != nil {
			p.pool.add(p.agents[id])
			p.noteEnds()
		}
		p.agents[id] = nil
	}
}

// noteEnds says once that the ends of jobs are not reported, as by a host or a pipeline that is older than core.Historian.
func (p *goodputAgent) noteEnds() {
	if p.endsTold || p.config.HistoryFrozen {
		return
	}
	p.endsTold = true
	if p.log != nil {
		p.log.Warn("ends of jobs are not reported: the history keeps their curves, and not how much work they had; in the process of the scheduler it keeps both",
			"component", p.id, "history_path", p.config.HistoryPath)
	}
}

// learn brings the agent of a job up to what the job has measured.
func (p *goodputAgent) learn(v *core.View, j *core.Job) *agent {
	c := v.Cluster
	for int(j.ID) >= len(p.agents) {
		p.agents = append(p.agents, nil)
	}
	switch a := p.agents[j.ID]; {
	case a == nil:
		p.agents[j.ID] = p.begin(c, j)
	case !p.hasNews(a, v, j):
		return a
	}
	a := p.own(j.ID)
	if len(a.reported) == 0 && len(j.Measured) > 0 && !a.judged {
		a.first = j.Gradients
	}
	ruled := p.follow(a, j, v.NowSeconds)
	switch {
	case !slices.Equal(a.reported, j.Measured):
		a.reported = append(a.reported[:0], j.Measured...) // the View is not to be kept
		a.seen = p.confirmed(p.collect(a.seen[:0], a.reported), a.past == nil)
		a.gradients = j.Gradients
		p.doubt(a)
		a.most = a.reach(j, p.config.MostReplicas)
		p.model(a, c, j)
	case len(a.reported) > 0 && j.Gradients != a.gradients:
		a.gradients = j.Gradients
		if a.update(); ruled {
			p.model(a, c, j)
		}
	case ruled || a.allowed != allowedOf(c, j):
		a.most = a.reach(j, p.config.MostReplicas)
		if a.models == nil {
			a.allowed = allowedOf(c, j)
			return a
		}
		p.model(a, c, j)
	default:
		return a
	}
	a.allowed = allowedOf(c, j)
	a.makeCurves(j)
	return a
}

// begin is the agent of a job that has not run yet.
func (p *goodputAgent) begin(c *core.Cluster, j *core.Job) *agent {
	a := &agent{owner: p, everySample: p.everySample, application: j.Application, limits: limitsOf(j.Batch), past: p.known(j), allowed: allowedOf(c, j)}
	if before, was := p.handed[j.ID]; was {
		delete(p.handed, j.ID)
		a.first, a.changed, a.judged = before.First, before.Changed, true
		if a.changed {
			a.past = nil
		}
		if p.ruled != nil {
			a.batch, a.gradients = before.Batch.state()
		}
	}
	p.beginRuled(a, j)
	if a.most = a.reach(j, p.config.MostReplicas); a.past != nil {
		if a.gradients == (core.Gradients{}) {
			a.gradients = a.past.gradients
		}
		p.model(a, c, j)
		if a.runs() {
			a.makeCurves(j)
			return a
		}
		a.past, a.models, a.gradients = nil, nil, core.Gradients{} // by these a job would never start
		a.most = a.reach(j, p.config.MostReplicas)
		if !a.judged {
			a.batch = BatchState{}
		}
		p.beginRuled(a, j)
	}
	a.curves = p.optimism()
	return a
}

// runs reports whether the models let one replica run on some type.
func (a *agent) runs() bool {
	return slices.ContainsFunc(a.models, func(m typeModel) bool {
		return m.curves != nil && m.curves.Goodput[goodput.OneNode][0] > 0 && !math.IsInf(m.curves.Goodput[goodput.OneNode][0], 1)
	})
}

// known is what was learned of the job's application before it started.
func (p *goodputAgent) known(j *core.Job) *pastApplication {
	switch {
	case p.pool != nil:
		return p.pool.find(j)
	case p.config.Knowledge == oracle && j.Truth != nil:
		if p.truths[j.Truth] == nil {
			p.truths[j.Truth] = newPast(j.Application, j.Batch, p.collect(nil, j.Truth.Measurements), j.Truth.Gradients)
		}
		return p.truths[j.Truth]
	default:
		return nil
	}
}

// doubted is the error, as a logarithm, at which a job that measures something else gives up what was known before.
const doubted = 0.3

// doubt compares what the job measured itself with what was known, and forgets that if it is wrong.
func (p *goodputAgent) doubt(a *agent) {
	if a.past == nil {
		return
	}
	sum, compared := 0.0, 0.0
	for _, m := range a.seen {
		if known := a.past.on(m.Accelerator); known != nil {
			sum += math.Abs(math.Log(known.StepTime(m.Nodes, m.Replicas, float64(m.PerDevice), 0) / m.StepSeconds))
			compared++
		}
	}
	first := len(a.seen) == 1 && !a.judged
	wrong := compared > 0 && !(sum/compared < doubted)
	if p.pool != nil && (wrong || first) {
		p.pool.prove(a.past, !wrong)
	}
	if wrong {
		a.past, a.changed = nil, true
	}
}

// reach is the most replicas a job may use: twice those it ran on, or that its application ran on before. A pinned job may keep
// what it holds, whatever is known of it: it may run since before anybody learned.
func (a *agent) reach(j *core.Job, limit int) int {
	most := 1
	for _, m := range a.reported {
		most = max(most, 2*m.Replicas)
	}
	if a.past != nil {
		most = max(most, 2*a.past.replicas)
	}
	if j.Pinned {
		most, limit = max(most, j.Held), max(limit, j.Held)
	}
	if l := a.limits; l.MinPerDevice > 0 {
		most = min(most, l.Max/l.MinPerDevice) // more would not share the largest batch
	}
	return max(min(most, j.MaxReplicas, limit), j.MinReplicas)
}

// perIteration turns samples into iterations at the initial batch.
func perIteration(samples []float64, initial int, ratio float64) []float64 {
	rates := make([]float64, len(samples))
	for i, s := range samples {
		rates[i] = s / float64(initial) * ratio
	}
	return rates
}

// optimism is the curve of a job that has measured nothing: as good as it has replicas.
func (p *goodputAgent) optimism() []core.Curve {
	rates := make([]float64, p.config.MostReplicas)
	for i := range rates {
		rates[i] = float64(i + 1)
	}
	return []core.Curve{{OneNode: rates, ManyNodes: rates}}
}

// Tune chooses the batch of each job for the devices it gets.
func (p *goodputAgent) Tune(ctx context.Context, v *core.View, placements []core.Placement) ([]core.Tuning, error) {
	p.tunings = p.tunings[:0]
	if p.standing.UntilSeconds = math.Inf(1); p.config.warmsUp() && len(placements) > 0 {
		p.standing.UntilSeconds = v.NowSeconds
	}
	for i := range placements {
		j := v.Job(placements[i].Job)
		if p.knowsExactly(j) {
			if t := p.tuneExactly(v, j, placements[i].Seats); !t.Equal(j.Tuning) {
				p.tunings = append(p.tunings, t)
			}
			continue
		}
		if j == nil || int(j.ID) >= len(p.agents) || p.agents[j.ID] == nil {
			rigid, err := p.rigid.Tune(ctx, v, placements[i:i+1])
			if err != nil {
				return nil, err
			}
			p.tunings = append(p.tunings, rigid...)
			continue
		}
		p.standUntilSilent(v, j, placements[i].Seats)
		t := p.tune(v, j, p.agents[j.ID], placements[i].Seats)
		if !t.Equal(j.Tuning) {
			p.tunings = append(p.tunings, t)
		}
		p.standUntilEpoch(v, j, placements[i].Seats, t)
	}
	return p.tunings, nil
}

func (p *goodputAgent) tune(v *core.View, j *core.Job, a *agent, seats []core.Seat) core.Tuning {
	replicas, shape := core.Replicas(seats), goodput.OneNode
	if len(seats) > 1 {
		shape = goodput.ManyNodes
	}
	accelerator := v.Cluster.Nodes[seats[0].Node].Accelerator
	limits, choice := p.bounds(j, v.Cluster.Accelerators[accelerator]), a.choice(accelerator, shape, replicas)
	t := core.Tuning{Job: j.ID}
	switch fixed := slices.Contains(p.config.FixedBatch, j.Application); {
	case fixed || p.ungradedBatch(a, j) > 0 && j.Batch.Requested > 0:
		t.BatchPerDevice, t.AccumulationSteps = goodput.SplitBatch(j.Batch.Requested, replicas, limits)
	case p.ruled != nil:
		t.BatchPerDevice, t.AccumulationSteps = goodput.SplitWithin(a.batch.Batch, replicas, limits)
	case choice.PerDevice == 0:
		total := max(limits.Initial, limits.MinPerDevice*replicas)
		t.BatchPerDevice, t.AccumulationSteps = goodput.SplitBatch(total, replicas, limits)
	default:
		t.BatchPerDevice, t.AccumulationSteps = choice.PerDevice, choice.Accumulation
		for t.AccumulationSteps > 0 && limits.Max/(replicas*(t.AccumulationSteps+1)) < max(limits.MinPerDevice, 1) {
			t.AccumulationSteps-- // rounded up, it would not share the largest batch
		}
		t.BatchPerDevice = min(t.BatchPerDevice, limits.Max/(replicas*(t.AccumulationSteps+1)))
	}
	scale := float64(replicas*t.BatchPerDevice*(t.AccumulationSteps+1)) / float64(j.Batch.Initial)
	t.LearningRateFactor = goodput.ScalingRule(p.config.ScalingRule).Factor(scale, goodput.Gradients(j.Gradients),
		goodput.Warmup{Progress: j.WorkDone(v.NowSeconds), Iterations: p.config.WarmupIterations})
	return t
}

// Standing is for ever, for everything is learned from events, but for a warm-up, which goes on while jobs run, and for the
// silence of a job.
func (p *goodputAgent) Standing() core.Standing { return p.standing }

// FilesRead is the history as it was read.
func (p *goodputAgent) FilesRead() []core.FileRead {
	if p.pool == nil || p.config.HistoryPath == "" {
		return nil
	}
	p.settled = true // what is told stays
	return []core.FileRead{{Path: p.config.HistoryPath, SHA256: p.pool.sha256}}
}

// Discard leaves the history as it is.
func (p *goodputAgent) Discard() error { return nil }

// Close writes the history back, if there is something new in it.
func (p *goodputAgent) Close() error {
	p.noteCounts()
	if p.pool == nil || p.config.HistoryPath == "" || p.config.HistoryFrozen {
		return nil
	}
	for _, a := range p.agents {
		if a != nil {
			p.pool.add(a)
		}
	}
	return p.pool.write(p.config.HistoryPath)
}
