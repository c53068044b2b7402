package main

import (
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/goodput"
)

// setting is how the samples of a step are spread: over replicas, and over passes one after the other.
type setting struct {
	shares []int // samples of each replica in a pass
	passes int
	factor float64 // of the learning rate; 0 leaves it to the scaling rule
}

// initial is the setting that nobody tuned: the initial batch in one pass, as evenly as can be.
func initial(batch, replicas int) setting {
	s := setting{shares: make([]int, replicas), passes: 1}
	for r := range s.shares {
		s.shares[r] = batch*(r+1)/replicas - batch*r/replicas
	}
	return s
}

// tuned is the setting that a scheduler wants. What it leaves open, or what makes no sense, is as nobody tuned it.
func tuned(t agent.Tuning, batch, replicas int) setting {
	s := initial(batch, replicas)
	s.factor = t.LearningRateFactor
	if len(t.BatchByReplica) == replicas && sum(t.BatchByReplica) > 0 {
		s.shares = t.BatchByReplica
	} else if t.BatchPerDevice > 0 {
		for r := range s.shares {
			s.shares[r] = t.BatchPerDevice
		}
	} else {
		return s
	}
	s.passes += t.AccumulationSteps
	return s
}

func sum(numbers []int) int {
	total := 0
	for _, n := range numbers {
		total += n
	}
	return total
}

// pass is the samples of one pass, batch those of a step.
func (s *setting) pass() int  { return sum(s.shares) }
func (s *setting) batch() int { return s.pass() * s.passes }

// perDevice is the mean share, rounded up.
func (s *setting) perDevice() int { return (s.pass() + len(s.shares) - 1) / len(s.shares) }

// scatter compares the gradients of a step's parts, each that of a replica in a pass: given the mean of their squared
// norms, weighted by samples, and the squared norm of their mean.
func (s *setting) scatter(local, total float64, initialBatch int) goodput.Scatter {
	parts := 0
	for _, b := range s.shares {
		if b > 0 {
			parts += s.passes
		}
	}
	return goodput.Scatter{Parts: parts, Local: local, Total: total, Scale: float64(s.batch()) / float64(initialBatch)}
}

// standIns counts those among samples, from first on, that are trained on when each stands for so many: the multiples of
// that number, whoever holds them.
func standIns(first uint64, samples, standIn int) int {
	k := uint64(standIn)
	return int((first+uint64(samples)+k-1)/k - (first+k-1)/k)
}
