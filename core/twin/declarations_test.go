package twin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
)

// surveyOf is what some jobs tell.
func surveyOf(list ...ending) *survey {
	s := newSurvey()
	s.drift = driftOf(list)
	for i := range list {
		s.add(&list[i])
	}
	s.sort()
	return s
}

// What is believed of a declaration is a mixture: of those that declared as much, of the tenant, of all, of who is right, of who is not, and of the application.
func TestOpinionsOnADeclaration(t *testing.T) {
	// Two jobs declared 100 and did 200 and 400; another goes on.
	known := []ending{
		{application: "vision", tenant: "ann", declared: 100, work: 200, all: true},
		{application: "vision", tenant: "ann", declared: 100, work: 400, all: true},
		{application: "speech", tenant: "bob", declared: 100, work: 50},
	}
	kept := func(o opinion) string {
		kind := "of ends"
		if l, ok := o.distribution.(logNormal); ok {
			kind = fmt.Sprintf("log-normal %v, %v", l.median, l.sigma)
		}
		return fmt.Sprintf("%s: weight %.3f, done %.3f of %.1f", kind, o.weight, o.done, o.unit)
	}
	// Logarithms of 2 and 4 have a variance of 0.1201; with one more, which is off by a factor of e, 0.4134. So have those of 200 and 400.
	for name, tc := range map[string]struct {
		known []ending
		job   core.JobSpec
		done  float64
		want  []string
	}{
		"nobody is known": {nil, core.JobSpec{TotalWork: 50}, 10, []string{
			"log-normal 1, 0: weight 1.000, done 0.200 of 50.0", "log-normal 1, 0.7: weight 1.000, done 0.200 of 50.0",
		}},
		"of no tenant and no application": {known, core.JobSpec{TotalWork: 100}, 20, []string{
			"of ends: weight 1.997, done 0.200 of 100.0", "of ends: weight 2.000, done 0.200 of 100.0",
			"log-normal 1, 0: weight 1.000, done 0.200 of 100.0", "log-normal 1, 0.7: weight 1.000, done 0.200 of 100.0",
		}},
		"of a tenant who is known": {known, core.JobSpec{TotalWork: 100, Tenant: "ann"}, 20, []string{
			"of ends: weight 1.997, done 0.200 of 100.0", "of ends: weight 2.000, done 0.200 of 100.0", "of ends: weight 2.000, done 0.200 of 100.0",
			"log-normal 1, 0: weight 1.000, done 0.200 of 100.0", "log-normal 1, 0.7: weight 1.000, done 0.200 of 100.0",
		}},
		"of a tenant of whom nobody ended": {known, core.JobSpec{TotalWork: 100, Tenant: "bob"}, 20, []string{
			"of ends: weight 1.997, done 0.200 of 100.0", "of ends: weight 2.000, done 0.200 of 100.0",
			"log-normal 1, 0: weight 1.000, done 0.200 of 100.0", "log-normal 1, 0.7: weight 1.000, done 0.200 of 100.0",
		}},
		// Declarations of 100 are estimated a twentieth of a width away.
		// As much as all others together: declarations are as far off as jobs of the application differ.
		"of an application": {known, core.JobSpec{TotalWork: 100, Application: "vision"}, 20, []string{
			"of ends: weight 1.997, done 0.200 of 100.0", "of ends: weight 2.000, done 0.200 of 100.0",
			"log-normal 1, 0: weight 1.000, done 0.200 of 100.0", "log-normal 1, 0.7: weight 1.000, done 0.200 of 100.0",
			"of ends: weight 5.997, done 20.000 of 1.0",
		}},
		"of an application of which nobody ended": {known, core.JobSpec{TotalWork: 100, Application: "speech"}, 20, []string{
			"of ends: weight 1.997, done 0.200 of 100.0", "of ends: weight 2.000, done 0.200 of 100.0",
			"log-normal 1, 0: weight 1.000, done 0.200 of 100.0", "log-normal 1, 0.7: weight 1.000, done 0.200 of 100.0",
		}},
		"far from all declarations": {known, core.JobSpec{TotalWork: 1000}, 20, []string{
			"of ends: weight 2.000, done 0.020 of 1000.0",
			"log-normal 1, 0: weight 1.000, done 0.020 of 1000.0", "log-normal 1, 0.7: weight 1.000, done 0.020 of 1000.0",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &estimates{survey: surveyOf(tc.known...), made: map[group]*lengths{}}
			var got []string
			for _, o := range e.declared(nil, &tc.job, tc.done) {
				got = append(got, kept(o))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("opinions (-want +got):\n%s", diff)
			}
		})
	}
}

