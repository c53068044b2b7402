package trainingjob

import (
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of the conditions of a job.
const (
	ConditionAdmitted = "Admitted"           // it may compete for devices
	ConditionRunning  = "Running"            // all pods of its decision run; the reason says why not
	ConditionDegraded = "Degraded"           // something is wrong that the scheduler cannot mend
	ConditionFinished = "Finished"           // it ended; the reason says how
	ConditionIgnored  = "ConstraintsIgnored" // the template asks for something that makes no difference; the message says what

	ConditionInterrupted = "Interrupted" // it was stopped or moved after it had devices; when and why it was the last time
)

// longest is how many bytes a message may have: a status is written often.
const longest = 1024

// SetCondition makes a condition of the status true, false or unknown, and reports whether anything changed. The time of its
// last transition stays when only its reason, its message or the generation is another.
func (s *Status) SetCondition(kind string, status metav1.ConditionStatus, reason, message string, generation int64, at time.Time) (changed bool) {
	return meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: shortened(message), ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(at.UTC().Truncate(time.Second)), // as the API keeps it
	})
}

// Interrupt keeps when and why the job was last stopped or moved.
func (s *Status) Interrupt(reason, message string, generation int64, at time.Time) {
	meta.RemoveStatusCondition(&s.Conditions, ConditionInterrupted) // or the time would be that of the first
	s.SetCondition(ConditionInterrupted, metav1.ConditionTrue, reason, message, generation, at)
}

// Condition finds a condition; nil when it was never set.
func (s *Status) Condition(kind string) *metav1.Condition {
	return meta.FindStatusCondition(s.Conditions, kind)
}

// shortened cuts a message between two characters.
func shortened(message string) string {
	if len(message) <= longest {
		return message
	}
	end := longest - len("…")
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + "…"
}
