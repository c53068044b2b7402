package search_test

import (
	"testing"

	"github.com/quartet-sched/quartet/core/search"
)

// A trial after a thousand.
func BenchmarkTPE(b *testing.B) {
	space := mixedSpace()
	s := made(b, "tpe", nil, space, 1)
	for id := range 1000 {
		trials, err := s.Ask(b.Context(), 1)
		if err != nil {
			b.Fatal(err)
		}
		result := search.Result{Trial: id, Kind: search.Finished, AtSeconds: float64(id), Step: 1, Value: mixed(trials[0].Params)}
		if _, err := s.Tell(b.Context(), []search.Result{result}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := s.Ask(b.Context(), 1); err != nil {
			b.Fatal(err)
		}
	}
}
