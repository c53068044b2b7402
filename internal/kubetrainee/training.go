//go:build linux

package kubetrainee

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/quartet-sched/quartet/core/agent"
)

// The annotations that say what a pod is to play.
const (
	prefix               = "trainee.quartet.sched/"
	workAnnotation       = prefix + "work"
	efficiencyAnnotation = prefix + "efficiency"
	reportAnnotation     = prefix + "report_seconds"
	checkpointAnnotation = prefix + "checkpoint_seconds"
	batchAnnotation      = prefix + "batch_per_device"
	worldsAnnotation     = prefix + "worlds"
	noiseAnnotation      = prefix + "gradient_noise"
	profileAnnotation    = prefix + "profile"
	totalAnnotation      = prefix + "batch"
)

// plan is what a job has to do.
type plan struct {
	work              float64 // in seconds of one replica
	efficiency        float64
	reportSeconds     float64
	checkpointSeconds float64
	batch             int     // samples of a device in a pass
	worlds            bool    // takes another world while it runs
	noise             float64 // of its gradients: variance over squared norm, at the initial batch; 0 if it does not tell
	model             model   // by which it goes; nil for one that does as much as efficiency says
}

// readPlan reads annotations; ok is whether they say that there is something to do.
func readPlan(annotations map[string]string) (p plan, ok bool, err error) {
	profile, profiled := annotations[profileAnnotation]
	if _, ok = annotations[workAnnotation]; !ok && !profiled {
		return plan{}, false, nil
	}
	number := func(name string, absent, least float64) float64 {
		text, set := annotations[name]
		if !set {
			return absent
		}
		value, wrong := strconv.ParseFloat(text, 64)
		if wrong != nil || math.IsNaN(value) || value < least || value > mostAmount {
			err = fmt.Errorf("annotation %s: %q is not a number from %v to %v", name, text, least, float64(mostAmount))
		}
		return value
	}
	p = plan{
		work: number(workAnnotation, 0, 0), efficiency: number(efficiencyAnnotation, 1, 0),
		reportSeconds: number(reportAnnotation, 1, leastSeconds), checkpointSeconds: number(checkpointAnnotation, 5, leastSeconds),
		batch: int(number(batchAnnotation, 1, 1)), worlds: true, noise: number(noiseAnnotation, 0, 0),
	}
	if text, set := annotations[worldsAnnotation]; set {
		var wrong error
		if p.worlds, wrong = strconv.ParseBool(text); wrong != nil {
			err = fmt.Errorf("annotation %s: %q is neither true nor false", worldsAnnotation, text)
		}
	}
	if profiled {
		var wrong error
		if p.model, wrong = readModel(profile, int(number(totalAnnotation, 0, 1))); wrong != nil {
			return p, false, errors.Join(err, fmt.Errorf("annotation %s: %w", profileAnnotation, wrong))
		}
		p.work = p.model.PhaseEnd(p.model.Phases() - 1)
	}
	return p, err == nil, err
}

const (
	mostAmount   = 1e9
	leastSeconds = 0.01
	// A pass over the batch of the plan takes so long: nobody waits for it.
	passSeconds = 0.1
)

// rate is how much is done in a second.
func (p *plan) rate(replicas int) float64 { return math.Pow(float64(replicas), p.efficiency) }

// speaker is what a member says to its scheduler.
type speaker interface {
	Report(r agent.Report) error
	Checkpointed(progress float64) error
}

// member is a pod that trains, with one or more replicas.
type member struct {
	name            string // of the pod
	size            int    // how many replicas it has
	rank            int    // of the first of them
	replicas, nodes int    // how many there were when it began
	generation      int64  // of the world that it is part of
	speaker         speaker
}

// training is a run of a job: members that train together.
type training struct {
	plan     plan
	progress float64
	saved    float64       // of the last checkpoint
	world    agent.World   // whose replicas are 0 until all are there that it begins with
	tuning   agent.Tuning  // by which it trains: where it says nothing, as the plan has it
	told     *agent.Tuning // that is to be its tuning; nil for none
	members  map[string]*member

	sinceReport, sinceCheckpoint float64 // seconds of training
}

func newTraining(p plan, saved float64) *training {
	return &training{plan: p, progress: saved, saved: saved, members: make(map[string]*member)}
}

// form makes the world of those that are there, once they are as many as the latest of them knows of.
func (t *training) form() {
	var latest agent.World
	present := 0
	for _, m := range t.members {
		present += m.size
		if m.replicas > latest.Replicas {
			latest.Replicas, latest.Nodes = m.replicas, m.nodes
		}
	}
	if present >= latest.Replicas {
		t.world = latest
	}
}

// whole reports whether all replicas of the world are there: while one is missing the others wait for it.
func (t *training) whole() bool {
	present := 0
	for _, m := range t.members {
		if m.generation == t.world.Generation {
			present += m.size
		}
	}
	return t.world.Replicas > 0 && present >= t.world.Replicas
}

// send hands a member what its scheduler said of the world.
func (t *training) send(m *member, w agent.World) {
	if w.Generation < t.world.Generation || w.Generation < m.generation {
		return // it was overtaken
	}
	m.generation, m.rank = w.Generation, w.Rank
	t.world = w
}

// step trains for so many seconds. It reports whether all work is done.
func (t *training) step(seconds float64) (done bool) {
	if t.world.Replicas == 0 {
		t.form()
	}
	if !t.whole() {
		return false
	}
	t.tune()
	t.advance(seconds)
	t.sinceReport += seconds
	t.sinceCheckpoint += seconds
	done = t.progress >= t.plan.work
	if done || t.sinceReport >= t.plan.reportSeconds {
		t.report()
	}
	if done || t.sinceCheckpoint >= t.plan.checkpointSeconds {
		t.checkpoint()
	}
	return done
}

// first is who speaks for all; nil when it is not there.
func (t *training) first() speaker {
	for _, m := range t.members {
		if m.rank == 0 && m.generation == t.world.Generation && m.speaker != nil {
			return m.speaker
		}
	}
	return nil
}

func (t *training) report() {
	t.sinceReport = 0
	s := t.first()
	if s == nil {
		return
	}
	if r, ok := t.reported(); ok {
		_ = s.Report(r) // all of it makes sense
	}
}

// reported is how the training does.
func (t *training) reported() (agent.Report, bool) {
	if t.plan.model != nil {
		return t.modelled()
	}
	batch := t.plan.batch
	if t.tuning.BatchPerDevice > 0 {
		batch = t.tuning.BatchPerDevice
	}
	n := t.world.Replicas
	pass := passSeconds * float64(batch) / float64(t.plan.batch)
	square := 0.0
	if t.plan.noise > 0 {
		square = 1
	}
	return agent.Report{
		GradientSquare: square, GradientVariance: t.plan.noise,
		Replicas: n, Nodes: max(1, min(t.world.Nodes, n)), BatchPerDevice: batch, PassSeconds: pass,
		StepSeconds: pass * float64(n) / t.plan.rate(n), Progress: t.progress,
	}, true
}

// checkpoint keeps what was done.
func (t *training) checkpoint() {
	t.sinceCheckpoint, t.saved = 0, t.progress
	if s := t.first(); s != nil {
		_ = s.Checkpointed(t.saved) // a number from 0
	}
}
