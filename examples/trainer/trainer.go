package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/goodput"
)

// errStopped is the end of a training that was told to stop, and can go on from its checkpoint.
var errStopped = errors.New("stopped; what is done is in the checkpoint")

// joinLimit is how long a replica waits for the others to start.
const joinLimit = 2 * time.Minute

// trainer is one replica at work.
type trainer struct {
	o     *options
	env   agent.Environment
	out   io.Writer
	agent *agent.Client

	data    *data
	order   order
	model   *model
	ring    *ring
	pace    pacer
	state   *state
	setting setting
	orders  orders

	gradient []float64 // of a sample; later the mean over a step
	passSums []int64   // gradients of a pass
	vector   []int64   // what replicas sum in a step, see slots

	window      window // since the last report
	checkpoints time.Time
}

// The slots of the vector behind the gradient. Those of rank 0 alone carry what it was told to all others; and then
// come two for each replica: the squared norms of its parts, weighted by their samples, and its share in a new tuning.
const (
	slotLoss = iota
	slotStop
	slotTuned
	slotBatch
	slotAccumulation
	slotFactor
	slotBegan
	slots
)

// window is what the next report is made of.
type window struct {
	since      time.Time
	pass, step []float64 // seconds; the report has medians, for others may disturb a step
	loss       float64   // sum
	skipped    bool      // the first step, which waited for the others to begin
}

// train runs one replica until the work is done, which is nil, or the training ends otherwise. It stops when told by
// its context or by the scheduler.
func train(ctx context.Context, o *options, env agent.Environment, out io.Writer) error {
	began := beginning(env.Rendezvous)
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	t, resumed, err := newTrainer(o, env, out) // before it joins, for nobody makes a checkpoint until all have joined
	if err != nil {
		return err
	}
	join, done := context.WithTimeout(stop, joinLimit)
	defer done()
	if t.ring, err = joinRing(join, env.Rendezvous, env.Rank, env.Replicas); err != nil {
		if stop.Err() != nil {
			return errStopped
		}
		return err
	}
	defer t.ring.close()
	if env.Rank == 0 {
		t.agent = agent.Dial(env)
		defer t.agent.Close()
		defer t.orders.follow(t.agent, cancel)()
		t.line("resumed=%v pid=%d", resumed, os.Getpid())
	}
	return t.run(stop, began)
}

// beginning is when this run of the job began: its replicas meet in a folder made for it.
func beginning(folder string) time.Time {
	now := time.Now()
	info, err := os.Stat(folder)
	if err != nil {
		return now // alone
	}
	return now.Add(min(info.ModTime().Sub(now), 0))
}

// newTrainer makes a replica that goes on from the checkpoint, if there is one.
func newTrainer(o *options, env agent.Environment, out io.Writer) (t *trainer, resumed bool, err error) {
	t = &trainer{
		o: o, env: env, out: out, data: makeData(&o.task), model: newModel(&o.task), setting: initial(o.Batch, env.Replicas),
		pace: pacer{profile: o.Profile, nodes: env.Nodes, replicas: env.Replicas, speedup: o.Speedup, least: o.Least, together: 1},
	}
	t.order.data = t.data
	n := t.model.parameters()
	t.gradient, t.passSums = make([]float64, n), make([]int64, n)
	t.vector = make([]int64, n+slots+2*env.Replicas)
	if t.state, resumed, err = load(env.Checkpoint, &o.task, n); t.state == nil {
		t.state = &state{Task: o.task, Parameters: t.model.start(o.Seed)}
	}
	return t, resumed, err
}

func (t *trainer) run(stop context.Context, began time.Time) error {
	if err := t.begin(stop, began); err != nil {
		return err
	}
	t.checkpoints, t.window.since = time.Now(), time.Now()
	for t.state.Progress < t.o.Iterations {
		stopped, err := t.step(stop)
		if err != nil {
			return err
		}
		if err := t.account(stopped); err != nil {
			return err
		}
		if stopped {
			return errStopped
		}
	}
	return t.finish()
}

// begin lets the start take its time. All replicas count it from when rank 0 saw the job begin, the first to look, and take
// over the tuning that it was told meanwhile.
func (t *trainer) begin(stop context.Context, began time.Time) error {
	tail := t.vector[len(t.gradient):]
	shares := tail[slots+t.env.Replicas:]
	if t.o.StartUp > 0 {
		t.pace.wait(stop, began, t.o.StartUp.Seconds())
		if t.env.Rank == 0 {
			tail[slotBegan] = t.pace.due.UnixNano()
		}
	}
	t.orders.write(tail, shares)
	if err := t.ring.sum(t.vector); err != nil {
		return err
	}
	t.retune(tail, shares)
	if now := time.Now(); t.o.StartUp > 0 {
		t.pace.due = now.Add(time.Unix(0, tail[slotBegan]).Sub(now)) // which keeps the steady reading of the clock
	}
	return nil
}

