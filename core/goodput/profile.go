package goodput

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// Profile is an application in a few numbers: all that is needed to simulate its training jobs, on any cluster.
type Profile struct {
	// Version is that of the format, 1.
	Version int `config:"version" required:"true" min:"1" max:"1" doc:"version of the format, 1"`
	// Name is the name of the application.
	Name string `config:"name" required:"true" doc:"name of the application: lower-case letters, digits, _ and -, a letter first"`
	// Batch bounds the batch, in samples.
	Batch BatchLimits `config:"batch" doc:"bounds of the batch, in samples"`
	// MaxReplicas is the largest number of replicas that a job can use.
	MaxReplicas int `config:"max_replicas" required:"true" min:"1" max:"1000000" doc:"most replicas that a job can use"`
	// Epochs is the number of epochs of a training.
	Epochs int `config:"epochs" required:"true" min:"1" max:"1000000" doc:"epochs of a training"`
	// IterationsPerEpoch is the number of optimizer steps of an epoch at the initial batch.
	IterationsPerEpoch float64 `config:"iterations_per_epoch" required:"true" doc:"optimizer steps of an epoch at the initial batch"`
	// Performance holds the parameters of the throughput model, in seconds.
	Performance Performance `config:"performance" doc:"parameters of the throughput model"`
	// Noise is the gradient noise scale over a training: linear between the points, constant outside.
	Noise []NoisePoint `config:"noise" required:"true" doc:"gradient noise scale over a training, linear between points and constant outside"`
	// Sensitivity is the speed by CPUs and memory; zero where it is unknown or they make no difference.
	Sensitivity Sensitivity `config:"sensitivity" doc:"speed by CPUs and memory; left out: none makes a difference, or it is unknown"`
	// Residuals say how well the parameters fit what was measured.
	Residuals Residuals `config:"residuals" doc:"how well the parameters fit what was measured"`
}

// Sensitivity is core.Sensitivity as far as a profile holds it: of a replica, with what the performance was measured, and the least with which it is best. All zero
// where nothing is known.
type Sensitivity struct {
	// BaseCPUs is the number of CPUs of a replica with which the performance was measured.
	BaseCPUs float64 `config:"base_cpus" min:"0" doc:"CPUs of a replica with which the performance is as above"`
	// BaseMemoryGB is the memory of a replica with which the performance was measured, in GB.
	BaseMemoryGB float64 `config:"base_memory_gb" min:"0" doc:"memory of a replica with which the performance is as above"`
	// IdealCPUs is the least number of CPUs of a replica with which it is fastest.
	IdealCPUs float64 `config:"ideal_cpus" min:"0" doc:"least CPUs of a replica with which it is best"`
	// IdealMemoryGB is the least memory of a replica with which it is fastest, in GB.
	IdealMemoryGB float64 `config:"ideal_memory_gb" min:"0" doc:"least memory of a replica with which it is best"`
	// Speedup is how many times as fast a replica is with the ideal resources as with the base ones, a ratio.
	Speedup float64 `config:"speedup" min:"0" doc:"how many times as fast it is then"`
}

// Of is the sensitivity as a job has it; nil where nothing is known.
func (s *Sensitivity) Of() *core.Sensitivity {
	if *s == (Sensitivity{}) {
		return nil
	}
	return &core.Sensitivity{
		Base: core.Resources{CPUs: s.BaseCPUs, MemoryGB: s.BaseMemoryGB}, Ideal: core.Resources{CPUs: s.IdealCPUs, MemoryGB: s.IdealMemoryGB}, Speedup: s.Speedup,
	}
}

// BatchLimits are those of core.BatchSpec that belong to an application.
type BatchLimits struct {
	// Initial is the total batch that the learning rate was tuned for, in samples.
	Initial int `config:"initial" required:"true" min:"1" max:"1000000000" doc:"total batch that the learning rate was tuned for"`
	// Max is the largest total batch that still trains, in samples.
	Max int `config:"max" required:"true" min:"1" max:"1000000000" doc:"largest total batch that still trains"`
	// MinPerDevice is the smallest batch of a device in a pass, in samples.
	MinPerDevice int `config:"min_per_device" required:"true" min:"1" max:"1000000000" doc:"least batch of a device in a pass"`
	// MaxPerDevice is the largest batch that a device holds, in samples.
	MaxPerDevice int `config:"max_per_device" required:"true" min:"1" max:"1000000000" doc:"largest batch that a device holds"`
}

// Spec is the bounds as a job has them.
func (l BatchLimits) Spec() core.BatchSpec {
	return core.BatchSpec{Initial: l.Initial, Max: l.Max, MinPerDevice: l.MinPerDevice, MaxPerDevice: l.MaxPerDevice}
}

