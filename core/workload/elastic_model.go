package workload

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// elasticMostPerDevice is how many times what a device holds the largest batch of the source `elastic` is.
const elasticMostPerDevice = 10

// elasticApplicationModel is an application as the source `elastic` runs it. Jobs share it.
type elasticApplicationModel struct {
	*profile
	config     *ElasticConfig
	batch      core.BatchSpec // of a job that is free in the range
	candidates []int
	alone      float64 // samples a second on one device at the best batch
	truth      *core.Truth
	stepTimes  map[int]*core.StepTimes // by requested batch
	shapes     [][]int                 // by devices-1: on as few nodes as hold them
}

func newElasticApplicationModel(p *profile, c *ElasticConfig) *elasticApplicationModel {
	a := &elasticApplicationModel{profile: p, config: c, batch: p.batch, truth: &core.Truth{}, stepTimes: map[int]*core.StepTimes{}}
	a.batch.Max = min(p.batch.Max, elasticMostPerDevice*p.batch.MaxPerDevice)
	a.batch.Requested = a.batch.Initial
	for devices := 1; devices <= profileMaxReplicas; devices++ {
		a.shapes = append(a.shapes, consolidated(devices, profileDevicesPerNode))
	}
	a.candidates = goodput.GeometricBatches(a.batch)
	for _, batch := range a.candidates {
		if seconds := a.seconds(batch, 1); seconds > 0 {
			a.alone = max(a.alone, float64(batch)/seconds)
		}
	}
	a.makeTruth()
	return a
}

// seconds is the time of a step at a total batch on devices of as few nodes as hold them, without accumulation; 0 where it cannot
// run so.
func (a *elasticApplicationModel) seconds(batch, devices int) float64 {
	perDevice := (batch + devices - 1) / devices
	if perDevice < a.batch.MinPerDevice || perDevice > a.batch.MaxPerDevice {
		return 0
	}
	time, _ := a.stepTime(a.shapes[devices-1], perDevice)
	return time.step
}

// makeTruth makes what is true of the application: a step of every batch on every number of devices, and how long it trains.
func (a *elasticApplicationModel) makeTruth() {
	for devices := 1; devices <= a.config.MostDevices; devices++ {
		shape, last := a.shapes[devices-1], 0
		for _, batch := range a.candidates {
			perDevice := (batch + devices - 1) / devices
			if perDevice == last || a.seconds(batch, devices) == 0 {
				continue
			}
			last = perDevice
			time, _ := a.stepTime(shape, perDevice)
			a.truth.Measurements = append(a.truth.Measurements, core.Measurement{
				Nodes: len(shape), Replicas: devices, PerDevice: perDevice, PassSeconds: time.step - time.sync, StepSeconds: time.step,
			})
		}
	}
	if a.config.Truth == truthSamples {
		a.truth.Gradients = core.Gradients{Variance: 1} // no signal: a sample is worth the same at any batch
		return
	}
	for _, t := range a.trainings {
		a.truth.Steps = append(a.truth.Steps, core.BatchSteps{Batch: t.batch, Steps: t.epochs[len(t.epochs)-1].iteration})
	}
	a.truth.Gradients = a.statistics()
}

// statistics are the gradient statistics by which the largest batch of the range costs as many more samples as it does.
func (a *elasticApplicationModel) statistics() core.Gradients {
	scale, more := float64(a.batch.Max)/float64(a.batch.Initial), a.multiplier(a.batch.Max)
	if more <= 1 {
		return core.Gradients{Variance: 1}
	}
	return core.Gradients{SquaredNorm: 1, Variance: max((scale-more)/(more-1), 0)}
}

// multiplier is how many times the samples of the initial batch a training at a total batch takes.
func (a *elasticApplicationModel) multiplier(batch int) float64 {
	if a.config.Truth == truthSamples {
		return 1
	}
	return a.truth.Multiplier(max(batch, a.batch.Initial), a.batch.Initial)
}

// requested is the batch that a job asks for.
func (a *elasticApplicationModel) requested(drawn int) int {
	switch a.config.Batch {
	case batchLargest:
		return a.batch.Max
	case batchRandom:
		return drawn
	default:
		return a.batch.Initial
	}
}

