package report

import (
	"math"

	"github.com/quartet-sched/quartet/lab/report/vector"
)

// An axis lies below a plot or stands left of it.
type axis struct {
	label     string
	low, high float64
	log       bool // of a logarithmic scale
	ticks     []tick
	tickStyle vector.Style
}

// Lengths of axes, in points.
const (
	tickLength  = 4
	axisPadding = 5 // between an axis and what is drawn
)

func labelStyle() vector.Style { return vector.Style{Size: 9, AlignX: -0.5} }

// widen gives an axis of one value, or of none, some room.
func (a *axis) widen() {
	if a.low > a.high { // nothing was drawn
		a.low, a.high = 0, 1
	}
	if room := max(math.Abs(a.low), math.Abs(a.high), 1) * 1e-6; a.high-a.low < room {
		a.high = a.low + max(math.Abs(a.low), 1)
	}
}

// share is where a value lies: 0 at the lower end, 1 at the other.
func (a *axis) share(v float64) float64 {
	if a.log {
		low := math.Log(a.low)
		return (math.Log(v) - low) / (math.Log(a.high) - low)
	}
	return (v - a.low) / (a.high - a.low)
}

// tickBounds is the width and the height of the largest labels of ticks.
func (a *axis) tickBounds() (width, height float64) {
	for _, t := range a.ticks {
		if t.label != "" {
			b := a.tickStyle.Bounds(t.label)
			width, height = max(width, b.Width()), max(height, b.Height())
		}
	}
	return width, height
}

// start is where a tick begins: one without a label is half as long.
func (t tick) start() float64 {
	if t.label == "" {
		return tickLength / 2
	}
	return 0
}

// levelSize is the height of the axis below a plot.
func (a *axis) levelSize() float64 {
	size := 0.0
	if a.label != "" {
		size += labelStyle().Height(a.label)
	}
	if len(a.ticks) > 0 {
		_, height := a.tickBounds()
		size += tickLength
		size += height
	}
	size += axisLine().Width / 2
	return size + axisPadding
}

// uprightSize is the width of the axis left of a plot.
func (a *axis) uprightSize() float64 {
	size := 0.0
	if a.label != "" {
		size += labelStyle().Descent()
		size += labelStyle().Height(a.label)
	}
	if len(a.ticks) > 0 {
		if width, _ := a.tickBounds(); width > 0 {
			size += width
			size += labelStyle().Width(" ")
		}
		size += tickLength
	}
	size += axisLine().Width / 2
	return size + axisPadding
}

// drawLevel draws the axis along the lower edge of an area.
func (a *axis) drawLevel(c vector.Canvas, in vector.Area) {
	y := in.Min.Y
	if a.label != "" {
		style := labelStyle()
		vector.Write(c, style, vector.Point{X: in.Center().X, Y: y + style.Descent()}, a.label)
		y += style.Height(a.label)
	}
	_, height := a.tickBounds()
	for _, t := range a.ticks {
		if x := in.X(a.share(t.value)); in.HasX(x) && t.label != "" {
			vector.Write(c, a.tickStyle, vector.Point{X: x, Y: y + height + a.tickStyle.Descent()}, t.label)
		}
	}
	if len(a.ticks) == 0 {
		y += axisLine().Width / 2
	} else {
		y += height
		for _, t := range a.ticks {
			if x := in.X(a.share(t.value)); in.HasX(x) {
				vector.DrawLines(c, axisLine(), []vector.Point{{X: x, Y: y + t.start()}, {X: x, Y: y + tickLength}})
			}
		}
		y += tickLength
	}
	vector.DrawLines(c, axisLine(), []vector.Point{{X: in.Min.X, Y: y}, {X: in.Max.X, Y: y}})
}

// drawUpright draws the axis along the left edge of an area.
func (a *axis) drawUpright(c vector.Canvas, in vector.Area) {
	x := in.Min.X
	if a.label != "" {
		style := labelStyle()
		style.Rotation = math.Pi / 2
		x += style.Height(a.label)
		vector.Write(c, style, vector.Point{X: x - style.Descent(), Y: in.Center().Y}, a.label)
		x += style.Descent()
	}
	width, _ := a.tickBounds()
	x += width
	labelled := false
	for _, t := range a.ticks {
		if y := in.Y(a.share(t.value)); in.HasY(y) && t.label != "" {
			vector.Write(c, a.tickStyle, vector.Point{X: x, Y: y + a.tickStyle.Descent()}, t.label)
			labelled = true
		}
	}
	if labelled {
		x += a.tickStyle.Width(" ")
	}
	if len(a.ticks) > 0 {
		for _, t := range a.ticks {
			if y := in.Y(a.share(t.value)); in.HasY(y) {
				vector.DrawLines(c, axisLine(), []vector.Point{{X: x + t.start(), Y: y}, {X: x + tickLength, Y: y}})
			}
		}
		x += tickLength
	}
	vector.DrawLines(c, axisLine(), []vector.Point{{X: x, Y: in.Min.Y}, {X: x, Y: in.Max.Y}})
}

// levelExtents lists the texts of the axis below a plot.
func (a *axis) levelExtents() []extent {
	var list []extent
	above := 0.0
	if a.label != "" {
		style := labelStyle()
		list = append(list, extent{a.share(0.5 * (a.high + a.low)), 0, style.Bounds(a.label).Moved(vector.Point{Y: style.Descent()})})
		above += style.Height(a.label)
	}
	_, height := a.tickBounds()
	for _, t := range a.ticks {
		if t.label != "" {
			list = append(list, extent{a.share(t.value), 0, a.tickStyle.Bounds(t.label).Moved(vector.Point{Y: above + height + a.tickStyle.Descent()})})
		}
	}
	return list
}

// uprightExtents lists the texts of the axis left of a plot.
func (a *axis) uprightExtents() []extent {
	var list []extent
	right := 0.0
	if a.label != "" {
		style := labelStyle()
		style.Rotation = math.Pi / 2
		right += style.Height(a.label)
		list = append(list, extent{0, a.share(0.5 * (a.high + a.low)), style.Bounds(a.label).Moved(vector.Point{X: right - style.Descent()})})
		right += style.Descent()
	}
	width, _ := a.tickBounds()
	right += width
	for _, t := range a.ticks {
		if t.label != "" {
			list = append(list, extent{0, a.share(t.value), a.tickStyle.Bounds(t.label).Moved(vector.Point{X: right, Y: a.tickStyle.Gap()})})
		}
	}
	return list
}
