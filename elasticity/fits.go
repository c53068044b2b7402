package elasticity

import (
	"encoding/binary"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// fits remembers the models of what was measured before, for jobs of an application often measure alike, and always do
// in a simulation. The zero value remembers nothing.
type fits struct {
	known map[string]*goodput.Performance
	key   []byte
}

// mostFits bounds what is remembered.
const mostFits = 10_000

// fit is goodput.Fit. It begins at the cold start and where the fit before, if there was one, has ended.
func (f *fits) fit(seen []core.Measurement, before *goodput.Performance) *goodput.Performance {
	f.key = f.key[:0]
	if before != nil {
		for _, x := range [...]float64{
			before.AlphaGrad, before.BetaGrad, before.AlphaNode, before.BetaNode, before.AlphaLocal, before.BetaLocal, before.Gamma,
		} {
			f.key = binary.LittleEndian.AppendUint64(f.key, math.Float64bits(x))
		}
	}
	for _, m := range seen {
		for _, part := range [...]uint64{
			uint64(m.Nodes), uint64(m.Replicas), uint64(m.PerDevice), math.Float64bits(m.PassSeconds), math.Float64bits(m.StepSeconds),
		} {
			f.key = binary.LittleEndian.AppendUint64(f.key, part)
		}
	}
	p := f.known[string(f.key)]
	if p == nil {
		fitted := goodput.Fit(seen, before)
		p = &fitted
		if f.known == nil || len(f.known) == mostFits {
			f.known = map[string]*goodput.Performance{}
		}
		f.known[string(f.key)] = p
	}
	return p
}
