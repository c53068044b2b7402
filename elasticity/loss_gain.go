package elasticity

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim/losscurve"
)

// LossGainConfig configures NewLossGain.
type LossGainConfig struct {
	Metrics   []string      `config:"metrics" doc:"a job is judged by the first of these that it reports"`
	Rising    []string      `config:"rising" doc:"which metrics are better the larger they are; of all others, the smaller"`
	Horizon   time.Duration `config:"horizon" doc:"for how long ahead it is predicted what a job gains" min:"1s"`
	Decay     float64       `config:"decay" doc:"what the weight of a report is multiplied by with each newer one" min:"0.01" max:"1"`
	Knowledge string        `config:"knowledge" doc:"how a job scales: learned from what it measures, or oracle, the true step times" enum:"learned|oracle"`
}

// Capabilities are those that reading step times needs.
func (c LossGainConfig) Capabilities() []core.Capability {
	if c.Knowledge == oracle {
		return []core.Capability{core.CapabilityStepTimes}
	}
	return nil
}

// Validate refuses a list without metrics, by which nobody could be judged.
func (c *LossGainConfig) Validate() error {
	if len(c.Metrics) == 0 {
		return core.Diagnostics{{Path: "metrics", Summary: "is empty: no job could be judged", Hint: "name what jobs report, such as [loss]"}}
	}
	return nil
}

// NewLossGain tells, for each number of replicas, by how much a job's loss is predicted to fall next.
//
// Source: SLAQ (SoCC'17). The rate on a replicas is l(k) - l̂(k + T/τ(a)) over the horizon T: k is the step that the job reported last, l̂ the loss that
// is forecast from its reports (see [losscurve.Fitter]), and τ(a) the seconds of a step. It is counted in the largest change of a step that the
// job has seen, so that losses of all kinds compare, times the weight of the job. An allocation that makes the sum of these the largest is SLAQ:
// elastic_dp is exact. The total batch stays as it was requested.
//
// τ(a) follows from the steps told so far and the time that it took, and from how step times go with the replicas: c₁/a + c₀, fitted to what the job
// measures, or the truth. A job that has not measured anything is taken to scale perfectly.
//
// Until a job has told two values, a step of it is worth the largest change: it starts with as many steps in the horizon as it took to the first
// report, or one at its requested replicas as long as it has run for less than the horizon. A job whose reports are all equal, and one that has converged, is worth next to nothing:
// it gets what nobody else can use. Of a job that is thrown back to a checkpoint only the reports that still hold count.
//
// Deviations: the forecast starts at the last report, not at what the job has done since, so that an answer stands until the job reports again. The time
// of a step is that over the whole job, pauses included, where the publication takes the last epochs. O(replicas + reports) for a job that reported.
func NewLossGain() core.Factory[core.Elasticity] {
	return core.NewFactory(core.Info{
		Type:    "loss_gain",
		Summary: "tells how much the loss of a job is predicted to fall next, by its replicas",
		Description: "Fits convex curves to the losses, or accuracies, that a job reports, and tells by how much it is predicted to get better within a horizon on each number of replicas, as a part of the largest change of a step that it has seen. " +
			"With the allocation elastic_dp that is SLAQ. The total batch stays as requested. A job that has told fewer than two values is taken to change as much as it can in each step. " +
			"It needs a backend whose jobs report: docs/reports-of-jobs.md. O(replicas + reports) for a job that reported.",
		Source: "SLAQ, SoCC'17",
	}, LossGainConfig{
		Metrics: []string{"loss", "accuracy"}, Rising: []string{"accuracy"}, Horizon: time.Minute, Decay: losscurve.DefaultDecay, Knowledge: learned,
	}, func(c LossGainConfig, _ core.Settings) (core.Elasticity, error) {
		if !(c.Horizon > 0) {
			return nil, errors.New("horizon: is not above 0")
		}
		knows := c.Knowledge == oracle
		return &lossGain{
			config: c,
			fitter: losscurve.Fitter{Decay: c.Decay},
			rigid:  fixed{elastic: true, oracle: knows, linear: map[span][]core.Curve{}, measured: map[*core.StepTimes]told{}},
		}, nil
	})
}

