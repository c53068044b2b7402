package elasticity

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/core/optim/losscurve"
)

// LossGainConfig configures NewLossGain.
type LossGainConfig struct {
	// Metrics are names of metrics; the first that is reported is the one that counts.
	Metrics []string `config:"metrics" doc:"a job is judged by the first of these that it reports"`
	// Rising are the metrics that are better the larger they are.
	Rising []string `config:"rising" doc:"which metrics are better the larger they are; all others, the smaller"`
	// Horizon is how far ahead it is predicted what a job gains.
	Horizon time.Duration `config:"horizon" doc:"for how long ahead it is predicted what a job gains" min:"1s"`
	// Restart is how much of the horizon is lost on another number of replicas.
	Restart time.Duration `config:"restart" doc:"how much of that is lost on another number of replicas than the job has: what a change costs it" min:"0s"`
	// Decay is what the weight of a report is multiplied by with each newer one.
	Decay float64 `config:"decay" doc:"what the weight of a report is multiplied by with each newer one" min:"0.01" max:"1"`
	// Batch says whether the total batch stays as requested or is tuned by goodput.
	Batch string `config:"batch" doc:"requested keeps the total batch of a job; goodput tunes it to what the job gets, and learns how the job scales as the elasticity of that name does" enum:"requested|goodput"`
	// FixedBatch are applications that keep the requested batch.
	FixedBatch []string `config:"fixed_batch" doc:"with batch goodput: applications that keep the batch the user asked for"`
	// Knowledge is what is known of a job that starts.
	Knowledge string `config:"knowledge" doc:"how a job scales: learned from what it measures, or oracle, the truth" enum:"learned|oracle"`
	// SilentAfter is how long a job may work without reporting before it is taken to report nothing.
	SilentAfter time.Duration `config:"silent_after" doc:"with batch goodput: a job that has worked for so long and measured nothing is taken to measure nothing" min:"0s"`
	// MostReplicas is up to how many replicas curves are given.
	MostReplicas int `config:"most_replicas" doc:"replicas up to which gains are given" min:"1"`
}

// tunedBatch is the batch of LossGainConfig that is tuned.
const tunedBatch = "goodput"

// Capabilities are those that knowing the truth needs.
func (c LossGainConfig) Capabilities() []core.Capability {
	switch {
	case c.Batch == tunedBatch:
		return c.goodput().Capabilities()
	case c.Knowledge == oracle:
		return []core.Capability{core.CapabilityStepTimes}
	}
	return nil
}

// CountedRestart is the pause that a change of the replicas is charged, and the setting that says so.
func (c LossGainConfig) CountedRestart() (pause time.Duration, setting string) {
	return c.Restart, "restart"
}

func (c LossGainConfig) goodput() GoodputConfig {
	return GoodputConfig{
		Knowledge: c.Knowledge, Types: eachType, FixedBatch: c.FixedBatch, UnmeasuredSeconds: 600, ScalingRule: string(goodput.AdaScale),
		SilentAfter: c.SilentAfter, MostReplicas: c.MostReplicas,
	}
}

// Validate reports what leaves nobody to be judged, or nothing to be gained.
func (c *LossGainConfig) Validate() error {
	var problems core.Diagnostics
	if len(c.Metrics) == 0 {
		problems = append(problems, core.Diagnostic{Path: "metrics", Summary: "is empty: no job could be judged", Hint: "name what jobs report, such as [loss]"})
	}
	if c.Restart >= c.Horizon {
		problems = append(problems, core.Diagnostic{Path: "restart", Summary: "leaves nothing of the horizon: no change could gain anything", Hint: "make horizon longer, or restart shorter"})
	}
	return problems.Err()
}

