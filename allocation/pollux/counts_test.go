package pollux

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawCounts draws jobs by their options.
func drawCounts(t *rapid.T) (*counts, int) {
	c, devices := &counts{}, rapid.IntRange(0, 9).Draw(t, "devices")
	for range rapid.IntRange(1, 4).Draw(t, "jobs") {
		cost := rapid.Float64Range(0, 100).Draw(t, "cost")
		options := []option{{0, cost}}
		for k := int32(1); k <= 6; k++ {
			if rapid.Bool().Draw(t, "possible") {
				cost -= rapid.Float64Range(0.01, 20).Draw(t, "less")
				options = append(options, option{k, cost})
			}
		}
		c.options = append(c.options, options)
	}
	c.of = make([]int, len(c.options))
	return c, devices
}

// least tries all counts.
func least(options [][]option, devices int) float64 {
	if len(options) == 0 {
		return 0
	}
	best := math.Inf(1)
	for _, o := range options[0] {
		if int(o.replicas) <= devices {
			best = min(best, o.cost+least(options[1:], devices-int(o.replicas)))
		}
	}
	return best
}

func (c *counts) check(t *rapid.T, devices int) (cost float64) {
	for i, count := range c.of {
		devices -= count
		cost += c.cost(i)
	}
	if devices < 0 {
		t.Errorf("counts %v need %d devices too many", c.of, -devices)
	}
	return cost
}

func TestTableFindsTheLeastCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, devices := drawCounts(t)
		want := least(c.options, devices)
		if got := c.byTable(devices); math.Abs(got-want) > 1e-9 {
			t.Errorf("bound %v, want %v", got, want)
		}
		if got := c.check(t, devices); math.Abs(got-want) > 1e-9 {
			t.Errorf("counts cost %v, want %v", got, want)
		}
	})
}

// TestWideGang asks for more devices than the table can name.
func TestWideGang(t *testing.T) {
	const wide = math.MaxUint16 + 5
	p := &allocator{devices: wide, perNode: wide, nodes: 1, config: Default}
	values := make([]float64, wide+1)
	values[wide] = 1
	p.jobs = []job{{least: wide, most: wide, weight: 1, move: 1, one: values, many: values}}
	p.usable = []int{wide}
	p.price(&p.jobs[0])
	var c counts
	bound := c.find(p)
	if c.of[0] != wide || bound != c.cost(0) {
		t.Errorf("%d replicas at %v, want %d at %v", c.of[0], bound, wide, p.jobs[0].costs[0][wide])
	}
}

func TestPriceBoundsTheLeastCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, devices := drawCounts(t)
		want := least(c.options, devices)
		bound := c.byPrice(devices)
		cost := c.check(t, devices)
		if bound > want+1e-9 || cost < want-1e-9 {
			t.Errorf("bound %v and counts of cost %v do not enclose the least cost %v", bound, cost, want)
		}
		if c.byTable(devices+1) > want+1e-9 {
			t.Errorf("one device more raises the least cost")
		}
	})
}

// cost is the least that a job could cost with its count.
func (c *counts) cost(i int) float64 {
	for _, o := range c.options[i] {
		if int(o.replicas) == c.of[i] {
			return o.cost
		}
	}
	return math.Inf(1)
}
