// Package vector draws lines, areas and texts as SVG and as PDF.
//
// Lengths are points, 1/72 of an inch, and the origin is the lower left corner. The same drawing gives the same bytes: those
// that gonum.org/v1/plot/vg v0.17.0 wrote, from which it differs by what it leaves out.
package vector

import "image/color"

// Centimeter is its length in points.
const Centimeter = 72 / 2.54

// A Point is a place on a canvas, in points.
type Point struct {
	X float64 // X is the distance from the left edge, in points.
	Y float64 // Y is the distance from the lower edge, in points.
}

// A Stroke is how a line is drawn.
type Stroke struct {
	Color  color.Color // Color of the line.
	Width  float64     // Width of the line, in points; 0 draws nothing.
	Dashes []float64   // Dashes are the lengths of dashes and gaps in turn, in points; empty for a line without gaps.
}

// A Canvas is what is drawn on. What is drawn later lies above.
type Canvas interface {
	// SetColor chooses the colour of what is drawn next.
	SetColor(c color.Color)
	// SetLine chooses width and dashes of lines drawn next, in points.
	SetLine(width float64, dashes []float64)
	// Stroke draws the line of a path.
	Stroke(p Path)
	// Fill fills what a path encloses.
	Fill(p Path)
	// Turn turns what is drawn until TurnBack, counterclockwise around the origin, by an angle in radians.
	Turn(angle float64)
	// TurnBack ends what Turn began.
	TurnBack()
	// Text writes a line of text of a size in points. It begins at a point of its baseline.
	Text(at Point, size float64, text string)
	// Bytes returns the drawing as a file. Nothing can be drawn after it.
	Bytes() ([]byte, error)
}

// StrokeWith chooses how lines are drawn next, and their colour.
func StrokeWith(c Canvas, s Stroke) {
	c.SetColor(s.Color)
	c.SetLine(s.Width, s.Dashes)
}

// DrawLines draws lines through points. It does nothing without any.
func DrawLines(c Canvas, s Stroke, lines ...[]Point) {
	if len(lines) == 0 {
		return
	}
	StrokeWith(c, s)
	for _, line := range lines {
		if len(line) > 0 {
			c.Stroke(Through(line))
		}
	}
}

// FillArea fills a polygon.
func FillArea(c Canvas, ink color.Color, corners []Point) {
	c.SetColor(ink)
	p := Through(corners)
	if len(corners) > 0 {
		p.Close()
	}
	c.Fill(p)
}

type step int

const (
	move step = iota
	line
	circle
	closed
)

// A segment is a part of a path; radius is that of a circle.
type segment struct {
	step   step
	at     Point
	radius float64
}

// A Path is what a pen does: it moves, draws lines and circles, and goes back to where it began.
type Path []segment

// Through is the path of a line through points.
func Through(points []Point) Path {
	p := make(Path, 0, len(points)+1)
	for i, at := range points {
		if i == 0 {
			p.Move(at)
		} else {
			p.Line(at)
		}
	}
	return p
}

// Move lifts the pen and goes to a point.
func (p *Path) Move(to Point) { *p = append(*p, segment{step: move, at: to}) }

// Line draws a line to a point.
func (p *Path) Line(to Point) { *p = append(*p, segment{step: line, at: to}) }

// Close draws a line to where the path began.
func (p *Path) Close() { *p = append(*p, segment{step: closed}) }

// Circle is the path of a circle.
func Circle(center Point, radius float64) Path {
	return Path{
		{step: move, at: Point{X: center.X + radius, Y: center.Y}},
		{step: circle, at: center, radius: radius},
		{step: closed},
	}
}
