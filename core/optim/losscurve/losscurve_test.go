package losscurve

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// sample is the curve at some steps from the first on.
func sample(c Curve, first, count, stride int) []Point {
	var points []Point
	for i := range count {
		k := float64(first + i*stride)
		points = append(points, Point{k, c.At(k)})
	}
	return points
}

// Fitted to points that lie on it, a curve comes back.
func TestExactCurvesComeBack(t *testing.T) {
	between := rapid.Float64Range
	draw := map[Family]func(t *rapid.T) Curve{
		SubLinear: func(t *rapid.T) Curve {
			return Curve{SubLinear, [4]float64{between(0.001, 0.1).Draw(t, "a"), between(0, 1).Draw(t, "b"), between(0.1, 2).Draw(t, "c"), between(-1, 3).Draw(t, "d")}}
		},
		SuperLinear: func(t *rapid.T) Curve {
			return Curve{SuperLinear, [4]float64{between(0.3, 0.97).Draw(t, "mu"), between(-5, 5).Draw(t, "b"), between(-1, 3).Draw(t, "c")}}
		},
		Optimus: func(t *rapid.T) Curve {
			return Curve{Optimus, [4]float64{between(0.01, 2).Draw(t, "b0"), between(0.1, 2).Draw(t, "b1"), between(-1, 3).Draw(t, "b2")}}
		},
	}
	for family, drawn := range draw {
		t.Run(family.String(), func(t *testing.T) {
			var f Fitter
			rapid.Check(t, func(t *rapid.T) {
				want := drawn(t)
				points := sample(want, rapid.IntRange(0, 3).Draw(t, "first"), rapid.IntRange(12, 60).Draw(t, "points"), 1)
				f.Decay = rapid.SampledFrom([]float64{0, 0.8, 0.95, 1}).Draw(t, "decay")
				got, ok := f.Fit(points, family)
				if !ok {
					t.Fatalf("no fit of %v", want)
				}
				for i, w := range want.P {
					if math.Abs(got.P[i]-w) > 1e-6*max(1, math.Abs(w)) {
						t.Fatalf("parameters %v, want %v", got.P, want.P)
					}
				}
			})
		})
	}
}

func losses(values ...float64) []Point {
	var points []Point
	for i, v := range values {
		points = append(points, Point{float64(i + 1), v})
	}
	return points
}

func TestForecast(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := map[string]struct {
		points []Point
		at     float64
		want   float64 // NaN: there is no forecast
		curve  bool
	}{
		"nothing":                {nil, 5, nan, false},
		"one point":              {losses(3), 5, nan, false},
		"a point and nonsense":   {[]Point{{1, 3}, {2, nan}, {3, inf}, {-1, 2}, {nan, 2}}, 5, nan, false},
		"two points: the slope":  {losses(3, 2), 4, 0, false},
		"two points that rise":   {losses(2, 3), 4, 3, false},
		"constant":               {losses(2, 2, 2, 2), 9, 2, false},
		"before the last":        {losses(3, 2), 1, 2, false},
		"at no step":             {losses(3, 2), nan, 2, false},
		"halves":                 {losses(8, 4, 2, 1), 5, 0.5, true},                                // 2^(4-k)
		"1/k":                    {losses(1, 1./2, 1./3, 1./4, 1./5), 10, 0.1, true},                // Optimus with b₀ = 1
		"1/k²":                   {losses(1, 1./4, 1./9, 1./16, 1./25, 1./36), 10, 0.01, true},      // sub-linear with a = 1
		"an accuracy":            {losses(-0.5, -0.75, -0.875, -0.9375), 5, -0.96875, true},         // -1 + 2^-k
		"rises at the end":       {losses(8, 4, 2, 1, 1.1), 6, 1.04, true},                          // near, checked below
		"bends down: the slope":  {losses(10, 9.9, 9.7, 9.3, 8.5, 6.9, 3.7), 8, 0.5, false},         // falls by 3.2
		"a step told again":      {[]Point{{1, 8}, {2, 100}, {2, 4}, {3, 2}, {4, 1}}, 5, 0.5, true}, // of the step 2 the later one counts
		"falls without a bottom": {[]Point{{0, math.MaxFloat64 / 2}, {1, -math.MaxFloat64 / 4}}, 9, -math.MaxFloat64, false},
		"too far apart":          {[]Point{{0, math.MaxFloat64}, {1, -math.MaxFloat64}}, 9, nan, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var f Fitter
			got, ok := f.Forecast(tc.points)
			if !ok {
				if !math.IsNaN(tc.want) {
					t.Fatalf("no forecast, want %v", tc.want)
				}
				return
			}
			if name == "rises at the end" {
				if at := got.At(tc.at); at > 1.1 || at < 0.9 {
					t.Errorf("%v at step %v, want from 0.9 to the last loss, 1.1", at, tc.at)
				}
				return
			}
			if at := got.At(tc.at); got.OnCurve != tc.curve || math.Abs(at-tc.want) > 1e-6*math.Max(1, math.Abs(tc.want)) {
				t.Errorf("%v at step %v, on a curve %t, want %v, %t", at, tc.at, got.OnCurve, tc.want, tc.curve)
			}
		})
	}
}

