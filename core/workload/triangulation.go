package workload

import (
	"math"
	"slices"
	"sync"
)

// triangulation interpolates step times in the space of (nodes, replicas, batch per device) over a given division
// into tetrahedra. Measured points form a grid, for which the Delaunay division is not unique, has many flat
// tetrahedra, and leaves step times on a face that differ with the side it is looked at from. Results therefore equal
// those of a publication only over the very division that it used, in its order, and when a tetrahedron is found in
// the same way. That way is the one of SciPy's LinearNDInterpolator when asked for a single point: see find.
//
// All coordinates are whole numbers, so that whether a point lies inside is decided exactly.
type triangulation struct {
	points     []measuredPoint
	tetrahedra []tetrahedron
	order      []int   // those that are not flat, in the order in which they are searched
	box        box     // around all points
	flatness   float64 // of the paraboloid on which spheres are told apart

	mu    sync.RWMutex
	known map[vector]located // answers given before: most take a search through all tetrahedra
}

type measuredPoint struct {
	at   vector
	time stepTime
}

const outside = -1

type located struct {
	time   stepTime
	inside bool
}

// newTriangulation divides the space between points into tetrahedra, each given by the indices of its corners.
func newTriangulation(points []measuredPoint, corners [][4]int) *triangulation {
	t := &triangulation{
		points: points, flatness: flatness(points), known: map[vector]located{},
		tetrahedra: make([]tetrahedron, 0, len(corners)), order: make([]int, 0, len(corners)),
	}
	for i, p := range points {
		t.box.extend(p.at, i == 0)
	}
	for _, c := range corners {
		t.tetrahedra = append(t.tetrahedra, t.tetrahedron(c))
	}
	t.connect()
	searched := make([]bool, len(t.tetrahedra))
	for i := range t.tetrahedra {
		t.eachSolid(i, func(s int) {
			if !searched[s] {
				searched[s] = true
				t.order = append(t.order, s)
			}
		})
	}
	return t
}

func (t *triangulation) tetrahedron(corners [4]int) tetrahedron {
	s := tetrahedron{beyond: [4]int32{outside, outside, outside, outside}}
	for i, c := range corners {
		s.corners[i] = int32(c)
		s.box.extend(t.points[c].at, i == 0)
	}
	s.volume = determinant(t.vertices(&s))
	return s
}

// vertices are where the corners of a tetrahedron lie.
func (t *triangulation) vertices(s *tetrahedron) (at [4]vector) {
	for i, c := range s.corners {
		at[i] = t.points[c].at
	}
	return at
}

// connect finds the tetrahedra on both sides of each face.
func (t *triangulation) connect() {
	type side struct{ tetrahedron, corner int32 }
	open := make(map[[3]int32]side, len(t.tetrahedra))
	for i := range t.tetrahedra {
		s := &t.tetrahedra[i]
		for k := range s.corners {
			var face [3]int32
			copy(face[:], s.corners[:k])
			copy(face[k:], s.corners[k+1:])
			slices.Sort(face[:])
			other, met := open[face]
			if !met {
				open[face] = side{int32(i), int32(k)}
				continue
			}
			s.beyond[k], t.tetrahedra[other.tetrahedron].beyond[other.corner] = other.tetrahedron, int32(i)
			delete(open, face)
		}
	}
}

// eachSolid calls visit with the tetrahedron itself, or in place of a flat one, with those across its faces that are not.
func (t *triangulation) eachSolid(i int, visit func(s int)) {
	if t.tetrahedra[i].volume != 0 {
		visit(i)
		return
	}
	for _, next := range t.tetrahedra[i].beyond {
		if next != outside && t.tetrahedra[next].volume != 0 {
			visit(int(next))
		}
	}
}

// depth is how far the point is inside the sphere around a tetrahedron, or around the first neighbour of a flat one that is not:
// see sphere.depth.
func (t *triangulation) depth(i int, p vector) float64 {
	first := len(t.tetrahedra)
	t.eachSolid(i, func(s int) { first = min(first, s) })
	if first == len(t.tetrahedra) {
		return math.Inf(-1)
	}
	s := &t.tetrahedra[first]
	around := circumscribed(t.vertices(s), s.volume, t.flatness)
	return around.depth(p)
}

// at interpolates within the tetrahedron found for the point; false outside all of them.
func (t *triangulation) at(p vector) (stepTime, bool) {
	t.mu.RLock()
	found, known := t.known[p]
	t.mu.RUnlock()
	if !known {
		found = t.locate(p)
		t.mu.Lock()
		t.known[p] = found
		t.mu.Unlock()
	}
	return found.time, found.inside
}

func (t *triangulation) locate(p vector) located {
	found, weights := t.find(p)
	if found == nil {
		return located{}
	}
	var mean stepTime
	for k, c := range found.corners {
		mean.step += float64(weights[k] * t.points[c].time.step)
		mean.sync += float64(weights[k] * t.points[c].time.sync)
	}
	return located{time: mean, inside: true}
}

// find returns a tetrahedron that the point lies in, with the weights of its corners there; nil outside all of them.
// From the one that approach ends at it walks on, each time through the first face that the point lies beyond. Where
// that leads nowhere, mostly to a flat one, it takes the first in the order of search.
func (t *triangulation) find(p vector) (found *tetrahedron, weights [4]float64) {
	if !t.box.holds(p) {
		return nil, weights
	}
	for i, steps := t.approach(p), len(t.tetrahedra)/4; i != outside && steps >= 0; steps-- {
		s := &t.tetrahedra[i]
		if s.volume == 0 {
			break
		}
		weights, face := s.weights(t.vertices(s), p)
		if face == within {
			return s, weights
		}
		i = int(s.beyond[face])
	}
	for _, i := range t.order {
		s := &t.tetrahedra[i]
		if !s.box.holds(p) {
			continue
		}
		if weights, face := s.weights(t.vertices(s), p); face == within {
			return s, weights
		}
	}
	return nil, weights
}

// approach goes from the first tetrahedron to neighbours whose sphere the point lies deeper in, until it lies within
// one or none is better.
func (t *triangulation) approach(p vector) int {
	if len(t.tetrahedra) == 0 {
		return outside
	}
	const rounding = 1e-9
	best, depth := 0, t.depth(0, p)
	for improved := true; improved && depth <= 0; {
		improved = false
		for k := range t.tetrahedra[best].beyond {
			next := int(t.tetrahedra[best].beyond[k]) // of the best by now, not of the one that the loop began with
			if next == outside {
				continue
			}
			if d := t.depth(next, p); d > depth+rounding*(1+math.Abs(depth)) {
				best, depth, improved = next, d, true
			}
		}
	}
	return best
}

// flatness is the inverse of the curvature of SciPy's paraboloid, whose height over the points is scaled to their
// largest coordinate. It adds a point a tenth above them all.
func flatness(points []measuredPoint) float64 {
	lowest, highest, largest := math.Inf(1), 0.0, int64(0)
	for _, p := range points {
		height := float64(dot(p.at, p.at))
		lowest, highest = min(lowest, height), max(highest, height)
		largest = max(largest, p.at[0], p.at[1], p.at[2])
	}
	return (float64(1.1*highest) - lowest) / float64(largest)
}
