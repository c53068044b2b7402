package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/kube/lead"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/core/workload"
)

// ReadError says what could not be read of a cluster.
type ReadError struct {
	What string // that was attempted, such as "list nodes"
	Err  error  // of the API server
}

// Error words what was attempted and what the API server said.
func (e *ReadError) Error() string { return fmt.Sprintf("%s: %v", e.What, e.Err) }

// Unwrap is what the API server said.
func (e *ReadError) Unwrap() error { return e.Err }

// Preview looks at the cluster as a scheduler would that takes over now, and makes the cluster c that of its nodes. It reads each list
// once, watches nothing and writes nothing. What it cannot read is a ReadError.
func (o *Opener) Preview(ctx context.Context, snapshot string, c *core.Cluster, w *workload.Workload) (backend.Preview, error) {
	if snapshot != "" {
		return nil, core.Diagnostics{{Summary: "a Kubernetes cluster has no snapshots", Hint: "leave the snapshot out: the cluster is read directly"}}
	}
	if err := openWorkload(w); err != nil {
		return nil, err
	}
	config, err := restConfig(&o.config)
	if err != nil {
		return nil, err
	}
	*c = core.Cluster{MayGrow: true}
	return o.preview(ctx, config)
}

// preview reads a cluster.
func (o *Opener) preview(ctx context.Context, config *rest.Config) (*preview, error) {
	all, err := newClients(config, 1)
	if err != nil {
		return nil, err
	}
	b := newBackend(o, all)
	b.log = slog.New(slog.DiscardHandler) // what a leader would warn of is not for who looks
	defer b.work.end()                    // nobody does what is to be done
	if b.world, err = newWorld(&b.config, all, o.log, b.mayAdopt(ctx)); err != nil {
		return nil, err
	}
	kept, err := lead.Look(ctx, all.Client, b.config.Namespace, stateName)
	if err != nil {
		return nil, &ReadError{"read the state of the scheduler", err}
	}
	if err := b.world.list(ctx, all); err != nil {
		return nil, err
	}
	if b.nodes.devices = b.world.devices; b.nodes.devices != nil {
		if err := b.nodes.devices.choose(ctx, all, b.config.DeviceClass); err != nil {
			return nil, err
		}
	}
	b.world.pin()
	now := o.clock.Now()
	if kept.Began.IsZero() {
		kept.Began = now // none ran here
	}
	b.term = &lead.Term{Epoch: kept.Epoch + 1} // in whose name nothing is written
	b.state.Store(newRun(kept.Began, now, b.world.decided()))
	present := b.Present()
	b.look(present)
	p := &preview{seen: b.observe(present), ended: b.ended(present), cluster: b}
	if json.Unmarshal(kept.Snapshot, &p.learned) != nil {
		p.learned = nil // there is none, or it is of a later version
	}
	return p, nil
}

// reading is a list of the API server, and who is to know it.
type reading struct {
	what string
	read func() (runtime.Object, error)
	to   cache.SharedIndexInformer
}

// list reads all that the informers would, once.
func (w *world) list(ctx context.Context, all *clients) error {
	const everywhere = metav1.NamespaceAll
	o := metav1.ListOptions{}
	readings := []reading{
		{"list nodes", func() (runtime.Object, error) { return all.Nodes().List(ctx, o) }, w.nodes},
		{"list training jobs", func() (runtime.Object, error) { return all.jobs.Of(w.config.Watch).List(ctx, o) }, w.jobs},
		{"list pods", func() (runtime.Object, error) { return all.Pods(everywhere).List(ctx, o) }, w.pods}, // which are members of these, or anybody's
	}
	if w.adopted != nil { // before the pods of these
		batch := reading{"list jobs", func() (runtime.Object, error) { return all.Jobs(w.config.Watch).List(ctx, o) }, w.adopted.jobs}
		readings = slices.Insert(readings, len(readings)-1, batch)
	}
	if w.devices != nil { // whose claims are told by their pods
		readings = append(readings,
			reading{"list device classes", func() (runtime.Object, error) { return all.DeviceClasses().List(ctx, o) }, w.classes},
			reading{"list resource slices", func() (runtime.Object, error) { return all.ResourceSlices().List(ctx, o) }, w.slices},
			reading{"list resource claims", func() (runtime.Object, error) { return all.ResourceClaims(everywhere).List(ctx, o) }, w.claims})
	}
	for _, r := range readings {
		list, err := r.read()
		if err != nil {
			return &ReadError{r.what, err}
		}
		if err := w.learn(r.to, list); err != nil {
			return err
		}
	}
	return nil
}

