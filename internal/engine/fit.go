package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// checkFit notes the jobs that the cluster could not run even when it is empty and healthy: the pipeline rejects each of them.
// A workload of which no job fits is refused: nothing would run.
func (c *Composition) checkFit(ctx context.Context, cluster *core.Cluster, w *workload.Workload) error {
	cluster, err := c.grown(cluster)
	if err != nil || cluster.MayGrow { // nobody knows how large it will be
		return err
	}
	found, rigid, err := misfits(ctx, c.Config, cluster, w, c.logger())
	c.noteRanges(w, rigid)
	if err != nil || len(found) == 0 {
		return err
	}
	shown := found[:min(len(found), shownMisfits)]
	if found[0].Position == (core.Position{}) { // generated: to name each of them helps nobody
		shown = found[:1]
	}
	if len(found) == len(w.Jobs) {
		if len(shown) < len(found) {
			shown[len(shown)-1].Hint += fmt.Sprintf("; %d of its %d jobs do not fit", len(found), len(w.Jobs))
		}
		return shown.Err()
	}
	c.note(fmt.Sprintf("%d of %d jobs will be rejected: the cluster is too small for them, or has none of their accelerators", len(found), len(w.Jobs)))
	for _, d := range shown {
		c.note("  " + d.String())
	}
	if more := len(found) - len(shown); more > 0 {
		c.note(fmt.Sprintf("  and %d more", more))
	}
	return nil
}

// grown is the cluster with all nodes that are to join, and as many of pools as there may be.
func (c *Composition) grown(cluster *core.Cluster) (*core.Cluster, error) {
	opener, err := c.Backend.New(c.Seed, nil)
	if err != nil {
		return nil, err
	}
	if can := backend.OpenerAbilitiesOf(opener); can.Joining != nil {
		cluster = can.Joining.Grown(cluster)
	}
	if slices.Contains(opener.Capabilities(), core.CapabilityScaleCluster) {
		cluster = full(cluster)
	}
	return cluster, nil
}

// full is a cluster whose pools have as many nodes as they may have, and c itself where they have.
func full(c *core.Cluster) *core.Cluster {
	nodes := slices.Clone(c.Nodes)
	for i := range c.Pools {
		p := &c.Pools[i]
		for range p.Max - c.PoolSize(p.Name) {
			nodes = append(nodes, core.Node{
				ID: core.NodeID(len(nodes)), Accelerator: p.Accelerator, Devices: p.Devices, CPUs: p.CPUs, MemoryGB: p.MemoryGB, DeviceMemoryGB: p.DeviceMemoryGB,
				Pool: p.Name,
			})
		}
	}
	if len(nodes) == len(c.Nodes) {
		return c
	}
	some := *c
	some.Nodes = nodes
	return &some
}

// shownMisfits bounds how many jobs are named that do not fit.
const shownMisfits = 5

// rangesOf are the sources in whose files users write on how many replicas a job can run.
var rangesOf = []string{"csv", "jobs"}

// noteRanges says that jobs can run on more or fewer replicas than they request and nobody lets them.
func (c *Composition) noteRanges(w *workload.Workload, rigid int) {
	if rigid == 0 || !slices.Contains(rangesOf, c.Workload.Factory.Type) {
		return
	}
	if c.Elasticity.Factory.Type == "goodput" && c.Backend.Factory.Type != "simulator" {
		return // it gives them more once they have measured themselves
	}
	hint := "take another elasticity to use that"
	if c.Elasticity.Factory.Type == "fixed" {
		hint = "set pipeline.elasticity.job.config.replicas to elastic to use that"
	}
	c.note(fmt.Sprintf("%d of %d jobs can run on more or fewer replicas than they request, and get what they request: %q lets them have no other number; %s",
		rigid, len(w.Jobs), c.Elasticity.ID, hint))
}

// misfits lists the jobs that need more devices than there are for them, and counts those that have a range of replicas and are kept to the number that they
// request.
func misfits(
	ctx context.Context, c *configs.Config, cluster *core.Cluster, w *workload.Workload, log *slog.Logger,
) (found core.Diagnostics, rigid int, err error) {
	capacity := core.Capacity{OneType: c.Allocation.Factory.OneType}
	capacity.Count(cluster)
	err = respondToAll(ctx, c, cluster, w, log, func(r *core.Response) {
		if r.Job < 0 || int(r.Job) >= len(w.Jobs) {
			return // the pipeline blames the component
		}
		job := &w.Jobs[r.Job]
		if s := &job.Spec; s.MinReplicas != s.MaxReplicas && r.MinReplicas == s.Requested && r.MaxReplicas == s.Requested {
			rigid++
		}
		most, widest := capacity.For(cluster, &job.Spec)
		if r.MinReplicas <= most {
			return
		}
		d := Misfit(job, cluster, r.MinReplicas, most)
		if capacity.OneType && job.Spec.MixesTypes && most > 0 {
			d.Summary += ": " + core.NotMixed(c.Allocation.ID, cluster.Accelerators[widest])
			d.Hint = "enlarge the cluster, leave the job out, or take an allocation that mixes types, such as matching"
		}
		found = append(found, d)
	})
	return found, rigid, err
}

