package sim

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/mig"
)

// slicing is what devices are divided into, of a cluster that divides them as MIG does: slices that jobs have, and those that nobody has any more.
type slicing struct {
	into map[deviceAt]division // absent for a device that was never divided: one slice of all
}

// division is the slices of a device by where they begin: a profile plus 1, 0 for none.
type division [mig.Slices]mig.Profile

// undivided is a device in one piece.
var undivided = division{mig.SevenG + 1}

// divide makes the slices that a job is given, of those that nobody has, and reports whether a device is divided into others for that.
func (d *slicing) divide(p mig.Profile, seats []core.Seat, starts []uint8) (changed bool) {
	for _, seat := range seats {
		for rest := seat.Devices; rest != 0 && len(starts) > 0; rest &= rest - 1 {
			start := starts[0]
			if starts = starts[1:]; start == core.NoSlice {
				continue
			}
			at := deviceAt{seat.Node, rest.First()}
			into, divided := d.into[at]
			if !divided {
				into = undivided
			}
			if into[start] == p+1 {
				continue
			}
			for other, profile := range into {
				if profile > 0 && mig.At(profile-1, other)&mig.At(p, int(start)) != 0 {
					into[other] = 0
				}
			}
			into[start] = p + 1
			d.into[at], changed = into, true
		}
	}
	return changed
}

// onSlice is the part of its rate on a whole device that a job has on its slices.
func (c *Mig) onSlice(j *core.JobSpec) float64 {
	if j.Share != nil && j.Share.Milli == 0 {
		return 1
	}
	p := j.Slice()
	for _, application := range [...]string{j.Application, ""} {
		if i := slices.IndexFunc(c.Rates, func(r SliceRate) bool { return r.Application == application && r.Profile == mig.Of(p).Name }); i >= 0 {
			return c.Rates[i].Rate
		}
	}
	return mig.Speed(p, c.Power)
}

// checkMig refuses options of slices where there are none, and models of jobs that notice each other where there are.
func (c *Config) checkMig(sharing core.Sharing) (ds core.Diagnostics) {
	switch {
	case sharing == core.Mig && c.CoLocation.Model != "" && c.CoLocation.Model != "none":
		ds = append(ds, core.Diagnostic{
			Path: "co_location.model", Summary: c.CoLocation.Model + " does not go with cluster.sharing: mig, whose slices are kept apart", Hint: "leave it out",
		})
	case sharing != core.Mig && (c.Mig.Repartition > 0 || len(c.Mig.Rates) > 0):
		ds = append(ds, core.Diagnostic{Path: "mig", Summary: "needs cluster.sharing: mig: no device is divided into slices"})
	}
	return ds
}
