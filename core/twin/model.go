package twin

import (
	"math"
	"sort"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/core/workload"
)

// pace is how fast a job is where and how it runs, in work per second; 0 where it cannot run, as far as anybody knows. The noise scale is a logarithm.
type pace interface {
	rate(noise float64, c *workload.Running) float64
}

// linear is a job that is as fast as it has replicas.
type linear struct{ perReplica float64 }

func (p linear) rate(_ float64, c *workload.Running) float64 {
	return p.perReplica * float64(c.Replicas)
}

// training is a job that trains at a batch.
type training struct {
	spec   *core.JobSpec
	speeds []speed
}

// setting is the batch that a job runs with on a type: the one it asks for where its tuning leaves it to the job.
func (p *training) setting(c *workload.Running, accelerator string) (perDevice, accumulation int) {
	if c.Tuning.BatchPerDevice > 0 {
		return c.Tuning.BatchPerDevice, max(c.Tuning.AccumulationSteps, 0)
	}
	return goodput.SplitBatch(requestedBatch(p.spec), c.Replicas, p.spec.BatchOn(accelerator))
}

// requestedBatch is the total batch that a job trains at unless it is told another.
func requestedBatch(s *core.JobSpec) int {
	if s.Batch.Requested > 0 {
		return s.Batch.Requested
	}
	return s.Batch.Initial
}

// slowest is what a step takes on the slowest of the types that the job runs on, and the batch of each device.
func (p *training) slowest(c *workload.Running) (s *speed, seconds float64, perDevice, accumulation int) {
	last := ""
	for i, accelerator := range c.Accelerators {
		if i > 0 && accelerator == last {
			continue
		}
		last = accelerator
		b, a := p.setting(c, accelerator)
		if b < 1 || c.Replicas < 1 {
			return nil, 0, 0, 0
		}
		on := on(p.speeds, accelerator)
		if step := on.StepTime(len(c.Shape), c.Replicas, float64(b), a); s == nil || step > seconds {
			s, seconds, perDevice, accumulation = on, step, b, a
		}
	}
	return s, seconds, perDevice, accumulation
}

func (p *training) rate(noise float64, c *workload.Running) float64 {
	s, seconds, perDevice, accumulation := p.slowest(c)
	if s == nil || !(seconds > 0) {
		return 0
	}
	batch := float64(c.Replicas * perDevice * (accumulation + 1))
	return gain(batch/float64(p.spec.Batch.Initial), noise) / seconds
}

// measure is what the job reports of itself.
func (p *training) measure(c *workload.Running) (core.Measurement, bool) {
	s, _, perDevice, _ := p.slowest(c)
	if s == nil {
		return core.Measurement{}, false
	}
	return core.Measurement{
		Accelerator: s.accelerator, Nodes: len(c.Shape), Replicas: c.Replicas, PerDevice: perDevice,
		PassSeconds: s.GradTime(float64(perDevice)), StepSeconds: s.StepTime(len(c.Shape), c.Replicas, float64(perDevice), 0),
	}, true
}

// gain is the progress of a step at so many times the initial batch, in steps at that.
func gain(scale, noise float64) float64 {
	return goodput.Gradients{SquaredNorm: 1, Variance: math.Exp(noise)}.Gain(scale)
}

// timed is a job of which the times of its steps are declared.
type timed struct{ spec *core.JobSpec }

func (p timed) rate(noise float64, c *workload.Running) float64 {
	seconds := 0.0
	for i, accelerator := range c.Accelerators {
		if i > 0 && accelerator == c.Accelerators[i-1] {
			continue
		}
		times, many := p.spec.StepTimes.On(accelerator)
		if len(c.Shape) > 1 && c.Replicas <= len(many) && many[c.Replicas-1] > 0 || c.Replicas > len(times) {
			times = many
		}
		if c.Replicas < 1 || c.Replicas > len(times) || !(times[c.Replicas-1] > 0) {
			return 0
		}
		seconds = max(seconds, times[c.Replicas-1])
	}
	if !(seconds > 0) {
		return 0
	}
	scale := 1.0
	if initial := p.spec.Batch.Initial; initial > 0 {
		scale = float64(requestedBatch(p.spec)) / float64(initial)
	}
	return gain(scale, noise) / seconds
}

