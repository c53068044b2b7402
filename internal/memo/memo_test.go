package memo_test

import (
	"sync"
	"testing"

	"github.com/quartet-sched/quartet/internal/memo"
)

func TestOf(t *testing.T) {
	computed := 0
	squares := memo.New[int, int](3)
	square := func(n int) int {
		return squares.Of(n, func() int { computed++; return n * n })
	}
	for _, tc := range []struct{ n, computed int }{
		{2, 1}, {2, 1}, {3, 2}, {4, 3}, {3, 3}, // all are remembered
		{5, 4}, // one too many: the others are forgotten
		{5, 4}, {2, 5},
	} {
		if got := square(tc.n); got != tc.n*tc.n || computed != tc.computed {
			t.Fatalf("the square of %d is %d after %d computations, want %d after %d", tc.n, got, computed, tc.n*tc.n, tc.computed)
		}
	}
}

func TestOfSeveralAtATime(t *testing.T) {
	doubles := memo.New[int, int](7)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for n := range 1000 {
				if got := doubles.Of(n%20, func() int { return 2 * (n % 20) }); got != 2*(n%20) {
					t.Errorf("twice %d is %d", n%20, got)
				}
			}
		})
	}
	workers.Wait()
}
