package optim_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/optim"
)

func TestSolveLinear(t *testing.T) {
	inf := math.Inf(1)
	tests := map[string]struct {
		program optim.LinearProgram
		want    optim.LinearSolution
	}{
		"two rows": {
			optim.LinearProgram{
				Objective: []float64{3, 5},
				Rows: []optim.Row{
					{[]float64{1, 0}, optim.AtMost, 4},
					{[]float64{0, 2}, optim.AtMost, 12},
					{[]float64{3, 2}, optim.AtMost, 18},
				},
			},
			optim.LinearSolution{X: []float64{2, 6}, Value: 36, Duals: []float64{0, 1.5, 1}},
		},
		"all relations": {
			optim.LinearProgram{
				Objective: []float64{-2, -3},
				Rows: []optim.Row{
					{[]float64{1, 1}, optim.Equal, 10},
					{[]float64{1, 0}, optim.AtLeast, 3},
					{[]float64{0, 1}, optim.AtMost, 6},
				},
			},
			optim.LinearSolution{X: []float64{10, 0}, Value: -20, Duals: []float64{-2, 0, 0}},
		},
		"upper bounds": {
			optim.LinearProgram{
				Objective: []float64{2, 1, 1.5},
				Rows:      []optim.Row{{[]float64{1, 1, 1}, optim.AtMost, 5}},
				Upper:     []float64{2, 1, inf},
			},
			optim.LinearSolution{X: []float64{2, 0, 3}, Value: 8.5, Duals: []float64{1.5}},
		},
		"negative bound": {
			optim.LinearProgram{
				Objective: []float64{-1},
				Rows:      []optim.Row{{[]float64{-1}, optim.AtMost, -3}},
			},
			optim.LinearSolution{X: []float64{3}, Value: -3, Duals: []float64{1}},
		},
		"the same row twice": {
			optim.LinearProgram{
				Objective: []float64{1, 2},
				Rows: []optim.Row{
					{[]float64{1, 1}, optim.Equal, 2},
					{[]float64{2, 2}, optim.Equal, 4},
				},
			},
			optim.LinearSolution{X: []float64{0, 2}, Value: 4, Duals: []float64{2, 0}},
		},
		"infeasible": {
			optim.LinearProgram{
				Objective: []float64{1},
				Rows: []optim.Row{
					{[]float64{1}, optim.AtLeast, 3},
					{[]float64{1}, optim.AtMost, 2},
				},
			},
			optim.LinearSolution{Outcome: optim.Infeasible, Duals: []float64{-1, 1}},
		},
		"unbounded": {
			optim.LinearProgram{
				Objective: []float64{1, 1},
				Rows:      []optim.Row{{[]float64{1, -1}, optim.AtMost, 2}},
			},
			optim.LinearSolution{Outcome: optim.Unbounded, X: []float64{2, 0}, Value: 2, Ray: []float64{1, 1}},
		},
		"nothing": {optim.LinearProgram{}, optim.LinearSolution{}},
		"circles under the rule of the largest gain (Beale)": {
			optim.LinearProgram{
				Objective: []float64{0.75, -150, 0.02, -6},
				Rows: []optim.Row{
					{[]float64{0.25, -60, -0.04, 9}, optim.AtMost, 0},
					{[]float64{0.5, -90, -0.02, 3}, optim.AtMost, 0},
					{[]float64{0, 0, 1, 0}, optim.AtMost, 1},
				},
			},
			optim.LinearSolution{X: []float64{0.04, 0, 1, 0}, Value: 0.05, Duals: []float64{0, 1.5, 0.05}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := optim.SolveLinear(context.Background(), tc.program)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1e-9),
				cmpopts.IgnoreFields(optim.LinearSolution{}, "Pivots")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestSolveLinearRefuses(t *testing.T) {
	_, err := optim.SolveLinear(context.Background(), optim.LinearProgram{
		Objective: []float64{math.NaN()},
		Rows:      []optim.Row{{[]float64{1, 2}, 7, math.Inf(1)}},
		Upper:     []float64{-1},
		MaxPivots: -1,
	})
	want := `optim: objective of variable 0 is NaN, want 0 or 1e-50 to 1e50 or its negative
optim: row 0 has relation 7, want AtMost, Equal or AtLeast
optim: row 0 has 2 coefficients, want one for each of 1 variables
optim: bound of row 0 is +Inf, want 0 or 1e-50 to 1e50 or its negative
optim: upper bound of variable 0 is -1, want a number >= 0
optim: at most -1 pivots, want >= 0`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestSolveLinearStops(t *testing.T) {
	program := optim.LinearProgram{
		Objective: []float64{1, 1},
		Rows:      []optim.Row{{[]float64{1, 2}, optim.AtMost, 3}, {[]float64{2, 1}, optim.AtMost, 3}},
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := optim.SolveLinear(gone, program); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	program.MaxPivots = 1
	if _, err := optim.SolveLinear(context.Background(), program); !errors.Is(err, optim.ErrPivots) {
		t.Errorf("one pivot: got %v, want %v", err, optim.ErrPivots)
	}
}

// drawProgram draws a small program; whole numbers make it degenerate, redundant or infeasible now and then.
func drawProgram(t *rapid.T) optim.LinearProgram {
	number := rapid.Map(rapid.IntRange(-4, 6), func(v int) float64 { return float64(v) })
	if rapid.Bool().Draw(t, "smooth") {
		number = rapid.Map(rapid.IntRange(-400, 600), func(v int) float64 { return float64(v) / 97 })
	}
	n, m := rapid.IntRange(1, 4).Draw(t, "variables"), rapid.IntRange(0, 4).Draw(t, "rows")
	list := func(label string) []float64 { return rapid.SliceOfN(number, n, n).Draw(t, label) }
	p := optim.LinearProgram{Objective: list("objective")}
	for range m {
		p.Rows = append(p.Rows, optim.Row{
			list("row"), optim.Relation(rapid.IntRange(0, 2).Draw(t, "relation")), number.Draw(t, "bound"),
		})
	}
	if rapid.Bool().Draw(t, "bounded") {
		for range n {
			p.Upper = append(p.Upper, rapid.SampledFrom([]float64{0, 1, 2.5, math.Inf(1)}).Draw(t, "upper"))
		}
	}
	return p
}

// enumerate is the best corner of a program, found by trying every choice of as
// many tight constraints as there are variables.
func enumerate(p optim.LinearProgram) (best float64, some bool) {
	n := len(p.Objective)
	var normals [][]float64
	var bounds []float64
	tight := func(normal []float64, bound float64) {
		normals, bounds = append(normals, normal), append(bounds, bound)
	}
	for _, row := range p.Rows {
		tight(row.Coefficients, row.Bound)
	}
	for k := range n {
		unit := make([]float64, n)
		unit[k] = 1
		tight(unit, 0)
		if p.Upper != nil && !math.IsInf(p.Upper[k], 1) {
			tight(unit, p.Upper[k])
		}
	}
	best = math.Inf(-1)
	var choose func(from int, chosen []int)
	choose = func(from int, chosen []int) {
		if len(chosen) < n {
			for c := from; c < len(normals); c++ {
				choose(c+1, append(slices.Clip(chosen), c))
			}
			return
		}
		a, b := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
		for r, c := range chosen {
			a.SetRow(r, normals[c])
			b.SetVec(r, bounds[c])
		}
		var x mat.VecDense
		if x.SolveVec(a, b) == nil && missedBy(p, x.RawVector().Data) < 1e-7 {
			some = true
			best = max(best, mat.Dot(&x, mat.NewVecDense(n, p.Objective)))
		}
	}
	choose(0, nil)
	return best, some
}

// missedBy is by how much x breaks the rows and bounds of a program.
func missedBy(p optim.LinearProgram, x []float64) float64 {
	var worst float64
	for _, row := range p.Rows {
		over := -row.Bound
		for k, a := range row.Coefficients {
			over += a * x[k]
		}
		switch row.Relation {
		case optim.AtLeast:
			over = -over
		case optim.Equal:
			over = math.Abs(over)
		}
		worst = max(worst, over)
	}
	for k, v := range x {
		worst = max(worst, -v)
		if p.Upper != nil {
			worst = max(worst, v-p.Upper[k])
		}
	}
	return worst
}

// A solution keeps the rows, is the best corner, and its duals prove it; where
// there is none, the duals or the ray prove that.
func TestSolveLinearAgainstCorners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		got, err := optim.SolveLinear(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		best, some := enumerate(p)
		switch got.Outcome {
		case optim.Infeasible:
			if some {
				t.Fatalf("infeasible, but a corner is worth %v", best)
			}
			if b := p.Bound(make([]float64, len(p.Objective)), got.Duals); b >= 0 {
				t.Fatalf("the duals %v prove nothing: %v", got.Duals, b)
			}
		case optim.Unbounded:
			if m := missedBy(p, got.X); m > 1e-8 {
				t.Fatalf("x %v misses the rows by %v", got.X, m)
			}
			far := make([]float64, len(got.X))
			var gain float64
			for k, v := range got.X {
				far[k] = v + 1e3*got.Ray[k]
				gain += got.Ray[k] * p.Objective[k]
			}
			if m := missedBy(p, far); m > 1e-5 || gain <= 0 {
				t.Fatalf("the ray %v gains %v and misses the rows by %v", got.Ray, gain, m)
			}
		case optim.Optimal:
			if m := missedBy(p, got.X); m > 1e-8 {
				t.Fatalf("x %v misses the rows by %v", got.X, m)
			}
			if math.Abs(got.Value-best) > 1e-6*(1+math.Abs(best)) {
				t.Fatalf("value %v, best corner %v", got.Value, best)
			}
			if b := p.Bound(p.Objective, got.Duals); math.Abs(b-got.Value) > 1e-6*(1+math.Abs(best)) {
				t.Fatalf("value %v, bound %v by %v", got.Value, b, got.Duals)
			}
		}
	})
}

// gonumValue is the optimum of a program without upper bounds by gonum's simplex, which knows equations only.
func gonumValue(p optim.LinearProgram) (float64, error) {
	n, m := len(p.Objective), len(p.Rows)
	c, a, b := make([]float64, n+m), mat.NewDense(m, n+m, nil), make([]float64, m)
	for k, v := range p.Objective {
		c[k] = -v
	}
	for i, row := range p.Rows {
		sign := 1.0
		if row.Relation == optim.AtLeast {
			sign = -1
		}
		for k, v := range row.Coefficients {
			a.Set(i, k, sign*v)
		}
		a.Set(i, n+i, 1)
		b[i] = sign * row.Bound
	}
	value, _, err := lp.Simplex(c, a, b, 1e-10, nil)
	return -value, err
}

// Larger programs agree with gonum's simplex, where that finds an end.
func TestSolveLinearAgainstGonum(t *testing.T) {
	agreed := 0
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float64Range(0.1, 5)
		n, m := rapid.IntRange(2, 12).Draw(t, "variables"), rapid.IntRange(1, 10).Draw(t, "rows")
		p := optim.LinearProgram{Objective: rapid.SliceOfN(number, n, n).Draw(t, "objective")}
		for i := range m {
			row := optim.Row{rapid.SliceOfN(number, n, n).Draw(t, "row"), optim.AtMost, rapid.Float64Range(1, 10).Draw(t, "bound")}
			if i > 0 && rapid.Bool().Draw(t, "at least") {
				row.Relation, row.Bound = optim.AtLeast, row.Bound/20
			}
			p.Rows = append(p.Rows, row)
		}
		want, err := gonumValue(p)
		got, ourErr := optim.SolveLinear(context.Background(), p)
		if ourErr != nil {
			t.Fatal(ourErr)
		}
		switch {
		case errors.Is(err, lp.ErrInfeasible):
			if got.Outcome != optim.Infeasible {
				t.Fatalf("got %v, gonum finds it infeasible", got.Outcome)
			}
		case err == nil:
			agreed++
			if got.Outcome != optim.Optimal || math.Abs(got.Value-want) > 1e-6*(1+want) {
				t.Fatalf("got %v %v, gonum %v", got.Outcome, got.Value, want)
			}
		}
	})
	if agreed == 0 {
		t.Error("gonum solved none")
	}
}