// NewLossGain predicts, for each number of replicas, by how much a job's loss falls next.
//
// Source: SLAQ (SoCC'17). The rate on a replicas is l(k) - l̂(k + T/τ(a)) over the horizon T: k is the step that the job reported last, l̂ the loss that
// is forecast from its reports (see [losscurve.Fitter]), and τ(a) the seconds of a step. It is counted in the largest change from one report to the next that the
// job has seen, so that losses of all kinds compare, times the weight of the job. An allocation that makes the sum of these the largest is SLAQ:
// elastic_dp is exact.
//
// τ(a) follows from the steps reported so far and the time that they took, and from how the job scales: c₁/a + c₀ fitted to the step times that it
// measures, or true step times, at the batch that was requested; or its goodput. What a job has not measured is taken to scale perfectly, up to twice the replicas that it ran on.
//
// Until a job has reported two values its loss is taken to fall as 1/(1+k) with its k-th report, from the first of which on comes the largest change. It reports as often as it
// did so far, or once in the horizon at its usual speed as long as it has run for less than that. A job whose reports are all equal, and one that has converged, is worth next
// to nothing: it gets what nobody else gains by. Of one that is thrown back to a checkpoint the reports count that still hold.
//
// Deviations: the forecast starts at the last report, not at what the job has done since, so that an answer stands until the job reports again. The time
// of a step is that over the whole life of the job, pauses included, where the publication takes the last epochs. A change may cost something (restart), and the batch may be tuned.
// Jobs that report rarely, say after long epochs, count a change for less than those that report often. O(replicas + reports) for a job that reported.
func NewLossGain() core.Factory[core.Elasticity] {
	return core.NewFactory(core.Info{
		Type:    "loss_gain",
		Summary: "predicts how much the loss of a job falls next, by its replicas",
		Description: "Fits convex curves to the losses, or accuracies, that a job reports, and predicts by how much it gets better within a horizon on each number of replicas, as a part of the largest change from one report to the next that it has seen. " +
			"With the allocation elastic_dp that is SLAQ. Of a job that has reported fewer than two values, the loss is taken to fall as 1/(1+k). " +
			"It needs a backend whose jobs report, and runs in the process of the scheduler: docs/reports-of-jobs.md. O(replicas + reports) for a job that reported.",
		Source: "SLAQ, SoCC'17",
	}, LossGainConfig{
		Metrics: []string{"loss", "accuracy"}, Rising: []string{"accuracy"}, Horizon: time.Minute, Decay: losscurve.DefaultDecay,
		Batch: requested, Knowledge: learned, SilentAfter: time.Minute, MostReplicas: 64,
	}, func(c LossGainConfig, s core.Settings) (core.Elasticity, error) {
		if !(c.Horizon > 0) {
			return nil, errors.New("horizon: must be above 0")
		}
		agent, err := newGoodputAgent(c.goodput(), s)
		if err != nil {
			return nil, err
		}
		return &lossGain{
			goodputAgent: agent.(*goodputAgent),
			settings:     c,
			fitter:       losscurve.Fitter{Decay: c.Decay},
			constant:     fixed{elastic: true, oracle: c.Knowledge == oracle, linear: map[span][]core.Curve{}, measured: map[*core.StepTimes]knownTimes{}},
		}, nil
	})
}

type lossGain struct {
	*goodputAgent // says how jobs scale where batches are tuned, and tunes them
	settings      LossGainConfig
	fitter        losscurve.Fitter
	constant      fixed // does so where they are not, as far as step times are known

	perNode int // devices of the largest node
	losses  []losscurve.Point
	points  []core.Point // that losses are of
	gains   []core.Response
}

// FollowsReports has the policy asked about a job soon after it reported.
func (p *lossGain) FollowsReports() bool { return true }

// Respond returns gains a second, counted in largest changes.
func (p *lossGain) Respond(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	speeds, err := p.speeds(ctx, v, jobs)
	if err != nil {
		return nil, err
	}
	p.gains, p.perNode = p.gains[:0], v.Cluster.LargestNode()
	for i, j := range jobs {
		r := speeds[i]
		if len(r.Curves) == 0 || p.settings.Batch == requested && (!p.constant.oracle || j.StepTimes == nil) {
			r.Curves = []core.Curve{scaling(j, min(r.MaxReplicas, p.settings.MostReplicas))}
		}
		gain := p.gainOf(v.Cluster, j, r.Curves)
		p.gains = append(p.gains, core.Response{
			Job: j.ID, MinReplicas: r.MinReplicas, MaxReplicas: r.MaxReplicas, Curves: gain.curves(r.Curves), RemainingWork: math.NaN(), SingleDeviceRate: 1,
		})
	}
	return p.gains, nil
}

// speeds are the ranges of jobs and, where it is known, how they scale.
func (p *lossGain) speeds(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	if p.settings.Batch == requested {
		return p.constant.Respond(ctx, v, jobs)
	}
	return p.goodputAgent.Respond(ctx, v, jobs)
}

