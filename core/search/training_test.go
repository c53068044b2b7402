package search_test

import (
	"math"
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/search"
)

// trainings are real ones, small: a network of one hidden layer learns which of two half moons a point is of.

func trainingSpace() search.Space {
	return search.Space{
		{Name: "lr", Scale: search.LogUniform, Low: 1e-4, High: 3},
		{Name: "momentum", Low: 0, High: 0.95},
		{Name: "hidden", Scale: search.LogInt, Low: 2, High: 32},
		{Name: "batch", Scale: search.LogInt, Low: 4, High: 64},
		{Name: "activation", Scale: search.Choice, Choices: []search.Value{search.Word("tanh"), search.Word("relu"), search.Word("identity")}},
	}
}

type moons struct {
	at    [][2]float64
	label []float64
}

func newMoons(n int, r *rand.Rand) (m moons) {
	for i := range n {
		angle, side := r.Float64()*math.Pi, float64(i%2)
		x, y := math.Cos(angle), math.Sin(angle)
		if side == 1 {
			x, y = 1-x, 0.5-y
		}
		m.at = append(m.at, [2]float64{x + 0.1*r.NormFloat64(), y + 0.1*r.NormFloat64()})
		m.label = append(m.label, side)
	}
	return m
}

// training goes epoch by epoch.
type training struct {
	learn, held       moons
	rand              *rand.Rand
	lr, momentum      float64
	hidden, batch     int
	activation        string
	weights, velocity []float64 // of each hidden unit two weights, a bias and its weight in the answer; then the bias of the answer
}

func newTraining(p search.Params, seed uint64) *training {
	data := core.NewRand(1, "moons")
	t := &training{learn: newMoons(120, data), held: newMoons(120, data), rand: core.NewRand(seed, "training")}
	t.lr, t.momentum = number(p, "lr"), number(p, "momentum")
	t.hidden, t.batch = int(number(p, "hidden")), int(number(p, "batch"))
	activation, _ := p.Get("activation")
	t.activation = activation.String()
	t.weights, t.velocity = make([]float64, 4*t.hidden+1), make([]float64, 4*t.hidden+1)
	for i := range t.weights {
		t.weights[i] = t.rand.NormFloat64() * 0.5
	}
	return t
}

func (t *training) bend(x float64) (y, slope float64) {
	switch t.activation {
	case "tanh":
		y = math.Tanh(x)
		return y, 1 - y*y
	case "relu":
		if x < 0 {
			return 0, 0
		}
	}
	return x, 1
}

// loss of a sample, and its gradient where there is one to add to.
func (t *training) loss(m *moons, i int, gradient []float64) float64 {
	out := t.weights[4*t.hidden]
	for h := range t.hidden {
		w := t.weights[4*h:]
		y, _ := t.bend(w[0]*m.at[i][0] + w[1]*m.at[i][1] + w[2])
		out += w[3] * y
	}
	if gradient != nil {
		slope := 1/(1+math.Exp(-out)) - m.label[i]
		gradient[4*t.hidden] += slope
		for h := range t.hidden {
			w, g := t.weights[4*h:], gradient[4*h:]
			y, bent := t.bend(w[0]*m.at[i][0] + w[1]*m.at[i][1] + w[2])
			g[3] += slope * y
			g[0] += slope * w[3] * bent * m.at[i][0]
			g[1] += slope * w[3] * bent * m.at[i][1]
			g[2] += slope * w[3] * bent
		}
	}
	return math.Max(out, 0) - out*m.label[i] + math.Log1p(math.Exp(-math.Abs(out)))
}

// epoch trains once over all samples, and is the loss on those kept apart.
func (t *training) epoch() float64 {
	order := t.rand.Perm(len(t.learn.at))
	for from := 0; from < len(order); from += t.batch {
		gradient := make([]float64, len(t.weights))
		batch := order[from:min(from+t.batch, len(order))]
		for _, i := range batch {
			t.loss(&t.learn, i, gradient)
		}
		for w := range t.weights {
			t.velocity[w] = t.momentum*t.velocity[w] - t.lr*gradient[w]/float64(len(batch))
			t.weights[w] += t.velocity[w]
		}
	}
	sum := 0.0
	for i := range t.held.at {
		sum += t.loss(&t.held, i, nil)
	}
	return sum / float64(len(t.held.at))
}