// learn has an informer that does not run know a list.
func (w *world) learn(informer cache.SharedIndexInformer, list runtime.Object) error {
	i := slices.IndexFunc(w.handlers, func(h handler) bool { return h.informer == informer })
	return meta.EachListItem(list, func(o runtime.Object) error {
		object, err := slim(o)
		if err != nil {
			return err
		}
		if err := informer.GetStore().Add(object); err != nil {
			return err
		}
		w.handlers[i].handler.OnAdd(object, true)
		return nil
	})
}

// preview is what a scheduler that takes over would be told first.
type preview struct {
	seen    core.Observation
	cluster *Backend // as it was read
	learned []core.Learned
	ended   []*core.Job
	told    bool
	changes []core.Change
}

var (
	_ backend.Recalling = (*preview)(nil)
	_ backend.Planner   = (*Opener)(nil)
	_ core.Memory       = (*preview)(nil)
	_ core.DeviceKeeper = (*preview)(nil)
)

// ended are the jobs that ran and ended, by what their statuses keep, in the order of their ends.
func (b *Backend) ended(now float64) (list []*core.Job) {
	given := map[core.JobID]bool{}
	for _, uid := range slices.Sorted(maps.Keys(b.jobs)) {
		j := b.jobs[uid]
		end := j.status.Condition(trainingjob.ConditionFinished)
		if end == nil || j.status.State != trainingjob.Completed && j.status.State != trainingjob.Failed {
			continue
		}
		seconds := func(at time.Time) float64 { return min(max(b.state.Load().seconds(at), 0), now) }
		spec, faults := j.object.JobSpec(b.endedID(&j.status, given), seconds(j.object.CreationTimestamp.Time))
		a := known(&j.status, now)
		if len(faults) > 0 || a.attained <= 0 {
			continue
		}
		of := core.NewJob(&spec)
		of.State, of.FinishSeconds, of.FirstStart = core.Completed, seconds(end.LastTransitionTime.Time), a.firstStart
		if j.status.State == trainingjob.Failed {
			of.State = core.Failed
		}
		of.AsOfSeconds, of.Executed, of.Attained = of.FinishSeconds, a.executed, a.attained
		of.Progress = a.at(of.FinishSeconds, spec.TotalWork)
		given[of.ID] = true
		list = append(list, of)
	}
	slices.SortStableFunc(list, func(a, b *core.Job) int { return cmp.Compare(a.FinishSeconds, b.FinishSeconds) })
	return list
}

// endedID is the id of a job that ended: its own, or one that no job has where it has none, or another job has that, as after a copy of objects.
func (b *Backend) endedID(s *trainingjob.Status, given map[core.JobID]bool) core.JobID {
	if s.ID != nil && *s.ID >= 0 {
		if id := core.JobID(*s.ID); b.job(id) == nil && !given[id] {
			return id
		}
	}
	id := b.nextID // above all that live jobs have
	for given[id] {
		id++
	}
	return id
}

// Ended are the jobs whose objects are still there.
func (p *preview) Ended() []*core.Job { return p.ended }

// Capabilities are none, as those of the backend.
func (p *preview) Capabilities() []core.Capability { return nil }

// KeepsDevices is that of the backend.
func (p *preview) KeepsDevices() bool { return true }

// Reseat is that of the backend.
func (p *preview) Reseat(v *core.View, grants []core.Grant, answer core.Seating) core.Seating {
	return p.cluster.Reseat(v, grants, answer)
}

// Next returns all that there is, once: in the moment at which the next round is held.
func (p *preview) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if err := ctx.Err(); err != nil {
		return core.Observation{}, err
	}
	if p.told {
		return core.Observation{}, io.EOF
	}
	p.told = true
	seen := p.seen
	if !w.OnEvents {
		seen.NowSeconds = onGrid(seen.NowSeconds, w)
	}
	return seen, nil
}

// Apply keeps the changes.
func (p *preview) Apply(_ context.Context, changes []core.Change) error {
	p.changes = slices.Clone(changes)
	return nil
}

// Changes are what the next round would do.
func (p *preview) Changes() []core.Change { return p.changes }

// Replaying is never.
func (p *preview) Replaying() bool { return false }

// Learned is what the policies of the scheduler learned, as it last kept it.
func (p *preview) Learned() []core.Learned { return p.learned }

// Keep keeps nothing.
func (p *preview) Keep([]core.Learned) error { return nil }

// Begin records nothing.
func (p *preview) Begin(int, *core.Composition, []core.Learned) error { return nil }
