package interference

import "github.com/quartet-sched/quartet/core"

// Table is as fast as was measured of the pair, on the accelerator type (JobSpec.Pairs). Beside several others a job keeps the product of the
// parts that it keeps beside each, which nobody measured. A job of which a pair was not measured is as Unknown has it.
//
// Source: the pair entries of Gavel's throughputs (OSDI'20).
type Table struct {
	// Unknown is the model for pairs that the table does not list.
	Unknown Model
}

// Rate is the part of the pair, 0 where the two do not fit.
func (m Table) Rate(self *core.JobSpec, others []*core.JobSpec, accelerator string) float64 {
	rate := 1.0
	for _, o := range others {
		part, known := self.Pairs.Part(accelerator, self, o)
		if !known {
			return m.Unknown.Rate(self, others, accelerator)
		}
		rate *= part
	}
	return rate
}