// atOnce is how many jobs an elasticity is asked about at once: a large workload is not laid out twice.
const atOnce = 4096

// respondToAll asks an elasticity component of its own, so that the run's does not notice, what each job can do with
// accelerators when it is submitted.
func respondToAll(
	ctx context.Context, c *configs.Config, cluster *core.Cluster, w *workload.Workload, log *slog.Logger, take func(*core.Response),
) error {
	if c.Elasticity.Remote == nil {
		log = nil // the run's logs the same; another process may fail in this one alone
	}
	elasticity, err := build(c.Elasticity, c.Seed, log)
	if err != nil {
		return err
	}
	defer func() { _ = discardPolicy(elasticity.Policy) }() // the run says what goes wrong with its own
	view := core.View{
		Round: 1, IntervalSeconds: c.Round.Options().IntervalSeconds, OnEvents: c.Round.OnEvents, Cluster: cluster, Devices: cluster.UsableDevices(),
		Jobs: make([]*core.Job, len(w.Jobs)),
	}
	jobs := make([]core.Job, min(atOnce, len(w.Jobs)))
	for first := 0; first < len(w.Jobs); first += atOnce {
		asked := view.Jobs[first:min(first+atOnce, len(w.Jobs))]
		for k := range asked {
			job := &jobs[k]
			*job = *core.NewJob(w.Jobs[first+k].KnownSpec())
			job.StepsLeft = w.Jobs[first+k].StepsLeft(0)
			asked[k], view.NowSeconds = job, job.SubmitSeconds
			view.NoteChange(job.ID)
		}
		responses, err := elasticity.Policy.Respond(ctx, &view, asked)
		if err != nil {
			return fmt.Errorf("component %q: respond: %w", elasticity.ID, err)
		}
		for i := range responses {
			take(&responses[i])
		}
		for _, job := range asked {
			view.NoteChange(job.ID)
		}
		clear(asked)
	}
	return nil
}

// Misfit describes a job that needs more devices than there are for it.
func Misfit(job *workload.Job, cluster *core.Cluster, need, capacity int) core.Diagnostic {
	spec := &job.Spec
	d := core.Diagnostic{
		Position: job.At,
		Summary:  fmt.Sprintf("job %q needs %d devices, the cluster has %d that it can run on", spec.Name, need, capacity),
		Hint:     "enlarge the cluster or leave the job out",
	}
	if counted := cluster.Counted(spec); counted != "" {
		d.Summary += " with " + counted + " that each replica asks for"
	}
	switch lack := cluster.MissingResource(spec); {
	case capacity == 0 && len(spec.Accelerators) > 0 && !slices.ContainsFunc(spec.Accelerators, func(name string) bool {
		return slices.Contains(cluster.Accelerators, name)
	}):
		d.Summary = fmt.Sprintf("job %q runs on %s only, which no node has", spec.Name, quoteAll(spec.Accelerators))
		d.Hint = core.SuggestHint(likeliest(spec.Accelerators, cluster.Accelerators), "accelerators", cluster.Accelerators)
	case lack.What != "":
		d.Summary = fmt.Sprintf("job %q asks for %v", spec.Name, lack)
	case len(cluster.Accelerators) > 1:
		d.Hint = "a job runs on devices of one accelerator type; " + d.Hint
	}
	return d
}

// likeliest is the first name that is near a valid one, or else the first.
func likeliest(names, valid []string) string {
	for _, name := range names {
		if core.Nearest(name, valid) != "" {
			return name
		}
	}
	return names[0]
}

// quoteAll lists names as in: "a", "b" or "c".
func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// noteShares tells of jobs that ask for parts or slices of devices, which the cluster does not give: they have whole ones, or the parts that they name beside the slice.
func (c *Composition) noteShares(cluster *core.Cluster, w *workload.Workload) {
	parts, profiles := 0, 0
	for i := range w.Jobs {
		switch share := w.Jobs[i].Spec.Share; {
		case share == nil || cluster.Sharing == core.Mig:
		case share.Profile != "":
			profiles++
		case share.Milli == core.WholeDevice || cluster.Sharing == core.Fractional:
		default:
			parts++
		}
	}
	if parts > 0 {
		c.note(fmt.Sprintf("%d of %d jobs ask for parts of devices (share_milli), and have whole ones: cluster.sharing is %s; parts are given by fractional, and slices by mig", parts, len(w.Jobs), cluster.Sharing))
	}
	if profiles > 0 {
		c.note(fmt.Sprintf("%d of %d jobs ask for slices (mig_profile), which cluster.sharing: %s does not give; mig does", profiles, len(w.Jobs), cluster.Sharing))
	}
}
