package workload

import "math"

// maxCoordinate keeps the determinants of coordinate differences within int64.
const maxCoordinate = 1_000_000

type vector [3]int64

type tetrahedron struct {
	corners [4]int32 // indices of points
	beyond  [4]int32 // the tetrahedron across the face opposite each corner, outside for none
	volume  int64    // six times the signed one, 0 if flat
	box     box
}

// within stands for no face that a point lies beyond.
const within = -1

// weights are the barycentric coordinates of p, where its corners lie at vertices. If it lies outside, face tells the first face that it lies beyond, by
// the corner opposite.
func (s *tetrahedron) weights(vertices [4]vector, p vector) (weights [4]float64, face int) {
	for i := range vertices {
		moved := vertices
		moved[i] = p
		part := determinant(moved)
		if part != 0 && (part < 0) != (s.volume < 0) {
			return weights, i
		}
		weights[i] = float64(part) / float64(s.volume)
	}
	return weights, within
}

// sphere goes through the corners of a tetrahedron that is not flat.
type sphere struct {
	through vector
	centre  [3]float64 // from through
	norm    float64    // scales depth to a distance
}

// circumscribed is the sphere around a tetrahedron that is not flat, of six times the volume.
func circumscribed(at [4]vector, volume int64, flatness float64) sphere {
	around := sphere{through: at[3]}
	u, v, w := at[0].minus(at[3]), at[1].minus(at[3]), at[2].minus(at[3])
	vw, wu, uv := cross(v, w), cross(w, u), cross(u, v)
	uu, vv, ww := float64(dot(u, u)), float64(dot(v, v)), float64(dot(w, w))
	square := flatness * flatness
	for axis := range around.centre {
		sum := float64(uu*float64(vw[axis])) + float64(vv*float64(wu[axis])) + float64(ww*float64(uv[axis]))
		around.centre[axis] = sum / (2 * float64(volume))
		slope := 2 * (around.centre[axis] + float64(around.through[axis]))
		square += float64(slope * slope)
	}
	around.norm = math.Sqrt(square)
	return around
}

// depth is how far the point is inside the sphere, as the distance, from its image on the paraboloid, of the plane
// that cuts the sphere's image out of it; negative outside.
func (s *sphere) depth(p vector) float64 {
	from, power := p.minus(s.through), 0.0
	for axis, x := range from {
		power += float64(float64(x) * (2*s.centre[axis] - float64(x)))
	}
	return power / s.norm
}

// box is the smallest around some points.
type box struct{ low, high vector }

// extend makes the box hold p, and nothing else if p is the first.
func (b *box) extend(p vector, first bool) {
	if first {
		b.low, b.high = p, p
	}
	for axis, x := range p {
		b.low[axis], b.high[axis] = min(b.low[axis], x), max(b.high[axis], x)
	}
}

func (b *box) holds(p vector) bool {
	for axis, x := range p {
		if x < b.low[axis] || x > b.high[axis] {
			return false
		}
	}
	return true
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
