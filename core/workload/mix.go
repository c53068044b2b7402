package workload

import (
	"math"
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
)

// mix is a discrete distribution.
type mix[T any] []share[T]

type share[T any] struct {
	weight float64
	value  T
}

// draw picks a value with a probability in proportion to its weight.
func (m mix[T]) draw(r *rand.Rand) T {
	total := 0.0
	for _, s := range m {
		total += s.weight
	}
	rest := r.Float64() * total
	for _, s := range m[:len(m)-1] {
		if rest -= s.weight; rest < 0 {
			return s.value
		}
	}
	return m[len(m)-1].value
}

// jobKind is an application with a tuned number of replicas and total batch, and the seconds it then runs.
type jobKind struct {
	application string
	replicas    int
	batch       int
	seconds     float64
}

// polluxKinds are the tuned configurations of the Pollux artifact. The weight of an application, in per cent, is its
// share of the artifact's eight workloads; its configurations are drawn evenly.
var polluxKinds = mix[jobKind]{
	{39.3, jobKind{"ncf", 1, 32768, 33}},
	{38.7 / 4, jobKind{"cifar10", 6, 2048, 854}},
	{38.7 / 4, jobKind{"cifar10", 8, 2048, 826}},
	{38.7 / 4, jobKind{"cifar10", 12, 4096, 573}},
	{38.7 / 4, jobKind{"cifar10", 16, 4096, 449}},
	{8.7 / 3, jobKind{"deepspeech2", 6, 320, 4153}},
	{8.7 / 3, jobKind{"deepspeech2", 8, 320, 3501}},
	{8.7 / 3, jobKind{"deepspeech2", 12, 640, 2573}},
	{6.7 / 4, jobKind{"bert", 6, 384, 3056}},
	{6.7 / 4, jobKind{"bert", 8, 384, 2480}},
	{6.7 / 4, jobKind{"bert", 12, 384, 1589}},
	{6.7 / 4, jobKind{"bert", 16, 384, 1335}},
	{4.6, jobKind{"yolov3", 4, 64, 12870}},
	{2.0 / 3, jobKind{"imagenet", 24, 3200, 31396}},
	{2.0 / 3, jobKind{"imagenet", 32, 6400, 26207}},
	{2.0 / 3, jobKind{"imagenet", 48, 6400, 18880}},
}

// gavelReplicaMix is the mix of Gavel's and Blox's synthetic workloads, in per cent.
var gavelReplicaMix = mix[int]{{70, 1}, {10, 2}, {15, 4}, {5, 8}}

// gavelSeconds is 60·10^U seconds, with U even on 1.5..3 in four of five jobs and on 3..4 in the others.
func gavelSeconds(r *rand.Rand) float64 {
	low, high := 1.5, 3.0
	if r.Float64() >= 0.8 {
		low, high = 3, 4
	}
	return 60 * math.Pow(10, low+(high-low)*r.Float64())
}

// phillyReplicaMix counts the jobs of the Philly trace by their devices, the rare 12 and 24 left out.
var phillyReplicaMix = mix[int]{{76627, 1}, {1818, 2}, {1870, 4}, {1643, 8}, {199, 16}, {67, 32}, {6, 64}, {3, 128}}

// phillyQuantiles are durations in the Philly trace: the share of jobs that run no longer than so many seconds.
var phillyQuantiles = []struct{ share, seconds float64 }{
	{0, 1},
	{0.05, 48},
	{0.1, 61},
	{0.2, 75},
	{0.3, 209},
	{0.4, 599},
	{0.5, 1144},
	{0.6, 1821},
	{0.7, 2549},
	{0.8, 4243},
	{0.9, 11264},
	{0.95, 43642},
	{0.975, 113279},
	{0.99, 254611},
	{0.999, 1185672},
	{1, 4628226},
}

// phillySeconds is the duration at a quantile from 0 to 1, interpolated in its logarithm.
func phillySeconds(share float64) float64 {
	at := 1
	for at < len(phillyQuantiles)-1 && phillyQuantiles[at].share < share {
		at++
	}
	low, high := phillyQuantiles[at-1], phillyQuantiles[at]
	return math.Exp(interpolate(share, low.share, math.Log(low.seconds), high.share, math.Log(high.seconds)))
}

// sensitivities are like those of the models of Synergy (OSDI'22), whose trainings on images gain by CPUs, and those on language do not, in servers with 3 CPUs and
// 62.5 GB for a device. The weights are our own: half of the jobs gain nothing.
func sensitivities() mix[*core.Sensitivity] {
	of := func(cpus, memory, speedup float64) *core.Sensitivity {
		return &core.Sensitivity{Base: core.Resources{CPUs: 3, MemoryGB: 62.5}, Ideal: core.Resources{CPUs: cpus, MemoryGB: memory}, Speedup: speedup}
	}
	return mix[*core.Sensitivity]{{50, of(1, 20, 1)}, {10, of(4, 62.5, 1.15)}, {10, of(6, 62.5, 1.5)}, {10, of(6, 125, 2.5)}, {10, of(9, 62.5, 2.4)}, {10, of(12, 125, 2.9)}}
}
