package operate

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/internal/interrupt"
)

// capacity is how many GPUs a cluster has now; the zero value means unknown.
type capacity struct {
	free  int // GPUs of ready nodes that no job holds
	total int // GPUs of ready nodes
}

// capacityOf sums up the GPUs of the nodes that are ready.
func capacityOf(nodes []*controlv1.Node) (c capacity) {
	for _, n := range nodes {
		if n.GetHealth() != core.Ready.String() {
			continue
		}
		c.total += int(n.GetDevices())
		c.free += max(int(n.GetDevices())-int(n.GetUsed())-int(n.GetUnusable()), 0)
	}
	return c
}

// capacityNow asks for the GPUs of the cluster where the explanation of a job needs them. Users who may not list nodes get an explanation without them.
func capacityNow(ctx context.Context, client cluster.Orders, j *controlv1.Job) capacity {
	if j.GetReason() != core.WaitingForDevices.String() {
		return capacity{}
	}
	nodes, err := client.Nodes(ctx)
	if err != nil {
		return capacity{}
	}
	return capacityOf(nodes)
}

// evident puts a verdict with evidence before the change of the same round and reason that has none: the stop of a job on a
// drained node says less than what it misses, and that a job was finished or paused says less than by which report.
func evident(latestFirst []*controlv1.Decision) []*controlv1.Decision {
	for i, d := range latestFirst[:max(len(latestFirst)-1, 0)] {
		next := latestFirst[i+1]
		reviewed := d.GetWhat() == core.Finish.String() || d.GetWhat() == core.Pause.String()
		more := d.GetUnit() == "" && next.GetUnit() != "" || reviewed && d.GetMessage() == "" && next.GetMessage() != ""
		if more && next.GetRound() == d.GetRound() && next.GetReason() == d.GetReason() {
			latestFirst[i], latestFirst[i+1] = next, d
		}
	}
	return latestFirst
}

// explain says in one sentence why a job is in its state, followed by the machine-readable reason in brackets.
func explain(d *controlv1.DescribeResponse, c capacity) string {
	j := d.GetJob()
	subject, why := "Job "+j.GetName(), whyInState(d, c)
	endings := map[string]string{
		core.Pending.String(): " is pending admission", core.Waiting.String(): " is pending", stoppingState: " is stopping",
		suspendedState: " is suspended by its owner", core.Rejected.String(): " was rejected", core.Completed.String(): " has completed",
	}
	if text, simple := endings[j.GetState()]; simple {
		return subject + text + why // of a job that has completed: why it was ended early
	}
	where := seats(j.GetSeats())
	switch j.GetState() {
	case submittedState:
		if in := j.GetSubmitSeconds() - d.GetNowSeconds(); comes(j) && in > 0 {
			return fmt.Sprintf("%s will be submitted at %s, in %s.", subject, render.Span(j.GetSubmitSeconds()), render.Span(in))
		}
		return subject + " is submitted; the next round will consider it."
	case startingState:
		return subject + " is starting on " + where + why
	case core.Running.String():
		if where != "" {
			return subject + " is running on " + where + "."
		}
		return subject + " is running" + why
	case core.Cancelled.String():
		return subject + " was cancelled."
	}
	return strings.TrimSuffix(subject+" has "+j.GetState()+": "+failure(j), ": ")
}

// whyInState words the latest decision that gave the job its reason: ": TEXT (round 3, placement/x) [reason]", or "." without a reason.
func whyInState(d *controlv1.DescribeResponse, c capacity) string {
	j := d.GetJob()
	if j.GetReason() == "" {
		return "."
	}
	for _, one := range evident(reversed(d.GetDecisions())) {
		if one.GetReason() == j.GetReason() {
			return ": " + reasonText(j, one, c) + sourceText(one) + bracketed(j.GetReason())
		}
	}
	return ": " + reasonText(j, &controlv1.Decision{Reason: j.GetReason()}, c) + bracketed(j.GetReason())
}

// bracketed is the machine-readable reason, in brackets; empty for words that are no reason of a scheduler's.
func bracketed(reason string) string {
	if _, known := core.ParseReason(reason); !known {
		return ""
	}
	return " [" + reason + "]"
}