// step is one optimizer step. It reports whether the replicas agree to stop after it.
func (t *trainer) step(stop context.Context) (stopped bool, err error) {
	n := len(t.gradient)
	clear(t.vector)
	tail := t.vector[n:]
	norms, shares := tail[slots:slots+t.env.Replicas], tail[slots+t.env.Replicas:]
	if t.o.Least > 0 {
		t.pace.plan(&t.setting, (t.o.Iterations-t.state.Progress)/t.gain())
	}
	if stop.Err() != nil {
		tail[slotStop] = 1
	}
	t.orders.write(tail, shares)

	var norm float64
	var began, from time.Time // really, and as the pace wants it
	own := t.setting.shares[t.env.Rank]
	for pass := range t.setting.passes {
		began = time.Now()
		from = t.pace.begin(began)
		first := t.state.Samples + uint64(pass*t.setting.pass()+sum(t.setting.shares[:t.env.Rank]))
		square, err := t.accumulate(tail, first, own)
		if err != nil {
			return false, err
		}
		norm += square
		t.pace.pass(stop, from, own)
	}
	computed := time.Now()
	norms[t.env.Rank] = int64(math.Float64bits(norm)) // beside the zeros of the others: the sum is what it was
	if err := t.ring.sum(t.vector); err != nil {
		return false, err
	}
	trained := t.trained()
	t.learn(norms, trained)
	t.pace.step(stop, from, slices.Max(t.setting.shares))
	if !t.pace.hurried(began, from) {
		together := time.Duration(t.pace.together)
		t.window.add(computed.Sub(began)/together, time.Since(began)/together, float64(tail[slotLoss])*unit/float64(max(trained, 1)))
	}
	t.retune(tail, shares)
	return tail[slotStop] > 0, nil
}

// trained is how many samples the step ahead really trains on.
func (t *trainer) trained() int { return standIns(t.state.Samples, t.setting.batch(), t.o.StandIn) }

// accumulate adds the gradients of a pass to the vector, and returns the squared norm of their mean times their number.
func (t *trainer) accumulate(tail []int64, first uint64, count int) (square float64, err error) {
	trained := standIns(first, count, t.o.StandIn)
	if trained == 0 {
		return 0, nil
	}
	clear(t.passSums)
	total, each := t.trained(), uint64(t.o.StandIn)
	for i := (first + each - 1) / each * each; i < first+uint64(count); i += each {
		at := t.order.at(i)
		loss := t.model.gradient(t.state.Parameters, t.data.features[at], t.data.labels[at], t.gradient)
		if err := errors.Join(addExact(t.passSums, t.gradient, total), addExact(tail[slotLoss:slotLoss+1], []float64{loss}, total)); err != nil {
			return 0, err
		}
	}
	for i, s := range t.passSums {
		t.vector[i] += s
	}
	mean(t.gradient, t.passSums, trained)
	return float64(trained) * floats.Dot(t.gradient, t.gradient), nil
}

// learn takes the step that all replicas agreed on.
func (t *trainer) learn(norms []int64, trained int) {
	mean(t.gradient, t.vector[:len(t.gradient)], max(trained, 1))
	var local float64
	for _, bits := range norms {
		local += math.Float64frombits(uint64(bits))
	}
	scatter := t.setting.scatter(local/float64(max(trained, 1)), floats.Dot(t.gradient, t.gradient), t.o.Batch)
	if scatter.Parts == 1 {
		t.state.Statistics.Observe([][]float64{t.gradient}, scatter.Scale)
	} else {
		t.state.Statistics.Take(scatter)
	}
	g := goodput.Gradients(t.statistics())
	factor := t.setting.factor
	if factor == 0 {
		factor = t.o.Scaling.Factor(scatter.Scale, g, goodput.Warmup{})
	}
	floats.AddScaled(t.state.Parameters, -t.o.Rate*factor, t.gradient)
	t.state.Progress += g.Gain(scatter.Scale)
	for range t.pace.together - 1 {
		t.state.Progress += goodput.Gradients(t.statistics()).Gain(scatter.Scale) // which grows as the training goes on
	}
	t.state.Samples += uint64(t.setting.batch() * t.pace.together)
	t.state.Step += uint64(t.pace.together)
}

// gain is the progress of a step, as far as is known before it.
func (t *trainer) gain() float64 {
	return goodput.Gradients(t.statistics()).Gain(float64(t.setting.batch()) / float64(t.o.Batch))
}

// statistics are those of the gradient as the job reports them: measured, or those of the profile when it is paced.
func (t *trainer) statistics() core.Gradients {
	if p := t.o.Profile; p != nil {
		return core.Gradients(p.Gradients(min(int(t.state.Progress/p.IterationsPerEpoch), p.Epochs-1)))
	}
	return goodput.Report(&t.state.Statistics)
}