// placed says where a factor holds.
type placed struct{ nodes, replicas int }

// model is what is believed of a job. Its phases are those of the noise of its application.
type model struct {
	pace     pace
	total    float64
	phases   int
	noise    *curve  // nil when nothing is known
	shift    float64 // of the job's noise against that of its application
	factor   float64 // by which the job is faster
	away     float64 // by which it is faster still where it does not run now
	here     placed
	square   float64 // of its gradient
	declared float64 // work; 0 for none
	steps    bool    // it says how many are left
	told     float64 // how many those are, as policies know it; NaN for unknown
	toldAt   float64 // work done when they heard of it
	done     float64 // work done now
	anew     bool    // it loses what it did when it is stopped or moved
	batch    float64 // that it asks for, over the initial one; 0 where it has none
}

var (
	_ workload.Measurer  = (*measuring)(nil)
	_ workload.Model     = (*model)(nil)
	_ workload.Restarter = (*model)(nil)
)

// begin ends the phases before which a job of so much work is over.
func (m *model) begin() {
	m.phases = 1
	if m.noise != nil {
		m.phases += sort.Search(len(m.noise.ends)-1, func(i int) bool { return m.noise.ends[i] >= m.total })
	}
}

func (m *model) Phases() int { return m.phases }

// BeginsAnew reports whether the job keeps no checkpoint.
func (m *model) BeginsAnew() bool { return m.anew }

func (m *model) PhaseEnd(phase int) float64 {
	if phase >= m.phases-1 {
		return m.total
	}
	return m.noise.ends[phase]
}

// noiseIn is the logarithm of the noise scale in a phase.
func (m *model) noiseIn(phase int) float64 {
	if m.noise == nil {
		return -mostLog
	}
	return m.noise.logs[min(phase, len(m.noise.logs)-1)] + m.shift
}

func (m *model) Rate(phase int, c workload.Running) float64 {
	rate := m.pace.rate(m.noiseIn(phase), &c) * m.faster(&c)
	if !(rate >= 0 && rate <= math.MaxFloat64) {
		return 0
	}
	return rate
}

func (m *model) faster(c *workload.Running) float64 {
	if (placed{len(c.Shape), c.Replicas}) == m.here {
		return m.factor
	}
	return m.factor * m.away
}

// StepsLeft is what policies would see: what they know now, wrong as it may be, and less from the next phase on; or else those of the work that is declared, if any is.
func (m *model) StepsLeft(phase int) float64 {
	if !m.steps {
		return math.NaN()
	}
	from := 0.0
	if phase > 0 {
		from = m.PhaseEnd(phase - 1)
	}
	switch {
	case math.IsNaN(m.told):
	case from > m.done:
		return max(m.told-m.stepsOf(m.toldAt, from), 0)
	case m.PhaseEnd(phase) <= m.toldAt: // it began anew
		return m.told + m.stepsOf(from, m.toldAt)
	default:
		return m.told
	}
	total := m.total
	if m.declared > 0 {
		total = m.declared
	}
	return m.stepsOf(from, total)
}

// stepsOf are those of the work from one progress to another.
func (m *model) stepsOf(from, to float64) (steps float64) {
	for p := 0; p < m.phases && from < to; p++ {
		end := to
		if p < m.phases-1 {
			end = min(m.PhaseEnd(p), to)
		}
		if end <= from {
			continue
		}
		worth := 1.0
		if m.batch > 0 {
			worth = gain(m.batch, m.noiseIn(p))
		}
		steps += (end - from) / worth
		from = end
	}
	return steps
}

// measuring is the model of a job that reports what it measures.
type measuring struct{ model }

// Measure is as the model has it.
func (m *measuring) Measure(phase int, c workload.Running) (core.Measurement, core.Gradients, bool) {
	t, ok := m.pace.(*training)
	if !ok {
		return core.Measurement{}, core.Gradients{}, false
	}
	of, ok := t.measure(&c)
	if ok {
		faster := m.faster(&c)
		of.PassSeconds /= faster
		of.StepSeconds /= faster
	}
	return of, core.Gradients{SquaredNorm: m.square, Variance: m.square * math.Exp(m.noiseIn(phase))}, ok
}
