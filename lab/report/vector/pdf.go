package vector

import (
	"bytes"
	"image/color"
	"math"
	"sync"
	"time"

	"codeberg.org/go-pdf/fpdf"
)

// pdf draws on the one page of a document, whose origin is moved to the lower left corner.
type pdf struct {
	doc   *fpdf.Fpdf
	width float64 // of lines, points
}

// repeatable has documents carry no time and hold their parts in one order.
var repeatable = sync.OnceFunc(func() {
	fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultCatalogSort(true)
})

// NewPDF is an empty canvas of a size in points that becomes a PDF file.
func NewPDF(width, height float64) Canvas {
	repeatable()
	p := &pdf{doc: fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: width, Ht: height}})}
	p.doc.SetMargins(0, 0, 0)
	p.doc.AddPage()
	p.doc.TransformBegin()
	p.doc.TransformTranslate(0, dots(height))
	p.doc.TransformScale(100, -100, 0, 0)
	p.SetLine(1, nil)
	p.SetColor(color.Black)
	return p
}

// dots are points by way of inches: files hold what this rounds to.
func dots(points float64) float64 { return points / 72 * 72 }

// SetColor implements Canvas.
func (p *pdf) SetColor(c color.Color) {
	r, g, b, a := c.RGBA()
	red, green, blue := int(r>>8), int(g>>8), int(b>>8)
	p.doc.SetFillColor(red, green, blue)
	p.doc.SetDrawColor(red, green, blue)
	p.doc.SetTextColor(red, green, blue)
	p.doc.SetAlpha(float64(a)/math.MaxUint16, "Normal")
}

// SetLine implements Canvas.
func (p *pdf) SetLine(width float64, dashes []float64) {
	p.width = width
	p.doc.SetLineWidth(dots(width))
	pattern := make([]float64, len(dashes))
	for i, d := range dashes {
		pattern[i] = dots(d)
	}
	p.doc.SetDashPattern(pattern, 0)
}

// Stroke implements Canvas.
func (p *pdf) Stroke(path Path) {
	if p.width > 0 {
		p.path(path, "D")
	}
}

// Fill implements Canvas.
func (p *pdf) Fill(path Path) { p.path(path, "F") }

func (p *pdf) path(path Path, style string) {
	var begin Point
	for _, part := range path {
		switch part.step {
		case move:
			begin = part.at
			p.doc.MoveTo(dots(begin.X), dots(begin.Y))
		case line:
			p.doc.LineTo(dots(part.at.X), dots(part.at.Y))
		case circle:
			p.circle(part.at, part.radius, style)
		case closed:
			p.doc.LineTo(dots(begin.X), dots(begin.Y))
			p.doc.ClosePath()
		}
	}
	p.doc.DrawPath(style)
}

func (p *pdf) circle(center Point, radius float64, style string) {
	p.doc.LineTo(dots(center.X+radius), dots(center.Y))
	r := dots(radius)
	p.doc.Arc(dots(center.X), dots(center.Y), r, r, 360, 0, 360, style)
	sin, cos := math.Sincos(2 * math.Pi)
	p.doc.MoveTo(dots(center.X+radius*cos), dots(center.Y+radius*sin))
}

// Turn implements Canvas.
func (p *pdf) Turn(angle float64) {
	p.doc.TransformBegin()
	p.doc.TransformRotate(-angle*180/math.Pi, 0, 0)
}

// TurnBack implements Canvas.
func (p *pdf) TurnBack() { p.doc.TransformEnd() }

// fontName is the name of the font in documents.
const fontName = "LiberationSans-Regular"

// Text implements Canvas. Characters that Windows-1252 lacks are not shown.
func (p *pdf) Text(at Point, size float64, text string) {
	p.doc.AddFontFromBytes(fontName, "", fontDescription, fontOutlines)
	p.doc.SetFont(fontName, "", dots(size))
	p.doc.TransformBegin()
	defer p.doc.TransformEnd()
	p.doc.TransformTranslate(dots(at.X), dots(at.Y))
	p.doc.TransformScale(100, -100, 0, 0)
	_, height := p.doc.GetFontSize()
	d := p.doc.GetFontDesc(fontName, "")
	p.doc.MoveTo(-p.doc.GetCellMargin(), -float64(d.Ascent)*height/float64(d.Ascent-d.Descent))
	p.doc.CellFormat(p.doc.GetStringWidth(text), height, text, "", 0, "BL", false, 0, "")
}

// Bytes implements Canvas.
func (p *pdf) Bytes() ([]byte, error) {
	p.doc.TransformEnd()
	p.doc.Close()
	var out bytes.Buffer
	err := p.doc.Output(&out)
	return out.Bytes(), err
}