// model is a job of so many seconds of work on one device at the best batch.
func (a *elasticApplicationModel) model(requested int, seconds float64) *elasticModel {
	m := &elasticModel{elasticApplicationModel: a, batch: a.batch, work: seconds * a.alone / float64(a.batch.Initial)}
	m.batch.Requested = requested
	for devices := a.config.MostDevices; devices > 0; devices-- {
		if a.seconds(requested, devices) > 0 {
			m.least = devices
		}
	}
	if a.stepTimes[requested] == nil {
		a.stepTimes[requested] = a.timesAt(requested)
	}
	m.stepTimes = a.stepTimes[requested]
	return m
}

// timesAt are the times of a step at a requested batch, with accumulation where devices do not hold it at once.
func (a *elasticApplicationModel) timesAt(batch int) *core.StepTimes {
	times := &core.StepTimes{OneNode: make([]float64, min(a.config.MostDevices, profileDevicesPerNode)), ManyNodes: make([]float64, a.config.MostDevices)}
	for devices := 1; devices <= a.config.MostDevices; devices++ {
		perDevice, accumulation := goodput.SplitBatch(batch, devices, a.batch)
		time, _ := a.stepTime(a.shapes[devices-1], perDevice) // 0 where it was not measured
		if devices <= profileDevicesPerNode {
			times.OneNode[devices-1] = time.total(accumulation)
		} else {
			times.ManyNodes[devices-1] = time.total(accumulation)
		}
	}
	return times
}

// elasticModel is a job of the source `elastic`. Its only phase is the whole of it, its work is counted in iterations at its initial
// batch.
type elasticModel struct {
	*elasticApplicationModel
	batch     core.BatchSpec
	work      float64
	least     int // devices that hold its requested batch at once; 0 for none
	stepTimes *core.StepTimes
}

func (m *elasticModel) Phases() int { return 1 }

func (m *elasticModel) PhaseEnd(int) float64 { return m.work }

// Rate runs at the requested batch when the tuning leaves the batch to the job.
func (m *elasticModel) Rate(_ int, c Running) float64 {
	step, ok := m.step(c)
	if !ok {
		return 0
	}
	return float64(step.total) / float64(m.batch.Initial) / step.time.total(step.accumulation) / m.multiplier(step.total)
}

// elasticStep is an optimizer step of a job.
type elasticStep struct {
	time                stepTime // of a pass
	perDevice           int      // at most, in a pass
	accumulation, total int
}

func (m *elasticModel) step(c Running) (step elasticStep, ok bool) {
	step.perDevice, step.accumulation = c.Tuning.BatchPerDevice, c.Tuning.AccumulationSteps
	if step.perDevice == 0 {
		step.perDevice, step.accumulation = goodput.SplitBatch(m.batch.Requested, c.Replicas, m.batch)
	}
	step.total = c.Replicas * step.perDevice
	if len(c.Tuning.BatchByReplica) > 0 {
		step.total = 0
		for _, b := range c.Tuning.BatchByReplica {
			step.total += b
		}
	}
	step.total *= step.accumulation + 1
	if step.total < 1 || step.total > m.profile.batch.Max || step.accumulation < 0 {
		return step, false
	}
	shape := c.Shape
	if m.config.Placed == placedConsolidated && c.Replicas <= len(m.shapes) {
		shape = m.shapes[c.Replicas-1]
	}
	step.time, ok = m.stepTime(shape, step.perDevice)
	return step, ok
}

// StepsLeft is all of them: there is one phase.
func (m *elasticModel) StepsLeft(int) float64 {
	return m.work * float64(m.batch.Initial) / float64(m.batch.Requested) * m.multiplier(m.batch.Requested)
}

// Measure is what the profile says of the configuration, free of noise.
func (m *elasticModel) Measure(_ int, c Running) (core.Measurement, core.Gradients, bool) {
	step, ok := m.step(c)
	if !ok {
		return core.Measurement{}, core.Gradients{}, false
	}
	return core.Measurement{
		Nodes: len(c.Shape), Replicas: c.Replicas, PerDevice: step.perDevice, PassSeconds: step.time.step - step.time.sync, StepSeconds: step.time.step,
	}, m.truth.Gradients, true
}
