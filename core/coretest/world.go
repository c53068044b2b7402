package coretest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// maxWorldJobs bounds how many jobs of a random world live at once.
const maxWorldJobs = 16

// world is a backend on which anything happens, at random, that can happen on a real one.
type world struct {
	t         *T
	cluster   *core.Cluster
	tables    []*core.StepTimes // by application; nil for an application without
	pairs     *core.PairTable   // nil where no jobs share devices
	view      *core.View        // as of the last round
	changes   int               // how many the last round made
	now       float64
	next      core.JobID
	pins      bool // some jobs are pinned
	shares    bool // jobs share what nodes have
	divides   bool // placement divides CPUs and memory, so that a job may run with less than it asks for
	deadlines bool // some jobs have deadlines
	tiers     bool // some jobs have tiers
	reports   bool // jobs are trials, and report
	events    []core.Event

	deviceMemory []float64 // of the devices of a type, where jobs share what nodes have
}

var applications = [...]string{"bert", "ncf", "resnet"}

// drawWorld draws a cluster of 1 to 8 nodes with 1 to 8 devices of up to three types, not all of them ready.
func drawWorld(t *T) *world {
	w := &world{t: t, cluster: &core.Cluster{
		Accelerators: slices.Clip([]string{"a100", "t4", "v100"}[:intRange(1, 3).Draw(t, "types")]),
		MayGrow:      anyBool().Draw(t, "may grow"),
	}}
	for i := range intRange(1, 8).Draw(t, "nodes") {
		w.cluster.Nodes = append(w.cluster.Nodes, core.Node{
			ID: core.NodeID(i), Name: fmt.Sprintf("node-%d", i), Devices: intRange(1, 8).Draw(t, "devices"),
			Accelerator: core.AcceleratorID(intRange(0, len(w.cluster.Accelerators)-1).Draw(t, "type")),
			Health:      drawHealth(t), CPUs: 64, MemoryGB: 256, Rack: fmt.Sprintf("rack-%d", i/4),
		})
	}
	for range applications {
		w.tables = append(w.tables, drawStepTimes(t, w.cluster.Accelerators))
	}
	w.view = &core.View{Cluster: cloneCluster(w.cluster)}
	return w
}

func drawHealth(t *T) core.Health {
	return sampledFrom([]core.Health{core.Ready, core.Ready, core.Ready, core.Ready, core.Draining, core.Down}).Draw(t, "health")
}

func drawStepTimes(t *T, accelerators []string) *core.StepTimes {
	if intRange(0, 3).Draw(t, "no table") == 0 {
		return nil
	}
	times := sliceOfN(float64Range(0.01, 10), 4, 16)
	table := &core.StepTimes{OneNode: times.Draw(t, "one node"), ManyNodes: times.Draw(t, "many nodes")}
	if anyBool().Draw(t, "typed") {
		table.MixedTypes = &core.MixedTypeTimes{SyncSeconds: sliceOfN(float64Range(0, 2), 4, 16).Draw(t, "sync")}
		for _, accelerator := range accelerators {
			table.Types = append(table.Types, core.TypeTimes{
				Accelerator: accelerator, OneNode: times.Draw(t, "one node of a type"), ManyNodes: times.Draw(t, "many nodes of a type"),
			})
			table.MixedTypes.SingleDeviceTimes = append(table.MixedTypes.SingleDeviceTimes, core.SingleDeviceTime{
				Accelerator: accelerator, Seconds: float64Range(0.01, 10).Draw(t, "alone"),
			})
		}
	}
	return table
}

// drawPairs draws what was measured of pairs of jobs.
func (w *world) drawPairs() {
	part := sampledFrom([]float64{0, 0.3, 0.6, 0.6, 0.9, 1})
	var pairs []core.Pair
	for a, first := range applications {
		for _, second := range applications[:a+1] {
			for _, accelerator := range w.cluster.Accelerators {
				for replicas := range 5 {
					if intRange(0, 3).Draw(w.t, "not measured") > 0 {
						pairs = append(pairs, core.Pair{
							Accelerator: accelerator, Applications: [2]string{first, second}, Replicas: replicas + 1,
							Parts: [2]float64{part.Draw(w.t, "part of the first"), part.Draw(w.t, "part of the second")},
						})
					}
				}
			}
		}
	}
	w.pairs = core.NewPairTable(pairs)
}

// Next, of a world, is called by hand.
func (w *world) Next(context.Context, core.Wake) (core.Observation, error) {
	return core.Observation{}, errors.New("a random world is stepped, not waited for")
}

