package configs

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
)

func TestWatchedRand(t *testing.T) {
	drawn := 0
	r := watchedRand(core.NewStream(1, "a"), func() { drawn++ })
	if drawn != 0 {
		t.Error("a draw is reported before the first")
	}
	if first := r.Uint64(); first != core.NewStream(1, "a").Uint64() || r.Uint64() == first || drawn != 1 {
		t.Errorf("%d draws are reported, or another stream, want one", drawn)
	}
}