// Tune splits the requested batch over the replicas, or chooses one.
func (p *lossGain) Tune(ctx context.Context, v *core.View, placements []core.Placement) ([]core.Tuning, error) {
	if p.settings.Batch == requested {
		return p.constant.Tune(ctx, v, placements)
	}
	return p.goodputAgent.Tune(ctx, v, placements)
}

// Standing is for ever where batches are not tuned: a job that reports is asked about again.
func (p *lossGain) Standing() core.Standing {
	if p.settings.Batch == requested {
		return p.constant.Standing()
	}
	return p.goodputAgent.Standing()
}

// scaling is how a job scales by what it measured: batches of the requested size a second, by replicas. The seconds of one are c₁/a + c₀, the least squares
// of which none is negative; where nothing was measured, the reciprocal of the replicas. More than twice the replicas that it measured, or asks for before it did, are taken to be no faster.
func scaling(j *core.Job, most int) core.Curve {
	var n, x, xx, y, xy float64
	seen := 0
	batch := float64(max(j.Batch.Requested, 1))
	for i := range j.Measured {
		m := &j.Measured[i]
		samples := float64(m.Replicas) * float64(m.PerDevice)
		if !(samples > 0 && m.StepSeconds > 0) {
			continue
		}
		seen = max(seen, 2*m.Replicas)
		seconds := m.StepSeconds
		if passes := math.Ceil(batch / samples); passes > 1 && j.Batch.Requested > 0 {
			seconds, samples = seconds+(passes-1)*m.PassSeconds, passes*samples
		}
		seconds *= batch / samples
		inverse := 1 / float64(m.Replicas)
		n, x, xx, y, xy = n+1, x+inverse, xx+inverse*inverse, y+seconds, xy+seconds*inverse
	}
	parallel, rest := 1.0, 0.0
	if n > 0 && xy > 0 && !math.IsInf(xy, 1) {
		parallel = xy / xx
		if spread := n*xx - x*x; spread > 1e-9*n*xx {
			switch slope := (n*xy - x*y) / spread; {
			case slope <= 0:
				parallel, rest = 0, y/n
			case y > slope*x:
				parallel, rest = slope, (y-slope*x)/n
			}
		}
	}
	if seen == 0 {
		seen = max(j.Requested, 1)
	}
	speeds := make([]float64, most)
	for i := range speeds {
		speeds[i] = 1 / (parallel/float64(min(i+1, seen)) + rest)
	}
	return core.Curve{OneNode: speeds, ManyNodes: speeds}
}

// jobGain is what a job gains by its speed.
type jobGain struct {
	steps    float64 // in the horizon, for each unit of speed
	forecast losscurve.Forecast
	known    bool    // there is a forecast
	largest  float64 // change from report to report so far; 0 where all values are equal
	scale    float64 // what a largest change is worth
	usual    float64 // the speed at which it trained
	held     int     // its replicas
	moved    float64 // part of the horizon that is left on another number
}

const (
	// nothing is what a job is worth at its usual speed that gains nothing, in largest changes: enough for devices that nobody gains by.
	nothing = 1e-6
	// mostGain bounds gains, so that their sums are numbers.
	mostGain = 1e100
)

// gainOf looks at what a job reported.
func (p *lossGain) gainOf(c *core.Cluster, j *core.Job, speeds []core.Curve) jobGain {
	horizon := p.settings.Horizon.Seconds()
	g := jobGain{scale: 1 / horizon, held: j.Held, moved: 1 - p.settings.Restart.Seconds()/horizon}
	if j.Weight > 0 {
		g.scale *= j.Weight
	}
	points, diverged := p.take(j)
	ran, service := j.Executed, j.Attained
	if last := len(points) - 1; last >= 0 && j.Held > 0 {
		if since := points[last].AtSeconds - j.AsOfSeconds; since > 0 {
			ran, service = ran+since, service+since*float64(j.Held)*j.Part()
		}
	}
	g.usual = p.usualSpeed(c, j, speeds, ran, service)
	if diverged {
		g.known = true // and no change: it gains nothing
		return g
	}
	if len(points) < 2 {
		took := ran // to the first report, which it may not have told yet
		if len(points) == 0 || took <= 0 {
			took = max(ran, horizon)
		}
		g.steps = horizon / took / g.usual
		return g
	}
	if ran > 0 {
		last := points[len(points)-1].Step
		did := last - points[0].Step + (points[1].Step - points[0].Step) // to the first report it did as much as to the second one
		g.steps = horizon * did / ran / g.usual
	}
	usually := (points[len(points)-1].Step - points[0].Step) / float64(len(points)-1) // steps from report to report
	for i, point := range points[1:] {
		if change := math.Abs(point.Value-points[i].Value) / (point.Step - points[i].Step) * usually; change <= math.MaxFloat64 {
			g.largest = max(g.largest, change)
		}
	}
	g.forecast, g.known = p.fitter.Forecast(p.losses)
	return g
}

