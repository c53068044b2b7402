package search

import (
	"context"
	"fmt"
	"math"

	"github.com/quartet-sched/quartet/core"
)

// grid tries every combination of values once: all of a list, all whole numbers, or so many points of a range, both ends among them and evenly, by their
// logarithms where the scale is one. The last dimension changes fastest. A trial is made when it is asked for, by the digits of its number in the mixed radix of
// the dimensions, so that a grid may be larger than memory.
type grid struct {
	axes [][]Value // of those that are listed beforehand
	size uint64
	history
	space Space
}

// GridConfig has no settings: how many points a range has is given by the space.
type GridConfig struct{}

func (GridConfig) suits(_, path string, p Problem) core.Diagnostics {
	ds := needsSpace(path, p)
	size := 1.0
	for i := range p.Space {
		d := &p.Space[i]
		if !d.Listed() && !d.Whole() && d.Points == 0 {
			ds = append(ds, core.Diagnostic{
				Path: fmt.Sprintf("%s[%d]", path, i), Summary: fmt.Sprintf("a grid needs points of %q, whose values are any number", d.Name),
				Hint: "add points: 5, or list values with choice",
			})
		}
		size *= float64(d.count())
	}
	if len(ds) == 0 && size > maxInt {
		ds = append(ds, core.Diagnostic{Path: path, Summary: fmt.Sprintf("the grid has %.3g combinations, at most 2^53 can be counted", size)})
	}
	return ds
}

// NewGrid makes the factory of the search `grid`.
func NewGrid() core.Factory[Method] {
	return core.NewFactory(core.Info{
		Type: "grid", Summary: "tries every combination of values once",
		Description: "All values of a list and all whole numbers, or so many points of a range as the space says; the last hyper-parameter changes fastest. " +
			"Points that round to the same whole number count once.",
	}, GridConfig{}, func(GridConfig, core.Settings) (Method, error) {
		return func(p Problem) (Search, error) {
			if err := (GridConfig{}).suits("", "space", p).Err(); err != nil {
				return nil, err
			}
			g := &grid{space: p.Space, size: 1, axes: make([][]Value, len(p.Space))}
			for i := range p.Space {
				d := &p.Space[i]
				if d.Points > 0 {
					g.axes[i] = d.points()
				}
				g.size *= g.radix(i)
			}
			return g, nil
		}, nil
	})
}

// count is how many values a grid tries of the dimension, at most.
func (d *Dimension) count() int64 {
	switch {
	case d.Listed():
		return int64(len(d.Choices))
	case d.Points > 0:
		return int64(d.Points)
	default:
		return int64(d.High-d.Low) + 1
	}
}

// points are the values of a range that has so many points.
func (d *Dimension) points() []Value {
	low, high := d.onLine(d.Low), d.onLine(d.High)
	var values []Value
	for k := range d.Points {
		u := float64(k) / float64(d.Points-1)
		x := d.fromLine(low*(1-u) + high*u)
		switch k {
		case 0:
			x = d.Low
		case d.Points - 1:
			x = d.High
		}
		if len(values) == 0 || values[len(values)-1].number < x {
			values = append(values, Number(x))
		}
	}
	return values
}

func (g *grid) radix(i int) uint64 {
	if g.axes[i] != nil {
		return uint64(len(g.axes[i]))
	}
	return uint64(g.space[i].count())
}

// at is a combination by its number.
func (g *grid) at(number uint64) Params {
	p := make(Params, len(g.space))
	for i := len(g.space) - 1; i >= 0; i-- {
		d, radix := &g.space[i], g.radix(i)
		digit := number % radix
		number /= radix
		value := Number(math.Min(d.Low+float64(digit), d.High))
		switch {
		case d.Listed():
			value = d.Choices[digit]
		case g.axes[i] != nil:
			value = g.axes[i][digit]
		}
		p[i] = Param{d.Name, value}
	}
	return p
}

// Ask returns the next combinations.
func (g *grid) Ask(ctx context.Context, n int) ([]Trial, error) {
	if err := checkAsk(n); err != nil {
		return nil, err
	}
	var trials []Trial
	for len(trials) < n && uint64(len(g.trials)) < g.size {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		trials = append(trials, g.add(g.at(uint64(len(g.trials)))))
	}
	return trials, nil
}

// Tell learns nothing.
func (g *grid) Tell(_ context.Context, results []Result) ([]int, error) { return nil, g.tell(results) }

func (g *grid) Close() error { return nil }
