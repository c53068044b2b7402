package goodput

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/memo"
)

// Grid holds the batch settings that Best would try, by replicas. It depends on the limits of an application only, so
// that its jobs share it.
type Grid struct {
	limits   core.BatchSpec
	onePass  bool
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

// NewOnePassGrid returns the settings without accumulation, for jobs that do not look at their gradients: a batch is what the
// devices take at once.
func NewOnePassGrid(limits core.BatchSpec, most int) *Grid {
	g := &Grid{limits: limits, onePass: true, settings: make([][]setting, most)}
	for r := 1; r <= most; r++ {
		m := Model{Limits: limits}
		if m.Limits.Max = min(limits.Max, r*limits.MaxPerDevice); m.Limits.Max < max(limits.Initial, r*limits.MinPerDevice) {
			continue
		}
		m.totals(r, func(total float64) {
			perDevice := int(math.Ceil(total/float64(r) - slack))
			last := len(g.settings[r-1]) - 1
			if perDevice < limits.MinPerDevice || perDevice > limits.MaxPerDevice || last >= 0 && g.settings[r-1][last].perDevice == int32(perDevice) {
				return
			}
			total = float64(r * perDevice)
			g.settings[r-1] = append(g.settings[r-1], setting{int32(perDevice), 0, total, total / float64(limits.Initial)})
		})
	}
	return g
}

// NewFixedGrid returns the split of a single total batch, limits.Requested, as by SplitWithin. Replicas that the largest batch does not
// suffice for have none.
func NewFixedGrid(limits core.BatchSpec, most int) *Grid {
	g := &Grid{limits: limits, settings: make([][]setting, most)}
	for r := 1; r <= most; r++ {
		perDevice, accumulation := SplitWithin(limits.Requested, r, limits)
		if perDevice < max(limits.MinPerDevice, 1) {
			continue
		}
		total := float64(r * perDevice * (accumulation + 1))
		g.settings[r-1] = []setting{{int32(perDevice), int32(accumulation), total, total / float64(limits.Initial)}}
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
	grid    *Grid
	corners *corners
	at      [2][]int32   // by shape and replicas-1: the corner of the best setting
	Goodput [2][]float64 // samples a second that count as at the initial batch, by shape and replicas-1
	Choices [2][]Choice  // batch settings that reach it, by shape and replicas-1
}

// Clone is a copy of which an update is not seen by the other. O(replicas).
func (c *Curves) Clone() *Curves {
	copied := &Curves{grid: c.grid, corners: c.corners}
	for shape := range c.at {
		copied.at[shape], copied.Goodput[shape], copied.Choices[shape] = slices.Clone(c.at[shape]), slices.Clone(c.Goodput[shape]), slices.Clone(c.Choices[shape])
	}
	return copied
}

// corners are, by shape and replicas-1, the settings that some gradient statistics make the best, by ascending batch. They
// depend on the throughput model only, so that jobs that measured alike share them.
type corners [2]cornerRows

// cornerRows are the corners of all numbers of replicas, one after another.
type cornerRows struct {
	ends     []int32   // by replicas-1: where its corners end
	settings []uint8   // indices into those of the grid, which are at most so many as candidates
	seconds  []float64 // of a step
}

// newCornerRows has room for every setting to be a corner.
func newCornerRows(settings [][]setting) cornerRows {
	most := 0
	for _, of := range settings {
		most += len(of)
	}
	return cornerRows{ends: make([]int32, 0, len(settings)), settings: make([]uint8, 0, most), seconds: make([]float64, 0, most)}
}

// row is where the corners of r+1 replicas begin and end.
func (c *cornerRows) row(r int) (begin, end int) {
	if r > 0 {
		begin = int(c.ends[r-1])
	}
	return begin, int(c.ends[r])
}

// add appends the corners of one replica more than those of the last row.
func (c *cornerRows) add(hull []int32, seconds []float64) {
	for _, i := range hull {
		c.settings, c.seconds = append(c.settings, uint8(i)), append(c.seconds, seconds[i])
	}
	c.ends = append(c.ends, int32(len(c.settings)))
}

// The shapes by which curves are indexed.
const (
	OneNode = iota
	ManyNodes
)

// cornered are the corners of models, some 20 kB each, for jobs of an application often measure alike. They mostly ask for what
// others asked for shortly before: the 160 jobs of a workload of Pollux ask 1,633 times for 882 models, and some 970 are made.
var cornered = memo.New[cornersKey, *corners](400)

type cornersKey struct {
	limits  core.BatchSpec
	onePass bool
	Performance
	one, many int // replicas on one node, and across nodes
}

// NewCurves returns the curves of a model: over one node for all replicas of the grid, for a reference may lie beyond
// what a node holds, and across nodes up to most replicas.
func NewCurves(g *Grid, p Performance, gradients Gradients, most int) *Curves {
	most = min(most, g.Most())
	return newCurves(g, cornered.Of(cornersKey{g.limits, g.onePass, p, g.Most(), most}, func() *corners { return newCorners(g, p, most) }), gradients)
}

func newCurves(g *Grid, known *corners, gradients Gradients) *Curves {
	c := &Curves{grid: g, corners: known}
	for shape := range known {
		length := len(known[shape].ends)
		c.at[shape], c.Goodput[shape], c.Choices[shape] = make([]int32, length), make([]float64, length), make([]Choice, length)
	}
	c.Update(gradients)
	return c
}

func newCorners(g *Grid, p Performance, most int) *corners {
	var rows corners
	length := [len(rows)]int{g.Most(), most}
	for shape := range rows {
		rows[shape] = newCornerRows(g.settings[:length[shape]])
	}
	var grads, logGrads, seconds []float64
	var hull []int32
	for r := 1; r <= max(g.Most(), most); r++ {
		settings := g.settings[r-1]
		grads, logGrads = grads[:0], logGrads[:0]
		for i := range settings {
			grad := p.GradTime(float64(settings[i].perDevice))
			grads, logGrads = append(grads, grad), append(logGrads, math.Log(grad))
		}
		for shape := range rows {
			if r > length[shape] {
				continue
			}
			logSync := math.Log(p.SyncTime(1+shape, r))
			seconds = seconds[:0]
			for i := range settings {
				seconds = append(seconds, float64(settings[i].accumulation)*grads[i]+math.Exp(p.lastPass(logGrads[i], logSync)))
			}
			hull = lowerHull(hull[:0], settings, seconds)
			rows[shape].add(hull, seconds)
		}
	}
	for shape := range rows { // without the room that is left: many are kept
		of := &rows[shape]
		of.settings, of.seconds = slices.Clone(of.settings), slices.Clone(of.seconds)
	}
	return &rows
}

// tie is how much worse, as a part, a setting must be to be worse for certain: far above what rounding does to a goodput, and
// far below what tells two settings apart.
const tie = 1e-12

// lowerHull lists the settings that can be the best under some gradient statistics. A step of s seconds at scale z yields the
// more, the less Variance·s/z + Square·s is: that is linear in (s/z, s), so that the best one is a corner of the lower hull of
// these points. A point that lies so little above it that rounding might prefer it stays. O(settings), for they come by
// ascending scale.
func lowerHull(hull []int32, settings []setting, seconds []float64) []int32 {
	x := func(i int32) float64 { return seconds[i] / settings[i].scale }
	for i := range int32(len(seconds)) {
		for len(hull) > 0 && seconds[i] < seconds[hull[len(hull)-1]]*(1-tie) {
			hull = hull[:len(hull)-1] // larger and quicker
		}
		if len(hull) > 0 && x(i) > x(hull[len(hull)-1])*(1+tie) {
			continue // slower, and slower for each sample
		}
		for len(hull) > 1 {
			b, a := hull[len(hull)-1], hull[len(hull)-2]
			// The line from a to i is where these weights yield the same.
			ofX, ofS := seconds[i]-seconds[a], x(a)-x(i)
			line := ofX*x(a) + ofS*seconds[a]
			if !(ofX > 0 && ofS > 0 && ofX*x(b)+ofS*seconds[b] > line*(1+tie)) {
				break
			}
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, i)
	}
	return hull
}

// Update takes in new gradient statistics. O(replicas) where they changed little, for along the corners the goodput rises
// to the best one and falls.
func (c *Curves) Update(g Gradients) {
	for shape := range c.corners {
		for r := range c.corners[shape].ends {
			best, at := c.best(g, shape, r)
			c.Goodput[shape][r], c.Choices[shape][r] = best, Choice{}
			if at >= 0 {
				s := &c.grid.settings[r][at]
				c.Choices[shape][r] = Choice{PerDevice: int(s.perDevice), Accumulation: int(s.accumulation), Goodput: best}
			}
		}
	}
}

// best is the highest goodput, and the setting that reaches it, the first among equals; -1 when there is none.
func (c *Curves) best(g Gradients, shape, r int) (best float64, at int32) {
	rows := &c.corners[shape]
	begin, end := rows.row(r)
	if begin == end {
		return 0, -1
	}
	settings, corners, seconds := c.grid.settings[r], rows.settings[begin:end], rows.seconds[begin:end]
	value := func(k int) float64 {
		s := &settings[corners[k]]
		return s.total / seconds[k] * g.Efficiency(s.scale)
	}
	start := int(c.at[shape][r])
	best, k := value(start), start
	for next := start + 1; next < len(corners); next++ {
		v := value(next)
		if !(v >= best*(1-2*tie)) {
			break
		}
		if v > best {
			best, k = v, next
		}
	}
	for before := start - 1; before >= 0; before-- {
		v := value(before)
		if !(v >= best*(1-2*tie)) {
			break
		}
		if v >= best {
			best, k = v, before
		}
	}
	c.at[shape][r] = int32(k)
	if !(best > 0) {
		c.at[shape][r] = 0
		return 0, -1
	}
	return best, int32(corners[k])
}
