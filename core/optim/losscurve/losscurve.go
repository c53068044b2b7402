// Package losscurve fits curves to the losses that a training reports, and forecasts with them.
//
// The families are those of SLAQ (SoCC'17), 1/(a k² + b k + c) + d for methods that converge sub-linearly and μ^(k-b) + c for those that do
// so linearly or faster, and that of Optimus (EuroSys'18), 1/(b₀ k + b₁) + b₂. All fall and are convex. One fitter serves the three: it tries
// the parameter in which a family is not linear on a grid, solves for the others by non-negative least squares on the transformed losses, and
// goes on from the best by damped Gauss-Newton steps on the losses themselves. New points weigh more than old ones.
//
// Of a metric that grows, such as an accuracy, the negative is fitted.
package losscurve

import (
	"math"
)

// Point is a loss at a step of a training.
type Point struct {
	Step float64 // steps of the training so far
	Loss float64 // at that step, in the unit of the metric
}

// Family is a form that a curve may have.
type Family uint8

// The families.
const (
	// SubLinear is 1/(a k² + b k + c) + d, by the parameters a, b, c and d, of which none but d is negative.
	SubLinear Family = iota
	// SuperLinear is μ^(k-b) + c, by the parameters μ, b and c, with μ between 0 and 1.
	SuperLinear
	// Optimus is 1/(b₀ k + b₁) + b₂, by the parameters b₀, b₁ and b₂, of which none but b₂ is negative.
	Optimus
	families
)

var familyNames = [families]string{"sub_linear", "super_linear", "optimus"}

// String returns the name of the family, such as "sub_linear".
func (f Family) String() string {
	if f < families {
		return familyNames[f]
	}
	return "unknown"
}

// Parameters is how many parameters a curve of the family has, and so how many points it takes to fit one.
func (f Family) Parameters() int {
	if f == SubLinear {
		return 4
	}
	return 3
}

// Curve is a loss by step.
type Curve struct {
	Family Family     // form of the curve
	P      [4]float64 // the parameters in the order in which Family lists them
}

// At is the loss at a step.
func (c *Curve) At(step float64) float64 {
	p := &c.P
	switch c.Family {
	case SuperLinear:
		return math.Pow(p[0], step-p[1]) + p[2]
	case Optimus:
		return 1/(p[0]*step+p[1]) + p[2]
	default:
		return 1/((p[0]*step+p[1])*step+p[2]) + p[3]
	}
}

const (
	// mostPoints is how many points are fitted: of more, the newest.
	mostPoints = 128
	// newest is by how many points families are chosen.
	newest = 5
	// poor is the part of all that the loss changed by which a curve may miss the newest points. One that misses them by more bends
	// otherwise than the families do.
	poor = 0.05
	// simpler is what a family with more parameters, or one that is tried later, must leave of the error to be chosen.
	simpler = 0.99
	// alike is the part of all that the loss changed by which a curve misses the newest points that no other is tried beside: among those that pass through
	// the points, rounding is not to choose.
	alike = 1e-6
)

// DefaultDecay is what the weight of a point is multiplied by with each newer one.
const DefaultDecay = 0.9

// Fitter fits curves. The zero value is ready. It holds the buffers of its calls: it is used by one goroutine at a time.
type Fitter struct {
	// Decay is what the weight of a point is multiplied by with each newer one, above 0 and up to 1; DefaultDecay where it is 0.
	Decay float64

	data data
}

// Forecast is what is expected of a training.
type Forecast struct {
	// Curve is what was fitted, where OnCurve is true. Otherwise the loss goes on as it did between the two latest points.
	Curve   Curve
	OnCurve bool    // whether Curve holds a fit
	Last    Point   // latest point of the training
	Slope   float64 // between the two latest points, never positive: the loss of a step
}

// At is the loss that is expected at a step from the last one on. It is never above the last one.
func (f *Forecast) At(step float64) float64 {
	if !(step > f.Last.Step) {
		return f.Last.Loss
	}
	step = min(step, math.MaxFloat64) // of a parameter that is 0, an infinite one makes no number
	loss := f.Last.Loss + f.Slope*(step-f.Last.Step)
	if f.OnCurve {
		// The curve says how much is gained from the last point on: that it misses the point is no gain.
		loss = f.Last.Loss + f.Curve.At(step) - f.Curve.At(f.Last.Step)
	}
	if !(loss <= f.Last.Loss) {
		return f.Last.Loss
	}
	return max(loss, -math.MaxFloat64)
}