// retune takes over the tuning that rank 0 told all others, if it did.
func (t *trainer) retune(tail, shares []int64) {
	if tail[slotTuned] == 0 {
		return
	}
	tuning := agent.Tuning{
		BatchPerDevice: int(tail[slotBatch]), AccumulationSteps: int(tail[slotAccumulation]),
		LearningRateFactor: math.Float64frombits(uint64(tail[slotFactor])),
	}
	for _, b := range shares {
		tuning.BatchByReplica = append(tuning.BatchByReplica, int(b))
	}
	t.setting = tuned(tuning, t.o.Batch, t.env.Replicas)
	t.window = window{since: time.Now(), skipped: true} // a report has times of one setting, and enough of them
}

func (w *window) add(pass, step time.Duration, loss float64) {
	if !w.skipped {
		w.skipped = true
		return
	}
	w.pass, w.step = append(w.pass, pass.Seconds()), append(w.step, step.Seconds())
	w.loss += loss
}

// isFull reports whether the window is long enough for a report: it has steps enough that one of them may be disturbed,
// or there are few because they are long.
func (w *window) isFull(every time.Duration) bool {
	const enough, patience = 3, 10
	long := time.Since(w.since)
	return len(w.step) >= enough && long >= every || len(w.step) > 0 && long >= patience*every
}

// median is the one in the middle; it sorts.
func median(seconds []float64) float64 {
	slices.Sort(seconds)
	return seconds[len(seconds)/2]
}

// account is what rank 0 does after a step: it reports, and makes checkpoints.
func (t *trainer) account(stopped bool) error {
	if t.env.Rank != 0 {
		return nil
	}
	if t.window.isFull(t.o.ReportEvery) {
		if err := t.report(); err != nil {
			return err
		}
		t.window = window{since: time.Now(), skipped: true}
	}
	due := t.o.CheckpointEvery > 0 && time.Since(t.checkpoints) >= t.o.CheckpointEvery
	if stopped || due || t.orders.checkpointDue() {
		t.checkpoints = time.Now()
		return t.checkpoint()
	}
	return nil
}

func (t *trainer) report() error {
	w, g := &t.window, t.statistics()
	n := float64(len(w.step))
	loss := w.loss / n
	t.line("step=%d samples=%d progress=%.6g batch=%d loss=%.6g noise_scale=%.4g", t.state.Step, t.state.Samples,
		t.state.Progress, t.setting.batch(), loss, g.Variance/g.SquaredNorm*float64(t.o.Batch))
	if err := t.agent.Metric("loss", float64(t.state.Step), loss); err != nil {
		return err
	}
	return t.agent.Report(agent.Report{
		Replicas: t.env.Replicas, Nodes: t.env.Nodes, BatchPerDevice: t.setting.perDevice(),
		PassSeconds: median(w.pass), StepSeconds: median(w.step), GradientSquare: g.SquaredNorm, GradientVariance: g.Variance,
		Progress: t.state.Progress,
	})
}

func (t *trainer) checkpoint() error {
	if err := t.state.save(t.env.Checkpoint); err != nil || t.env.Checkpoint == "" {
		return err
	}
	return t.agent.Checkpointed(t.state.Progress)
}

func (t *trainer) finish() error {
	if t.env.Rank != 0 {
		return nil
	}
	t.line("done step=%d samples=%d progress=%.6g loss=%.17g", t.state.Step, t.state.Samples, t.state.Progress, t.model.meanLoss(t.state.Parameters, t.data))
	return errors.Join(t.checkpoint(), t.agent.Done())
}

func (t *trainer) line(format string, args ...any) {
	fmt.Fprintf(t.out, "replicas=%d "+format+"\n", append([]any{t.env.Replicas}, args...)...)
}

// orders are what the scheduler told rank 0 and is not done yet.
type orders struct {
	mutex      sync.Mutex
	tuning     *agent.Tuning
	checkpoint bool
}

// follow listens to the scheduler until the function that it returns is called.
func (o *orders) follow(c *agent.Client, stop func()) (end func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			case <-c.Received():
			}
			told := c.Poll()
			o.mutex.Lock()
			if told.Tuning != nil {
				o.tuning = told.Tuning
			}
			o.checkpoint = o.checkpoint || told.Checkpoint != nil
			o.mutex.Unlock()
			if told.Stop != nil {
				stop()
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// write puts a new tuning where all replicas see it.
func (o *orders) write(tail, shares []int64) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if t := o.tuning; t != nil {
		o.tuning = nil
		tail[slotTuned], tail[slotBatch], tail[slotAccumulation] = 1, int64(t.BatchPerDevice), int64(t.AccumulationSteps)
		tail[slotFactor] = int64(math.Float64bits(t.LearningRateFactor))
		for r := range min(len(shares), len(t.BatchByReplica)) {
			shares[r] = int64(t.BatchByReplica[r])
		}
	}
}

func (o *orders) checkpointDue() bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	due := o.checkpoint
	o.checkpoint = false
	return due
}
