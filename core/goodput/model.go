// Package goodput predicts how fast a data-parallel training job learns: how many samples it processes a second on some
// devices with some batch size, and how much of that counts.
//
// Source: Pollux (OSDI'21), section 3. Times are seconds, batches samples; R is replicas, N the nodes they sit on, b the
// batch on one device in one pass, s the extra accumulation passes of a step, so that the total batch is R·b·(s+1).
package goodput

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// Performance holds the parameters of the throughput model, all positive: the time of a pass is AlphaGrad +
// BetaGrad·b; that of synchronisation is Alpha + Beta·(R-2), with one pair for a single node (Local) and one for
// several (Node); Gamma says how far the two overlap, from 1, one after the other, to 10, fully.
type Performance struct {
	// AlphaGrad is the time of a pass whatever its batch, in seconds.
	AlphaGrad float64 `config:"alpha_grad" doc:"seconds of a pass whatever its batch"`
	// BetaGrad is the time of a pass for each sample on the device, in seconds.
	BetaGrad float64 `config:"beta_grad" doc:"seconds of a pass for each sample on the device"`
	// AlphaNode is the time to synchronise two replicas on two nodes, in seconds.
	AlphaNode float64 `config:"alpha_node" doc:"seconds to synchronise two replicas on two nodes"`
	// BetaNode is the time more for each further replica across nodes, in seconds.
	BetaNode float64 `config:"beta_node" doc:"seconds more for each further replica, across nodes"`
	// AlphaLocal is the time to synchronise two replicas on one node, in seconds.
	AlphaLocal float64 `config:"alpha_local" doc:"seconds to synchronise two replicas on one node"`
	// BetaLocal is the time more for each further replica on one node, in seconds.
	BetaLocal float64 `config:"beta_local" doc:"seconds more for each further replica, on one node"`
	// Gamma is the overlap of computation and synchronisation, from 1 (none) to 10 (full).
	Gamma float64 `config:"gamma" doc:"overlap of computation and synchronisation, 1 (none) to 10" min:"1" max:"10"`
}

// tiny stands for no time at all, which the model, being logarithmic, cannot hold.
const tiny = 1e-8

// GradTime is the seconds of one pass over b samples on a device.
func (p *Performance) GradTime(b float64) float64 { return p.AlphaGrad + p.BetaGrad*b }

// SyncTime is the seconds of one synchronisation of R replicas on N nodes.
func (p *Performance) SyncTime(nodes, replicas int) float64 {
	further := max(float64(replicas-2), tiny)
	switch {
	case nodes > 1:
		return p.AlphaNode + p.BetaNode*further
	case replicas > 1:
		return p.AlphaLocal + p.BetaLocal*further
	default:
		return tiny + tiny*tiny
	}
}

// lastPass is the logarithm of the seconds of the pass that synchronises: (grad^γ + sync^γ)^(1/γ), through logarithms,
// for the powers overflow.
func (p *Performance) lastPass(logGrad, logSync float64) float64 {
	return logAddExp(p.Gamma*logGrad, p.Gamma*logSync) / p.Gamma
}

// StepTime is the seconds of one optimizer step.
func (p *Performance) StepTime(nodes, replicas int, b float64, accumulation int) float64 {
	grad := p.GradTime(b)
	return float64(accumulation)*grad + math.Exp(p.lastPass(math.Log(grad), math.Log(p.SyncTime(nodes, replicas))))
}

// Throughput is samples per second.
func (p *Performance) Throughput(nodes, replicas int, b float64, accumulation int) float64 {
	return float64(replicas) * b * float64(accumulation+1) / p.StepTime(nodes, replicas, b, accumulation)
}

func logAddExp(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// Gradients are gradient statistics with what follows from them.
type Gradients core.Gradients

// Gain is the progress of one step at scale times the initial batch, in steps at the initial batch: between 1 and
// scale. It is 1 when the statistics say nothing.
func (g Gradients) Gain(scale float64) float64 {
	if below := g.Variance/scale + g.SquaredNorm; below > 0 {
		return (g.Variance + g.SquaredNorm) / below
	}
	return 1
}

// Efficiency is the progress per sample at scale times the initial batch, against that at the initial batch.
func (g Gradients) Efficiency(scale float64) float64 { return g.Gain(scale) / scale }
