package twin

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// declarations are what jobs declared and how much of it they did. Those that declared about as much tell most of a declaration: where declarations are wrong at random, those
// that are large are too large, and how much so is seen of their like alone. So jobs are weighed by how near their declarations are, as normal densities on a logarithmic scale
// have it.
//
// Source: Beran, Nonparametric regression with randomly censored survival data (1981); the width by Silverman's rule (1986, equation 3.28).
type declarations struct {
	list  []declaration
	width float64 // of likeness, as a logarithm
}

// declaration is that of a job, and the part of it that the job did.
type declaration struct {
	log  float64
	part watched
}

const (
	leastLikeness = 0.1 // width: declarations that differ by a tenth are alike
	farthest      = 3.1 // widths away a declaration tells something
	placesPerWide = 2   // places that declarations are estimated at, a width
)

func (d *declarations) add(e *ending) {
	if part := e.work / e.declared; part > 0 && !math.IsInf(part, 1) {
		d.list = append(d.list, declaration{math.Log(e.declared), watched{part, e.all}})
	}
}

// sort ends the declarations.
func (d *declarations) sort() {
	slices.SortFunc(d.list, func(a, b declaration) int {
		return cmp.Or(compareWatched(a.part, b.part), cmp.Compare(a.log, b.log))
	})
	n, sum, squares := 0.0, 0.0, 0.0
	for i := range d.list {
		if of := &d.list[i]; of.part.all {
			n, sum, squares = n+1, sum+of.log, squares+of.log*of.log
		}
	}
	d.width = leastLikeness
	if n > 0 {
		sigma := math.Sqrt(max(squares/n-sum*sum/(n*n), 0))
		d.width = max(1.06*sigma*math.Pow(n, -0.2), leastLikeness)
	}
}

// place is the one that a declaration is estimated at.
func (d *declarations) place(work float64) int {
	return int(math.Round(math.Log(work) / d.width * placesPerWide))
}

// at is what is known at a place, with r as if others had been watched; nil where no end was. O(declarations).
func (d *declarations) at(place int, r *rand.Rand) *lengths {
	center := float64(place) / placesPerWide * d.width
	var sorted []watched
	var weights []float64
	ended := 0.0
	for i := range d.list {
		of := &d.list[i]
		away := (of.log - center) / d.width
		if math.Abs(away) > farthest {
			continue
		}
		weight := math.Exp(-away * away / 2)
		sorted, weights = append(sorted, of.part), append(weights, weight)
		if of.part.all {
			ended += weight
		}
	}
	if ended == 0 {
		return nil
	}
	if r != nil && ended < known {
		for i := range weights {
			weights[i] *= r.ExpFloat64()
		}
	}
	l := newLengths(sorted, weights)
	l.weight = ended
	return l
}

// near is what is known of jobs that declared about as much; nil where no end of one was seen.
func (e *estimates) near(work float64) *lengths {
	of := &e.survey.declarations
	place := of.place(work)
	return e.once(group{of: ratioNear, requested: place}, func(r *rand.Rand) *lengths { return of.at(place, r) })
}

// drift is how declarations are the farther off, the larger they are: where they are wrong at random, those that are large are too large. It is a regression of the
// logarithm of the work over what was declared on that of what was declared, as if ten more had shown no such thing.
type drift struct{ slope, center float64 }

const noDrift = 10

func driftOf(ended []ending) (d drift) {
	var n, x, y, xx, xy float64
	for i := range ended {
		if e := &ended[i]; e.all && e.declared > 0 && e.work > 0 {
			log, off := math.Log(e.declared), math.Log(e.work/e.declared)
			n, x, y, xx, xy = n+1, x+log, y+off, xx+log*log, xy+log*off
		}
	}
	if n < 2 {
		return d
	}
	d.center = x / n
	if spread := max(xx-x*x/n, 0); spread > 0 {
		d.slope = min(max((xy-x*y/n)/(spread+noDrift), -1), 0)
	}
	return d
}

// of is what a declaration stands for.
func (d drift) of(declared float64) float64 {
	if d.slope == 0 {
		return declared
	}
	return declared * math.Exp(d.slope*(math.Log(declared)-d.center))
}

// declared is what is left of a declaration, of which part was done. Jobs of the same application count the more, the more they are alike against how far
// off declarations are: each of the two by the inverse of its variance.
func (e *estimates) declared(into left, j *core.JobSpec, done float64) left {
	unit := e.survey.drift.of(j.TotalWork)
	part := done / unit
	if of := e.near(j.TotalWork); of != nil {
		into = append(into, opinion{of, of.weight, done / j.TotalWork, j.TotalWork})
	}
	if j.Tenant != "" {
		into = into.add(e, group{of: ratioBy, tenant: j.Tenant}, math.Inf(1), part, unit)
	}
	if most := mostOthers; len(into) == 0 {
		into = into.add(e, group{of: ratioAll}, math.Inf(1), part, unit)
	} else {
		into = into.add(e, group{of: ratioAll}, most, part, unit)
	}
	part, unit = done/j.TotalWork, j.TotalWork
	into = append(into, opinion{logNormal{1, 0}, asDeclared, part, unit}, opinion{logNormal{1, offSigma}, offDeclared, part, unit})
	alike := group{of: workOf, application: j.Application}
	if of := e.of(alike); of != nil && j.Application != "" {
		sum := 0.0
		for i := range into {
			sum += into[i].weight
		}
		wrong, differ := e.survey.groups[group{of: ratioAll}].spread(), e.survey.groups[alike].spread()
		into = append(into, opinion{of, sum * wrong / differ, done, 1})
	}
	return into
}
