package elasticity

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// fits remembers the models of what was measured before, for jobs of an application often measure alike, and always do
// in a simulation. The zero value remembers nothing.
type fits struct {
	known map[string]goodput.Performance
	key   []byte
}

// mostFits bounds what is remembered.
const mostFits = 10_000

// fit is goodput.Fit.
func (f *fits) fit(seen []core.Measurement) goodput.Performance {
	f.key = f.key[:0]
	differ := slices.ContainsFunc(seen, func(m core.Measurement) bool { return m.Spread > 0 })
	for _, m := range seen {
		weight := 1
		if differ {
			weight = goodput.Weight(m)
		}
		for _, part := range [...]uint64{
			uint64(m.Nodes), uint64(m.Replicas), uint64(m.PerDevice), math.Float64bits(m.PassSeconds), math.Float64bits(m.StepSeconds), uint64(weight),
		} {
			f.key = binary.LittleEndian.AppendUint64(f.key, part)
		}
	}
	p, known := f.known[string(f.key)]
	if !known {
		p = goodput.Fit(seen)
		if f.known == nil || len(f.known) == mostFits {
			f.known = map[string]goodput.Performance{}
		}
		f.known[string(f.key)] = p
	}
	return p
}