type lossGain struct {
	config LossGainConfig
	fitter losscurve.Fitter
	rigid  fixed // tells ranges, and how jobs scale where it is known; splits batches

	perNode   int // devices of the largest node
	points    []losscurve.Point
	responses []core.Response
}

// FollowsReports has the policy asked about a job that reports, in time.
func (p *lossGain) FollowsReports() bool { return true }

func (p *lossGain) Respond(_ context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	p.responses, p.perNode = p.responses[:0], v.Cluster.LargestNode()
	for _, j := range jobs {
		r := p.rigid.respond(v.Cluster, j)
		r.Curves, r.RemainingWork, r.Unlike, r.Alone = p.curves(v.Cluster, j, &r), math.NaN(), nil, 1
		p.responses = append(p.responses, r)
	}
	return p.responses, nil
}

// curves are what a job gains by its replicas, on each type that it is known to scale on. They are the job's own until its next response.
func (p *lossGain) curves(c *core.Cluster, j *core.Job, r *core.Response) []core.Curve {
	speeds := r.Curves
	if !p.rigid.oracle || j.StepTimes == nil {
		speeds = []core.Curve{p.learn(j, r.MaxReplicas)}
	}
	g := p.gainOf(c, j, speeds)
	gains := make([]core.Curve, 0, len(speeds))
	for i := range speeds {
		one, many := speeds[i].OneNode, speeds[i].ManyNodes
		all := make([]float64, 0, len(one)+len(many))
		for _, speed := range one {
			all = append(all, g.at(speed))
		}
		if len(many) == len(one) && (len(one) == 0 || &many[0] == &one[0]) {
			gains = append(gains, core.Curve{OneNode: all, ManyNodes: all})
			continue
		}
		for _, speed := range many {
			all = append(all, g.at(speed))
		}
		gains = append(gains, core.Curve{OneNode: all[:len(one):len(one)], ManyNodes: all[len(one):]})
	}
	return gains
}

// learn is how a job scales by what it measured: the batches of the requested size that it does in a second on each number of replicas. The seconds are c₁/a + c₀, the least
// squares of which none is negative; where nothing was measured, the reciprocal of the replicas.
func (p *lossGain) learn(j *core.Job, most int) core.Curve {
	var n, x, xx, y, xy float64
	batch := float64(max(j.Batch.Requested, 1))
	for i := range j.Measured {
		m := &j.Measured[i]
		samples := float64(m.Replicas) * float64(m.PerDevice)
		if !(samples > 0 && m.StepSeconds > 0) {
			continue
		}
		seconds := m.StepSeconds
		if passes := math.Ceil(batch / samples); passes > 1 && j.Batch.Requested > 0 {
			seconds, samples = seconds+(passes-1)*m.PassSeconds, passes*samples
		}
		seconds *= batch / samples
		inverse := 1 / float64(m.Replicas)
		n, x, xx, y, xy = n+1, x+inverse, xx+inverse*inverse, y+seconds, xy+seconds*inverse
	}
	parallel, rest := 1.0, 0.0
	if n > 0 {
		parallel = xy / xx
	}
	if spread := n*xx - x*x; spread > 1e-9*xx*n {
		parallel, rest = (n*xy-x*y)/spread, (y*xx-x*xy)/spread
		switch {
		case rest < 0:
			parallel, rest = xy/xx, 0
		case parallel < 0:
			parallel, rest = 0, y/n
		}
	}
	speeds := make([]float64, most)
	for i := range speeds {
		speeds[i] = 1 / (parallel/float64(i+1) + rest)
	}
	return core.Curve{OneNode: speeds, ManyNodes: speeds}
}

// lossGainOf is what a job gains by its speed.
type lossGainOf struct {
	steps    float64 // of the reports that it does in the horizon, by its speed: so many times it
	forecast losscurve.Forecast
	known    bool    // there is a forecast; otherwise each step is worth the largest change
	largest  float64 // change of a step so far; 0 where all values are equal
	scale    float64 // what a largest change is worth
	usual    float64 // the speed at which it trained
}

// nothing is what a job is worth that gains nothing, at the speed at which it trained and in largest changes: enough for devices that nobody else can use.
const nothing = 1e-6

