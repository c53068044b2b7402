package vector

import (
	"bytes"
	"compress/zlib"
	_ "embed"
	"encoding/binary"
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"
	"sync"
)

// The one font, as documents carry it: its TrueType file, compressed, and what fpdf knows of it.
var (
	//go:embed font/LiberationSans-Regular.z
	fontOutlines []byte
	//go:embed font/LiberationSans-Regular.json
	fontDescription []byte
)

// metrics are the lengths of the font, in 1/em of its size.
type metrics struct {
	em                    int // units of the size of the font
	ascent, descent, line int // above and below the baseline, and from one baseline to the next
	glyphs                map[rune]uint16
	advances              []uint16         // of glyphs
	kerning               map[uint32]int16 // of two glyphs, the left one in the upper half: what lies between them beyond the advance
}

// fontMetrics are read when a text is measured first.
var fontMetrics = sync.OnceValue(func() *metrics {
	z, err := zlib.NewReader(bytes.NewReader(fontOutlines))
	if err != nil {
		panic(fmt.Errorf("read the font: %w", err)) // it is part of the program
	}
	file, err := io.ReadAll(z)
	if err != nil {
		panic(fmt.Errorf("read the font: %w", err))
	}
	return readMetrics(file)
})

// words reads numbers of two bytes of a TrueType file.
type words []byte

func (w words) at(i int) int     { return int(binary.BigEndian.Uint16(w[i:])) }
func (w words) signed(i int) int { return int(int16(w.at(i))) }

// readMetrics reads a TrueType file: https://learn.microsoft.com/typography/opentype/spec/otff.
func readMetrics(file []byte) *metrics {
	tables := map[string]words{}
	for i := range words(file).at(4) {
		entry := file[12+16*i:]
		tables[string(entry[:4])] = file[binary.BigEndian.Uint32(entry[8:]):]
	}
	hhea := tables["hhea"]
	m := &metrics{
		em:     tables["head"].at(18),
		ascent: hhea.signed(4), descent: -hhea.signed(6), line: hhea.signed(4) - hhea.signed(6) + hhea.signed(8),
		glyphs: readGlyphs(tables["cmap"]), kerning: map[uint32]int16{},
	}
	advances := hhea.at(34)
	for glyph := range tables["maxp"].at(4) {
		m.advances = append(m.advances, uint16(tables["hmtx"].at(4*min(glyph, advances-1))))
	}
	kern := tables["kern"]
	for i := range kern.at(10) {
		entry := kern[18+6*i:]
		m.kerning[binary.BigEndian.Uint32(entry)] = int16(entry.signed(4))
	}
	return m
}

// readGlyphs reads which glyph shows a character, from the first table of the format 4.
func readGlyphs(cmap words) map[rune]uint16 {
	glyphs := map[rune]uint16{}
	for i := range cmap.at(2) {
		table := cmap[binary.BigEndian.Uint32(cmap[8+8*i:]):]
		if table.at(0) != 4 {
			continue
		}
		double := table.at(6) // twice the number of ranges
		for at := 14; at < 14+double; at += 2 {
			last, first := table.at(at), table.at(at+double+2)
			delta, offset := table.at(at+2*double+2), table.at(at+3*double+2)
			for c := first; c <= last; c++ {
				if offset == 0 {
					glyphs[rune(c)] = uint16(c + delta)
				} else if glyph := table.at(at + 3*double + 2 + offset + 2*(c-first)); glyph != 0 {
					glyphs[rune(c)] = uint16(glyph + delta)
				}
			}
		}
		return glyphs
	}
	return glyphs
}

// width is that of a line of text, in 1/em of the size of the font. Characters without a glyph are as wide as the box that stands for them.
func (m *metrics) width(text string) int {
	width, before := 0, -1
	for _, c := range text {
		glyph := m.glyphs[c]
		if before >= 0 {
			width += int(m.kerning[uint32(before)<<16|uint32(glyph)])
		}
		width += int(m.advances[glyph])
		before = int(glyph)
	}
	return width
}

// A Style is how a text is written.
type Style struct {
	Size     float64 // Size of the font, in points.
	Rotation float64 // Rotation turns the text counterclockwise, in radians.
	AlignX   float64 // AlignX moves the text to the right by so many of its widths: 0 begins at a point, -1 ends there.
	AlignY   float64 // AlignY moves the text up by so many of its heights: 0 stands on a point, -1 hangs from it.
}

// points are lengths of the font, in points.
func (s Style) points(units int) float64 {
	return float64(units) * (s.Size / float64(fontMetrics().em))
}

// Descent is how far letters reach below the baseline, in points.
func (s Style) Descent() float64 { return s.points(fontMetrics().descent) }

// Gap is what lies between the baseline of a line and the top of the next, in points.
func (s Style) Gap() float64 { return s.points(fontMetrics().line) - s.points(fontMetrics().ascent) }

func lines(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }

// Width is that of a text before it is turned, in points.
func (s Style) Width(text string) float64 {
	widest := 0.0
	for _, line := range lines(text) {
		widest = max(widest, s.points(fontMetrics().width(line)))
	}
	return widest
}

// Height is that of a text before it is turned, in points.
func (s Style) Height(text string) float64 {
	m, height := fontMetrics(), 0.0
	ascent, descent := s.points(m.ascent), s.points(m.descent)
	for i := range lines(text) {
		height += ascent + descent
		if i > 0 {
			height += s.points(m.line) - ascent - descent
		}
	}
	return height
}

// Bounds is the area around a text that is written at the origin.
func (s Style) Bounds(text string) Area {
	width, height := s.Width(text), s.Height(text)
	left, low := s.AlignX*width, s.AlignY*height-s.Gap()
	a := Area{Min: Point{X: math.Inf(1), Y: math.Inf(1)}, Max: Point{X: math.Inf(-1), Y: math.Inf(-1)}}
	for _, corner := range [...]Point{{X: left, Y: low}, {X: left, Y: height + low}, {X: width + left, Y: low}, {X: width + left, Y: height + low}} {
		p := turned(corner, s.Rotation)
		a.Min.X, a.Min.Y = min(a.Min.X, p.X), min(a.Min.Y, p.Y)
		a.Max.X, a.Max.Y = max(a.Max.X, p.X), max(a.Max.Y, p.Y)
	}
	return a
}

// turned is a point turned counterclockwise around the origin.
func turned(p Point, angle float64) Point {
	if angle == 0 {
		return p
	}
	sin, cos := math.Sincos(angle)
	return Point{X: p.X*cos - p.Y*sin, Y: p.Y*cos + p.X*sin}
}

// Write writes a text in black at a point.
func Write(c Canvas, s Style, at Point, text string) {
	if strings.TrimRight(text, "\n") == "" {
		return
	}
	c.SetColor(color.Black)
	if s.Rotation != 0 {
		c.Turn(s.Rotation)
		defer c.TurnBack()
	}
	sin, cos := math.Sincos(s.Rotation)
	at = Point{X: at.Y*sin + at.X*cos, Y: at.Y*cos - at.X*sin}
	m := fontMetrics()
	at.Y += s.Height(text)*s.AlignY - s.points(m.ascent)
	list := lines(text)
	for i, line := range list {
		c.Text(Point{X: at.X + s.AlignX*s.points(m.width(line)), Y: at.Y + float64(len(list)-i)*s.Size}, s.Size, line)
	}
}
