package optim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// heaviest is the weight of the heaviest matching of the vertices in a set, by trying all.
func heaviest(weight [][]int64, left uint) int64 {
	if left == 0 {
		return 0
	}
	u := 0
	for left>>u&1 == 0 {
		u++
	}
	left &^= 1 << u
	best := heaviest(weight, left)
	for v := u + 1; v < len(weight); v++ {
		if left>>v&1 == 1 && weight[u][v] > 0 {
			best = max(best, weight[u][v]+heaviest(weight, left&^(1<<v)))
		}
	}
	return best
}

// checkPairing holds a matching to its weights and its proof.
func checkPairing(t interface{ Errorf(string, ...any) }, weight func(u, v int) int64, mates []int32, total int64, proof PairingProof) {
	sum := int64(0)
	for u, v := range mates {
		switch {
		case v == -1:
		case int(v) == u || mates[v] != int32(u):
			t.Errorf("%d has mate %d, who has %d", u, v, mates[v])
		case u < int(v):
			if w := weight(u, int(v)); w <= 0 {
				t.Errorf("%d and %d are a pair of weight %d", u, v, w)
			} else {
				sum += w
			}
		}
	}
	if sum != total {
		t.Errorf("total %d, the pairs add up to %d", total, sum)
	}
	if bound := proof.Bound(); bound != float64(total) {
		t.Errorf("bound %v of a matching of %d", bound, total)
	}
	for _, set := range proof.Sets {
		if len(set.Vertices)%2 == 0 || set.Price < 0 {
			t.Errorf("a set of %d vertices has price %d", len(set.Vertices), set.Price)
		}
	}
	for u := range mates {
		if proof.Prices[u] < 0 {
			t.Errorf("price %d of %d", proof.Prices[u], u)
		}
		for v := u + 1; v < len(mates); v++ {
			price := proof.Prices[u] + proof.Prices[v]
			for _, set := range proof.Sets {
				if slices.Contains(set.Vertices, int32(u)) && slices.Contains(set.Vertices, int32(v)) {
					price += set.Price
				}
			}
			if w := weight(u, v); price < 4*w {
				t.Errorf("%d and %d cost %d, less than four times their weight %d", u, v, price, w)
			}
		}
	}
}

func TestPairingIsTheHeaviest(t *testing.T) {
	var m Pairing // reused
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 10).Draw(t, "vertices")
		top := rapid.SampledFrom([]int64{1, 2, 5, 30, 1e15}).Draw(t, "top")
		weight := make([][]int64, n)
		for u := range weight {
			weight[u] = make([]int64, n)
			for v := range u {
				weight[u][v] = rapid.Int64Range(-top/3, top).Draw(t, "weight")
				weight[v][u] = weight[u][v]
			}
		}
		of := func(u, v int) int64 { return weight[u][v] }
		mates, total := m.Solve(n, of)
		if want := heaviest(weight, 1<<n-1); total != want {
			t.Errorf("total %d, want %d", total, want)
		}
		checkPairing(t, of, mates, total, m.Prove())
	})
}

// Greater graphs, whose blossoms hold blossoms, are held to the proof alone.
func TestPairingProvesItself(t *testing.T) {
	var m Pairing
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(11, 60).Draw(t, "vertices")
		top, seed := rapid.SampledFrom([]uint64{1, 3, 10, 1000}).Draw(t, "top"), rapid.Uint64().Draw(t, "seed")
		sparse := rapid.Uint64Range(1, 8).Draw(t, "sparse")
		of := func(u, v int) int64 {
			x := (seed ^ uint64(u)*0x9E3779B97F4A7C15 ^ uint64(v)*0xC2B2AE3D27D4EB4F) * 0xD6E8FEB86659FD93
			x ^= x >> 32
			if x%sparse != 0 {
				return 0
			}
			return int64(x >> 20 % (top + 1))
		}
		mates, total := m.Solve(n, of)
		checkPairing(t, of, mates, total, m.Prove())
	})
}

// Vertices that are alike are paired as well as others, whether few or many.
func TestPairingOfVerticesThatAreAlike(t *testing.T) {
	var m Pairing
	rapid.Check(t, func(t *rapid.T) {
		classes := rapid.IntRange(1, 9).Draw(t, "classes")
		n := rapid.SampledFrom([]int{0, 1, 2, 7, 30, fewVertices, fewVertices + 1, 81, 118, 140}).Draw(t, "vertices")
		class := rapid.SliceOfN(rapid.Int32Range(0, int32(classes-1)), n, n).Draw(t, "class")
		top := rapid.SampledFrom([]int64{1, 3, 40, 1e12}).Draw(t, "top")
		weight := make([]int64, classes*classes)
		for c := range classes {
			for d := c; d < classes; d++ {
				w := rapid.Int64Range(-top/3, top).Draw(t, "weight")
				weight[c*classes+d], weight[d*classes+c] = w, w
			}
		}
		mates, total := m.SolveAlike(class, classes, func(c, d int) int64 { return weight[c*classes+d] })
		of := func(u, v int) int64 { return weight[int(class[u])*classes+int(class[v])] }
		checkPairing(t, of, mates, total, m.Prove())
	})
}

func BenchmarkPairing(b *testing.B) {
	class := make([]int32, 256)
	for v := range class {
		class[v] = int32(v*v+v/7) % 8
	}
	weight := func(c, d int) int64 { return int64(1e12) / int64(17+(c*d)%13+c+d) }
	var m Pairing
	b.Run("each", func(b *testing.B) {
		for b.Loop() {
			m.Solve(len(class), func(u, v int) int64 {
				c, d := class[u], class[v]
				return weight(int(min(c, d)), int(max(c, d)))
			})
		}
	})
	b.Run("alike", func(b *testing.B) {
		for b.Loop() {
			m.SolveAlike(class, 8, weight)
		}
	})
}