// NoisePoint is the gradient noise scale at a moment of a training.
type NoisePoint struct {
	// Progress is the part of the training that is done, from 0 to 1.
	Progress float64 `config:"progress" min:"0" max:"1" doc:"part of the training that is done"`
	// Samples is the gradient noise scale, in samples.
	Samples float64 `config:"samples" min:"0" doc:"gradient noise scale, in samples"`
}

// Residuals are root mean squares of the differences between logarithms of what was measured and of what the profile
// says: 0.1 stands for 10 per cent. They are not used.
type Residuals struct {
	// Points is the number of configurations measured.
	Points int `config:"points" min:"0" doc:"configurations measured"`
	// Pass is the error of the duration of a pass, in natural logarithms.
	Pass float64 `config:"pass_log_rms" min:"0" doc:"error of the seconds of a pass"`
	// Step is the error of the duration of a step, in natural logarithms.
	Step float64 `config:"step_log_rms" min:"0" doc:"error of the seconds of a step"`
	// Gain is the error of the progress of a step, over epochs and batches, in natural logarithms.
	Gain float64 `config:"gain_log_rms" min:"0" doc:"error of the progress of a step, over epochs and batches"`
}

var profileName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// Validate reports every number that makes no sense, alone or with others.
func (p Profile) Validate() error {
	var problems []error
	refuse := func(path, format string, args ...any) {
		problems = append(problems, fmt.Errorf(path+": "+format, args...))
	}
	if of := p.Sensitivity.Of(); of != nil {
		if err := of.Check(); err != nil {
			refuse("sensitivity", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	if !profileName.MatchString(p.Name) {
		refuse("name", "%q is not of lower-case letters, digits, _ and -, a letter first", p.Name)
	}
	if b := &p.Batch; b.Max < b.Initial {
		refuse("batch.max", "must be at least batch.initial, %d", b.Initial)
	}
	if b := &p.Batch; b.MaxPerDevice < b.MinPerDevice {
		refuse("batch.max_per_device", "must be at least batch.min_per_device, %d", b.MinPerDevice)
	}
	if !(p.IterationsPerEpoch > 0) {
		refuse("iterations_per_epoch", "must be above 0")
	}
	for i, f := range core.FieldsOf(&p.Performance) {
		if v := p.Performance.vector(); !(v[i] > 0) {
			refuse("performance."+f.Name, "must be above 0")
		}
	}
	if g := p.Performance.Gamma; g < 1 {
		refuse("performance.gamma", "must be at least 1")
	}
	if len(p.Noise) == 0 {
		refuse("noise", "must hold a point at least")
	}
	for i := 1; i < len(p.Noise); i++ {
		if p.Noise[i].Progress <= p.Noise[i-1].Progress {
			refuse(fmt.Sprintf("noise[%d].progress", i), "must be above that of the point before")
		}
	}
	return errors.Join(problems...)
}

// NoiseScale is the gradient noise scale, in samples, when a part of the training is done.
func (p *Profile) NoiseScale(progress float64) float64 {
	n := p.Noise
	at := sort.Search(len(n), func(i int) bool { return n[i].Progress >= progress })
	switch at {
	case 0:
		return n[0].Samples
	case len(n):
		return n[at-1].Samples
	}
	low, high := n[at-1], n[at]
	share := (progress - low.Progress) / (high.Progress - low.Progress)
	return low.Samples + share*(high.Samples-low.Samples)
}

// Gradients are statistics with the noise scale of an epoch, counted from 0; their squared norm, of which a noise scale
// says nothing, is 1.
func (p *Profile) Gradients(epoch int) Gradients {
	return Gradients{SquaredNorm: 1, Variance: p.NoiseScale(p.middle(epoch)) / float64(p.Batch.Initial)}
}

// Faster is an application that does the same in less time: each pass and each synchronisation takes a part of it.
func (p *Profile) Faster(times float64) Profile {
	faster, m := *p, &p.Performance
	faster.Performance = Performance{
		AlphaGrad: m.AlphaGrad / times, BetaGrad: m.BetaGrad / times, AlphaNode: m.AlphaNode / times, BetaNode: m.BetaNode / times,
		AlphaLocal: m.AlphaLocal / times, BetaLocal: m.BetaLocal / times, Gamma: m.Gamma,
	}
	return faster
}

// middle is the progress halfway through an epoch.
func (p *Profile) middle(epoch int) float64 { return (float64(epoch) + 0.5) / float64(p.Epochs) }
