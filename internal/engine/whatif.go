package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/core/twin"
	"github.com/quartet-sched/quartet/core/workload"
)

// Change is what might be done to a run.
type Change struct {
	Drain []string      // nodes that no job is to be on any more, by name
	For   time.Duration // until they are ready again; 0 for never
	Add   []MoreNodes   // nodes that join
	// Policy is a config whose policies and rounds take the place of those of the run; nil for none.
	Policy  *configs.Config
	Submit  []workload.Job // jobs that are submitted at once
	Horizon time.Duration  // how far is looked ahead; 0 for until the present jobs have ended
}

// MoreNodes join at once, and stay.
type MoreNodes struct {
	Like  string // a pool, a group of nodes, or a node
	Count int    // nodes, at least 1
}

// WhatIf is two futures of a run, one without and one with a change, each of them simulated several times.
type WhatIf struct {
	Round         int        // the next one, in which the change takes effect
	NowSeconds    float64    // moment of that round, in seconds of the run
	ToSeconds     float64    // +Inf for until the present jobs have ended
	Draws         int        // futures of either kind
	Without, With Outlook    // next round of either future
	Moves         []Move     // what the next round decides in either, by JobID
	Measures      []Measured // figures of both, in a fixed order
	Shifts        []Shift    // shifts of single jobs, by JobID
	Notes         []string   // what to know when reading the figures

	before *core.View
	names  map[core.JobID]string
}

// Outlook is the next round of a future.
type Outlook struct {
	Cluster *core.Cluster // after the round
	Changes []core.Change // that the round decides
	Waiting []*core.Job   // after the round
	view    *core.View
}

// Move is what the next round decides of a job.
type Move struct {
	Job           core.JobID   // that is moved
	Name          string       // of the job
	Before        []core.Seat  // that it holds
	Without, With *core.Change // nil for none
	Same          bool         // both decide the same
}

// Measured is a figure of both futures: its mean over the draws.
type Measured struct {
	Name          string         // such as mean_jct_seconds
	Without, With float64        // means over the draws, in the unit that Name says
	Change        float64        // mean of the differences
	Interval      stats.Interval // of the difference, over the draws, paired
}

// The names of what is measured.
const (
	MeasureJCT         = "mean_jct_seconds"
	MeasureWait        = "mean_wait_seconds"
	MeasureMakespan    = "makespan_seconds"
	MeasureUtilization = "utilization_ratio"
	MeasureRestarts    = "restarts"
	MeasureUnfinished  = "unfinished_jobs"
	MeasureRejected    = "rejected_jobs"
)

// Shift is how a job fares in both futures. Moments are medians over the draws, in seconds of the run; +Inf for not foreseen.
type Shift struct {
	Job                     core.JobID // that is shifted
	Name                    string     // of the job
	Submitted               bool       // by the change
	RejectedWithout         bool       // the job is rejected in half of the draws or more, without the change
	Rejected                bool       // the job is rejected in half of the draws or more, with the change
	StartWithout, StartWith float64    // seconds of the run; +Inf for not within the horizon
	EndWithout, EndWith     float64    // seconds of the run; +Inf for not within the horizon
	Later                   twin.Band  // by how much it ends later with the change, in seconds; below 0 for earlier. It is of the draws alone
}

// Check finds what is wrong with a change of the run. Positions name flags of the command plan.
func (t *Twin) Check(c *Change) core.Diagnostics {
	var found core.Diagnostics
	add := func(flag, summary, hint string) {
		found = append(found, core.Diagnostic{Position: core.Position{File: flag}, Summary: summary, Hint: hint})
	}
	cluster := t.known.Cluster
	var names []string
	for i := range cluster.Nodes {
		if n := &cluster.Nodes[i]; n.Health != core.Gone {
			names = append(names, n.Name)
		}
	}
	found = append(found, CheckDrain(c.Drain, names)...)
	kinds := kindsOf(cluster)
	for _, more := range c.Add {
		if _, known := like(cluster, more.Like); !known {
			add("--add", fmt.Sprintf("there is no pool, group or node %q", more.Like), core.SuggestHint(more.Like, "pools and groups", kinds))
		}
	}
	var jobs []string
	for _, j := range t.known.Jobs {
		if j != nil {
			jobs = append(jobs, j.Name)
		}
	}
	for i := range c.Submit {
		j := &c.Submit[i].Spec
		if slices.Contains(jobs, j.Name) {
			add("--submit", fmt.Sprintf("there is a job %q already", j.Name), "give it another name")
		}
		jobs = append(jobs, j.Name)
		if j.SubmitSeconds > 0 {
			add("--submit", fmt.Sprintf("job %q says when it is submitted", j.Name), "leave submit out: what if it came now?")
		}
	}
	return found
}

// CheckDrain finds what is wrong with the names of nodes to drain; nodes are the names of all.
func CheckDrain(drain, nodes []string) (found core.Diagnostics) {
	add := func(summary, hint string) {
		found = append(found, core.Diagnostic{Position: core.Position{File: "--drain"}, Summary: summary, Hint: hint})
	}
	for i, name := range drain {
		switch {
		case !slices.Contains(nodes, name):
			add(fmt.Sprintf("there is no node %q", name), core.SuggestHint(name, "nodes", nodes))
		case slices.Contains(drain[:i], name):
			add(fmt.Sprintf("node %q is named twice", name), "")
		}
	}
	return found
}

