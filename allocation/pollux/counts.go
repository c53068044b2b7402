package pollux

import (
	"math"
	"slices"
)

// tableLimit is the number of steps up to which counts are found by dynamic programming.
const tableLimit = 20_000_000

// fewest is the largest number of devices less for which the table knows the least cost too: its slopes suggest prices.
const fewest = 8

// option is a number of replicas and the least cost at which a job could have them, whatever the others do.
type option struct {
	replicas int32
	cost     float64
}

// counts finds how many replicas each job would get if nodes did not matter.
type counts struct {
	of      []int      // replicas by job: the outcome
	options [][]option // by job, ascending, each cheaper than those before
	arena   arena[option]
	table   []uint16 // of the dynamic program: replicas by job and devices
	best    []float64
	next    []float64
	prices  []float64 // of a device, that may bound the cost well
	price   float64   // the one of them that does best
	least   []float64 // by job: cost at that price
}

// find sets the counts and returns a lower bound of what any seating costs.
func (c *counts) find(p *allocator) float64 {
	c.of = slices.Grow(c.of[:0], len(p.jobs))[:len(p.jobs)]
	steps, widest := 0, int32(0)
	c.relax(p)
	for _, options := range c.options {
		steps += len(options) * p.devices
		widest = max(widest, options[len(options)-1].replicas)
	}
	if steps <= tableLimit && widest <= math.MaxUint16 { // the table holds no more
		return c.byTable(p.devices)
	}
	return c.byPrice(p.devices)
}

// relax lists the options of each job: on one node where that holds so many, across nodes otherwise, or as the job sits.
func (c *counts) relax(p *allocator) {
	c.options, c.arena = c.options[:0], c.arena[:0]
	for i := range p.jobs {
		j := &p.jobs[i]
		first := len(c.arena)
		c.arena = append(c.arena, option{0, j.costs[0][0]})
		least := j.costs[0][0]
		for k := max(j.least, 1); k <= j.most; k++ {
			cost := math.Inf(1)
			if k < len(j.resized[0]) {
				cost = j.resized[0][k]
			}
			if k > 1 && p.nodes > 1 {
				cost = min(cost, j.resized[1][k])
			}
			if k == j.held {
				cost = min(cost, j.stays)
			}
			if cost < least {
				c.arena = append(c.arena, option{int32(k), cost})
				least = cost
			}
		}
		c.options = append(c.options, c.arena[first:len(c.arena):len(c.arena)])
	}
}

// byTable finds the counts of least cost by dynamic programming over devices.
func (c *counts) byTable(devices int) float64 {
	width := devices + 1
	c.table = slices.Grow(c.table[:0], len(c.options)*width)[:len(c.options)*width]
	c.best, c.next = slices.Grow(c.best[:0], width)[:width], slices.Grow(c.next[:0], width)[:width]
	clear(c.best)
	later := 0
	for _, options := range c.options {
		later += int(options[len(options)-1].replicas)
	}
	for i, options := range c.options {
		later -= int(options[len(options)-1].replicas)
		from := max(devices-fewest-later, 0) // nobody after this job needs to know of less
		row := c.table[i*width : (i+1)*width]
		for g := from; g < width; g++ {
			c.next[g], row[g] = c.best[g]+options[0].cost, 0
		}
		for _, o := range options[1:] {
			if int(o.replicas) > devices {
				break
			}
			first := max(from-int(o.replicas), 0)
			before := c.best[first : width-int(o.replicas)]
			next, row := c.next[first+int(o.replicas):][:len(before)], row[first+int(o.replicas):][:len(before)]
			for g, cost := range before {
				if cost += o.cost; cost < next[g] {
					next[g], row[g] = cost, uint16(o.replicas)
				}
			}
		}
		c.best, c.next = c.next, c.best
	}
	left := devices
	for i := len(c.of) - 1; i >= 0; i-- {
		c.of[i] = int(c.table[i*width+left])
		left -= c.of[i]
	}
	c.prices = append(c.prices[:0], 0)
	for fewer := 1; fewer <= min(devices, fewest); fewer *= 2 {
		c.prices = append(c.prices, (c.best[devices-fewer]-c.best[devices])/float64(fewer))
	}
	return c.best[devices]
}

// byPrice finds counts by a price for a device, which bisection raises until demand fits. The bound is Lagrange's, at
// the best of the prices.
func (c *counts) byPrice(devices int) float64 {
	demanded, bound := c.demand(0, devices)
	if demanded <= devices {
		c.prices = append(c.prices[:0], 0)
		return bound
	}
	low, high := 0.0, 1.0
	for {
		demanded, at := c.demand(high, devices)
		bound = max(bound, at)
		if demanded <= devices {
			break
		}
		low, high = high, high*4
	}
	for range 40 {
		price := (low + high) / 2
		demanded, at := c.demand(price, devices)
		bound = max(bound, at)
		if demanded > devices {
			low = price
		} else {
			high = price
		}
	}
	c.prices = append(c.prices[:0], high)
	_, at := c.demand(high, devices)
	return max(bound, at)
}

// demand sets the counts that are best at a price, and returns their sum and what the price proves.
func (c *counts) demand(price float64, devices int) (demanded int, bound float64) {
	for i, options := range c.options {
		best, least := options[0].replicas, options[0].cost
		for _, o := range options[1:] {
			if cost := o.cost + price*float64(o.replicas); cost < least {
				best, least = o.replicas, cost
			}
		}
		c.of[i] = int(best)
		demanded += int(best)
		bound += least
	}
	return demanded, bound - price*float64(devices)
}

// priced chooses the price that bounds the cost of any seating best, among those that the search for counts suggests, and
// returns that bound.
func (c *counts) priced(devices int) float64 {
	c.least = slices.Grow(c.least[:0], len(c.options))[:len(c.options)]
	bound := math.Inf(-1)
	for _, price := range c.prices {
		if at := c.bound(price, devices); at > bound {
			bound, c.price = at, price
		}
	}
	return c.bound(c.price, devices)
}

// bound is what a price proves, with the least costs of the jobs at it.
func (c *counts) bound(price float64, devices int) float64 {
	sum := 0.0
	for i, options := range c.options {
		least := options[0].cost
		for _, o := range options[1:] {
			least = min(least, o.cost+price*float64(o.replicas))
		}
		c.least[i] = least
		sum += least
	}
	return sum - price*float64(devices)
}
