package gorand_test

import (
	"testing"

	"github.com/quartet-sched/quartet/internal/gorand"
)

// The first draws of seed 42, as any release of Go gives them.
func TestNewDrawsWhatGoAlwaysDrew(t *testing.T) {
	r := gorand.New(42)
	if got, want := r.Int63(), int64(3440579354231278675); got != want {
		t.Errorf("first draw %d, want %d", got, want)
	}
	if got, want := r.Int63(), int64(608747136543856411); got != want {
		t.Errorf("second draw %d, want %d", got, want)
	}
}
