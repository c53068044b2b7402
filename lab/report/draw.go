package report

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"github.com/quartet-sched/quartet/lab/report/vector"
)

// Formats lists what figures are drawn as.
func Formats() []string { return []string{"svg", "pdf"} }

// The size of a figure in points: a column of a paper and a half.
const (
	figureWidth  = 13 * vector.Centimeter
	figureHeight = 7.5 * vector.Centimeter
)

// inks are the colours of lines, those of the pages: readers who cannot tell red from green tell them apart, and on paper by their
// dashes and marks, too.
var inks = [...]color.NRGBA{
	{0x00, 0x72, 0xb2, 0xff},
	{0xb3, 0x47, 0x00, 0xff},
	{0x00, 0x7a, 0x5a, 0xff},
	{0xa3, 0x47, 0x8a, 0xff},
	{0x56, 0x78, 0x9a, 0xff},
	{0x8a, 0x6d, 0x00, 0xff},
	{0x3f, 0x3f, 0x9e, 0xff},
	{0x5a, 0x5a, 0x5a, 0xff},
}

var dashes = [...][]float64{nil, {6, 3}, {1.5, 2}, {7, 2, 1.5, 2}, {3, 1.5}, {10, 4}, {1, 1.5}, {5, 2, 2, 2}}

// Draw writes a figure in one of the Formats. The same figure gives the same bytes.
func Draw(w io.Writer, f *Figure, format string) error {
	p, err := f.plot()
	if err != nil {
		return fmt.Errorf("draw %s: %w", f.Name, err)
	}
	height := figureHeight + float64(f.legendRows())*10
	var c vector.Canvas
	switch format {
	case "svg":
		c = vector.NewSVG(figureWidth, height)
	case "pdf":
		c = vector.NewPDF(figureWidth, height)
	default:
		return fmt.Errorf("unknown format %q of figures", format)
	}
	whole := vector.Area{Max: vector.Point{X: figureWidth, Y: height}}
	vector.FillArea(c, color.White, whole.Corners()) // whatever lies behind it
	legend := float64(f.legendRows())*10 + 6
	f.legend(c, whole.Crop(45, 0, 0, legend-height))
	p.draw(c, whole.Crop(4, -8, legend, -4))
	file, err := c.Bytes()
	if err != nil {
		return fmt.Errorf("draw %s: %w", f.Name, err)
	}
	_, err = w.Write(file)
	return err
}

// legendColumns is how many lines of a figure are named beside one another.
const legendColumns = 3

func (f *Figure) legendRows() int { return (len(f.Lines) + legendColumns - 1) / legendColumns }

// legend names the lines below the figure.
func (f *Figure) legend(c vector.Canvas, a vector.Area) {
	width := a.Width() / legendColumns
	for i := range f.Lines {
		l := &f.Lines[i]
		at := vector.Point{X: a.Min.X + float64(i%legendColumns)*width, Y: a.Max.Y - 8 - float64(i/legendColumns)*10}
		if l.Points {
			l.mark(c, a, vector.Point{X: at.X + 8, Y: at.Y + 3})
		} else {
			vector.DrawLines(c, l.stroke(), []vector.Point{{X: at.X, Y: at.Y + 3}, {X: at.X + 16, Y: at.Y + 3}})
		}
		vector.Write(c, vector.Style{Size: 8}, vector.Point{X: at.X + 20, Y: at.Y}, l.Label)
	}
}

func (l *Line) ink() color.NRGBA { return inks[l.Colour%len(inks)] }

func (l *Line) stroke() vector.Stroke {
	return vector.Stroke{Color: l.ink(), Width: 1.2, Dashes: dashes[l.Colour%len(dashes)]}
}

// radius is that of the marks of the line, in points.
func (l *Line) radius() float64 {
	if l.Hollow {
		return 3.6
	}
	return 2.4
}

// mark draws a mark of the line at a point, if that lies in the area.
func (l *Line) mark(c vector.Canvas, a vector.Area, at vector.Point) {
	if !a.Has(at) {
		return
	}
	c.SetColor(l.ink())
	draw := ring
	if !l.Hollow {
		draw = marks[l.Colour%len(marks)]
	}
	draw(c, l.ink(), at, l.radius())
}

// plot is a figure without its legend, ready to be drawn.
func (f *Figure) plot() (*plot, error) {
	p := &plot{title: f.Title, titleStyle: vector.Style{Size: 10, AlignX: -0.5, AlignY: -1}}
	if room := figureWidth - 16; p.titleStyle.Width(f.Title) > room {
		p.titleStyle.Size = max(5, 10*room/p.titleStyle.Width(f.Title))
	}
	p.x = axis{label: f.XLabel, low: math.Inf(1), high: math.Inf(-1), tickStyle: vector.Style{Size: 8, AlignX: -0.5, AlignY: -1}}
	p.y = axis{label: f.YLabel, low: math.Inf(1), high: math.Inf(-1), tickStyle: vector.Style{Size: 8, AlignX: -1, AlignY: -0.5}}
	for i := range f.Lines {
		if err := p.add(&f.Lines[i]); err != nil {
			return nil, err
		}
	}
	p.y.low = min(0, p.y.low)
	p.x.widen()
	p.y.widen()
	switch {
	case f.Ticks != nil:
		p.x.low, p.x.high = -0.5, float64(len(f.Ticks))-0.5
		if len(f.Ticks) == 0 {
			p.x.low, p.x.high = -1.5, 0.5
		}
		if len(f.Ticks) > 5 {
			p.x.tickStyle.Rotation, p.x.tickStyle.AlignX = math.Pi/9, -1
		}
	case f.LogX && p.x.low > 0 && p.x.high > p.x.low:
		p.x.log = true
	}
	p.y.ticks = f.Y.ticks(p.y.low, p.y.high)
	switch {
	case f.Ticks != nil:
		for i, label := range f.Ticks {
			p.x.ticks = append(p.x.ticks, tick{float64(i), label})
		}
	case p.x.log:
		p.x.ticks = f.X.logTicks(p.x.low, p.x.high)
	default:
		p.x.ticks = f.X.ticks(p.x.low, p.x.high)
	}
	return p, nil
}