// Apply accepts everything: the pipeline keeps the state.
func (w *world) Apply(_ context.Context, changes []core.Change) error {
	w.changes = len(changes)
	return nil
}

// Capabilities are all of them.
func (w *world) Capabilities() []core.Capability {
	return []core.Capability{core.CapabilityRemainingWork, core.CapabilityStepTimes, core.CapabilityScaleCluster, core.CapabilityPairRates}
}

// ObserveRound keeps the view, which says what can happen next.
func (w *world) ObserveRound(r *core.Report) error {
	w.view = r.View
	return nil
}

// pass lets time go by without an event.
func (w *world) pass(now float64) core.Observation {
	w.now = now
	return core.Observation{NowSeconds: now}
}

// step lets time go by and draws what happens meanwhile.
func (w *world) step() core.Observation {
	from := w.now
	w.now += sampledFrom([]float64{0, 1, 60, 60, 333.25, 90_000}).Draw(w.t, "seconds")
	w.events = nil
	w.drawNodeEvents(from)
	w.drawJoining(from)
	w.drawJobEvents(from)
	w.drawReports(from)
	w.drawSubmissions(from)
	slices.SortStableFunc(w.events, func(a, b core.Event) int {
		return cmp.Or(cmp.Compare(a.AtSeconds, b.AtSeconds), cmp.Compare(a.Kind, b.Kind))
	})
	return core.Observation{NowSeconds: w.now, Events: w.events}
}

// drawMoment is the start, the middle or the end of the time that goes by.
func (w *world) drawMoment(from float64) float64 {
	return from + (w.now-from)*sampledFrom([]float64{1, 0.5, 0}).Draw(w.t, "moment")
}

func (w *world) drawNodeEvents(from float64) {
	if intRange(0, 3).Draw(w.t, "node event") > 0 {
		return
	}
	n := sampledFrom(w.cluster.Nodes).Draw(w.t, "node")
	e := core.Event{Kind: core.NodeChanged, AtSeconds: w.drawMoment(from), Node: n.ID, Health: drawHealth(w.t)}
	switch intRange(0, 7).Draw(w.t, "what happens to it") {
	case 0:
		e = core.Event{Kind: core.NodeRemoved, AtSeconds: e.AtSeconds, Node: n.ID}
	case 1:
		e.Unusable = core.DeviceSet(anyBits().Draw(w.t, "unusable devices"))
	}
	w.events = append(w.events, e)
}

// interruption is the event that takes a job's devices away, if one of its nodes goes down.
func (w *world) interruption(j *core.Job) (core.Event, bool) {
	for _, e := range w.events {
		if (e.Kind == core.NodeRemoved || e.Kind == core.NodeChanged && e.Health == core.Down) &&
			slices.ContainsFunc(j.Seats, func(s core.Seat) bool { return s.Node == e.Node }) {
			return core.Event{Kind: core.JobInterrupted, AtSeconds: e.AtSeconds, Progress: j.WorkDone(e.AtSeconds)}, true
		}
	}
	return core.Event{}, false
}

func (w *world) drawJobEvents(from float64) {
	for _, j := range w.view.Jobs {
		if j == nil {
			continue
		}
		e, interrupted := w.interruption(j)
		if !interrupted {
			at := w.drawMoment(from)
			e = core.Event{AtSeconds: at, Progress: j.WorkDone(at)}
			switch fate := intRange(0, 11).Draw(w.t, "fate"); {
			case fate > 9:
				if e, changed := w.shift(j, e, fate == 11); changed {
					w.events = append(w.events, e)
				}
				continue
			case j.State == core.Running && fate < 2:
				e.Kind = core.JobFinished
			case fate == 2:
				e.Kind = core.JobFailed
			case j.State == core.Running && fate < 7:
				e.Kind, e.Rate = core.JobProgressed, float64Range(0, 4).Draw(w.t, "rate")
				e.FromSeconds = at + sampledFrom([]float64{0, 30}).Draw(w.t, "pause")
			default:
				continue
			}
		}
		e.Job, e.StepsLeft = j.ID, j.StepsLeft
		if e.Kind == core.JobProgressed && j.StepTimes != nil {
			e.StepsLeft = float64Range(0, 1e5).Draw(w.t, "steps left")
		}
		w.events = append(w.events, e)
	}
}

