package report

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Formats lists what figures are drawn as.
func Formats() []string { return []string{"svg", "pdf"} }

// The size of a figure: a column of a paper and a half.
const (
	figureWidth  = 13 * vg.Centimeter
	figureHeight = 7.5 * vg.Centimeter
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

var dashes = [...][]vg.Length{nil, {6, 3}, {1.5, 2}, {7, 2, 1.5, 2}, {3, 1.5}, {10, 4}, {1, 1.5}, {5, 2, 2, 2}}

var marks = [...]draw.GlyphDrawer{
	draw.CircleGlyph{},
	draw.SquareGlyph{},
	draw.TriangleGlyph{},
	draw.PyramidGlyph{},
	draw.BoxGlyph{},
	draw.RingGlyph{},
	draw.CrossGlyph{},
	draw.PlusGlyph{},
}

// repeatable has documents carry no time and hold their parts in one order.
var repeatable = sync.OnceFunc(func() {
	fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultCatalogSort(true)
})

// Draw writes a figure in one of the Formats. The same figure gives the same bytes.
func Draw(w io.Writer, f *Figure, format string) error {
	p, err := f.plot()
	if err != nil {
		return fmt.Errorf("draw %s: %w", f.Name, err)
	}
	height := figureHeight + vg.Length(f.legendRows())*10
	var c vg.CanvasWriterTo
	switch format {
	case "svg":
		c = vgsvg.New(figureWidth, height)
	case "pdf":
		repeatable()
		c = vgpdf.New(figureWidth, height)
	default:
		return fmt.Errorf("unknown format %q of figures", format)
	}
	whole := draw.New(c)
	whole.FillPolygon(color.White, []vg.Point{{}, {X: figureWidth}, {X: figureWidth, Y: height}, {Y: height}}) // whatever lies behind it
	legend := vg.Length(f.legendRows())*10 + 6
	f.legend(draw.Crop(whole, 45, 0, 0, legend-height))
	p.Draw(draw.Crop(whole, 4, -8, legend, -4))
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return fmt.Errorf("draw %s: %w", f.Name, err)
	}
	// Readers without the font take one of the same widths. No text holds the quote that a style begins with.
	_, err = w.Write(bytes.ReplaceAll(out.Bytes(), []byte(`style="font-family:Liberation Sans;`), []byte(`style="font-family:Liberation Sans,Arial,Helvetica,sans-serif;`)))
	return err
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// legendColumns is how many lines of a figure are named beside one another.
const legendColumns = 3

func (f *Figure) legendRows() int { return (len(f.Lines) + legendColumns - 1) / legendColumns }

// legend names the lines below the figure.
func (f *Figure) legend(c draw.Canvas) {
	style := plot.New().Legend.TextStyle
	style.Font = sans(8)
	width := (c.Max.X - c.Min.X) / legendColumns
	for i := range f.Lines {
		l := &f.Lines[i]
		at := vg.Point{X: c.Min.X + vg.Length(i%legendColumns)*width, Y: c.Max.Y - 8 - vg.Length(i/legendColumns)*10}
		if l.Points {
			c.DrawGlyph(l.mark(), vg.Point{X: at.X + 8, Y: at.Y + 3})
		} else {
			c.StrokeLine2(l.stroke(), at.X, at.Y+3, at.X+16, at.Y+3)
		}
		c.FillText(style, vg.Point{X: at.X + 20, Y: at.Y}, l.Label)
	}
}

func (l *Line) ink() color.NRGBA { return inks[l.Colour%len(inks)] }

func (l *Line) stroke() draw.LineStyle {
	return draw.LineStyle{Color: l.ink(), Width: 1.2, Dashes: dashes[l.Colour%len(dashes)]}
}

func (l *Line) mark() draw.GlyphStyle {
	if l.Hollow {
		return draw.GlyphStyle{Color: l.ink(), Radius: 3.6, Shape: draw.RingGlyph{}}
	}
	return draw.GlyphStyle{Color: l.ink(), Radius: 2.4, Shape: marks[l.Colour%len(marks)]}
}

func (f *Figure) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.XLabel, f.YLabel
	p.Title.TextStyle.Font = sans(10)
	if room := figureWidth - 16; p.Title.TextStyle.Width(f.Title) > room {
		p.Title.TextStyle.Font = sans(max(5, 10*room/p.Title.TextStyle.Width(f.Title)))
	}
	for _, axis := range [...]*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font, axis.Tick.Label.Font, axis.Tick.Length = sans(9), sans(8), 4
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xdd}, color.Gray{0xdd}
	p.Add(grid)
	for i := range f.Lines {
		if err := f.add(p, &f.Lines[i]); err != nil {
			return nil, err
		}
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{f.X}, ticks{f.Y}
	p.Y.Min = min(0, p.Y.Min)
	widen(&p.X)
	widen(&p.Y)
	switch {
	case f.Ticks != nil:
		var list plot.ConstantTicks
		for i, label := range f.Ticks {
			list = append(list, plot.Tick{Value: float64(i), Label: label})
		}
		p.X.Tick.Marker, p.X.Min, p.X.Max = list, -0.5, float64(len(f.Ticks))-0.5
		if len(f.Ticks) > 5 {
			p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign = math.Pi/9, draw.XRight
		}
	case f.LogX && p.X.Min > 0 && p.X.Max > p.X.Min:
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks{f.X}
	}
	return p, nil
}

