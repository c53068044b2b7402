package engine

import (
	"fmt"
	"time"

	"github.com/quartet-sched/quartet/core/metrics"
)

// Bounds beyond which a run says that jobs thrashed or starved.
const (
	manyRestarts = 20 // of a job that started, on average
	longWait     = 10 // of the mean completion time, for the first devices
	manyPassed   = 10 // jobs that were submitted later and started earlier
)

// noteOutcome says what became of jobs that a setting prevents: restarts without end, and waits while others pass.
func (e *execution) noteOutcome(s *metrics.Summary) {
	if name, most, restarted := e.collector.MostRestarted(); restarted && float64(s.Restarts.Mean) > manyRestarts {
		e.note(fmt.Sprintf("jobs restarted %.1f times each on average, %s %d times: %q may hand their devices to others in every round; %s",
			float64(s.Restarts.Mean), name, most, e.Allocation.ID, e.LongerTurns()))
	}
	name, wait, passed, started := e.collector.LongestWait()
	if started && passed > manyPassed && wait > longWait*float64(s.JCTSeconds.Mean) {
		e.note(fmt.Sprintf("%s waited %s for its first devices, %.0f times the mean completion time, while %d jobs that were submitted after it started",
			name, time.Duration(wait*float64(time.Second)).Round(time.Second), wait/float64(s.JCTSeconds.Mean), passed))
	}
}
