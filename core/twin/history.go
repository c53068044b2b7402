package twin

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"github.com/quartet-sched/quartet/core"
)

// mostEnded bounds how many of the jobs that ended are kept, the latest ones.
const mostEnded = 4000

// ending is how a job went, up to its end or up to now.
type ending struct {
	application, tenant string
	requested           int
	work                float64 // done, in its own unit; 0 when nobody knows
	seconds             float64 // with the replicas that it asks for, that its devices are worth
	declared            float64 // work; 0 for none
	all                 bool    // it did all of its work
}

// history are the jobs that ended, a ring.
type history struct {
	ended []ending
	next  int
}

func (h *history) add(e ending) {
	if len(h.ended) < mostEnded {
		h.ended = append(h.ended, e)
		return
	}
	h.ended[h.next] = e
	h.next = (h.next + 1) % mostEnded
}

func (h *history) clone() history { return history{slices.Clone(h.ended), h.next} }

// endingOf is how a job went that ended or goes on.
func endingOf(j *core.Job, work, now float64, all bool) ending {
	return ending{
		application: j.Application, tenant: j.Tenant, requested: j.Requested, work: work, seconds: secondsOf(j, now), declared: j.TotalWork, all: all,
	}
}

// secondsOf is how long a job had the replicas that it asks for, or as many device-seconds.
func secondsOf(j *core.Job, now float64) float64 {
	asks := float64(max(j.Requested, 1)) * j.Part()
	if asks <= 0 {
		return j.ExecutedSeconds(now)
	}
	return j.AttainedService(now) / asks
}

// group says what is alike: the work of jobs of an application, the seconds of all, or of those of a tenant and size, or what
// is declared, by all, by a tenant, or by those that declared as much.
type group struct {
	of                  byte
	application, tenant string
	requested           int
}

const (
	workOf     = 'w'
	secondsAll = 's'
	secondsBy  = 'b'
	ratioAll   = 'r'
	ratioBy    = 't'
	ratioNear  = 'n' // requested is a place in declarations
)

func (g group) String() string {
	return string(g.of) + "/" + g.application + "/" + g.tenant + "/" + strconv.Itoa(g.requested)
}

// sample is what was watched of a group, in order, and the number of those that did all.
type sample struct {
	sorted   []watched
	ended    int
	variance float64 // of the logarithms of those
}

// spread is the variance, as if one more had been off by a factor of e.
func (s *sample) spread() float64 {
	if s == nil {
		return 1
	}
	return (s.variance*float64(s.ended) + 1) / float64(s.ended+1)
}

// sort ends the sample.
func (s *sample) sort() {
	slices.SortFunc(s.sorted, compareWatched)
	sum, squares := 0.0, 0.0
	for _, w := range s.sorted {
		if w.all {
			log := math.Log(w.amount)
			sum += log
			squares += log * log
		}
	}
	if n := float64(s.ended); n > 0 {
		s.variance = max(squares/n-sum*sum/(n*n), 0)
	}
}

// survey is what is known of how long jobs are, from those that ended, and from those that go on, without which the short ones were too many.
type survey struct {
	groups       map[group]*sample
	drift        drift
	declarations declarations
}

func newSurvey() *survey { return &survey{groups: map[group]*sample{}} }

func (s *survey) put(g group, w watched) {
	if !(w.amount > 0) || math.IsInf(w.amount, 1) {
		return
	}
	of := s.groups[g]
	if of == nil {
		of = &sample{}
		s.groups[g] = of
	}
	of.sorted = append(of.sorted, w)
	if w.all {
		of.ended++
	}
}

func (s *survey) add(e *ending) {
	if e.application != "" {
		s.put(group{of: workOf, application: e.application}, watched{e.work, e.all})
	}
	s.put(group{of: secondsBy, tenant: e.tenant, requested: e.requested}, watched{e.seconds, e.all})
	s.put(group{of: secondsAll}, watched{e.seconds, e.all})
	if e.declared > 0 {
		s.declarations.add(e)
		part := e.work / s.drift.of(e.declared)
		s.put(group{of: ratioAll}, watched{part, e.all})
		if e.tenant != "" {
			s.put(group{of: ratioBy, tenant: e.tenant}, watched{part, e.all})
		}
	}
}

// sort ends the survey.
func (s *survey) sort() {
	for _, of := range s.groups { // each on its own
		of.sort()
	}
	s.declarations.sort()
}

// known is a number of ends beyond which it is of no account that they might have been others.
const known = 100

// estimates are made of a survey when they are asked for. Those of a draw are as if others had been watched, as likely as those that were.
//
// Source: Rubin, The Bayesian bootstrap, Annals of Statistics 9 (1981).
type estimates struct {
	survey *survey
	random func(group) *rand.Rand // nil for the survey as it is
	mutex  sync.Mutex
	made   map[group]*lengths
}

// of is what is known of a group; nil where no end was seen.
func (e *estimates) of(g group) *lengths {
	sample := e.survey.groups[g]
	if sample == nil || sample.ended == 0 {
		return nil
	}
	return e.once(g, func(r *rand.Rand) *lengths {
		var weights []float64
		if r != nil && sample.ended < known {
			weights = make([]float64, len(sample.sorted))
			for i := range weights {
				weights[i] = r.ExpFloat64()
			}
		}
		return newLengths(sample.sorted, weights)
	})
}

// once estimates a group when it is first asked for, by what is drawn for it; nil for the survey as it is.
func (e *estimates) once(g group, estimate func(r *rand.Rand) *lengths) *lengths {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	l, made := e.made[g]
	if !made {
		var r *rand.Rand
		if e.random != nil {
			r = e.random(g)
		}
		l = estimate(r)
		e.made[g] = l
	}
	return l
}

// What is believed before anything ended: jobs that count as seen.
const (
	asDeclared  = 1.0 // whose work was exactly what was declared
	offDeclared = 1.0 // whose work was anything
	offSigma    = 0.7 // by a factor of 2
	mostOthers  = 4.0 // that jobs of other kinds count for, at most
	mostAll     = 2.0
	ofPrior     = 1.0
)

// add puts down the opinion of a group, whose ends count for so many at most.
func (l left) add(e *estimates, g group, most, done, unit float64) left {
	of := e.of(g)
	if of == nil {
		return l
	}
	return append(l, opinion{of, min(of.weight, most), done, unit})
}

// byHistory is what is left by the history, of a job that did so much, or had its devices for so many seconds. Perseconds is the work of a second on what it asks for.
func (e *estimates) byHistory(into left, j *core.JobSpec, done, seconds, perSecond float64, prior logNormal) left {
	if j.Application != "" {
		into = into.add(e, group{of: workOf, application: j.Application}, math.Inf(1), done, 1)
	}
	return e.seconds(into, j, seconds, perSecond, prior)
}

// seconds is told by those that do not share the unit of the job's work. They count for less where others of its application ended.
func (e *estimates) seconds(into left, j *core.JobSpec, seconds, perSecond float64, prior logNormal) left {
	others, part := math.Inf(1), 1.0
	if len(into) > 0 {
		others, part = mostOthers/4, 1.0/4
	}
	into = into.add(e, group{of: secondsBy, tenant: j.Tenant, requested: j.Requested}, others, seconds, perSecond)
	into = into.add(e, group{of: secondsAll}, mostAll*part, seconds, perSecond)
	return append(into, opinion{prior, ofPrior * part, seconds, perSecond})
}
