package report

import (
	"errors"
	"image/color"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/lab/report/vector"
)

// A plot is a figure without its legend. Axes, padding and marks are laid out as gonum.org/v1/plot v0.17.0 does it, which drew the
// figures once: they keep their bytes.
type plot struct {
	title      string
	titleStyle vector.Style
	x, y       axis
	lines      []drawnLine
}

// A drawnLine is what is drawn of a line.
type drawnLine struct {
	*Line
	points []place
	band   []place // corners of the area of its intervals
	bars   []errorBar
}

// A place is a point in the units of the axes.
type place struct{ x, y float64 }

// An errorBar reaches from a point down and up, in the units of the axes.
type errorBar struct {
	place
	below, above float64
}

// reach has the axes reach a point.
func (p *plot) reach(at place) {
	p.x.low, p.x.high = math.Min(p.x.low, at.x), math.Max(p.x.high, at.x)
	p.y.low, p.y.high = math.Min(p.y.low, at.y), math.Max(p.y.high, at.y)
}

// add has a line drawn, without what is not known of it.
func (p *plot) add(l *Line) error {
	s := drawnLine{Line: l}
	var highs, lows []place
	for i, x := range l.X {
		y := l.Y[i]
		if math.IsNaN(x) || math.IsNaN(y) {
			continue
		}
		s.points = append(s.points, place{x, y})
		if l.Low == nil || math.IsNaN(l.Low[i]) || math.IsNaN(l.High[i]) {
			continue
		}
		if l.Points {
			s.bars = append(s.bars, errorBar{place{x, y}, y - l.Low[i], l.High[i] - y})
		}
		highs, lows = append(highs, place{x, l.High[i]}), append(lows, place{x, l.Low[i]})
	}
	if len(s.points) == 0 {
		return nil
	}
	if !l.Points && len(highs) > 1 {
		slices.Reverse(lows)
		s.band = append(highs, lows...)
	}
	reached := slices.Concat(s.points, s.band)
	for _, b := range s.bars {
		reached = append(reached, place{b.x, b.y - math.Abs(b.below)}, place{b.x, b.y + math.Abs(b.above)})
	}
	for _, at := range reached {
		if math.IsInf(at.x, 0) || math.IsInf(at.y, 0) {
			return errors.New("a point is infinite")
		}
		p.reach(at)
	}
	p.lines = append(p.lines, s)
	return nil
}

// The lines of axes and of the grid.
func axisLine() vector.Stroke { return vector.Stroke{Color: color.Black, Width: 0.5} }
func gridLine() vector.Stroke { return vector.Stroke{Color: color.Gray{0xdd}, Width: 0.25} }

// draw fills an area with the plot.
func (p *plot) draw(c vector.Canvas, a vector.Area) {
	vector.FillArea(c, color.White, a.Corners())
	if p.title != "" {
		vector.Write(c, p.titleStyle, vector.Point{X: a.Center().X, Y: a.Max.Y + p.titleStyle.Descent()}, p.title)
		a.Max.Y -= p.titleStyle.Bounds(p.title).Height()
	}
	left, below := p.y.uprightSize(), p.x.levelSize()
	p.x.drawLevel(c, p.padX(a.Crop(left, 0, 0, 0)))
	p.y.drawUpright(c, p.padY(a.Crop(0, 0, below, 0)))
	data := p.padY(p.padX(a.Crop(left, 0, below, 0)))
	p.drawGrid(c, data)
	for i := range p.lines {
		if l := &p.lines[i]; l.Points {
			p.drawBars(c, data, l)
			for _, at := range l.points {
				l.mark(c, data, p.at(data, at))
			}
		} else {
			p.drawBand(c, data, l)
			p.drawLine(c, data, l)
		}
	}
}

// at is where a place lies in an area.
func (p *plot) at(a vector.Area, at place) vector.Point {
	return vector.Point{X: a.X(p.x.share(at.x)), Y: a.Y(p.y.share(at.y))}
}

func (p *plot) places(a vector.Area, list []place) []vector.Point {
	points := make([]vector.Point, len(list))
	for i, at := range list {
		points[i] = p.at(a, at)
	}
	return points
}

func (p *plot) drawGrid(c vector.Canvas, a vector.Area) {
	for _, t := range p.x.ticks {
		if x := a.X(p.x.share(t.value)); t.label != "" && x <= a.Max.X && x >= a.Min.X {
			vector.DrawLines(c, gridLine(), []vector.Point{{X: x, Y: a.Min.Y}, {X: x, Y: a.Max.Y}})
		}
	}
	for _, t := range p.y.ticks {
		if y := a.Y(p.y.share(t.value)); t.label != "" && y <= a.Max.Y && y >= a.Min.Y {
			vector.DrawLines(c, gridLine(), []vector.Point{{X: a.Min.X, Y: y}, {X: a.Max.X, Y: y}})
		}
	}
}

// barEnd is the width of the ends of error bars, in points.
const barEnd = 5

