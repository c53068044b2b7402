package twin

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// The bounds of what is kept of applications.
const (
	mostApplications = 500
	mostMeasured     = 200 // configurations of an application
	mostReports      = 4   // that earlier reports of a configuration count for, against a new one
	mostSpeeds       = 32
	noiseBins        = 32
)

// application is what jobs of it measured and how fast they were, whoever they are.
type application struct {
	measured []core.Measurement
	version  int // of measured
	noise    noise
	speeds   []float64 // work per second of a job over its replicas and those it asks for; the latest
	round    int       // last heard of
	fits     []speed   // of version fitted
	fitted   int
}

func (a *application) clone() *application {
	c := *a
	c.measured, c.speeds = slices.Clone(a.measured), slices.Clone(a.speeds)
	c.noise = a.noise.clone()
	return &c
}

// measure takes in what a job measured. What agrees with what is known costs no fit.
func (a *application) measure(m core.Measurement) {
	if !(m.PassSeconds > 0 && m.StepSeconds >= m.PassSeconds) || math.IsInf(m.StepSeconds, 1) || min(m.Nodes, m.Replicas, m.PerDevice) < 1 {
		return
	}
	at := slices.IndexFunc(a.measured, m.SameConfiguration)
	switch {
	case at < 0 && len(a.measured) < mostMeasured:
		m.Count = max(m.Count, 1)
		a.measured = append(a.measured, m)
		a.version++
	case at >= 0:
		old := &a.measured[at]
		share := 1 / float64(min(old.Count, mostReports)+1)
		off := math.Abs(m.StepSeconds/old.StepSeconds - 1)
		old.Count++
		if old.Spread += share * (off - old.Spread); off < 1e-9 {
			return
		}
		old.PassSeconds += share * (m.PassSeconds - old.PassSeconds)
		old.StepSeconds += share * (m.StepSeconds - old.StepSeconds)
		a.version++
	}
}

// went takes in how fast a job was.
func (a *application) went(perReplica float64) {
	if len(a.speeds) == mostSpeeds {
		a.speeds = slices.Delete(a.speeds, 0, 1)
	}
	a.speeds = append(a.speeds, perReplica)
}

// speed is how long passes and steps take on an accelerator type.
type speed struct {
	accelerator string
	goodput.Performance
	sigma float64 // of the logarithm of what is so over it, where nothing was measured
}

// fit makes the speeds of what was measured, by accelerator type in the order in which they were met.
func fit(measured []core.Measurement) (speeds []speed) {
	for _, m := range measured {
		if slices.ContainsFunc(speeds, func(s speed) bool { return s.accelerator == m.Accelerator }) {
			continue
		}
		var on []core.Measurement
		for _, o := range measured {
			if o.Accelerator == m.Accelerator {
				on = append(on, o)
			}
		}
		speeds = append(speeds, speed{m.Accelerator, goodput.Fit(on), sigmaOf(on)})
	}
	return speeds
}

// sigmaOf is how far off a fit to the first half of what was measured is on the second half, as if a single one more were off by youngSigma.
func sigmaOf(measured []core.Measurement) float64 {
	squares, n := youngSigma*youngSigma, 1.0
	half := len(measured) / 2
	if half > 0 {
		p := goodput.Fit(measured[:half])
		for _, m := range measured[half:] {
			off := math.Log(p.StepTime(m.Nodes, m.Replicas, float64(m.PerDevice), 0) / m.StepSeconds)
			squares += off*off + m.Spread*m.Spread
			n++
		}
	}
	return math.Sqrt(squares / n)
}

// youngSigma is how far off a fit to a single configuration may be on others, as a logarithm.
const youngSigma = 0.3

// fresh are the speeds of all that was measured; nil for nothing.
func (a *application) fresh() []speed {
	if a == nil || len(a.measured) == 0 {
		return nil
	}
	if a.fitted != a.version {
		a.fits, a.fitted = fit(a.measured), a.version
	}
	return a.fits
}

// on is the speed on an accelerator type, or that on another one where nothing was measured there.
func on(speeds []speed, accelerator string) *speed {
	for i := range speeds {
		if speeds[i].accelerator == accelerator {
			return &speeds[i]
		}
	}
	return &speeds[0]
}