// Those that declared nearly as much count for nearly as much: a width away for e^(-1/2), and three widths away for nothing.
func TestLikenessOfDeclarations(t *testing.T) {
	const width = leastLikeness // of jobs that all declared the same
	for name, tc := range map[string]struct{ away, want float64 }{
		"as much":            {0, 3},
		"a width more":       {1, 3 * math.Exp(-0.5)},
		"a width less":       {-1, 3 * math.Exp(-0.5)},
		"two widths more":    {2, 3 * math.Exp(-2)},
		"three widths more":  {3, 3 * math.Exp(-4.5)},
		"four widths more":   {4, 0},
		"half a width, less": {-0.5, 3 * math.Exp(-0.125)}, // places are half a width apart
		"to the next place":  {0.74, 3 * math.Exp(-0.125)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSurvey()
			for range 3 {
				s.add(&ending{declared: 1, work: 2, all: true}) // of which the logarithm is 0
			}
			s.add(&ending{declared: 1, work: 1})
			s.sort()
			for _, random := range []func(group) *rand.Rand{nil, func(g group) *rand.Rand { return core.NewRand(1, g.String()) }} {
				e := &estimates{survey: s, made: map[group]*lengths{}, random: random}
				of := e.near(math.Exp(tc.away * width))
				switch {
				case (of == nil) != (tc.want == 0):
					t.Errorf("it is known: %v", of != nil)
				case of == nil:
				case math.Abs(of.weight-tc.want) > 1e-9:
					t.Errorf("weight %v, want %v", of.weight, tc.want)
				case random == nil && math.Abs(of.survival(1.5)-1) > 1e-9: // who goes on was not watched for so long
					t.Errorf("%v do more than 1.5 times as much", of.survival(1.5))
				}
				if again := e.near(math.Exp(tc.away * width)); again != of {
					t.Error("it is estimated again")
				}
			}
		})
	}
}

// The width is 1.06 σ n^(-1/5) of those that ended.
func TestWidthOfDeclarations(t *testing.T) {
	e := math.E
	for name, tc := range map[string]struct {
		list []ending
		want float64
	}{
		"nobody":             {nil, leastLikeness},
		"one":                {[]ending{{declared: 5, work: 1, all: true}}, leastLikeness},
		"two":                {[]ending{{declared: 1, work: 1, all: true}, {declared: e * e, work: 1, all: true}}, 1.06 * math.Pow(2, -0.2)},
		"and one that runs":  {[]ending{{declared: 1, work: 1, all: true}, {declared: e * e, work: 1, all: true}, {declared: 1e9, work: 1}}, 1.06 * math.Pow(2, -0.2)},
		"three, and no work": {[]ending{{declared: 1, work: 1, all: true}, {declared: e, work: 1, all: true}, {declared: e * e, work: 1, all: true}, {declared: 9}}, 1.06 * math.Sqrt(2./3) * math.Pow(3, -0.2)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := surveyOf(tc.list...).declarations.width; math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// The drift is the regression of how far off declarations are on how large they are, as if ten more had shown none.
func TestDriftOfDeclarations(t *testing.T) {
	e := math.E
	for name, tc := range map[string]struct {
		list []ending
		want drift
		of   map[float64]float64
	}{
		"nobody": {nil, drift{}, map[float64]float64{7: 7}},
		"one":    {[]ending{{declared: 1, work: 5, all: true}}, drift{}, map[float64]float64{7: 7}},
		// The sum of squares of logarithms about their mean, 1, is 2, and that of products -2.
		"large ones are too large": {
			[]ending{{declared: 1, work: e, all: true}, {declared: e * e, work: e, all: true}},
			drift{-2. / (2 + noDrift), 1},
			map[float64]float64{e: e, e * e: e * e * math.Exp(-2./12), 1: math.Exp(2. / 12)},
		},
		"small ones are too large": {[]ending{{declared: 1, work: 1, all: true}, {declared: e * e, work: e * e * e, all: true}}, drift{0, 1}, map[float64]float64{9: 9}},
		"those that run tell nothing": {
			[]ending{{declared: 1, work: e, all: true}, {declared: e * e, work: e, all: true}, {declared: 1e6, work: 1}, {work: 5, all: true}, {declared: 3, all: true}},
			drift{-2. / (2 + noDrift), 1},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := driftOf(tc.list)
			near := cmp.Options{cmp.AllowUnexported(drift{}), cmpopts.EquateApprox(0, 1e-12)}
			if diff := cmp.Diff(tc.want, got, near); diff != "" {
				t.Errorf("drift (-want +got):\n%s", diff)
			}
			for declared, want := range tc.of {
				if got := got.of(declared); math.Abs(got-want) > 1e-9 {
					t.Errorf("%v stand for %v, want %v", declared, got, want)
				}
			}
		})
	}
}

// A draw judges declarations as if others had been watched, until so many were that it is of no account.
func TestDrawsOfDeclarations(t *testing.T) {
	for name, tc := range map[string]struct {
		jobs    int
		differs bool
	}{"four": {4, true}, "99": {99, true}, "100": {100, false}} {
		t.Run(name, func(t *testing.T) {
			s := newSurvey()
			for i := range tc.jobs {
				s.add(&ending{declared: 1, work: float64(1 + i), all: true})
			}
			s.sort()
			expected := &estimates{survey: s, made: map[group]*lengths{}}
			draw := &estimates{survey: s, made: map[group]*lengths{}, random: func(g group) *rand.Rand { return core.NewRand(1, g.String()) }}
			want, got := expected.near(1).survival(1.5), draw.near(1).survival(1.5)
			if math.Abs(want-(1-1/float64(tc.jobs))) > 1e-9 {
				t.Errorf("%v do more than 1.5 times as much", want)
			}
			if (got != want) != tc.differs {
				t.Errorf("as drawn %v do more than 1.5 times as much, as expected %v", got, want)
			}
		})
	}
}
