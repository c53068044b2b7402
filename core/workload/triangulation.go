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
	flatness   float64 // of the paraboloid that approach climbs on

	mu    sync.RWMutex
	known map[vector]located // answers given before: most take a search through all tetrahedra
}

type vector [3]int64

type measuredPoint struct {
	at   vector
	time stepTime
}

type tetrahedron struct {
	corners   [4]int
	at        [4]vector
	beyond    [4]int // the tetrahedron across the face opposite each corner, outside for none
	volume    int64  // six times the signed one, 0 if flat
	low, high vector // smallest box around it
	sphere    sphere
}

const outside = -1

// sphere goes through the corners of a tetrahedron. Its zero value, of no centre, contains nothing.
type sphere struct {
	through vector
	centre  [3]float64 // from through
	norm    float64    // scales depth to a distance, 0 for no sphere
}

type located struct {
	time   stepTime
	inside bool
}

// maxCoordinate keeps the determinants of coordinate differences within int64.
const maxCoordinate = 1_000_000

// newTriangulation divides the space between points into tetrahedra, each given by the indices of its corners.
func newTriangulation(points []measuredPoint, corners [][4]int) *triangulation {
	t := &triangulation{points: points, flatness: flatness(points), known: map[vector]located{}}
	for _, c := range corners {
		t.tetrahedra = append(t.tetrahedra, t.tetrahedron(c))
	}
	t.connect()
	searched := make([]bool, len(t.tetrahedra))
	for i := range t.tetrahedra {
		for _, solid := range t.solid(i) {
			if !searched[solid] {
				searched[solid] = true
				t.order = append(t.order, solid)
			}
		}
	}
	for i := range t.tetrahedra {
		if solid := t.solid(i); len(solid) > 0 {
			t.tetrahedra[i].sphere = t.tetrahedra[slices.Min(solid)].sphere
		}
	}
	return t
}

func (t *triangulation) tetrahedron(corners [4]int) tetrahedron {
	s := tetrahedron{corners: corners, beyond: [4]int{outside, outside, outside, outside}}
	for i, c := range corners {
		s.at[i] = t.points[c].at
	}
	s.low, s.high = s.at[0], s.at[0]
	for _, corner := range s.at[1:] {
		for axis := range corner {
			s.low[axis] = min(s.low[axis], corner[axis])
			s.high[axis] = max(s.high[axis], corner[axis])
		}
	}
	if s.volume = determinant(s.at); s.volume != 0 {
		s.sphere = circumscribed(&s, t.flatness)
	}
	return s
}

// connect finds the tetrahedra on both sides of each face.
func (t *triangulation) connect() {
	type side struct{ tetrahedron, corner int }
	open := map[[3]int]side{}
	for i := range t.tetrahedra {
		s := &t.tetrahedra[i]
		for k := range s.corners {
			face := [3]int(slices.Delete(slices.Clone(s.corners[:]), k, k+1))
			slices.Sort(face[:])
			other, met := open[face]
			if !met {
				open[face] = side{i, k}
				continue
			}
			s.beyond[k], t.tetrahedra[other.tetrahedron].beyond[other.corner] = other.tetrahedron, i
			delete(open, face)
		}
	}
}

// solid is the tetrahedron itself, or in place of a flat one, those across its faces that are not.
func (t *triangulation) solid(i int) []int {
	if t.tetrahedra[i].volume != 0 {
		return []int{i}
	}
	var solid []int
	for _, next := range t.tetrahedra[i].beyond {
		if next != outside && t.tetrahedra[next].volume != 0 {
			solid = append(solid, next)
		}
	}
	return solid
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
	for i, steps := t.approach(p), len(t.tetrahedra)/4; i != outside && steps >= 0; steps-- {
		s := &t.tetrahedra[i]
		if s.volume == 0 {
			break
		}
		weights, face := s.weights(p)
		if face == within {
			return s, weights
		}
		i = s.beyond[face]
	}
	for _, i := range t.order {
		s := &t.tetrahedra[i]
		if !s.mayHold(p) {
			continue
		}
		if weights, face := s.weights(p); face == within {
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
	best, depth := 0, t.tetrahedra[0].sphere.depth(p)
	for improved := true; improved && depth <= 0; {
		improved = false
		for k := range t.tetrahedra[best].beyond {
			next := t.tetrahedra[best].beyond[k] // of the best by now, not of the one that the loop began with
			if next == outside {
				continue
			}
			if d := t.tetrahedra[next].sphere.depth(p); d > depth+rounding*(1+math.Abs(depth)) {
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
	return (1.1*highest - lowest) / float64(largest)
}

// circumscribed is the sphere around a tetrahedron that is not flat.
func circumscribed(s *tetrahedron, flatness float64) sphere {
	around := sphere{through: s.at[3]}
	u, v, w := s.at[0].minus(s.at[3]), s.at[1].minus(s.at[3]), s.at[2].minus(s.at[3])
	vw, wu, uv := cross(v, w), cross(w, u), cross(u, v)
	uu, vv, ww := float64(dot(u, u)), float64(dot(v, v)), float64(dot(w, w))
	square := flatness * flatness
	for axis := range around.centre {
		sum := uu*float64(vw[axis]) + vv*float64(wu[axis]) + ww*float64(uv[axis])
		around.centre[axis] = sum / float64(2*s.volume)
		slope := 2 * (around.centre[axis] + float64(around.through[axis]))
		square += slope * slope
	}
	around.norm = math.Sqrt(square)
	return around
}

// depth is how far the point is inside the sphere, as the distance, from its image on the paraboloid, of the plane
// that cuts the sphere's image out of it; negative outside.
func (s *sphere) depth(p vector) float64 {
	if s.norm == 0 {
		return math.Inf(-1)
	}
	from, power := p.minus(s.through), 0.0
	for axis, x := range from {
		power += float64(x) * (2*s.centre[axis] - float64(x))
	}
	return power / s.norm
}

func (b *tetrahedron) mayHold(p vector) bool {
	for axis := range p {
		if p[axis] < b.low[axis] || p[axis] > b.high[axis] {
			return false
		}
	}
	return true
}

// within stands for no face that a point lies beyond.
const within = -1

// weights are the barycentric coordinates of p. If it lies outside, face tells the first face that it lies beyond, by
// the corner opposite.
func (b *tetrahedron) weights(p vector) (weights [4]float64, face int) {
	for i := range b.at {
		moved := b.at
		moved[i] = p
		part := determinant(moved)
		if part != 0 && (part < 0) != (b.volume < 0) {
			return weights, i
		}
		weights[i] = float64(part) / float64(b.volume)
	}
	return weights, within
}

// determinant is six times the signed volume of a tetrahedron.
func determinant(corners [4]vector) int64 {
	last := corners[3]
	return dot(corners[0].minus(last), cross(corners[1].minus(last), corners[2].minus(last)))
}

func (a vector) minus(b vector) vector {
	return vector{a[0] - b[0], a[1] - b[1], a[2] - b[2]}
}

func dot(a, b vector) int64 {
	return a[0]*b[0] + a[1]*b[1] + a[2]*b[2]
}

func cross(a, b vector) vector {
	return vector{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}