// Of its own family an exact curve is forecast as it goes on, whichever family was chosen.
func TestExactCurvesGoOn(t *testing.T) {
	between := rapid.Float64Range
	rapid.Check(t, func(t *rapid.T) {
		c := Curve{Family: Optimus, P: [4]float64{between(0.05, 2).Draw(t, "b0"), between(0.1, 2).Draw(t, "b1"), between(-1, 3).Draw(t, "b2")}}
		if rapid.Bool().Draw(t, "linear") {
			c = Curve{SuperLinear, [4]float64{between(0.3, 0.9).Draw(t, "mu"), between(-3, 3).Draw(t, "b"), between(-1, 3).Draw(t, "c")}}
		}
		points := sample(c, 1, rapid.IntRange(8, 40).Draw(t, "points"), 1)
		var f Fitter
		got, ok := f.Forecast(points)
		if !ok || !got.OnCurve {
			t.Fatalf("no curve for %v", c)
		}
		last := points[len(points)-1].Step
		span := points[0].Loss - points[len(points)-1].Loss
		for _, more := range []float64{1, 5, 20} {
			if at, want := got.At(last+more), c.At(last+more); math.Abs(at-want) > 1e-4*span {
				t.Errorf("%v after %v more, want %v by %v", at, more, want, c)
			}
		}
	})
}

// What is expected falls, never rises above the last loss, and is a number, whatever was told. The same points give the same forecast, whatever
// was fitted before.
func TestForecastsAreSane(t *testing.T) {
	value := rapid.OneOf(rapid.Float64Range(0, 3), rapid.Float64(), rapid.SampledFrom([]float64{0, 1, 1e300, -1e300, 1e-300, math.NaN(), math.Inf(1), math.Inf(-1)}))
	step := rapid.OneOf(rapid.Float64Range(0, 5), rapid.Float64(), rapid.SampledFrom([]float64{1, 1e300, math.NaN(), math.Inf(1)}))
	var used Fitter
	rapid.Check(t, func(t *rapid.T) {
		var points []Point
		at := 0.0
		for range rapid.IntRange(0, 200).Draw(t, "points") {
			at += math.Abs(step.Draw(t, "step"))
			points = append(points, Point{at, value.Draw(t, "value")})
		}
		got, ok := used.Forecast(points)
		fresh, freshOK := new(Fitter).Forecast(points)
		if got != fresh || ok != freshOK {
			t.Fatalf("%v, %t by a fitter that was used, %v, %t by a new one", got, ok, fresh, freshOK)
		}
		if !ok {
			return
		}
		before := got.Last.Loss
		for _, more := range []float64{0, 1e-9, 1, 10, 1e6, 1e300, math.MaxFloat64} {
			loss := got.At(got.Last.Step + more)
			if math.IsNaN(loss) || math.IsInf(loss, 0) || loss > got.Last.Loss {
				t.Fatalf("%v after %v more, last %v: %+v", loss, more, got.Last, got)
			}
			if loss > before+1e-9*math.Max(1, math.Abs(before)) {
				t.Fatalf("rises from %v to %v: %+v", before, loss, got)
			}
			before = loss
		}
		for family := range families {
			if c, ok := used.Fit(points, family); ok {
				for _, p := range c.P {
					if math.IsNaN(p) || math.IsInf(p, 0) {
						t.Fatalf("parameters %v", c)
					}
				}
			}
		}
	})
}

// A unit of the loss, or of the step, changes nothing but the unit of the forecast.
func TestUnitsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 30).Draw(t, "points")
		var points, scaled []Point
		for i := range n {
			p := Point{float64(i + 1), 1/float64(i+1) + 0.03*rapid.Float64Range(0, 1).Draw(t, "noise")}
			points, scaled = append(points, p), append(scaled, Point{1024 * p.Step, 4096 * p.Loss})
		}
		a, _ := new(Fitter).Forecast(points)
		b, _ := new(Fitter).Forecast(scaled)
		if x, y := a.At(float64(n+5)), b.At(1024*float64(n+5)); a.OnCurve != b.OnCurve || math.Abs(x-y/4096) > 1e-9 {
			t.Errorf("%v and %v, of %+v and %+v", x, y/4096, a, b)
		}
	})
}

func BenchmarkForecast(b *testing.B) {
	points := sample(Curve{SuperLinear, [4]float64{0.9, 2, 0.4}}, 1, 30, 1)
	for i := range points {
		points[i].Loss += 0.01 * math.Sin(float64(i*i))
	}
	var f Fitter
	b.ReportAllocs()
	for b.Loop() {
		f.Forecast(points)
	}
}

// An infinite step is the largest that there is.
func TestForecastAtAnInfiniteStep(t *testing.T) {
	f := Forecast{Curve: Curve{Family: SubLinear, P: [4]float64{0, 1, 1, 0}}, OnCurve: true, Last: Point{Step: 1, Loss: 0.5}, Slope: -0.1}
	if got, want := f.At(math.Inf(1)), f.At(math.MaxFloat64); got != want || got > 1e-300 {
		t.Errorf("%v at an infinite step, %v at the largest; want 0 at both", got, want)
	}
}
