package search_test

import (
	"math"

	"github.com/quartet-sched/quartet/core/search"
)

// A function is one that searches are compared on.
type function struct {
	name  string
	space search.Space
	value func(search.Params) float64
	least float64
}

func number(p search.Params, name string) float64 {
	v, _ := p.Get(name)
	x, _ := v.Float()
	return x
}

func axes(n int, low, high float64) search.Space {
	var s search.Space
	for i := range n {
		s = append(s, search.Dimension{Name: string(rune('a' + i)), Low: low, High: high})
	}
	return s
}

func point(p search.Params) []float64 {
	x := make([]float64, len(p))
	for i := range p {
		x[i], _ = p[i].Value.Float()
	}
	return x
}

// functions are the standard ones: sphere, Branin, Hartmann, Rosenbrock, and a training-like one with scales of each kind.
func functions() []function {
	sphere := func(p search.Params) float64 {
		sum := 0.0
		for _, x := range point(p) {
			sum += (x - 1.3) * (x - 1.3)
		}
		return sum
	}
	return []function{
		{"sphere, 2", axes(2, -5, 5), sphere, 0},
		{"sphere, 6", axes(6, -5, 5), sphere, 0},
		{"Branin", search.Space{{Name: "a", Low: -5, High: 10}, {Name: "b", Low: 0, High: 15}}, branin, 0.397887},
		{"Hartmann, 3", axes(3, 0, 1), hartmann3, -3.86278},
		{"Hartmann, 6", axes(6, 0, 1), hartmann6, -3.32237},
		{"Rosenbrock, 4", axes(4, -2, 2), rosenbrock, 0},
		{"mixed", mixedSpace(), mixed, 0},
	}
}

func branin(p search.Params) float64 {
	x, y := number(p, "a"), number(p, "b")
	u := y - 5.1/(4*math.Pi*math.Pi)*x*x + 5/math.Pi*x - 6
	return u*u + 10*(1-1/(8*math.Pi))*math.Cos(x) + 10
}

func rosenbrock(p search.Params) float64 {
	x := point(p)
	sum := 0.0
	for i := 1; i < len(x); i++ {
		a, b := x[i]-x[i-1]*x[i-1], 1-x[i-1]
		sum += 100*a*a + b*b
	}
	return sum
}

func hartmann(x []float64, a, p [4][]float64) float64 {
	alpha := [4]float64{1, 1.2, 3, 3.2}
	sum := 0.0
	for i := range alpha {
		inner := 0.0
		for j := range x {
			inner += a[i][j] * (x[j] - p[i][j]) * (x[j] - p[i][j])
		}
		sum -= alpha[i] * math.Exp(-inner)
	}
	return sum
}

func hartmann3(p search.Params) float64 {
	return hartmann(point(p), [4][]float64{{3, 10, 30}, {0.1, 10, 35}, {3, 10, 30}, {0.1, 10, 35}},
		[4][]float64{{0.3689, 0.1170, 0.2673}, {0.4699, 0.4387, 0.7470}, {0.1091, 0.8732, 0.5547}, {0.0381, 0.5743, 0.8828}})
}

func hartmann6(p search.Params) float64 {
	return hartmann(point(p), [4][]float64{{10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}},
		[4][]float64{
			{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
			{0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
			{0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
			{0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381},
		})
}

func mixedSpace() search.Space {
	return search.Space{
		{Name: "lr", Scale: search.LogUniform, Low: 1e-5, High: 1},
		{Name: "momentum", Low: 0, High: 0.99},
		{Name: "layers", Scale: search.Int, Low: 1, High: 8},
		{Name: "batch", Scale: search.LogInt, Low: 8, High: 1024},
		{Name: "optimizer", Scale: search.Choice, Choices: []search.Value{search.Word("sgd"), search.Word("adam"), search.Word("lamb"), search.Word("rmsprop")}},
	}
}

// mixed is least at lr 0.003, momentum 0.9, 3 layers, batch 128, adam; each optimizer wants a rate of its own.
func mixed(p search.Params) float64 {
	optimizer, _ := p.Get("optimizer")
	shift, loss := 0.0, 0.0
	switch optimizer.String() {
	case "sgd":
		shift, loss = 1.5, 0.15
	case "lamb":
		shift, loss = 0.5, 0.3
	case "rmsprop":
		shift, loss = -0.5, 0.2
	}
	rate := math.Log10(number(p, "lr")) - math.Log10(0.003) - shift
	momentum := number(p, "momentum") - 0.9
	layers := number(p, "layers") - 3
	batch := math.Log2(number(p, "batch")) - 7
	return loss + rate*rate/4 + 2*momentum*momentum + layers*layers/20 + batch*batch/30
}
