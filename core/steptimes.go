package core

// StepTimes holds the seconds of one optimizer step at a fixed total batch on consolidated placements. Index r-1 is
// r replicas; 0 means not possible.
type StepTimes struct {
	OneNode    []float64       // on any type that Types does not list
	ManyNodes  []float64       // nodes filled one after another, the last one partly
	Types      []TypeTimes     // types with times of their own
	MixedTypes *MixedTypeTimes // nil for a job that does not mix types
}

// TypeTimes are the step times on one accelerator type.
type TypeTimes struct {
	Accelerator        string    // name of the type
	OneNode, ManyNodes []float64 // seconds by replicas, as in StepTimes
}

// MixedTypeTimes say how long a step takes on devices of different types. When each device gets its part of the batch in
// proportion to its speed, all are done after 1/Σ(1/alone) seconds, and the gradients then take SyncSeconds more.
type MixedTypeTimes struct {
	SingleDeviceTimes []SingleDeviceTime // of each type that the job can run on
	SyncSeconds       []float64          // by replicas, index r-1 for r
}

// SingleDeviceTime is how long one device of a type takes for a step with the whole batch.
type SingleDeviceTime struct {
	Accelerator string  // name of the type
	Seconds     float64 // of one step with the whole batch
}

// On returns the step times on an accelerator type.
func (t *StepTimes) On(accelerator string) (oneNode, manyNodes []float64) {
	for i := range t.Types {
		if t.Types[i].Accelerator == accelerator {
			return t.Types[i].OneNode, t.Types[i].ManyNodes
		}
	}
	return t.OneNode, t.ManyNodes
}

// Most is the greatest number of replicas that the times cover on any type.
func (t *StepTimes) Most() int {
	most := max(len(t.OneNode), len(t.ManyNodes))
	for i := range t.Types {
		most = max(most, len(t.Types[i].OneNode), len(t.Types[i].ManyNodes))
	}
	return most
}
