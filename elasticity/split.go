package elasticity

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim/market"
)

// The ways to split a batch over replicas on devices of different types.
const (
	even         = "even"
	proportional = "proportional"
)

// splitter makes the parts of batches. Its answers are valid until begin.
type splitter struct {
	shares []market.Share
	parts  []int
}

func (s *splitter) begin() { s.parts = s.parts[:0] }

// split divides the batch of a job over devices of different types so that the slowest is done as early as it
// can be, and the total stays what was requested. It is false when all devices are alike, or their speeds are
// not known: then the batch is split evenly.
func (s *splitter) split(c *core.Cluster, j *core.Job, seats []core.Seat) (core.Tuning, bool) {
	if !j.MixesTypes || j.StepTimes == nil || j.StepTimes.MixedTypes == nil || !unlike(c, seats) {
		return core.Tuning{}, false
	}
	s.shares = s.shares[:0]
	room, bounded := 0, true
	for _, seat := range seats {
		accelerator := c.Accelerators[c.Nodes[seat.Node].Accelerator]
		share := market.Share{Most: j.BatchOn(accelerator).MaxPerDevice}
		room, bounded = room+share.Most*seat.Devices.Count(), bounded && share.Most > 0
		for _, alone := range j.StepTimes.MixedTypes.SingleDeviceTimes {
			if alone.Accelerator == accelerator && alone.Seconds > 0 {
				share.Rate = float64(j.Batch.Requested) / alone.Seconds
			}
		}
		for range seat.Devices.Count() {
			s.shares = append(s.shares, share)
		}
	}
	t := core.Tuning{Job: j.ID, LearningRateFactor: 1}
	if bounded {
		t.AccumulationSteps = (j.Batch.Requested - 1) / room
	}
	pass := (j.Batch.Requested-1)/(t.AccumulationSteps+1) + 1
	parts, err := market.Split(pass, s.shares)
	if err != nil {
		return core.Tuning{}, false // of a job that cannot run on these at all
	}
	first := len(s.parts)
	s.parts = append(s.parts, parts...)
	t.BatchByReplica = s.parts[first:len(s.parts):len(s.parts)]
	t.BatchPerDevice = (pass-1)/len(parts) + 1
	return t, true
}

// unlike reports whether seats are on more than one type.
func unlike(c *core.Cluster, seats []core.Seat) bool {
	return slices.ContainsFunc(seats, func(s core.Seat) bool {
		return c.Nodes[s.Node].Accelerator != c.Nodes[seats[0].Node].Accelerator
	})
}