// take takes the metric by which a job is judged, and writes it down as losses. The points are as they were told, but for those that are not finite: no
// curve goes through them. A job diverged where the last one is not.
func (p *lossGain) take(j *core.Job) (points []core.Point, diverged bool) {
	p.losses, p.points = p.losses[:0], p.points[:0]
	for _, metric := range p.settings.Metrics {
		s := j.Series(metric)
		if s == nil || len(s.Points) == 0 {
			continue
		}
		sign := 1.0
		if slices.Contains(p.settings.Rising, metric) {
			sign = -1
		}
		for _, point := range s.Points {
			if !point.Diverged() {
				p.losses, p.points = append(p.losses, losscurve.Point{Step: point.Step, Loss: sign * point.Value}), append(p.points, point)
			}
		}
		return p.points, s.Points[len(s.Points)-1].Diverged()
	}
	return nil, false
}

// usualSpeed is the speed of a job on as many replicas as it had on average; before it ran, on those that it asks for. Above 0.
func (p *lossGain) usualSpeed(c *core.Cluster, j *core.Job, speeds []core.Curve, ran, service float64) float64 {
	replicas := float64(max(j.Requested, 1))
	if ran > 0 && service > 0 {
		replicas = max(service/ran/j.Part(), 1)
	}
	r, t := core.Response{Curves: speeds}, core.AcceleratorID(0)
	if len(j.Seats) > 0 {
		t = c.Nodes[j.Seats[0].Node].Accelerator
	}
	most := 0
	for _, curve := range speeds {
		most = max(most, len(curve.OneNode), len(curve.ManyNodes))
	}
	for n := int(min(math.Round(replicas), float64(most))); n >= 1; n-- {
		if speed := r.Rate(t, n, p.perNode); speed > 0 {
			return speed * replicas / float64(n)
		}
	}
	for n := 1; n <= most; n++ {
		if speed := r.Rate(t, n, p.perNode); speed > 0 {
			return speed
		}
	}
	return 1
}

// curves are what a job gains, a second, by its replicas. They are its own until its next response.
func (g *jobGain) curves(speeds []core.Curve) []core.Curve {
	gains := make([]core.Curve, 0, len(speeds))
	for i := range speeds {
		one, many := speeds[i].OneNode, speeds[i].ManyNodes
		curve := core.Curve{OneNode: g.each(one)}
		if curve.ManyNodes = curve.OneNode; len(many) != len(one) || len(one) > 0 && &many[0] != &one[0] {
			curve.ManyNodes = g.each(many)
		}
		gains = append(gains, curve)
	}
	return gains
}

func (g *jobGain) each(speeds []float64) []float64 {
	gains := make([]float64, len(speeds))
	for i, speed := range speeds {
		gains[i] = g.at(speed, i+1)
	}
	return gains
}

// at is what the job gains at a speed: 0 only where it cannot run.
func (g *jobGain) at(speed float64, replicas int) float64 {
	if !(speed > 0) {
		return 0
	}
	steps := g.steps * speed
	if replicas != g.held {
		steps *= g.moved
	}
	gain := 0.0
	switch {
	case !g.known:
		gain = 2 * steps / (1 + steps) // of 1/(1+k), in its first step
		if steps > 1e9 {
			gain = 2
		}
	case g.largest > 0:
		gain = (g.forecast.Last.Loss - g.forecast.At(g.forecast.Last.Step+steps)) / g.largest
	}
	gain = (gain + nothing*min(speed/g.usual, 1e9)) * g.scale
	return min(gain, mostGain)
}
