package vector

// An Area is a rectangle of a canvas.
type Area struct {
	Min Point // Min is the lower left corner, in points.
	Max Point // Max is the upper right corner, in points.
}

// Crop moves the edges: to the right and up, by lengths in points.
func (a Area) Crop(left, right, bottom, top float64) Area {
	return Area{Min: Point{X: a.Min.X + left, Y: a.Min.Y + bottom}, Max: Point{X: a.Max.X + right, Y: a.Max.Y + top}}
}

// Moved is the area elsewhere.
func (a Area) Moved(by Point) Area { return a.Crop(by.X, by.X, by.Y, by.Y) }

// Width is that of the area, in points.
func (a Area) Width() float64 { return a.Max.X - a.Min.X }

// Height is that of the area, in points.
func (a Area) Height() float64 { return a.Max.Y - a.Min.Y }

// Center is the middle of the area.
func (a Area) Center() Point {
	return Point{X: a.Width()/2 + a.Min.X, Y: a.Height()/2 + a.Min.Y}
}

// X is the place of a share of the width: of 0 the left edge, of 1 the right one.
func (a Area) X(share float64) float64 { return share*a.Width() + a.Min.X }

// Y is the place of a share of the height: of 0 the lower edge, of 1 the upper one.
func (a Area) Y(share float64) float64 { return share*a.Height() + a.Min.Y }

// HasX reports whether a place lies between the left and the right edge.
func (a Area) HasX(x float64) bool { return x <= a.Max.X+slack && x >= a.Min.X-slack }

// HasY reports whether a place lies between the lower and the upper edge.
func (a Area) HasY(y float64) bool { return y <= a.Max.Y+slack && y >= a.Min.Y-slack }

// Has reports whether a point lies in the area.
func (a Area) Has(p Point) bool { return a.HasX(p.X) && a.HasY(p.Y) }

// Corners lists those of the area, from the lower left one counterclockwise.
func (a Area) Corners() []Point {
	return []Point{a.Min, {X: a.Max.X, Y: a.Min.Y}, a.Max, {X: a.Min.X, Y: a.Max.Y}}
}

// slack is what rounding may put beyond an edge, in points.
const slack = 3e-8

// An edge of an area: within reports on which side of it a point lies, through is a point of it, and inward is across it.
type edge struct {
	within          func(p, through Point) bool
	through, inward Point
}

// edges lists the edges in the order in which lines are cut at them.
func (a Area) edges() [4]edge {
	upperLeft, lowerRight := Point{X: a.Min.X, Y: a.Max.Y}, Point{X: a.Max.X, Y: a.Min.Y}
	return [4]edge{
		{func(p, e Point) bool { return p.X <= e.X+slack }, lowerRight, Point{X: -1}},
		{func(p, e Point) bool { return p.X >= e.X-slack }, a.Min, Point{X: 1}},
		{func(p, e Point) bool { return p.Y >= e.Y-slack }, a.Min, Point{Y: -1}},
		{func(p, e Point) bool { return p.Y <= e.Y+slack }, upperLeft, Point{Y: 1}},
	}
}

// cut is where the line between two points meets the edge.
func (e edge) cut(from, to Point) Point {
	share := ((from.X-e.through.X)*e.inward.X + (from.Y-e.through.Y)*e.inward.Y) / ((from.X-to.X)*e.inward.X + (from.Y-to.Y)*e.inward.Y)
	return Point{X: (to.X-from.X)*share + from.X, Y: (to.Y-from.Y)*share + from.Y}
}

// CutLine returns the parts of a line that lie in the area.
func (a Area) CutLine(points []Point) [][]Point {
	lines := [][]Point{points}
	for _, e := range a.edges() {
		var inside [][]Point
		for _, line := range lines {
			inside = append(inside, e.cutLine(line)...)
		}
		lines = inside
	}
	return lines
}

// CutUpright returns the part of an upright line that lies between the lower and the upper edge of the area.
func (a Area) CutUpright(x, low, high float64) [][]Point {
	edges := a.edges()
	var lines [][]Point
	for _, line := range edges[2].cutLine([]Point{{X: x, Y: low}, {X: x, Y: high}}) {
		lines = append(lines, edges[3].cutLine(line)...)
	}
	return lines
}

func (e edge) cutLine(points []Point) (lines [][]Point) {
	var part []Point
	for i := 1; i < len(points); i++ {
		from, to := points[i-1], points[i]
		begins, ends := e.within(from, e.through), e.within(to, e.through)
		switch {
		case begins && ends:
			part = append(part, from)
		case begins:
			lines = append(lines, append(part, from, e.cut(from, to)))
			part = nil
		case ends:
			part = append(part, e.cut(from, to))
		}
		if ends && i == len(points)-1 {
			part = append(part, to)
		}
	}
	if len(part) > 1 {
		lines = append(lines, part)
	}
	return lines
}

// CutPolygon returns the part of a polygon that lies in the area.
func (a Area) CutPolygon(corners []Point) []Point {
	edges := a.edges()
	for _, at := range [...]int{1, 0, 2, 3} {
		corners = edges[at].cutPolygon(corners)
	}
	return corners
}

func (e edge) cutPolygon(corners []Point) []Point {
	inside := make([]Point, 0, len(corners))
	for i, from := range corners {
		to := corners[(i+1)%len(corners)]
		begins, ends := e.within(from, e.through), e.within(to, e.through)
		if begins {
			inside = append(inside, from)
		}
		if begins != ends {
			inside = append(inside, e.cut(from, to))
		}
	}
	return inside
}
