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
	return &stagev1.Share{Milli: int32(s.Milli)}
}

func shareFrom(m *stagev1.Share) *core.Share {
	if m == nil {
		return nil
	}
	return &core.Share{Milli: int(m.GetMilli())}
}

func iterationTo(i core.Iteration) *stagev1.Iteration {
	if i == (core.Iteration{}) {
		return nil
	}
	return &stagev1.Iteration{LoadSeconds: i.Load, ComputeSeconds: i.Compute, SyncSeconds: i.Sync}
}

func iterationFrom(m *stagev1.Iteration) core.Iteration {
	return core.Iteration{Load: m.GetLoadSeconds(), Compute: m.GetComputeSeconds(), Sync: m.GetSyncSeconds()}
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
	for _, told := range m {
		if s := sharingFrom(told); s.Known() {
			ways = append(ways, s)
		}
	}
	return ways
}