func (p *plot) drawBars(c vector.Canvas, a vector.Area, l *drawnLine) {
	stroke := vector.Stroke{Color: l.ink(), Width: 1}
	for _, b := range l.bars {
		low, high := p.at(a, place{b.x, b.y - math.Abs(b.below)}), p.at(a, place{b.x, b.y + math.Abs(b.above)})
		vector.DrawLines(c, stroke, a.CutUpright(low.X, low.Y, high.Y)...)
		for _, end := range [...]vector.Point{low, high} {
			if a.Has(end) {
				vector.DrawLines(c, stroke, []vector.Point{{X: end.X - barEnd/2.0, Y: end.Y}, {X: end.X + barEnd/2.0, Y: end.Y}})
			}
		}
	}
}

func (p *plot) drawBand(c vector.Canvas, a vector.Area, l *drawnLine) {
	if l.band == nil {
		return
	}
	ink := l.ink()
	ink.A = 0x28
	corners := a.CutPolygon(p.places(a, l.band))
	vector.FillArea(c, ink, corners)
	if len(corners) > 0 && corners[len(corners)-1] != corners[0] {
		corners = append(corners, corners[0])
	}
	vector.DrawLines(c, vector.Stroke{Color: color.Black}, a.CutLine(corners)...) // nothing, but files state its style
}

func (p *plot) drawLine(c vector.Canvas, a vector.Area, l *drawnLine) {
	parts := a.CutLine(p.places(a, l.points))
	if len(parts) == 0 {
		return
	}
	vector.StrokeWith(c, l.stroke())
	for _, part := range parts {
		var path vector.Path
		for i, at := range part {
			switch {
			case i == 0:
				path.Move(at)
				continue
			case l.Step:
				path.Line(vector.Point{X: at.X, Y: part[i-1].Y})
			}
			path.Line(at)
		}
		c.Stroke(path)
	}
}

// An extent is what is drawn around a point of an area, whose place is given in shares of its width and height.
type extent struct {
	x, y float64
	vector.Area
}

func around(x, y, right, up float64) extent {
	return extent{x, y, vector.Area{Min: vector.Point{X: -right, Y: -up}, Max: vector.Point{X: right, Y: up}}}
}

// extents lists what is drawn of points and lines between the ends of the axes.
func (p *plot) extents() []extent {
	var list []extent
	for i := range p.lines {
		l := &p.lines[i]
		for _, b := range l.bars {
			x := p.x.share(b.x)
			list = append(list, around(x, p.y.share(b.y-b.below), barEnd/2.0, 0.5), around(x, p.y.share(b.y+b.above), barEnd/2.0, 0.5))
		}
		radius := 0.5 * l.stroke().Width
		if l.Points {
			radius = l.radius()
		}
		for _, at := range l.points {
			list = append(list, around(p.x.share(at.x), p.y.share(at.y), radius, radius))
		}
	}
	return slices.DeleteFunc(list, func(b extent) bool { return b.x < 0 || b.x > 1 || b.y < 0 || b.y > 1 })
}

// padX narrows an area so that what is drawn at its ends, and the labels of the level axis, lie within.
func (p *plot) padX(a vector.Area) vector.Area {
	list := p.extents()
	first, last := extent{}, extent{x: 1}
	least, most := a.Min.X, a.Max.X
	for _, b := range list {
		if x := a.X(b.x) + b.Min.X; b.Width() > 0 && x < least && b.x >= 0 {
			least, first = x, b
		}
	}
	for _, b := range append(list, p.x.levelExtents()...) {
		if x := a.X(b.x) + b.Min.X + b.Width(); b.Width() > 0 && x > most && b.x <= 1 {
			most, last = x, b
		}
	}
	low, high := a.Min.X-first.Min.X, a.Max.X-(last.Min.X+last.Width())
	padded := a
	padded.Min.X = (first.x*high - last.x*low) / (first.x - last.x)
	padded.Max.X = ((first.x-1)*high - last.x*low + low) / (first.x - last.x)
	return padded
}

// padY does the same for the other ends and the labels of the upright axis.
func (p *plot) padY(a vector.Area) vector.Area {
	list := p.extents()
	first, last := extent{}, extent{y: 1}
	least, most := a.Min.Y, a.Max.Y
	for _, b := range list {
		if y := a.Y(b.y) + b.Min.Y; b.Height() > 0 && y < least && b.y >= 0 {
			least, first = y, b
		}
	}
	for _, b := range append(list, p.y.uprightExtents()...) {
		if y := a.Y(b.y) + b.Min.Y + b.Height(); b.Height() > 0 && y > most && b.y <= 1 {
			most, last = y, b
		}
	}
	low, high := a.Min.Y-first.Min.Y, a.Max.Y-(last.Min.Y+last.Height())
	padded := a
	padded.Min.Y = (first.y*high - last.y*low) / (first.y - last.y)
	padded.Max.Y = ((first.y-1)*high - last.y*low + low) / (first.y - last.y)
	return padded
}