// kindsOf lists pools, and the groups that nodes are of by their names.
func kindsOf(c *core.Cluster) (kinds []string) {
	for i := range c.Pools {
		kinds = append(kinds, c.Pools[i].Name)
	}
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Health != core.Gone && n.Pool == "" && !slices.Contains(kinds, groupOf(n.Name)) {
			kinds = append(kinds, groupOf(n.Name))
		}
	}
	return kinds
}

// groupOf is the name of a node without its number.
func groupOf(node string) string {
	if at := strings.LastIndexByte(node, '-'); at > 0 {
		if _, err := strconv.ParseUint(node[at+1:], 10, 32); err == nil {
			return node[:at]
		}
	}
	return node
}

// like is a node as those of a pool or a group are, or another node is.
func like(c *core.Cluster, name string) (core.AddedNode, bool) {
	for i := range c.Pools {
		if p := &c.Pools[i]; p.Name == name {
			return core.AddedNode{
				Accelerator: c.Accelerators[p.Accelerator], Devices: p.Devices, CPUs: p.CPUs, MemoryGB: p.MemoryGB, DeviceMemoryGB: p.DeviceMemoryGB,
			}, true
		}
	}
	for _, of := range [...]func(string) string{func(node string) string { return node }, groupOf} {
		for i := range c.Nodes {
			if n := &c.Nodes[i]; n.Health != core.Gone && of(n.Name) == name {
				return core.AddedNode{
					Accelerator: c.Accelerators[n.Accelerator], Devices: n.Devices, CPUs: n.CPUs, MemoryGB: n.MemoryGB, DeviceMemoryGB: n.DeviceMemoryGB, Rack: n.Rack,
				}, true
			}
		}
	}
	return core.AddedNode{}, false
}

// WithPolicies is the config of the run with the policies and rounds of another, and no alternatives. Its caller must check it.
func (t *Twin) WithPolicies(other *configs.Config) *configs.Config {
	both := withPolicies(t.composition.Config, other)
	both.Synthesizer, both.Alternatives = configs.DefaultSynthesizer(), nil
	return both
}

// events are what a change adds to the events of the next round.
func (t *Twin) events(c *Change) (events []core.Event, submitted []core.JobID) {
	cluster, at := t.known.Cluster, t.seen.NowSeconds
	nodes, jobs := len(cluster.Nodes), len(t.known.Jobs)
	for _, name := range c.Drain {
		events = append(events, core.Event{Kind: core.NodeChanged, AtSeconds: at, Node: nodeNamed(cluster, name), Health: core.Draining})
	}
	for _, more := range c.Add {
		node, _ := like(cluster, more.Like)
		for i := range more.Count {
			n := node
			n.Name = fmt.Sprintf("%s-added-%d", more.Like, i)
			events = append(events, core.Event{Kind: core.NodeAdded, AtSeconds: at, Node: core.NodeID(nodes), Added: &n})
			nodes++
		}
	}
	for i := range c.Submit {
		spec := c.Submit[i].Spec
		spec.ID, spec.SubmitSeconds = core.JobID(jobs), at
		submitted = append(submitted, spec.ID)
		events = append(events, core.Event{Kind: core.JobSubmitted, AtSeconds: at, Job: spec.ID, Spec: &spec, StepsLeft: math.NaN()})
		jobs++
	}
	return events, submitted
}

func nodeNamed(c *core.Cluster, name string) core.NodeID {
	return core.NodeID(slices.IndexFunc(c.Nodes, func(n core.Node) bool { return n.Health != core.Gone && n.Name == name }))
}

// branch is one of the two futures: the run after the next round, and what is believed of it.
type branch struct {
	snapshot *twin.RunSnapshot
	model    *twin.WorkloadModel
	policies twin.Policies
	changes  []core.Change
}

// branch holds the next round.
func (t *Twin) branch(ctx context.Context, p twin.Policies, more []core.Event) (*branch, error) {
	b := &branch{model: t.modelBefore.Clone(), policies: p}
	seen := t.seen
	seen.Events = slices.Concat(seen.Events, more)
	var err error
	b.snapshot, b.changes, err = t.before.Next(ctx, p, seen, b.model)
	return b, err
}

// outlook is what to show of the next round.
func (b *branch) outlook() Outlook {
	v := b.snapshot.View()
	o := Outlook{Cluster: v.Cluster, Changes: b.changes, view: v}
	for _, j := range v.Jobs {
		if j != nil && j.State != core.Running {
			o.Waiting = append(o.Waiting, j)
		}
	}
	return o
}

// usualDraws is how many futures are compared unless it is said.
const usualDraws = 16

