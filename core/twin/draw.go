package twin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
)

// prepared is what all draws from a view share. It is not changed, but for the estimates of what is expected.
type prepared struct {
	view     *core.View
	round    int
	now      float64
	config   sim.Config
	survey   *survey
	expected *estimates
	prior    logNormal
	learned  logNormal // the prior, with the lengths of jobs that ended
	work     string
	jobs     []subject // that have not ended, by JobID
	coming   []subject // like those that come
}

// Draw is one of the worlds that are believed in, over so many seconds; +Inf for until the jobs have ended, with no more that come than there are, or 50. The same view, seed and draw give the same world,
// whatever was drawn before. Draw 0 is the one that is expected: the work of each job is as likely to be more as less, nothing fails, and arrivals come at even
// distances. The view is not changed, and is remembered until the next round or draw. O(jobs), and the fits of what was measured since.
func (b *WorkloadModel) Draw(v *core.View, seed uint64, draw int, horizonSeconds float64) *World {
	p := b.prepare(v)
	random := func(of string) *rand.Rand { return core.NewRand(seed, fmt.Sprintf("twin/%d/%s", draw, of)) }
	e := p.expected
	if draw > 0 {
		e = &estimates{survey: p.survey, made: map[group]*lengths{}, random: func(g group) *rand.Rand { return random(g.String()) }}
	}
	w := &World{Config: p.config, Jobs: make([]Job, 0, len(p.jobs)), Seed: random("simulator").Uint64()}
	d := drawing{prepared: p, estimates: e}
	if draw > 0 {
		d.random = rand.New(&d.source)
		root := random("jobs")
		d.seed = root.Uint64()
		d.together = root.NormFloat64()
	}
	for i := range p.jobs {
		w.Jobs = append(w.Jobs, Job{ID: p.jobs[i].job.ID, Model: d.model(&p.jobs[i], uint64(p.jobs[i].job.ID))})
	}
	until, most := v.NowSeconds+horizonSeconds, mostArrivals
	if math.IsInf(until, 1) {
		until, most = v.NowSeconds+2*d.alone(v), min(max(len(p.jobs), leastArrivals), mostArrivals)
	}
	var chance *rand.Rand
	if draw > 0 {
		chance = random("arrivals")
	}
	if b.options.Arrivals == ArrivalsRecent {
		like, at := b.submissions.coming(v.NowSeconds, until, most, chance)
		for i := range like {
			w.Arrivals = append(w.Arrivals, d.arrival(&p.coming[like[i]], i, at[i]))
		}
	}
	if draw > 0 {
		chance = random("machines")
	}
	w.Nodes = b.machines.changes(v, until, chance)
	return w
}

// drawing is one draw.
type drawing struct {
	*prepared
	estimates *estimates
	source    rand.PCG
	random    *rand.Rand // nil for what is expected
	seed      uint64
	together  float64 // how far all jobs are off together, in standard deviations
	longest   float64 // seconds that a job would need alone
	service   float64 // device-seconds that all jobs would need alone
	room      [8]opinion
}

// alone is the seconds that the jobs take when each has what it asks for, and no more is there than the cluster has.
func (d *drawing) alone(v *core.View) float64 {
	return max(d.longest, d.service/float64(max(v.Devices, 1)), 60)
}

// arrival is a job that comes, like one that came.
func (d *drawing) arrival(like *subject, i int, at float64) workload.Job {
	spec := *like.job.JobSpec
	spec.Name, spec.SubmitSeconds, spec.Experiment, spec.Suspended = arrival(i), at, "", false
	return workload.Job{Spec: spec, Model: d.model(like, 1<<32+uint64(i))}
}

// of lets what is drawn next be that of a job, whichever others there are.
func (d *drawing) of(stream uint64) {
	if d.random != nil {
		d.source.Seed(d.seed, stream*0x9e3779b97f4a7c15+1)
	}
}

// take is what is drawn of what may be left, or what is expected.
func (d *drawing) take(l left) float64 {
	if d.random == nil {
		return l.median()
	}
	return l.draw(d.random)
}

// off is a factor with a standard deviation of its logarithm, as drawn.
func (d *drawing) off(sigma float64) float64 {
	if d.random == nil {
		return 1
	}
	return math.Exp(sigma * d.random.NormFloat64()) // drawn even if it is 0, so that what comes after stays
}

// fewKnown is how many jobs that ended tell half of how long jobs are on average: lengths are spread over orders of magnitude, and a few long ones make most of the work.
const fewKnown = 10

