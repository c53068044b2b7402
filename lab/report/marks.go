package report

import (
	"image/color"

	"github.com/quartet-sched/quartet/lab/report/vector"
)

// A shape draws a mark of a radius in points; the colour is chosen already.
type shape func(c vector.Canvas, ink color.Color, at vector.Point, radius float64)

var marks = [...]shape{disc, square, triangle, pyramid, box, ring, cross, plus}

// thin has a mark drawn with a thin line.
func thin(c vector.Canvas, ink color.Color) {
	vector.StrokeWith(c, vector.Stroke{Color: ink, Width: 0.5})
}

func disc(c vector.Canvas, _ color.Color, at vector.Point, radius float64) {
	c.Fill(vector.Circle(at, radius))
}

func ring(c vector.Canvas, ink color.Color, at vector.Point, radius float64) {
	thin(c, ink)
	c.Stroke(vector.Circle(at, radius))
}

// Of an eighth and a twelfth of a circle.
const (
	cosEighth  = .707106781202420
	sinTwelfth = .500000000025921
	cosTwelfth = .866025403769473
)

func squarePath(at vector.Point, radius float64) vector.Path {
	half := (radius-radius*cosEighth)/2 + radius*cosEighth
	p := vector.Through([]vector.Point{
		{X: at.X - half, Y: at.Y - half},
		{X: at.X + half, Y: at.Y - half},
		{X: at.X + half, Y: at.Y + half},
		{X: at.X - half, Y: at.Y + half},
	})
	p.Close()
	return p
}

func square(c vector.Canvas, ink color.Color, at vector.Point, radius float64) {
	thin(c, ink)
	c.Stroke(squarePath(at, radius))
}

func box(c vector.Canvas, _ color.Color, at vector.Point, radius float64) {
	c.Fill(squarePath(at, radius))
}

func trianglePath(at vector.Point, radius float64) vector.Path {
	r := radius + (radius-radius*sinTwelfth)/2
	p := vector.Through([]vector.Point{
		{X: at.X, Y: at.Y + r},
		{X: at.X - r*cosTwelfth, Y: at.Y - r*sinTwelfth},
		{X: at.X + r*cosTwelfth, Y: at.Y - r*sinTwelfth},
	})
	p.Close()
	return p
}

func triangle(c vector.Canvas, ink color.Color, at vector.Point, radius float64) {
	thin(c, ink)
	c.Stroke(trianglePath(at, radius))
}

func pyramid(c vector.Canvas, _ color.Color, at vector.Point, radius float64) {
	c.Fill(trianglePath(at, radius))
}

func plus(c vector.Canvas, ink color.Color, at vector.Point, radius float64) {
	thin(c, ink)
	c.Stroke(vector.Through([]vector.Point{{X: at.X, Y: at.Y + radius}, {X: at.X, Y: at.Y - radius}}))
	c.Stroke(vector.Through([]vector.Point{{X: at.X - radius, Y: at.Y}, {X: at.X + radius, Y: at.Y}}))
}

func cross(c vector.Canvas, ink color.Color, at vector.Point, radius float64) {
	thin(c, ink)
	r := radius * cosEighth
	c.Stroke(vector.Through([]vector.Point{{X: at.X - r, Y: at.Y - r}, {X: at.X + r, Y: at.Y + r}}))
	c.Stroke(vector.Through([]vector.Point{{X: at.X - r, Y: at.Y + r}, {X: at.X + r, Y: at.Y - r}}))
}