// drawReports has jobs report, those that run and now and then others: a message may come late.
func (w *world) drawReports(from float64) {
	if !w.reports {
		return
	}
	for _, j := range w.view.Jobs {
		if j == nil || j.State != core.Running && intRange(0, 7).Draw(w.t, "late report") > 0 {
			continue
		}
		metric := sampledFrom([]string{"loss", "loss", "accuracy"}).Draw(w.t, "metric")
		latest, _ := j.Series(metric).Latest()
		step := latest.Step
		for range sampledFrom([]int{0, 1, 1, 2}).Draw(w.t, "reports") {
			step = max(0, step+sampledFrom([]float64{1, 1, 2, 9, -3}).Draw(w.t, "steps"))
			w.events = append(w.events, core.Event{
				Kind: core.JobReported, AtSeconds: w.drawMoment(from), Job: j.ID, Metric: metric, Step: step,
				Value: sampledFrom([]float64{0, 0.25, 0.5, 0.5, 1, -2, math.NaN()}).Draw(w.t, "value"),
			})
		}
	}
}

func (w *world) drawSubmissions(from float64) {
	alive := 0
	for _, j := range w.view.Jobs {
		if j != nil {
			alive++
		}
	}
	at := w.drawMoment(from)
	for range min(intRange(0, 4).Draw(w.t, "submissions"), maxWorldJobs-alive) {
		spec := w.drawSpec(at)
		e := core.Event{Kind: core.JobSubmitted, AtSeconds: at, Job: spec.ID, Spec: spec}
		w.drawHeld(&e)
		w.events = append(w.events, e)
	}
}

// drawSpec draws a job that may be rigid or elastic, small or larger than the cluster, and bound to a type, be it one
// that no node carries.
func (w *world) drawSpec(at float64) *core.JobSpec {
	t := w.t
	application := intRange(0, len(applications)-1).Draw(t, "application")
	requested := sampledFrom([]int{1, 1, 2, 2, 3, 4, 5, 8, 16}).Draw(t, "requested")
	spec := &core.JobSpec{
		ID: w.next, Name: fmt.Sprintf("job-%d", w.next), Application: applications[application], Weight: 1,
		Tenant:        sampledFrom([]string{"", "blue", "red"}).Draw(t, "tenant"),
		SubmitSeconds: at, Requested: requested, MinReplicas: requested, MaxReplicas: requested,
		TotalWork: sampledFrom([]float64{0, 1, 600, 86_400.5}).Draw(t, "work"),
		StepTimes: w.tables[application], Pairs: w.pairs,
	}
	spec.MixesTypes = spec.StepTimes != nil && spec.StepTimes.MixedTypes != nil && anyBool().Draw(t, "mixes types")
	w.next++
	if anyBool().Draw(t, "elastic") {
		spec.MinReplicas = intRange(1, requested).Draw(t, "min replicas")
		spec.MaxReplicas = intRange(requested, 2*requested).Draw(t, "max replicas")
	}
	if anyBool().Draw(t, "batch") {
		perDevice := sampledFrom([]int{1, 8, 32}).Draw(t, "min per device")
		spec.Batch = core.BatchSpec{
			Requested: perDevice * spec.MaxReplicas, Initial: perDevice, Max: 4 * perDevice * spec.MaxReplicas,
			MinPerDevice: perDevice, MaxPerDevice: 2 * perDevice,
		}
		if anyBool().Draw(t, "batch by type") {
			spec.BatchByType = []core.TypeBatch{{Accelerator: w.cluster.Accelerators[0], MinPerDevice: perDevice, MaxPerDevice: perDevice}}
		}
	}
	if w.deadlines {
		spec.DeadlineSeconds = sampledFrom([]float64{0, 1, 300, 7200, 1e6}).Draw(t, "deadline")
		spec.BestEffort = intRange(0, 3).Draw(t, "best effort") == 0
	}
	if w.shares {
		w.drawAsked(spec)
	}
	if intRange(0, 3).Draw(t, "trial") == 0 {
		spec.Experiment = sampledFrom([]string{"sweep", "other"}).Draw(t, "experiment")
	}
	if w.tiers {
		spec.Tier = sampledFrom(append(core.Tiers(), "")).Draw(t, "tier")
	}
	if w.reports {
		spec.Experiment = sampledFrom([]string{"", "search", "search", "other"}).Draw(t, "experiment")
	}
	if w.pins {
		spec.Pinned = anyBool().Draw(t, "pinned")
	}
	if intRange(0, 3).Draw(t, "bound") == 0 {
		types := append([]string{"absent"}, w.cluster.Accelerators...)
		spec.Accelerators = []string{sampledFrom(types).Draw(t, "bound to")}
	}
	return spec
}
