package main

import "math/rand/v2"

// data is a set of samples made from a seed: each class is a cloud around a point of its own.
type data struct {
	seed     uint64
	features [][]float64
	labels   []int
}

// Streams of the seed.
const (
	streamData = iota
	streamParameters
	streamOrder // and on, one for each epoch
)

func makeData(o *task) *data {
	r := rand.New(rand.NewPCG(o.Seed, streamData))
	centres := make([][]float64, o.Classes)
	for k := range centres {
		centres[k] = normal(r, o.Features, 1)
	}
	d := &data{seed: o.Seed, features: make([][]float64, o.Samples), labels: make([]int, o.Samples)}
	const spread = 2 // clouds overlap, so that no parameters are perfect
	for i := range d.features {
		k := r.IntN(o.Classes)
		x := normal(r, o.Features, spread)
		for j := range x {
			x[j] += centres[k][j]
		}
		d.features[i], d.labels[i] = x, k
	}
	return d
}

func normal(r *rand.Rand, n int, scale float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = scale * r.NormFloat64()
	}
	return x
}

// order says which sample comes when: all of them, shuffled anew in each epoch. It depends on the seed only, so that a
// training sees the same samples on any number of replicas.
type order struct {
	data  *data
	epoch uint64
	perm  []int // of the epoch; nil before the first
}

// at is the index of the n-th sample of the training. It is quick for a replica that asks in rising order.
func (o *order) at(n uint64) int {
	size := uint64(len(o.data.labels))
	if epoch := n / size; o.perm == nil || epoch != o.epoch {
		o.epoch, o.perm = epoch, rand.New(rand.NewPCG(o.data.seed, streamOrder+epoch)).Perm(int(size))
	}
	return o.perm[n%size]
}
