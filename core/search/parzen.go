package search

import (
	"math"
	"math/rand/v2"
	"slices"
)

// density is a sum of kernels over a space, one around each of some points and one over all of it, each of the same weight. A kernel is a product over the
// dimensions: of numbers a normal density cut off at the ends, of choices what was counted.
type density struct {
	space Space
	axes  []axis
	n     int // kernels
}

// axis is one dimension of all kernels. The last kernel lies over all of the dimension.
type axis struct {
	*Dimension
	low, width float64 // of the line, whose places are then from 0 to 1

	at, spread []float64 // of the normal densities
	mass       []float64 // of each within the ends
	scale      []float64 // logarithm of the mass and, of numbers that are not whole, the spread
	chosen     []int     // index of the choice; -1 for all
	own, other float64   // weight of the choice of a kernel, and of each other
}

// newDensity lays kernels around points, some of so many trials.
func newDensity(space Space, points []Params, trials int) *density {
	d := &density{space: space, axes: make([]axis, len(space)), n: len(points) + 1}
	for i := range space {
		a := &d.axes[i]
		a.Dimension = &space[i]
		if a.Listed() {
			a.choices(points, i)
		} else {
			a.numbers(points, i, trials)
		}
	}
	return d
}

func (a *axis) choices(points []Params, dimension int) {
	a.chosen = make([]int, 0, len(points)+1)
	for _, p := range points {
		a.chosen = append(a.chosen, slices.IndexFunc(a.Choices, p[dimension].Value.Equal))
	}
	a.chosen = append(a.chosen, -1)
	// What a kernel says of the other choices: as much as one draw by chance among all the kernels.
	k, n := float64(len(a.Choices)), float64(len(points)+1)
	a.own, a.other = (1+1/n)/(1+k/n), 1/n/(1+k/n)
}

// numbers places the kernels. Each is as wide as the distance to the next place at which there is another, but not narrower than a part of the range that shrinks with the
// number of trials in all.
func (a *axis) numbers(points []Params, dimension, trials int) {
	low, high := a.ends()
	a.low, a.width = low, high-low
	n := len(points)
	a.at, a.spread, a.mass, a.scale = make([]float64, n+1), make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
	order := make([]int, n+1)
	for i := range order {
		order[i], a.at[i] = i, 0.5
		if i < n {
			a.at[i] = a.place(points[i][dimension].Value.number)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case a.at[i] < a.at[j]:
			return -1
		case a.at[i] > a.at[j]:
			return 1
		}
		return 0
	})
	narrowest := 1 / math.Min(100, float64(trials+2))
	for first := 0; first <= n; { // what lies at the same place has the same neighbours
		last := first
		for last < n && a.at[order[last+1]] == a.at[order[first]] {
			last++
		}
		nearest := 1.0
		if first > 0 {
			nearest = a.at[order[first]] - a.at[order[first-1]]
		}
		if last < n {
			nearest = math.Min(nearest, a.at[order[last+1]]-a.at[order[last]])
		}
		for _, i := range order[first : last+1] {
			a.spread[i] = math.Max(nearest, narrowest)
		}
		first = last + 1
	}
	a.spread[n] = 1 // the one over all
	for i := range a.mass {
		a.mass[i] = between((0-a.at[i])/a.spread[i], (1-a.at[i])/a.spread[i])
		a.scale[i] = math.Log(a.mass[i])
		if !a.Whole() {
			a.scale[i] += math.Log(a.spread[i])
		}
	}
}

// place is where a number lies, from 0 to 1: in the middle of a range whose ends no logarithm tells apart.
func (a *axis) place(x float64) float64 {
	if a.width == 0 {
		return 0.5
	}
	return (a.onLine(x) - a.low) / a.width
}

// between is the mass of the standard normal density between two places.
func between(x, y float64) float64 {
	if x > 0 { // where the tails are small and exact
		return (math.Erfc(x/math.Sqrt2) - math.Erfc(y/math.Sqrt2)) / 2
	}
	return (math.Erfc(-y/math.Sqrt2) - math.Erfc(-x/math.Sqrt2)) / 2
}

// draw is a point: first a kernel, then each dimension of it.
func (d *density) draw(r *rand.Rand) Params {
	kernel := r.IntN(d.n)
	p := make(Params, len(d.space))
	for i := range d.axes {
		p[i] = Param{d.space[i].Name, d.axes[i].draw(kernel, r)}
	}
	return p
}

func (a *axis) draw(kernel int, r *rand.Rand) Value {
	u := r.Float64()
	if a.Listed() {
		own := a.chosen[kernel]
		if own < 0 {
			return a.Choices[min(int(u*float64(len(a.Choices))), len(a.Choices)-1)]
		}
		if u -= a.own - a.other; u < 0 {
			return a.Choices[own]
		}
		return a.Choices[min(int(u/a.other), len(a.Choices)-1)]
	}
	at, spread := a.at[kernel], a.spread[kernel]
	below := math.Erfc(at/spread/math.Sqrt2) / 2 // mass before the range
	x := at - spread*math.Sqrt2*math.Erfcinv(2*(below+u*a.mass[kernel]))
	return Number(a.fromLine(a.low + a.width*math.Min(math.Max(x, 0), 1)))
}

// log is the logarithm of the density at a point, of whole numbers that of the mass of their step.
func (d *density) log(p Params) float64 {
	logs := make([]float64, d.n)
	for i := range d.axes {
		d.axes[i].add(logs, p[i].Value)
	}
	greatest := slices.Max(logs)
	sum := 0.0
	for _, l := range logs {
		sum += math.Exp(l - greatest)
	}
	return greatest + math.Log(sum) - math.Log(float64(d.n))
}

// least stands for the logarithm of what is too small to be told from 0.
const least = -700

// add adds to each kernel the logarithm of its density in the dimension.
func (a *axis) add(logs []float64, v Value) {
	if a.Listed() {
		own, other, all := math.Log(a.own), math.Log(a.other), -math.Log(float64(len(a.Choices)))
		for k, chosen := range a.chosen {
			switch {
			case chosen < 0:
				logs[k] += all
			case a.Choices[chosen].Equal(v):
				logs[k] += own
			default:
				logs[k] += other
			}
		}
		return
	}
	x := a.place(v.number)
	low, high := x, x
	if a.Whole() {
		low, high = a.place(math.Max(v.number-0.5, a.Low-0.5)), a.place(v.number+0.5)
	}
	for k := range logs {
		at, spread := a.at[k], a.spread[k]
		if a.Whole() {
			logs[k] += math.Max(math.Log(between((low-at)/spread, (high-at)/spread)), least) - a.scale[k]
			continue
		}
		z := (x - at) / spread
		logs[k] -= z*z/2 + a.scale[k]
	}
}
