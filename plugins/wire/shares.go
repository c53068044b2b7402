package wire

import (
	"math"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// What jobs that share devices have of them.

func shareTo(s *core.Share) *stagev1.Share {
	if s == nil {
		return nil
	}
	return &stagev1.Share{Milli: int32(s.Milli), Profile: s.Profile}
}

func shareFrom(m *stagev1.Share) *core.Share {
	if m == nil {
		return nil
	}
	return &core.Share{Milli: int(m.GetMilli()), Profile: m.GetProfile()}
}

func iterationTo(i core.Iteration) *stagev1.Iteration {
	if i == (core.Iteration{}) {
		return nil
	}
	return &stagev1.Iteration{LoadSeconds: i.Load, ComputeSeconds: i.Compute, SyncSeconds: i.Sync, MeasuredSeconds: i.Measured}
}

func iterationFrom(m *stagev1.Iteration) core.Iteration {
	return core.Iteration{Load: m.GetLoadSeconds(), Compute: m.GetComputeSeconds(), Sync: m.GetSyncSeconds(), Measured: m.GetMeasuredSeconds()}
}

// sharingFrom keeps a way of sharing that this build does not know unlike all that it does.
func sharingFrom(m stagev1.Sharing) core.Sharing {
	return core.Sharing(min(uint32(m), math.MaxUint8))
}

// Sharings converts ways of sharing for the wire.
func Sharings(ways []core.Sharing) []stagev1.Sharing {
	return each(ways, func(s core.Sharing) stagev1.Sharing { return stagev1.Sharing(s) })
}

// SharingsFrom converts ways of sharing from the wire, and leaves out those that are not known: of a plugin that knows more than
// this build does.
func SharingsFrom(m []stagev1.Sharing) []core.Sharing {
	var ways []core.Sharing
	for _, sent := range m {
		if s := sharingFrom(sent); s.Known() {
			ways = append(ways, s)
		}
	}
	return ways
}

func pairsTo(table uint32, t *core.PairTable) *stagev1.PairTable {
	m := &stagev1.PairTable{Table: table}
	for _, p := range t.Pairs() {
		m.Pairs = append(m.Pairs, &stagev1.Pair{
			Accelerator: p.Accelerator, Application: p.Applications[0], Beside: p.Applications[1], Replicas: int32(p.Replicas),
			Part: p.Parts[0], BesidePart: p.Parts[1],
		})
	}
	return m
}

func pairsFrom(m *stagev1.PairTable) *core.PairTable {
	return core.NewPairTable(each(m.GetPairs(), func(p *stagev1.Pair) core.Pair {
		return core.Pair{
			Accelerator: p.GetAccelerator(), Applications: [2]string{p.GetApplication(), p.GetBeside()}, Replicas: int(p.GetReplicas()),
			Parts: [2]float64{p.GetPart(), p.GetBesidePart()},
		}
	}))
}

func slicedFrom(starts []byte) *core.Sliced {
	if len(starts) == 0 {
		return nil
	}
	return &core.Sliced{Starts: starts}
}
