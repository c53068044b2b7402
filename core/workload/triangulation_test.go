package workload

import (
	"math"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// Interpolation over any triangulation reproduces an affine function exactly, inside only.
func TestTriangulationReproducesAffineFunctions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var low, high vector
		var slope [4]float64
		for axis := range low {
			low[axis] = rapid.Int64Range(0, 50).Draw(t, "low")
			high[axis] = low[axis] + rapid.Int64Range(1, 50).Draw(t, "size")
			slope[axis] = rapid.Float64Range(-3, 3).Draw(t, "slope")
		}
		affine := func(p vector) float64 {
			return 1000 + slope[0]*float64(p[0]) + slope[1]*float64(p[1]) + slope[2]*float64(p[2])
		}
		var points []measuredPoint
		for corner := range 8 {
			at := low
			for axis := range at {
				if corner&(1<<axis) != 0 {
					at[axis] = high[axis]
				}
			}
			points = append(points, measuredPoint{at: at, time: stepTime{step: affine(at), sync: 1}})
		}
		box := newTriangulation(points, [][4]int{
			{0, 1, 2, 3}, {0, 1, 3, 7}, {0, 1, 5, 7}, {0, 2, 3, 7}, {0, 2, 6, 7}, {0, 4, 5, 7}, {0, 4, 6, 7},
		})
		var p vector
		inside := true
		for axis := range p {
			p[axis] = rapid.Int64Range(low[axis]-2, high[axis]+2).Draw(t, "at")
			inside = inside && low[axis] <= p[axis] && p[axis] <= high[axis]
		}
		for range 2 { // found, then known
			got, ok := box.at(p)
			if ok != inside {
				t.Fatalf("%v inside %v..%v is %v", p, low, high, ok)
			}
			if inside && (math.Abs(got.step-affine(p)) > 1e-9 || math.Abs(got.sync-1) > 1e-12) {
				t.Errorf("at %v: %+v, want %v", p, got, affine(p))
			}
		}
	})
}

// A division need not be of Delaunay, nor in one piece: where the walk leads nowhere, the first in file order decides.
func TestTriangulationOfOverlappingTetrahedra(t *testing.T) {
	division := newTriangulation([]measuredPoint{
		{vector{0, 0, 0}, stepTime{1, 0}},
		{vector{0, 2, 0}, stepTime{1, 0}},
		{vector{0, 0, 2}, stepTime{1, 0}},
		{vector{2, 0, 0}, stepTime{5, 0}},
		{vector{0, 2, 2}, stepTime{9, 0}},
		{vector{8, 8, 8}, stepTime{3, 0}},
		{vector{8, 8, 9}, stepTime{3, 0}},
		{vector{8, 9, 8}, stepTime{3, 0}},
		{vector{9, 8, 8}, stepTime{3, 0}},
	}, [][4]int{{0, 1, 2, 3}, {0, 1, 4, 3}, {5, 6, 7, 8}, {4, 4, 4, 4}, {0, 0, 1, 2}})
	cases := map[string]struct {
		at         vector
		want       float64
		wantInside bool
	}{
		"in both":         {vector{0, 1, 1}, 1, true},
		"in the second":   {vector{0, 2, 2}, 9, true},
		"in one far away": {vector{8, 8, 9}, 3, true},
		"in none":         {vector{0, 1, 2}, 0, false},
		"far from all":    {vector{math.MaxInt64, math.MinInt64, 0}, 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, inside := division.at(tc.at); inside != tc.wantInside || got.step != tc.want {
				t.Errorf("%v, %v; want %v, %v", got.step, inside, tc.want, tc.wantInside)
			}
		})
	}
}

func TestEmptyTriangulation(t *testing.T) {
	for name, points := range map[string][]measuredPoint{"no points": nil, "one point": {{at: vector{}}}} {
		if got, inside := newTriangulation(points, nil).at(vector{}); inside {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The files hold a made-up grid, its division by SciPy 1.10, and SciPy's values at the whole points where tetrahedra
// disagree. At least a third of them come out otherwise when the first tetrahedron in file order decides, when the walk
// begins at the first, or when it gives way to a search at once.
func TestTriangulationFindsLikeSciPy(t *testing.T) {
	division := newTriangulation(readPoints(t, "points.csv"), readCorners(t, "simplices.csv"))
	lookups := readPoints(t, "times.csv")
	if len(lookups) == 0 {
		t.Fatal("nothing to look up")
	}
	for _, want := range lookups {
		got, inside := division.at(want.at)
		if !inside || math.Abs(got.step-want.time.step) > 1e-12 || math.Abs(got.sync-want.time.sync) > 1e-12 {
			t.Errorf("at %v: %+v, %v; want %+v", want.at, got, inside, want.time)
		}
	}
}

func readPoints(t *testing.T, file string) []measuredPoint {
	var points []measuredPoint
	readLookup(t, file, pointColumns, func(rows *table) {
		for rows.next() {
			points = append(points, measuredPoint{
				at:   vector{rows.coordinate(pointNodes), rows.coordinate(pointReplicas), rows.coordinate(pointBatch)},
				time: rows.stepTime(pointStep, pointSync),
			})
		}
	})
	return points
}

func readCorners(t *testing.T, file string) [][4]int {
	var division [][4]int
	readLookup(t, file, tetrahedronColumns, func(rows *table) {
		for rows.next() {
			var corners [4]int
			for i := range corners {
				corners[i] = int(rows.coordinate(i))
			}
			division = append(division, corners)
		}
	})
	return division
}

func readLookup(t *testing.T, file string, cols columns, readRows func(*table)) {
	t.Helper()
	var reader profileReader
	reader.open(t.Context(), filepath.Join("testdata", "lookup", file), cols, readRows)
	if err := reader.problems.Err(); err != nil {
		t.Fatal(err)
	}
}
