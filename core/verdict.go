package core

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Code is the answer a verdict gives.
type Code uint8

// The verdict codes. Defer asks again next round; Reject is final. End ends an admitted job, as completed: see Reviewer.
const (
	Admit Code = iota
	Defer
	Reject
	End
)

var codeNames = [...]string{"admit", "defer", "reject", "end"}

// String returns the name of the code, such as "defer".
func (c Code) String() string { return name(codeNames[:], int(c)) }

// Reason is why a job does not run, or no longer. The list is closed: tools and dashboards may rely on it.
type Reason uint8

// The reasons, in order of precedence: when several hold, the earlier one is shown.
const (
	NoReason            Reason = iota
	ExceedsCluster             // the job needs more devices than the cluster will ever have
	AcceleratorMissing         // no node carries an accelerator type that the job can run on
	QuotaExceeded              // its tenant is at its limit
	LoadLimit                  // admission holds jobs back while the cluster is loaded
	WaitingForDevices          // others come first and nothing is left
	BlockedByEarlier           // devices are free, but an earlier job that does not fit keeps its turn
	Fragmented                 // enough devices are free, but not in a shape the placement accepts
	PreemptedByPriority        // its devices went to a job that comes first
	NodeUnavailable            // the node it ran on, or nodes that it needs, are down or draining
	PolicyDecision             // the policy said no for a reason of its own; see the message
	Interrupted                // its processes were killed or never began; it is to start again
	AwaitingNodes              // it waits for nodes that come, or is too large for those that there are and more may join
	Suspended                  // its owner holds it back
	DeadlineUnreachable        // its deadline cannot be met, or not without breaking what was promised to others
	Converged                  // it hardly got better any more, and was ended
	Pruned                     // others of its search are better, and it was ended
	AwaitingResults            // it waits for what others of its search report
)

var reasonNames = [...]string{
	"none", "exceeds_cluster", "accelerator_missing", "quota_exceeded", "load_limit", "waiting_for_devices",
	"blocked_by_earlier", "fragmented", "preempted_by_priority", "node_unavailable", "policy_decision",
	"interrupted", "awaiting_nodes", "suspended", "deadline_unreachable",
	"converged", "pruned", "awaiting_results",
}

// Reasons lists the names of all reasons in order of precedence.
func Reasons() []string { return slices.Clone(reasonNames[:]) }

// String returns the name of the reason, such as "waiting_for_devices".
func (r Reason) String() string { return name(reasonNames[:], int(r)) }

// Verdict is a decision about one job that is not a placement: it is data, never an error.
type Verdict struct {
	Job    JobID  // that it is about
	Code   Code   // admit, defer or reject
	Reason Reason // why, from a closed list that programs can rely on
	// Wanted and Available are the counted evidence, in Unit ("devices", "jobs"). Both 0 when there is none.
	Wanted, Available float64
	Unit              string // of Wanted and Available
	Message           string // one sentence of the policy's own; may be empty
	// ExpectedSeconds is when nodes should be ready that the job waits for, of AwaitingNodes; 0 when nobody knows.
	ExpectedSeconds float64
	By              string // component id, filled in by the pipeline
}

// Explain renders the verdict as one sentence.
func (v Verdict) Explain() string {
	text := v.Reason.String()
	if v.Message != "" {
		text += ": " + v.Message
	}
	if v.Unit != "" {
		text += fmt.Sprintf(" (wants %s %s, %s available)", number(v.Wanted), v.Unit, number(v.Available))
	}
	if v.ExpectedSeconds > 0 {
		text += fmt.Sprintf(", nodes expected at %v", time.Duration(math.Round(min(v.ExpectedSeconds, 1e9)))*time.Second)
	}
	return text
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// ParseReason returns the reason of a name, one of Reasons.
func ParseReason(text string) (Reason, bool) {
	i := slices.Index(reasonNames[:], text)
	return Reason(max(i, 0)), i >= 0
}