// at is the gain at a speed, a second: 0 only where the job cannot run.
func (g *lossGainOf) at(speed float64) float64 {
	if !(speed > 0) {
		return 0
	}
	steps := g.steps * speed
	gain := steps
	if g.known {
		gain = 0
		if g.largest > 0 {
			gain = (g.forecast.Last.Loss - g.forecast.At(g.forecast.Last.Step+steps)) / g.largest
		}
	}
	gain = (gain + nothing*speed/g.usual) * g.scale
	if math.IsNaN(gain) {
		return 0
	}
	return min(gain, mostGain)
}

// mostGain bounds gains, so that sums of them are numbers.
const mostGain = 1e100

// gainOf looks at what a job reported.
func (p *lossGain) gainOf(c *core.Cluster, j *core.Job, speeds []core.Curve) lossGainOf {
	horizon := p.config.Horizon.Seconds()
	g := lossGainOf{scale: 1 / horizon}
	if j.Weight > 0 {
		g.scale *= j.Weight
	}
	points := p.take(j)
	ran, service := j.Executed, j.Attained
	if last := len(points) - 1; last >= 0 {
		if since := points[last].AtSeconds - j.AsOfSeconds; since > 0 && j.Held > 0 {
			ran, service = ran+since, service+since*float64(j.Held)*j.Part()
		}
	}
	g.usual = p.usualSpeed(c, j, speeds, ran, service)
	if len(points) < 2 {
		reported := horizon // with less, it has hardly begun
		if len(points) == 1 && ran > 0 {
			reported = ran
		}
		g.steps = horizon / max(ran, reported) / g.usual
		return g
	}
	first, second, last := points[0], points[1], points[len(points)-1]
	done := last.Step - first.Step + (second.Step - first.Step) // the first report took as long as the second one
	if ran > 0 {
		g.steps = horizon * done / ran / g.usual
	}
	for i, point := range points[1:] {
		if change := math.Abs(point.Value-points[i].Value) / (point.Step - points[i].Step); change <= math.MaxFloat64 {
			g.largest = max(g.largest, change)
		}
	}
	g.forecast, g.known = p.fitter.Forecast(p.points)
	return g
}

// take takes the metric by which a job is judged, and writes it down as a loss. The values are as they were told.
func (p *lossGain) take(j *core.Job) []core.Point {
	p.points = p.points[:0]
	for _, metric := range p.config.Metrics {
		s := j.Series(metric)
		if s == nil || len(s.Points) == 0 {
			continue
		}
		sign := 1.0
		if slices.Contains(p.config.Rising, metric) {
			sign = -1
		}
		for _, point := range s.Points {
			p.points = append(p.points, losscurve.Point{Step: point.Step, Loss: sign * point.Value})
		}
		return s.Points
	}
	return nil
}

// usualSpeed is the speed of a job on as many replicas as it had on average; on those that it asks for before it ran. Never 0.
func (p *lossGain) usualSpeed(c *core.Cluster, j *core.Job, speeds []core.Curve, ran, service float64) float64 {
	replicas := float64(max(j.Requested, 1))
	if ran > 0 && service > 0 {
		replicas = max(service/ran/j.Part(), 1)
	}
	t := 0
	if len(j.Seats) > 0 {
		t = int(c.Nodes[j.Seats[0].Node].Accelerator)
	}
	r := core.Response{Curves: speeds}
	for n := int(math.Round(replicas)); n >= 1; n-- {
		if speed := r.Rate(core.AcceleratorID(t), n, p.perNode); speed > 0 {
			return speed * replicas / float64(n)
		}
	}
	for n := int(replicas) + 1; n <= j.MaxReplicas; n++ {
		if speed := r.Rate(core.AcceleratorID(t), n, p.perNode); speed > 0 {
			return speed
		}
	}
	return 1
}

// Tune splits the requested batch over the replicas.
func (p *lossGain) Tune(ctx context.Context, v *core.View, placements []core.Placement) ([]core.Tuning, error) {
	return p.rigid.Tune(ctx, v, placements)
}

// Standing is for ever: a job that reports is asked about again.
func (p *lossGain) Standing() core.Standing { return p.rigid.Standing() }