// sourceText says in which round a decision was made, and by which component where the pipeline itself did not make it.
func sourceText(d *controlv1.Decision) string {
	var parts []string
	if d.GetRound() > 0 { // a cluster does not keep the round of a verdict
		parts = append(parts, fmt.Sprintf("round %d", d.GetRound()))
	}
	if by := d.GetBy(); by != "" && by != pipelineComponent {
		parts = append(parts, by)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// pipelineComponent decides what no policy does: its name says nothing to users.
const pipelineComponent = "pipeline"

// reasonText words a reason with its evidence: what the job needs, what there is, and what the policy adds.
func reasonText(j *controlv1.Job, d *controlv1.Decision, c capacity) string {
	reason, known := core.ParseReason(d.GetReason())
	if !known { // a word of Kubernetes
		return strings.TrimSuffix(d.GetReason()+": "+d.GetMessage(), ": ")
	}
	parts := []string{}
	if need := needText(j, d, reason, c); need != "" {
		parts = append(parts, need)
	}
	switch {
	case d.GetMessage() != "":
		parts = append(parts, d.GetMessage())
	case len(parts) == 0 || !explainedByNeed(reason):
		parts = append(parts, reasonWords(reason).why)
	}
	text := strings.Join(parts, "; ")
	if at := d.GetExpectedSeconds(); at > 0 {
		text += ", expected at " + render.Span(at)
	}
	return text
}

// needText says what a job needs and what there is: by the evidence of the decision, or, of one that waits for GPUs, by the cluster as it is now.
func needText(j *controlv1.Job, d *controlv1.Decision, reason core.Reason, c capacity) string {
	switch need := int(j.GetRequested()); {
	case d.GetUnit() == "devices" && reason == core.WaitingForDevices && c.total > 0 && d.GetAvailable() == float64(c.free):
		return fmt.Sprintf("needs %s, %d of %d are free", gpus(d.GetWanted()), c.free, c.total)
	case d.GetUnit() == "devices":
		return fmt.Sprintf("needs %s, %s available", gpus(d.GetWanted()), decimal(d.GetAvailable()))
	case d.GetUnit() != "":
		return fmt.Sprintf("needs %s %s, %s available", decimal(d.GetWanted()), d.GetUnit(), decimal(d.GetAvailable()))
	case reason == core.WaitingForDevices && c.total > 0 && need > c.free && j.ShareMilli == nil:
		return fmt.Sprintf("needs %s, %d of %d are free", gpus(float64(need)), c.free, c.total)
	}
	return ""
}

// explainedByNeed reports whether the counts of a reason say all of it.
func explainedByNeed(r core.Reason) bool {
	return r == core.WaitingForDevices || r == core.ExceedsCluster
}

func gpus(n float64) string {
	if n == 1 {
		return "1 GPU"
	}
	return decimal(n) + " GPUs"
}

// wording is how a reason reads in a sentence.
type wording struct {
	why  string // after "is pending:"
	wait string // after a span of time: "5.7 s for GPUs"
}

// reasonWords words a reason for people.
func reasonWords(r core.Reason) wording {
	words := map[core.Reason]wording{
		core.ExceedsCluster:      {"needs more GPUs than the cluster can ever have", "for a larger cluster"},
		core.AcceleratorMissing:  {"no node has a GPU type that it can run on", "for a GPU type that it can run on"},
		core.QuotaExceeded:       {"its tenant is at its quota", "for quota"},
		core.LoadLimit:           {"admission holds jobs back while the cluster is loaded", "for the load to fall"},
		core.WaitingForDevices:   {"other jobs come first and not enough GPUs are left", "for GPUs"},
		core.BlockedByEarlier:    {"an earlier job that does not fit yet keeps its turn", "behind an earlier job"},
		core.Fragmented:          {"the free GPUs are not in a shape that placement accepts", "for GPUs that are not fragmented"},
		core.PreemptedByPriority: {"it was preempted for a job that comes first", "after preemption"},
		core.NodeUnavailable:     {"nodes that it needs are down or draining", "for nodes that are down or draining"},
		core.PolicyDecision:      {"the policy decided so", "by decision of the policy"},
		core.Interrupted:         {"its processes were interrupted; it will restart", "for a restart"},
		core.AwaitingNodes:       {"nodes are being added", "for new nodes"},
		core.Suspended:           {"its owner suspended it", "suspended"},
		core.DeadlineUnreachable: {"its deadline cannot be met", "with a deadline that cannot be met"},
		core.Converged:           {"it hardly improved any more", "after it converged"},
		core.Pruned:              {"other trials of its search are better", "after it was pruned"},
		core.AwaitingResults:     {"other trials of its search have yet to report", "for results of other trials"},
	}
	if w, known := words[r]; known {
		return w
	}
	return wording{r.String(), "for " + r.String()}
}

func (a *app) explainCommand() *cobra.Command {
	f := schedulerFlags{app: a}
	var runDir string
	c := &cobra.Command{
		Use:   "explain JOB",
		Short: "Show why a job is pending, and the decisions about it",
		Long: `Shows why a job is pending: what it needs, what is free, and the machine-readable reason in brackets. The
decisions about the job follow, the latest first. It sums up how long the job was pending for which reason,
and lists the jobs in front of a blocked one.
With --run-dir it reads the decisions.jsonl of a run or a simulation instead of asking a scheduler: of one
that was killed, what it had written.`,
		Example: "  quartet explain train\n  quartet explain job-000017 --run-dir runs/default",
		Args:    cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&runDir, "run-dir", "", "folder of a finished run or simulation, instead of a scheduler")
	for _, other := range []string{"run", "out", "socket", "server"} {
		defer c.MarkFlagsMutuallyExclusive("run-dir", other)
	}
	f.complete(f.operation(c, func(ctx context.Context, client cluster.Orders, args []string) error {
		d, err := client.Describe(ctx, args[0])
		if err != nil {
			return err
		}
		front, err := inFront(ctx, client, d.GetJob())
		if err != nil {
			return err
		}
		return a.writeExplanation(d, front, capacityNow(ctx, client, d.GetJob()))
	}), 1, allJobs)
	ask := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if runDir == "" {
			return ask(c, args)
		}
		d, err := interrupt.Call(c.Context(), func() (*controlv1.DescribeResponse, error) { return readDecisions(runDir, args[0]) })
		if err != nil {
			return err
		}
		return a.writeExplanation(d, nil, capacity{})
	}
	return c
}