// widen gives an axis of one value, or of none, some room.
func widen(a *plot.Axis) {
	if a.Min > a.Max { // nothing was drawn
		a.Min, a.Max = 0, 1
	}
	if room := max(math.Abs(a.Min), math.Abs(a.Max), 1) * 1e-6; a.Max-a.Min < room {
		a.Max = a.Min + max(math.Abs(a.Min), 1)
	}
}

// add draws a line, without what is not known of it.
func (f *Figure) add(p *plot.Plot, l *Line) error {
	var points plotter.XYs
	var band plotter.XYs
	var bars errorBars
	for i := range l.X {
		if math.IsNaN(l.Y[i]) || math.IsNaN(l.X[i]) {
			continue
		}
		points = append(points, plotter.XY{X: l.X[i], Y: l.Y[i]})
		if l.Low != nil && !math.IsNaN(l.Low[i]) && !math.IsNaN(l.High[i]) {
			band = append(band, plotter.XY{X: l.X[i], Y: l.High[i]})
			bars.XYs = append(bars.XYs, points[len(points)-1])
			bars.low, bars.high = append(bars.low, l.Y[i]-l.Low[i]), append(bars.high, l.High[i]-l.Y[i])
		}
	}
	if len(points) == 0 {
		return nil
	}
	if l.Points {
		if len(bars.XYs) > 0 {
			drawn, err := plotter.NewYErrorBars(bars)
			if err != nil {
				return err
			}
			drawn.Color, drawn.Width = l.ink(), 1
			p.Add(drawn)
		}
		drawn, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		drawn.GlyphStyle = l.mark()
		p.Add(drawn)
		return nil
	}
	if len(band) > 1 {
		for i := range slices.Backward(l.X) {
			if !math.IsNaN(l.Y[i]) && !math.IsNaN(l.Low[i]) && !math.IsNaN(l.High[i]) {
				band = append(band, plotter.XY{X: l.X[i], Y: l.Low[i]})
			}
		}
		area, err := plotter.NewPolygon(band)
		if err != nil {
			return err
		}
		fill := l.ink()
		fill.A = 0x28
		area.Color, area.LineStyle.Width = fill, 0
		p.Add(area)
	}
	drawn, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	drawn.LineStyle = l.stroke()
	if l.Step {
		drawn.StepStyle = plotter.PostStep
	}
	p.Add(drawn)
	return nil
}

// errorBars are points with what lies below and above them.
type errorBars struct {
	plotter.XYs
	low, high []float64
}

// YError is the distance to the ends of a bar.
func (b errorBars) YError(i int) (low, high float64) { return b.low[i], b.high[i] }

// secondSteps are the distances of marks on an axis of time, between a second and 100 days.
var secondSteps = [...]float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000, 8640000}

const day = 86400 // seconds

// mostTicks bounds the marks of an axis.
const mostTicks = 7

// ticks writes numbers in a unit.
type ticks struct{ unit Unit }

// Ticks lists the marks of an axis, at round distances. There is at least one: no distance is wider than half the axis.
func (t ticks) Ticks(low, high float64) []plot.Tick {
	if !(low < high) {
		return []plot.Tick{{Value: low, Label: t.unit.text(low)}}
	}
	step := roundStep((high - low) / mostTicks)
	if t.unit == Seconds && step > 0.5 {
		step = day * roundStep((high-low)/mostTicks/day)
		for _, s := range secondSteps {
			if (high-low)/s <= mostTicks {
				step = s
				break
			}
		}
	}
	var list []plot.Tick
	first := math.Ceil(low / step)
	for k := range mostTicks + 2 {
		if v := (first + float64(k)) * step; v <= high {
			list = append(list, plot.Tick{Value: v, Label: t.unit.text(v)})
		}
	}
	return list
}

// roundStep is the least of 1, 2, 5 times a power of ten that is no less than v.
func roundStep(v float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(v)))
	for _, factor := range [...]float64{2, 2.5, 2} { // 1, 2, 5, 10
		if v > step {
			step *= factor
		}
	}
	return step
}

// logTicks marks powers of ten.
type logTicks struct{ unit Unit }

// Ticks lists the marks of an axis.
func (t logTicks) Ticks(low, high float64) []plot.Tick {
	var list []plot.Tick
	for k := math.Floor(math.Log10(low)); k <= math.Ceil(math.Log10(high)) && len(list) < 400; k++ {
		for m := range 9 {
			v := float64(m+1) * math.Pow(10, k)
			if v < low || v > high {
				continue
			}
			tick := plot.Tick{Value: v}
			if m == 0 {
				tick.Label = t.unit.text(v)
			}
			list = append(list, tick)
		}
	}
	return list
}
