package coretest

import (
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// TB is the part of a test that the suites use.
type TB interface {
	// Helper marks the function that calls it as a helper: failures are reported where that is called.
	Helper()
	// Errorf reports a failure; the test goes on.
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any) // ends the test
}

// Chance draws what a random world leaves open. Its argument what names the purpose of a draw: property tests that shrink print it.
type Chance interface {
	// Whole draws a whole number from least to most, both included.
	Whole(what string, least, most int) int
	// Real draws a number from least to most.
	Real(what string, least, most float64) float64
	// Bits draws 64 bits.
	Bits(what string) uint64
}

// T is a test in a random world.
type T struct {
	TB
	chance Chance
}

// NewT has a test draw its world from a chance.
func NewT(tb TB, c Chance) *T { return &T{TB: tb, chance: c} }

// stream is the chance of a seed: every number of a range is as likely as the others.
type stream struct {
	seed uint64
	next func() uint64
	tell func(format string, args ...any) // of each draw; nil for nobody
}

func newStream(seed uint64) *stream {
	return &stream{seed: seed, next: core.NewStream(seed, "coretest/world").Uint64}
}

func (s *stream) Whole(what string, least, most int) int {
	drawn := least + int(s.next()%uint64(most-least+1))
	s.logDraw(what, drawn)
	return drawn
}

func (s *stream) Real(what string, least, most float64) float64 {
	drawn := least + (most-least)*float64(s.next()>>11)/(1<<53)
	s.logDraw(what, drawn)
	return drawn
}

func (s *stream) Bits(what string) uint64 {
	drawn := s.next()
	s.logDraw(what, drawn)
	return drawn
}

func (s *stream) logDraw(what string, drawn any) {
	if s.tell != nil {
		s.tell("drew %s: %v", what, drawn)
	}
}

// generator draws values of one kind.
type generator[V any] func(t *T, what string) V

// Draw draws one that is for what.
func (g generator[V]) Draw(t *T, what string) V { return g(t, what) }

func intRange(least, most int) generator[int] {
	if least > most {
		panic(fmt.Sprintf("no number is from %d to %d", least, most)) // a mistake in this package
	}
	return func(t *T, what string) int { return t.chance.Whole(what, least, most) }
}

func float64Range(least, most float64) generator[float64] {
	return func(t *T, what string) float64 { return t.chance.Real(what, least, most) }
}

func anyBool() generator[bool] {
	return func(t *T, what string) bool { return t.chance.Whole(what, 0, 1) == 1 }
}

// anyBits has few bits set as often as many: one in two, four and so on up to sixty-four.
func anyBits() generator[uint64] {
	return func(t *T, what string) uint64 {
		bits := uint64(math.MaxUint64)
		for range t.chance.Whole("times to halve "+what, 1, 6) {
			bits &= t.chance.Bits(what)
		}
		return bits
	}
}

func sampledFrom[V any](values []V) generator[V] {
	return func(t *T, what string) V { return values[intRange(0, len(values)-1).Draw(t, what)] }
}

// permutation draws an order of the values, and leaves them as they are.
func permutation[V any](values []V) generator[[]V] {
	return func(t *T, what string) []V {
		drawn := slices.Clone(values)
		for i := range len(drawn) - 1 {
			k := t.chance.Whole(what, i, len(drawn)-1)
			drawn[i], drawn[k] = drawn[k], drawn[i]
		}
		return drawn
	}
}

func sliceOfN[V any](of generator[V], least, most int) generator[[]V] {
	return func(t *T, what string) []V {
		drawn := make([]V, intRange(least, most).Draw(t, "how many of "+what))
		for i := range drawn {
			drawn[i] = of(t, what)
		}
		return drawn
	}
}