// common is a factor of the work left of all jobs whose work is known alike. What is wrongly believed of how long jobs are, or of how well they are declared, is
// wrong of all at once, so that in a queue it does not cancel out.
func (d *drawing) common(j *core.Job) float64 {
	if d.random == nil {
		return 1
	}
	g := group{of: secondsAll}
	if j.TotalWork > 0 && d.work == WorkDeclared {
		g.of = ratioAll
	}
	of := d.survey.groups[g]
	known := 0.0
	if of != nil {
		known = float64(of.ended)
	}
	return math.Exp(d.together * math.Sqrt(of.spread()*fewKnown/(known+fewKnown)))
}

// model is what is believed of a job.
func (d *drawing) model(s *subject, stream uint64) workload.Model {
	d.of(stream)
	j := s.job
	m := model{
		pace: s.pace, noise: s.noise, shift: s.shift, factor: s.factor * d.off(s.sigmaHere), away: d.off(s.sigmaAway), here: s.here, square: s.square,
		declared: j.TotalWork, steps: s.steps, told: s.told, toldAt: s.toldAt, done: s.done, batch: s.batch,
		anew: s.anew,
	}
	unknown := 0.0 // seconds of a job of which nobody knows how fast it is
	if m.pace == nil {
		unknown = d.take(d.estimates.seconds(d.room[:0], j.JobSpec, s.seconds, 1, d.learned))
	}
	more := 0.0
	switch asked := s.asked * m.factor; {
	case j.TotalWork > 0 && d.work == WorkDeclared:
		more = d.take(d.estimates.declared(d.room[:0], j.JobSpec, s.done))
	case m.pace == nil:
		more = unknown
	case d.work == WorkDrawn:
		more = d.take(append(d.room[:0], opinion{d.prior, ofPrior, s.seconds, asked}))
	default:
		more = d.take(d.estimates.byHistory(d.room[:0], j.JobSpec, s.done, s.seconds, asked, d.learned))
	}
	more *= d.common(j)
	m.total = math.Nextafter(s.done, math.Inf(1)) + more
	if m.pace == nil {
		m.pace = linear{more / unknown / float64(max(j.Requested, 1))}
		s = &subject{asked: more / unknown}
		m.factor = 1
	}
	m.begin()
	if asked := s.asked * m.factor; asked > 0 {
		seconds := more / asked
		d.longest = max(d.longest, min(seconds, 1e12))
		d.service += min(seconds, 1e12) * float64(max(j.Requested, 1))
	}
	if _, trains := m.pace.(*training); trains {
		return &measuring{m}
	}
	return &m
}

// prepare makes what all draws from a view share.
func (b *WorkloadModel) prepare(v *core.View) *prepared {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if p := b.prepared; p != nil && p.view == v && p.round == v.Round && p.now == v.NowSeconds {
		return p
	}
	b.init()
	if !b.begun { // a run of which no round was observed: what its jobs tell
		b.begun = true
		b.adopt(v)
		b.machines.observe(v, nil)
	}
	p := &prepared{view: v, round: v.Round, now: v.NowSeconds, survey: newSurvey(), prior: b.options.prior(), work: b.options.Work, config: b.config()}
	if p.work == "" {
		p.work = WorkDeclared
	}
	p.learned = p.prior.learn(b.history.ended)
	p.survey.drift = driftOf(b.history.ended)
	for i := range b.history.ended {
		p.survey.add(&b.history.ended[i])
	}
	about := b.asker(v, &p.config)
	p.jobs = make([]subject, 0, len(v.Active))
	for _, j := range v.Jobs {
		if j == nil {
			continue
		}
		p.jobs = append(p.jobs, about.job(j))
		if s := &p.jobs[len(p.jobs)-1]; s.done > 0 || s.seconds > 0 {
			e := endingOf(j, s.done, v.NowSeconds, false)
			p.survey.add(&e)
		}
	}
	if b.options.Arrivals == ArrivalsRecent {
		for _, of := range b.submissions.list {
			p.coming = append(p.coming, about.coming(of))
		}
	}
	p.survey.sort()
	p.expected = &estimates{survey: p.survey, made: map[group]*lengths{}}
	b.prepared = p
	return p
}

// config is that of the worlds.
func (b *WorkloadModel) config() sim.Config {
	if b.options.Config != nil {
		return *b.options.Config
	}
	defaults, _ := sim.NewSimulator().Decode(nil) // which are right
	c := *defaults.(*sim.Config)
	if pause := median(b.pauses); pause > 0 {
		c.RestartOverhead = min(time.Duration(pause*float64(time.Second)), c.StallAfter-1)
	}
	return c
}
