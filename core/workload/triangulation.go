package workload

import "sync"

// triangulation interpolates step times in the space of (nodes, replicas, batch per device) over a given division
// into tetrahedra. Measured points form a grid, for which the Delaunay division is not unique and has many flat
// tetrahedra: results equal those of a publication only over the very division that it used.
//
// All coordinates are whole numbers, so that whether a point lies inside is decided exactly.
type triangulation struct {
	points     []measuredPoint
	tetrahedra []tetrahedron

	mu    sync.RWMutex
	known map[vector]located // answers given before: finding a tetrahedron walks through all of them
}

type vector [3]int64

type measuredPoint struct {
	at   vector
	time stepTime
}

type tetrahedron struct {
	corners   [4]int
	low, high vector // smallest box around it
}

type located struct {
	time   stepTime
	inside bool
}

// maxCoordinate keeps the determinants of coordinate differences within int64.
const maxCoordinate = 1_000_000

// add appends a tetrahedron, unless it is flat.
func (t *triangulation) add(corners [4]int) {
	p := [4]vector{}
	for i, c := range corners {
		p[i] = t.points[c].at
	}
	if determinant(p[0], p[1], p[2], p[3]) == 0 {
		return
	}
	box := tetrahedron{corners: corners, low: p[0], high: p[0]}
	for _, corner := range p[1:] {
		for axis := range corner {
			box.low[axis] = min(box.low[axis], corner[axis])
			box.high[axis] = max(box.high[axis], corner[axis])
		}
	}
	t.tetrahedra = append(t.tetrahedra, box)
}

// at interpolates within the first tetrahedron that the point lies in; false outside all of them.
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
	for i := range t.tetrahedra {
		box := &t.tetrahedra[i]
		if !box.mayHold(p) {
			continue
		}
		if weights, inside := t.weights(box, p); inside {
			var mean stepTime
			for k, c := range box.corners {
				mean.step += float64(weights[k] * t.points[c].time.step)
				mean.sync += float64(weights[k] * t.points[c].time.sync)
			}
			return located{time: mean, inside: true}
		}
	}
	return located{}
}

func (b *tetrahedron) mayHold(p vector) bool {
	for axis := range p {
		if p[axis] < b.low[axis] || p[axis] > b.high[axis] {
			return false
		}
	}
	return true
}

// weights are the barycentric coordinates of p; false if it lies outside.
func (t *triangulation) weights(b *tetrahedron, p vector) (weights [4]float64, inside bool) {
	corner := [4]vector{}
	for i, c := range b.corners {
		corner[i] = t.points[c].at
	}
	volume := determinant(corner[0], corner[1], corner[2], corner[3])
	for i := range corner {
		moved := corner
		moved[i] = p
		part := determinant(moved[0], moved[1], moved[2], moved[3])
		if part != 0 && (part < 0) != (volume < 0) {
			return weights, false
		}
		weights[i] = float64(part) / float64(volume)
	}
	return weights, true
}

// determinant is six times the signed volume of a tetrahedron.
func determinant(a, b, c, d vector) int64 {
	u, v, w := a.minus(d), b.minus(d), c.minus(d)
	return u[0]*(v[1]*w[2]-v[2]*w[1]) - u[1]*(v[0]*w[2]-v[2]*w[0]) + u[2]*(v[0]*w[1]-v[1]*w[0])
}

func (a vector) minus(b vector) vector {
	return vector{a[0] - b[0], a[1] - b[1], a[2] - b[2]}
}
