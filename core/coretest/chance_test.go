package coretest

import (
	"math/bits"
	"slices"
	"strings"
	"testing"
)

func TestStreamDrawsWhatItMay(t *testing.T) {
	whole, few := map[int]int{}, 0
	orders := map[[3]int]int{}
	inOne := func(t *T) {
		whole[intRange(-1, 2).Draw(t, "number")]++
		if r := float64Range(0.5, 2).Draw(t, "real"); r < 0.5 || r > 2 {
			t.Fatalf("drew %v from 0.5 to 2", r)
		}
		values := []int{1, 2, 3}
		orders[[3]int(permutation(values).Draw(t, "order"))]++
		if !slices.Equal(values, []int{1, 2, 3}) {
			t.Fatalf("the values that an order was drawn of are now %v", values)
		}
		if n := len(sliceOfN(anyBool(), 2, 4).Draw(t, "list")); n < 2 || n > 4 {
			t.Fatalf("drew %d values, want 2 to 4", n)
		}
		if bits.OnesCount64(anyBits().Draw(t, "bits")) < 8 {
			few++
		}
	}
	if fault, seed := (Effort{Worlds: 2000, Seed: 1}).explore(inOne); fault != "" {
		t.Fatalf("seed %d: %s", seed, fault)
	}
	for n := -1; n <= 2; n++ {
		if whole[n] < 400 || whole[n] > 600 {
			t.Errorf("drew %d %d times of 2000, want about 500", n, whole[n])
		}
	}
	if len(whole) != 4 || len(orders) != 6 {
		t.Errorf("drew %d numbers and %d orders, want 4 and 6", len(whole), len(orders))
	}
	if few < 500 || few > 1500 {
		t.Errorf("drew few bits %d times of 2000, want about half", few)
	}
}

func TestExploreRepeatsASeed(t *testing.T) {
	var drawn []int
	inOne := func(t *T) {
		drawn = append(drawn, intRange(0, 1<<30).Draw(t, "number"))
		if drawn[len(drawn)-1]%7 == 0 {
			t.Errorf("seven")
		}
	}
	fault, seed := Effort{Worlds: 1000, Seed: 5}.explore(inOne)
	if fault != "seven" || seed < 5 || len(drawn) != int(seed-5)+2 { // once more, to see whether it repeats
		t.Fatalf("fault %q, seed %d after %d worlds", fault, seed, len(drawn))
	}
	want := drawn[len(drawn)-1]
	if fault, again := (Effort{Worlds: 1, Seed: seed}).explore(inOne); fault != "seven" || again != seed || drawn[len(drawn)-1] != want {
		t.Errorf("seed %d gave %q and %d, before %d", again, fault, drawn[len(drawn)-1], want)
	}
}

func TestDiff(t *testing.T) {
	type part struct{ A, B int }
	type all struct {
		Name  string
		parts []*part
		F     float64
	}
	a := all{"x", []*part{{1, 2}, {3, 4}}, unknown}
	b := all{"y", []*part{{1, 5}}, unknown}
	if want, got := "- .Name: x\n+ .Name: y\n- .parts[0].B: 2\n+ .parts[0].B: 5\n- .parts[1]: {A:3 B:4}\n", diff(a, b); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := diff(a, a); got != "" {
		t.Errorf("a value differs from itself:\n%s", got)
	}
	if got := diff(make([]int, 50), make([]int, 10)); strings.Count(got, "\n") != mostDifferences+1 || !strings.HasSuffix(got, "and 20 more\n") {
		t.Errorf("got\n%s", got)
	}
}
