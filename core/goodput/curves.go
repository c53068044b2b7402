package goodput

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// Grid holds the batch settings that Best would try, by replicas. It depends on the limits of an application only, so
// that its jobs share it.
type Grid struct {
	limits   core.BatchSpec
	settings [][]setting // by replicas-1, ascending batch
}

type setting struct {
	perDevice, accumulation int32
	total                   float64 // samples in a step
	scale                   float64 // total over the initial batch
}

// NewGrid returns the settings for 1 to most replicas.
func NewGrid(limits core.BatchSpec, most int) *Grid {
	g := &Grid{limits: limits, settings: make([][]setting, most)}
	m := Model{Limits: limits}
	for r := 1; r <= most; r++ {
		m.each(r, func(c Choice) {
			total := float64(r * c.PerDevice * (c.Accumulation + 1))
			g.settings[r-1] = append(g.settings[r-1], setting{
				int32(c.PerDevice), int32(c.Accumulation), total, total / float64(limits.Initial),
			})
		})
	}
	return g
}

// Limits are the batch bounds the grid was made for.
func (g *Grid) Limits() core.BatchSpec { return g.limits }

// Most is the greatest number of replicas.
func (g *Grid) Most() int { return len(g.settings) }

// Curves are the best goodput of a job by replicas, on one node and across nodes, and the settings that reach it. They
// are what Model.Best returns, kept so that new gradient statistics cost no new step times.
type Curves struct {
	grid      *Grid
	steps     [2][][]float64 // seconds of a step, by shape, replicas-1 and setting
	Goodput   [2][]float64   // samples a second that count as at the initial batch, by shape and replicas-1
	Choices   [2][]Choice
	gradients Gradients
}

// The shapes by which curves are indexed.
const (
	OneNode = iota
	ManyNodes
)

// NewCurves returns the curves of a model: over one node for all replicas of the grid, for a reference may lie beyond
// what a node holds, and across nodes up to most replicas.
func NewCurves(g *Grid, p Performance, gradients Gradients, most int) *Curves {
	c := &Curves{grid: g}
	most = min(most, g.Most())
	for shape, length := range [2]int{g.Most(), most} {
		c.steps[shape] = make([][]float64, length)
		c.Goodput[shape] = make([]float64, length)
		c.Choices[shape] = make([]Choice, length)
		for r := 1; r <= length; r++ {
			logSync := math.Log(p.SyncTime(1+shape, r))
			seconds := make([]float64, len(g.settings[r-1]))
			for i, s := range g.settings[r-1] {
				grad := p.GradTime(float64(s.perDevice))
				seconds[i] = float64(s.accumulation)*grad + math.Exp(p.lastPass(math.Log(grad), logSync))
			}
			c.steps[shape][r-1] = seconds
		}
	}
	c.Update(gradients)
	return c
}

// Update takes in new gradient statistics.
func (c *Curves) Update(g Gradients) {
	c.gradients = g
	for shape := range c.steps {
		for r, seconds := range c.steps[shape] {
			best, at := 0.0, -1
			for i := range seconds {
				s := &c.grid.settings[r][i]
				if goodput := s.total / seconds[i] * g.Efficiency(s.scale); goodput > best {
					best, at = goodput, i
				}
			}
			c.Goodput[shape][r], c.Choices[shape][r] = best, Choice{}
			if at >= 0 {
				s := &c.grid.settings[r][at]
				c.Choices[shape][r] = Choice{PerDevice: int(s.perDevice), Accumulation: int(s.accumulation), Goodput: best}
			}
		}
	}
}