// noise is the gradient noise scale over the progress of jobs, in initial batches: the variance of a gradient over its squared norm. Bins of
// progress double in width when a job comes further than all before.
type noise struct {
	width   float64 // of a bin, in work
	sum     [noiseBins]float64
	squares [noiseBins]float64
	count   [noiseBins]float64
	filled  *curve // made of them when it is asked for; nil before
}

// curve is a noise that is known everywhere: in steps that end at a progress, the last one for ever.
type curve struct {
	ends  []float64
	logs  []float64
	sigma float64 // of the logarithm of one job at one batch from that of all
}

func (n *noise) clone() noise { return *n }

// logNoise is the logarithm of a noise scale; false when the statistics tell nothing.
func logNoise(g core.Gradients) (float64, bool) {
	if !(g.SquaredNorm >= 0 && g.Variance >= 0) || g.SquaredNorm+g.Variance == 0 {
		return 0, false
	}
	return min(max(math.Log(g.Variance/g.SquaredNorm), -mostLog), mostLog), true
}

// mostLog bounds the logarithm of a noise scale: at its ends a larger batch is worth nothing more, or everything.
const mostLog = 30

func (n *noise) add(progress, log float64) {
	if !(progress >= 0) || math.IsInf(progress, 1) {
		return
	}
	if n.width == 0 {
		n.width = max(progress, 1) / (noiseBins / 2)
	}
	for progress >= n.width*noiseBins {
		for i := range noiseBins / 2 {
			n.sum[i], n.squares[i], n.count[i] = n.sum[2*i]+n.sum[2*i+1], n.squares[2*i]+n.squares[2*i+1], n.count[2*i]+n.count[2*i+1]
		}
		clear(n.squares[noiseBins/2:])
		clear(n.sum[noiseBins/2:])
		clear(n.count[noiseBins/2:])
		n.width *= 2
	}
	i := min(int(progress/n.width), noiseBins-1)
	n.sum[i] += log
	n.squares[i] += log * log
	n.count[i]++
	n.filled = nil
}

// curve is nil when nothing is known.
func (n *noise) curve() *curve {
	if n.filled == nil && n.width > 0 {
		n.filled = n.fill()
	}
	return n.filled
}

// fill gives bins that nobody told of the value of those before, and joins equal ones.
func (n *noise) fill() *curve {
	c := &curve{}
	squares, count := 0.0, 0.0
	for i := range noiseBins {
		if n.count[i] == 0 {
			continue
		}
		log := n.sum[i] / n.count[i]
		squares, count = squares+max(n.squares[i]-log*n.sum[i], 0), count+n.count[i]
		if last := len(c.logs) - 1; last >= 0 {
			c.ends[last] = float64(i) * n.width
			if math.Abs(c.logs[last]-log) < 0.01 {
				c.ends[last] = math.Inf(1)
				continue
			}
		}
		c.logs, c.ends = append(c.logs, log), append(c.ends, math.Inf(1))
	}
	c.sigma = math.Sqrt(squares / count)
	return c
}

// at is the logarithm of the noise at a progress.
func (c *curve) at(progress float64) float64 {
	return c.logs[min(upTo(c.ends, progress), len(c.logs)-1)]
}

// applications are those that were met.
type applications map[string]*application

func (a applications) clone() applications {
	c := make(applications, len(a))
	for name, of := range a {
		c[name] = of.clone()
	}
	return c
}

// of is the application of a name, of which something was heard in a round. The one that was heard of least lately makes room.
func (a applications) of(name string, round int) *application {
	of := a[name]
	if of == nil {
		if len(a) >= mostApplications {
			a.forget()
		}
		of = &application{fitted: -1}
		a[name] = of
	}
	of.round = round
	return of
}

func (a applications) forget() {
	var oldest string
	for name, of := range a {
		if o := a[oldest]; o == nil || cmp.Or(cmp.Compare(of.round, o.round), cmp.Compare(name, oldest)) < 0 {
			oldest = name
		}
	}
	delete(a, oldest)
}

// median of some values; NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
