package doortest

import (
	"math"

	"github.com/quartet-sched/quartet/core/workload"
)

// The search that Trial is one of. An epoch is a minute on one replica.
const (
	TrialEpochs = 27 // of each trial
	Trials      = 27 // of the search
)

// Trial is a training whose loss falls as those of ResNet-18 on CIFAR-10 do, to a level of its own.
type Trial struct {
	Level float64 // loss after ever so many epochs
}

// TrialOf is the n-th trial of the search; trial 0 reaches the lowest loss.
func TrialOf(n int) Trial { return Trial{0.1 + 0.01*float64(n*10%Trials)} }

// Phases counts the epochs.
func (Trial) Phases() int { return TrialEpochs }

// PhaseEnd is the work done at the end of an epoch, in seconds on one replica.
func (Trial) PhaseEnd(i int) float64 { return 60 * float64(i+1) }

// StepsLeft is unknown.
func (Trial) StepsLeft(int) float64 { return math.NaN() }

// Loss is the loss after an epoch, the first of which is 1.
func (m Trial) Loss(epoch int) float64 { return m.Level + 2*math.Pow(float64(epoch), -0.7) }

// Rate grows a little slower than the replicas.
func (Trial) Rate(_ int, r workload.Running) float64 { return math.Pow(float64(r.Replicas), 0.9) }

// Reports is the loss at the end of an epoch.
func (m Trial) Reports(phase int) []workload.Reported {
	return []workload.Reported{{Metric: "loss", Step: float64(phase + 1), Value: m.Loss(phase + 1)}}
}
