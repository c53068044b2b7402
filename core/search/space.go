package search

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// Space says which hyper-parameters there are, and which values each may have.
type Space []Dimension

// Dimension is a hyper-parameter of a space.
type Dimension struct {
	Name    string  // name of the hyper-parameter
	Scale   Scale   // how values are spread
	Low     float64 // of numbers; both ends are values
	High    float64 // largest number of the range
	Choices []Value // of Choice and, one of them, of Fixed
	Points  int     // how many values a grid tries of numbers; 0 for all whole numbers
}

// Scale is how the values of a dimension lie.
type Scale uint8

// The scales, in the order in which messages name them.
const (
	Uniform    Scale = iota // any number, each as likely
	LogUniform              // any number above 0, each of its logarithms as likely
	Int                     // a whole number
	LogInt                  // a whole number of at least 1, by its logarithm
	Choice                  // one of a list
	Fixed                   // the only value
)

var scales = [...]string{"uniform", "log_uniform", "int", "log_int", "choice", "fixed"}

// String is the key in a config.
func (s Scale) String() string { return scales[s] }

// Whole reports whether the values are whole numbers.
func (d *Dimension) Whole() bool { return d.Scale == Int || d.Scale == LogInt }

// Listed reports whether the values are a list.
func (d *Dimension) Listed() bool { return d.Scale == Choice || d.Scale == Fixed }

// logarithmic reports whether numbers lie by their logarithms.
func (d *Dimension) logarithmic() bool { return d.Scale == LogUniform || d.Scale == LogInt }

// ends are the ends of the line that numbers lie on; a whole number has the half of a step on either side.
func (d *Dimension) ends() (low, high float64) {
	low, high = d.Low, d.High
	if d.Whole() {
		low, high = low-0.5, high+0.5
	}
	if d.logarithmic() {
		low, high = math.Log(low), math.Log(high)
	}
	return low, high
}

// onLine is where a number lies on its line.
func (d *Dimension) onLine(x float64) float64 {
	if d.logarithmic() {
		return math.Log(x)
	}
	return x
}

// fromLine is the number that lies at a place of the line, or the nearest.
func (d *Dimension) fromLine(x float64) float64 {
	if d.logarithmic() {
		x = math.Exp(x)
	}
	if d.Whole() {
		x = math.Round(x)
	}
	return min(max(x, d.Low), d.High)
}

// draw is a value by chance.
func (d *Dimension) draw(r *rand.Rand) Value {
	if d.Listed() {
		return d.Choices[r.IntN(len(d.Choices))]
	}
	if d.Scale == Int {
		return Number(d.Low + float64(r.Int64N(int64(d.High-d.Low)+1)))
	}
	low, high := d.ends()
	u := r.Float64()
	return Number(d.fromLine(low*(1-u) + high*u))
}

// Draw is a point of the space by chance, each dimension on its own.
func (s Space) Draw(r *rand.Rand) Params {
	p := make(Params, len(s))
	for i := range s {
		p[i] = Param{s[i].Name, s[i].draw(r)}
	}
	return p
}

// allows says why a value is none of the dimension.
func (d *Dimension) allows(v Value) error {
	switch x, number := v.Float(); {
	case d.Listed():
		if !slices.ContainsFunc(d.Choices, v.Equal) {
			return fmt.Errorf("%s is none of %s", quoted(v), list(d.Choices))
		}
	case !number:
		return fmt.Errorf("%q is no number", v.String())
	case !(x >= d.Low && x <= d.High): // which NaN is not either
		return fmt.Errorf("%s is not from %s to %s", v, Number(d.Low), Number(d.High))
	case d.Whole() && x != math.Trunc(x):
		return fmt.Errorf("%s is no whole number", v)
	}
	return nil
}

func quoted(v Value) string {
	if v.isWord {
		return fmt.Sprintf("%q", v.word)
	}
	return v.String()
}

// mostListed bounds how many values a message names.
const mostListed = 10

func list(values []Value) string {
	var names []string
	for _, v := range values[:min(len(values), mostListed)] {
		names = append(names, quoted(v))
	}
	if more := len(values) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// Arrange puts parameters into the order of the space. It is an error when they are not exactly those of the space, with values of it. A space without
// dimensions takes any.
func (s Space) Arrange(p Params) (Params, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if len(s) == 0 {
		return p, nil
	}
	for i := range p {
		if !slices.ContainsFunc(s, func(d Dimension) bool { return d.Name == p[i].Name }) {
			return nil, fmt.Errorf("parameter %q is not in the space; %s", p[i].Name, core.SuggestHint(p[i].Name, "names", s.names()))
		}
	}
	arranged := make(Params, len(s))
	for i := range s {
		value, given := p.Get(s[i].Name)
		if !given {
			return nil, fmt.Errorf("parameter %q is missing", s[i].Name)
		}
		if err := s[i].allows(value); err != nil {
			return nil, fmt.Errorf("parameter %q: %w", s[i].Name, err)
		}
		arranged[i] = Param{s[i].Name, value}
	}
	return arranged, nil
}

func (s Space) names() []string {
	names := make([]string, len(s))
	for i := range s {
		names[i] = s[i].Name
	}
	return names
}

// MarshalJSON writes the dimension as a config does.
func (d Dimension) MarshalJSON() ([]byte, error) {
	var values any = []Value{Number(d.Low), Number(d.High)}
	switch d.Scale {
	case Choice:
		values = d.Choices
	case Fixed:
		values = d.Choices[0]
	}
	text, err := plainJSON(values)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"name":%q,"%s":%s`, d.Name, d.Scale, text)
	if d.Points > 0 {
		fmt.Fprintf(&b, `,"points":%d`, d.Points)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads what is written by MarshalJSON or as in a config.
func (s *Space) UnmarshalJSON(text []byte) error {
	var raw []map[string]any
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	read, problems := DecodeSpace("", raw)
	if err := problems.Err(); err != nil {
		return err
	}
	*s = read
	return nil
}
