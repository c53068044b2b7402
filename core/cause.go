package core

import "slices"

// Cause is why a job lost its devices, or failed, as far as its backend knows.
type Cause uint8

// The causes. Unknown is what a backend says that does not know, and stands for a node that failed.
const (
	CauseUnknown      Cause = iota
	CauseNodeFailed         // a node it ran on is down
	CauseNodeDrained        // a node it ran on is being emptied
	CauseDeviceLost         // a device it ran on is gone
	CauseKilled             // somebody or something ended its processes, and not the scheduler
	CauseNeverBegan         // it was given devices, and no process of it ever ran
	CausePreempted          // its devices went to others
	CauseExited             // its own processes ended it
	CauseEvicted            // somebody else took it from its node
	CauseRefused            // its replicas were refused: by a quota, or by the node they were to run on
	CauseNoImage            // what it is to run could not be fetched
	CauseStartTimeout       // some of its replicas did not begin in time
)

var causeNames = [...]string{
	"unknown", "node_failed", "node_drained", "device_lost", "killed", "never_began", "preempted", "exited",
	"evicted", "refused", "no_image", "start_timeout",
}

// String returns the name of the cause, such as "node_failed".
func (c Cause) String() string { return name(causeNames[:], int(c)) }

// ParseCause returns the cause of a name; false for one that there is not.
func ParseCause(text string) (Cause, bool) {
	i := slices.Index(causeNames[:], text)
	return Cause(max(i, 0)), i >= 0
}

// Reason is why a job waits that was interrupted for this cause.
func (c Cause) Reason() Reason {
	switch c {
	case CausePreempted:
		return PreemptedByPriority
	case CauseKilled, CauseNeverBegan, CauseExited, CauseEvicted, CauseRefused, CauseNoImage, CauseStartTimeout:
		return Interrupted
	default:
		return NodeUnavailable
	}
}

// preempts reports whether an interruption for this cause counts as a preemption: its devices were taken away, and it is no fault of its processes.
func (c Cause) preempts() bool {
	switch c {
	case CauseUnknown, CauseNodeFailed, CauseNodeDrained, CauseDeviceLost, CausePreempted, CauseEvicted:
		return true
	default:
		return false
	}
}