// Forecast fits the family that misses the newest points least. Points ascend by step; those that are no finite numbers, or whose step does not
// rise, are left out. Where no family comes near the newest points, as of a curve that is not convex, and where there are fewer than three, the
// loss goes on as it did last. It is false with fewer than two points. O(points).
func (f *Fitter) Forecast(points []Point) (Forecast, bool) {
	d := &f.data
	if !d.take(points, f.Decay) {
		return Forecast{}, false
	}
	n := len(d.x)
	last, before := d.point(n-1), d.point(n-2)
	out := Forecast{Last: last, Slope: min(0, (last.Loss-before.Loss)/(last.Step-before.Step))}
	if math.IsInf(out.Slope, 0) || math.IsNaN(out.Slope) {
		out.Slope = 0
	}
	if d.span == 0 {
		return out, true
	}
	least := poor
	for _, family := range [...]Family{Optimus, SuperLinear, SubLinear} {
		if n < family.Parameters() || out.OnCurve && least < alike {
			continue
		}
		p, ok := d.fit(family)
		if !ok {
			continue
		}
		if missed := d.missed(family, &p); missed < least*simpler || missed < least && !out.OnCurve {
			if curve, ok := d.curve(family, &p); ok {
				out.Curve, out.OnCurve, least = curve, true, missed
			}
		}
	}
	return out, true
}

// Fit fits a curve of a family. It is false with fewer points than the family has parameters, for losses that do not change, and where the best
// curve has no finite parameters. O(points).
func (f *Fitter) Fit(points []Point, family Family) (Curve, bool) {
	if family >= families || !f.data.take(points, f.Decay) || len(f.data.x) < family.Parameters() || f.data.span == 0 {
		return Curve{}, false
	}
	p, ok := f.data.fit(family)
	if !ok {
		return Curve{}, false
	}
	return f.data.curve(family, &p)
}

// data is points, scaled so that the last step is 1 and the losses are from 0 to 1.
type data struct {
	x, y, w   []float64
	most      float64 // the last step
	low, span float64 // the least loss, and what is between it and the greatest

	columns [5][]float64 // of the problem of a step, the last one what is missing
	rows    [5][]float64 // scratch
	lengths [4]float64   // what columns were divided by
}

// take scales the newest points. It is false for fewer than two, and for losses so far apart that no number says how far.
func (d *data) take(points []Point, decay float64) bool {
	d.x, d.y, d.w = d.x[:0], d.y[:0], d.w[:0]
	high, reached := math.Inf(-1), math.Inf(1)
	d.low = math.Inf(1)
	for i := len(points) - 1; i >= 0 && len(d.x) < mostPoints; i-- {
		p := points[i]
		if !(p.Step >= 0 && p.Step < reached) || math.IsInf(p.Loss, 0) || math.IsNaN(p.Loss) {
			continue
		}
		reached = p.Step
		d.x, d.y = append(d.x, p.Step), append(d.y, p.Loss)
		d.low, high = min(d.low, p.Loss), max(high, p.Loss)
	}
	d.span = high - d.low
	n := len(d.x)
	if n < 2 || math.IsInf(d.span, 0) || math.IsInf(d.x[0], 0) {
		return false
	}
	d.most = d.x[0]
	if !(decay > 0 && decay <= 1) {
		decay = DefaultDecay
	}
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		d.x[i], d.x[j] = d.x[j], d.x[i]
		d.y[i], d.y[j] = d.y[j], d.y[i]
	}
	w := 1.0
	for range n {
		d.w = append(d.w, w)
		w *= decay
	}
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		d.w[i], d.w[j] = d.w[j], d.w[i]
	}
	for i := range d.x {
		d.x[i] /= d.most
		if d.span > 0 {
			d.y[i] = (d.y[i] - d.low) / d.span
		} else {
			d.y[i] = 0
		}
	}
	return true
}

// point is a point as it was told, but for rounding.
func (d *data) point(i int) Point { return Point{Step: d.x[i] * d.most, Loss: d.y[i]*d.span + d.low} }

// missed is by how much a curve misses the newest points, the root of the mean square.
func (d *data) missed(family Family, p *[4]float64) float64 {
	n := len(d.x)
	from, sum := max(n-newest, 0), 0.0
	for i := from; i < n; i++ {
		r := d.value(family, p, d.x[i]) - d.y[i]
		sum += r * r
	}
	return math.Sqrt(sum / float64(n-from))
}

// rounding is the part of all that the loss changed by which a curve with its parameters in the unit of the points may be off.
const rounding = 1e-6

// curve is a fitted curve in the unit of the points; false where that has no finite parameters, or they do not tell the curve.
func (d *data) curve(family Family, p *[4]float64) (Curve, bool) {
	c := Curve{Family: family}
	switch family {
	case SuperLinear:
		// A e^(-g (x - x₀)) + c
		log := -p[1] / d.most
		c.P = [4]float64{math.Exp(log), d.x[0]*d.most - math.Log(p[0]*d.span)/log, p[2]*d.span + d.low}
	case Optimus:
		c.P = [4]float64{p[0] / d.most / d.span, p[1] / d.span, p[2]*d.span + d.low}
	default:
		c.P = [4]float64{p[0] / d.most / d.most / d.span, p[1] / d.most / d.span, p[2] / d.span, p[3]*d.span + d.low}
	}
	for _, x := range c.P {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return c, false
		}
	}
	for _, i := range [...]int{0, len(d.x) - 1} {
		want := d.value(family, p, d.x[i])*d.span + d.low
		if !(math.Abs(c.At(d.x[i]*d.most)-want) <= rounding*d.span) {
			return c, false // what it falls by is lost beside its parameters
		}
	}
	return c, true
}
