package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// stall tells a run that gets nowhere from one that waits for something.
type stall struct {
	advanced float64 // last moment at which work was known to be done, or a job was submitted; seconds
	churned  int     // rounds that gave jobs devices since a job came further, or was submitted
	asks     int     // how often nodes of pools were asked for since then
	priced   float64 // moment of the last price of a pool, seconds
	cooling  float64 // the longest time until a pool may grow again, seconds
	awaited  float64 // until when a node that was asked for in time may yet come, seconds
	hopeless bool    // the run ended because of asks or of churn
}

// mostAsks is how often nodes of pools may be asked for while no job comes further. Where one of a thousand comes, that many fail in a row
// in less than one case of a hundred.
const mostAsks = 5000

// mostChurned is how many rounds may start, stop, move or resize jobs while none comes further. A change that leads to something needs a few.
const mostChurned = 100_000

// over reports whether nothing will ever happen again, or nothing but failing nodes and rounds that lead to no work. No
// event comes before next.
func (s *Simulator) over(next float64) bool {
	if s.jobs.arrived < len(s.jobs.byID) {
		return false
	}
	if s.jobs.active == 0 || math.IsInf(next, 1) {
		return true
	}
	if !s.inVain(next) || s.devices.nodes.scheduled() {
		return false
	}
	if s.works(next) {
		s.stall.churned = 0
		return false
	}
	s.stall.hopeless = s.stall.asks > mostAsks || s.stall.churned > mostChurned
	return true
}

// works reports whether a running job comes further than ever before a moment, if nothing happens until then. At rate 0, or
// in no time, no job comes further than it was.
func (s *Simulator) works(before float64) bool {
	return slices.ContainsFunc(s.jobs.running, func(j *simJob) bool {
		return j.progress+(before-max(j.asOf, j.pausedUntil))*j.rate > j.furthest
	})
}

// late reports whether the time is up, at a moment, in which a job is to come further. It begins anew when a price changes, for a scaler may
// have waited for that.
func (s *Simulator) late(at float64) bool {
	return at-max(s.stall.advanced, s.stall.priced) > s.config.StallAfter.Seconds()+s.stall.cooling
}

// inVain reports whether the time of a run is up at a moment, and nothing to come of the nodes that were asked for in time, or too many were, or too many
// rounds changed who has devices.
func (s *Simulator) inVain(at float64) bool {
	return s.late(at) && at > s.stall.awaited || s.stall.asks > mostAsks || s.stall.churned > mostChurned
}

// came notes that a job came further, or was submitted, at a moment.
func (s *Simulator) came(at float64) {
	s.stall.advanced, s.stall.asks, s.stall.churned = max(s.stall.advanced, at), 0, 0
}

// GaveUpReason says why a run ended in which nodes of pools were asked for, or jobs given devices, all the time; "" for any other.
func (s *Simulator) GaveUpReason() string {
	switch {
	case !s.stall.hopeless:
		return ""
	case s.stall.churned > mostChurned:
		return fmt.Sprintf("jobs were given devices in %d rounds, and none came further, for what interrupts them comes sooner than they start or reach a checkpoint: the run is over at %s",
			s.stall.churned, core.FormatDuration(time.Duration(s.clock.now)*time.Second))
	}
	return fmt.Sprintf("nodes of pools were asked for %d times while no job came further: the run is over at %s", s.stall.asks, core.FormatDuration(time.Duration(s.clock.now)*time.Second))
}