// WhatIf simulates what may become of the run without and with a change. Each draw has the same work left, failures and arrivals in both. Same arguments, same answer.
func (t *Twin) WhatIf(ctx context.Context, c *Change, draws int) (*WhatIf, error) {
	if err := t.Check(c).Err(); err != nil {
		return nil, err
	}
	if draws == 0 {
		draws = min(usualDraws, twin.DrawsFor(len(t.Snapshot.Unfinished())))
	}
	with := t.Policies()
	if c.Policy != nil {
		with = PoliciesOf(withPolicies(t.composition.Config, c.Policy), false)
	}
	more, submitted := t.events(c)
	var branches [2]*branch
	for i, b := range [...]struct {
		policies twin.Policies
		events   []core.Event
	}{{t.Policies(), nil}, {with, more}} {
		var err error
		if branches[i], err = t.branch(ctx, b.policies, b.events); err != nil {
			return nil, err
		}
		branches[i].policies.Same = true // they decide since
	}
	w := &WhatIf{
		Round: branches[0].snapshot.View().Round, NowSeconds: branches[0].snapshot.View().NowSeconds, ToSeconds: math.Inf(1), Draws: draws, before: t.known,
		Notes:   []string{"what a job is later by is of the draws alone: it is not calibrated as forecasts are"},
		Without: branches[0].outlook(), With: branches[1].outlook(),
	}
	w.Notes = append(append(w.Notes, t.notes...), t.choiceNotes()...)
	if c.Policy != nil && len(c.Policy.Alternatives) > 0 {
		w.Notes = append(w.Notes, fmt.Sprintf("the config of the other policies has a synthesizer: its own composition %q is taken to decide throughout", c.Policy.Synthesizer.Own))
	}
	if c.Horizon > 0 {
		w.ToSeconds = w.NowSeconds + c.Horizon.Seconds()
	}
	w.names = maps.Clone(t.Names)
	for i, id := range submitted {
		w.names[id] = c.Submit[i].Spec.Name
	}
	for _, name := range c.Drain {
		if n := &w.With.Cluster.Nodes[nodeNamed(w.With.Cluster, name)]; t.known.Cluster.Nodes[n.ID].Health != core.Ready {
			w.Notes = append(w.Notes, fmt.Sprintf("node %q is %v already", name, t.known.Cluster.Nodes[n.ID].Health))
		}
	}
	w.moves()
	futures, err := t.futures(ctx, c, branches, draws)
	if err != nil {
		return nil, err
	}
	w.measure(futures)
	w.shift(futures, submitted)
	return w, nil
}

// futures simulates the draws of both branches, in parallel.
func (t *Twin) futures(ctx context.Context, c *Change, branches [2]*branch, draws int) ([][2]*twin.Future, error) {
	seconds := math.Inf(1)
	if c.Horizon > 0 {
		seconds = c.Horizon.Seconds()
	}
	futures := make([][2]*twin.Future, draws)
	err := twin.Each(draws, runtime.GOMAXPROCS(0), func(i int) (err error) {
		worlds := t.worlds(c, branches, i+1, seconds)
		for k, b := range branches {
			if futures[i][k], err = b.snapshot.Future(ctx, b.policies, worlds[k], seconds); err != nil {
				return err
			}
		}
		return nil
	})
	return futures, err
}

// worlds are those of a draw: the same, but for what the change brings.
func (t *Twin) worlds(c *Change, branches [2]*branch, draw int, seconds float64) (worlds [2]*twin.World) {
	for k, b := range branches {
		worlds[k] = b.model.Draw(b.snapshot.View(), t.composition.Seed, draw, seconds)
		worlds[k].Present = math.IsInf(seconds, 1)
	}
	without, with := worlds[0], worlds[1]
	with.Arrivals = without.Arrivals // what is submitted by the change tells nothing of what comes
	with.Nodes = drained(without.Nodes, t.known, branches[1].snapshot.View(), c)
	return worlds
}

// drained are changes of nodes as they are when some are drained meanwhile: those do not fail, and are ready again in the end unless they were down by then. One that was
// not ready before stays as it was.
func drained(changes []twin.NodeChange, before, v *core.View, c *Change) []twin.NodeChange {
	if len(c.Drain) == 0 {
		return changes
	}
	end := math.Inf(1)
	if c.For > 0 {
		end = v.NowSeconds + c.For.Seconds()
	}
	var list []twin.NodeChange
	back := map[core.NodeID]core.Health{}
	for _, name := range c.Drain {
		if node := nodeNamed(v.Cluster, name); before.Cluster.Nodes[node].Health == core.Ready {
			back[node] = core.Ready
		}
	}
	for _, change := range changes {
		if _, is := back[change.Node]; is && change.AtSeconds <= end {
			back[change.Node] = change.To
			continue
		}
		list = append(list, change)
	}
	for _, name := range c.Drain {
		node := nodeNamed(v.Cluster, name)
		if _, drains := back[node]; drains && !math.IsInf(end, 1) {
			list = append(list, twin.NodeChange{AtSeconds: end, Node: node, To: back[node]})
		}
	}
	slices.SortStableFunc(list, func(a, b twin.NodeChange) int {
		return cmp.Or(cmp.Compare(a.AtSeconds, b.AtSeconds), cmp.Compare(a.Node, b.Node))
	})
	return list
}
