package scaler

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	t.Run("none", func(t *testing.T) { coretest.RunScaler(t, NewNone()) })
	t.Run("goodput", func(t *testing.T) { coretest.RunScaler(t, NewGoodput()) })
	t.Run("marginal", func(t *testing.T) { coretest.RunScaler(t, NewMarginal()) })
	t.Run("queue", func(t *testing.T) { coretest.RunScaler(t, NewQueue()) })
	t.Run("throughput", func(t *testing.T) { coretest.RunScaler(t, NewThroughput()) })
}
