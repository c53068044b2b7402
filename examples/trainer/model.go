package main

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
)

// model is a classifier: fully connected layers with tanh between them, and the cross entropy of the softmax of what
// the last one puts out. Without a hidden layer it is softmax regression. Its parameters are one vector: for each layer
// the weights, a row for each output, then the biases.
type model struct {
	sizes   []int       // of the input and of each layer's output
	starts  []int       // where the parameters of each layer begin, and where all end
	outputs [][]float64 // of each layer, for the sample at hand
	slopes  [][]float64 // of the loss by the outputs
}

func newModel(o *task) *model {
	m := &model{sizes: []int{o.Features, o.Classes}}
	if o.Model == modelMLP {
		m.sizes = []int{o.Features, o.Hidden, o.Classes}
	}
	m.starts = []int{0}
	for i, n := range m.sizes[1:] {
		m.starts = append(m.starts, m.starts[i]+(m.sizes[i]+1)*n)
		m.outputs = append(m.outputs, make([]float64, n))
		m.slopes = append(m.slopes, make([]float64, n))
	}
	return m
}

func (m *model) parameters() int { return m.starts[len(m.starts)-1] }

// start is where a training begins: small random weights, no biases.
func (m *model) start(seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, streamParameters))
	parameters := make([]float64, 0, m.parameters())
	for i := range m.outputs {
		in, out := m.sizes[i], m.sizes[i+1]
		parameters = append(parameters, normal(r, in*out, 1/math.Sqrt(float64(in)))...)
		parameters = append(parameters, make([]float64, out)...)
	}
	return parameters
}

// layer is the part of a vector of parameters, or of a gradient, that belongs to a layer.
func (m *model) layer(i int, vector []float64) (weights blas64.General, biases blas64.Vector) {
	in, out := m.sizes[i], m.sizes[i+1]
	part := vector[m.starts[i]:m.starts[i+1]]
	return blas64.General{Rows: out, Cols: in, Stride: in, Data: part[:in*out]}, vectorOf(part[in*out:])
}

func vectorOf(x []float64) blas64.Vector { return blas64.Vector{N: len(x), Inc: 1, Data: x} }

// loss is that of one sample.
func (m *model) loss(parameters, features []float64, label int) float64 {
	in, last := features, len(m.outputs)-1
	for i, out := range m.outputs {
		weights, biases := m.layer(i, parameters)
		copy(out, biases.Data)
		blas64.Gemv(blas.NoTrans, 1, weights, vectorOf(in), 1, vectorOf(out))
		if i < last {
			for j, x := range out {
				out[j] = math.Tanh(x)
			}
		}
		in = out
	}
	return floats.LogSumExp(in) - in[label]
}

// gradient is the loss of one sample and, in the vector given, its slope.
func (m *model) gradient(parameters, features []float64, label int, gradient []float64) float64 {
	loss := m.loss(parameters, features, label)
	last := len(m.outputs) - 1
	scores, slope := m.outputs[last], m.slopes[last]
	total := floats.LogSumExp(scores)
	for k, score := range scores {
		slope[k] = math.Exp(score - total)
	}
	slope[label]--
	for i := last; i >= 0; i-- {
		in := features
		if i > 0 {
			in = m.outputs[i-1]
		}
		weights, biases := m.layer(i, gradient)
		clear(weights.Data)
		copy(biases.Data, m.slopes[i])
		blas64.Ger(1, vectorOf(m.slopes[i]), vectorOf(in), weights)
		if i > 0 {
			weights, _ := m.layer(i, parameters)
			before := m.slopes[i-1]
			blas64.Gemv(blas.Trans, 1, weights, vectorOf(m.slopes[i]), 0, vectorOf(before))
			for j, x := range in { // of tanh
				before[j] *= 1 - x*x
			}
		}
	}
	return loss
}

// meanLoss is that of all samples.
func (m *model) meanLoss(parameters []float64, d *data) float64 {
	sum := 0.0
	for i, x := range d.features {
		sum += m.loss(parameters, x, d.labels[i])
	}
	return sum / float64(len(d.labels))
}
