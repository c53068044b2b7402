package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Figure is one picture: what a page draws as a chart, and Draw as SVG or PDF.
type Figure struct {
	Name   string   // of a file, such as jct-cdf
	Title  string   // heading of the figure
	XLabel string   // label of the x axis
	YLabel string   // label of the y axis
	X, Y   Unit     // units of the axes
	LogX   bool     // the x axis is logarithmic
	Ticks  []string // labels of x = 0, 1, …; nil for numbers
	Lines  []Line   // what is drawn
	Place  string   // part of the page that it belongs to
}

// A Unit says how the numbers of an axis are written.
type Unit string

// The units of axes.
const (
	Plain   Unit = "plain"
	Seconds Unit = "seconds"
	Share   Unit = "share" // a part of 1, written in per cent
)

func (u Unit) text(v float64) string {
	switch u {
	case Seconds:
		return span(v)
	case Share:
		return percent(v)
	}
	return digits(v)
}

// unitOf is the unit of a metric.
func unitOf(metric string) Unit {
	switch {
	case strings.Contains(metric, "seconds"):
		return Seconds
	case strings.HasSuffix(metric, "_ratio"):
		return Share
	}
	return Plain
}

// A Line is one curve, step function or set of points. Low and High are a band around it, or the ends of bars where it is of
// points; they may be absent. A NaN is not drawn.
type Line struct {
	Label     string    // name in the legend
	X, Y      []float64 // coordinates of the points, in the units of the axes
	Low, High []float64 // ends of the interval at each point; nil for none
	Step      bool      // values hold until the next point
	Points    bool      // only points are drawn, without a line through them
	Hollow    bool      // of another's making: published points
	Colour    int       // index in the palette
}

// within is a line with an interval around each point, where one is known.
func (l Line) within(low, high []float64) Line {
	if known(low) && known(high) {
		l.Low, l.High = low, high
	}
	return l
}

// intervalNote says what the intervals of lines are, which are drawn as marks, or that one workload has none.
func intervalNote(marks string, lines []Line, several bool) string {
	switch {
	case slices.ContainsFunc(lines, func(l Line) bool { return l.Low != nil }):
		return "; " + marks + ": " + levelText(usualLevel) + " intervals"
	case several: // of an earlier version, which wrote none
		return ""
	}
	return "; one workload each: no interval"
}

// cdf is the line of a distribution.
func cdf(label string, colour int, d distribution) Line {
	points, low, high := d.curve()
	l := Line{Label: label, Colour: colour, Step: true, X: points}
	for i := range points {
		share := high
		if len(points) > 1 {
			share = low + (high-low)*float64(i)/float64(len(points)-1)
		}
		l.Y = append(l.Y, share)
	}
	return l
}

// fileName makes a name of a file of texts.
func fileName(texts ...string) string {
	name := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' {
			return c
		}
		return '-'
	}, strings.ToLower(strings.Join(texts, "-")))
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	return cmp.Or(strings.Trim(name, "-."), "figure")
}

// unique gives figures of one name a number.
func unique(list []Figure) []Figure {
	seen := map[string]bool{}
	for i := range list {
		name := list[i].Name
		for n := 2; seen[list[i].Name]; n++ {
			list[i].Name = fmt.Sprintf("%s-%d", name, n)
		}
		seen[list[i].Name] = true
	}
	return list
}

// packFigures adds figures to the data of a page.
func packFigures(p *pack, list []Figure) {
	type line struct {
		Label  string `json:"label"`
		Key    string `json:"key"`
		Band   bool   `json:"band"`
		Step   bool   `json:"step"`
		Points bool   `json:"points"`
		Hollow bool   `json:"hollow"`
		Colour int    `json:"colour"`
	}
	type figure struct {
		Place  string   `json:"place"`
		Title  string   `json:"title"`
		XLabel string   `json:"xLabel"`
		X      Unit     `json:"x"`
		Y      Unit     `json:"y"`
		Log    bool     `json:"log"`
		Ticks  []string `json:"ticks"`
		Lines  []line   `json:"lines"`
	}
	var all []figure
	for i := range list {
		f := &list[i]
		one := figure{f.Place, f.Title, f.XLabel, f.X, f.Y, f.LogX, f.Ticks, nil}
		for k := range f.Lines {
			l := &f.Lines[k]
			key := fmt.Sprintf("figure.%d.%d", i, k)
			if f.X == Seconds {
				p.times(key+".x", l.X)
			} else {
				p.ratios(key+".x", l.X)
			}
			p.ratios(key+".y", l.Y)
			if l.Low != nil {
				p.ratios(key+".low", l.Low)
				p.ratios(key+".high", l.High)
			}
			one.Lines = append(one.Lines, line{l.Label, key, l.Low != nil, l.Step, l.Points, l.Hollow, l.Colour})
		}
		all = append(all, one)
	}
	p.value("figures", all)
}

// placed reports whether one of the figures belongs to a part of the page.
func placed(list []Figure, place string) bool {
	return slices.ContainsFunc(list, func(f Figure) bool { return f.Place == place })
}

// known reports whether a list holds a number.
func known(list []float64) bool {
	return slices.ContainsFunc(list, func(v float64) bool { return !math.IsNaN(v) })
}
