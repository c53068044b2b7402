package twin

import (
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Bands are calibrated by what became of jobs, as in normalised conformal prediction (Papadopoulos et al. 2002), with a miss rate that adapts to drift (Gibbs and Candès,
// NeurIPS 2021): the score of an earlier forecast is how far what happened was from its median, in half widths of its draws, both in logarithms of the time to come; the bands of later
// ones reach from the lower to the upper quantile of the recent scores.

// Calibration is how well bands held so far, as they were shown.
type Calibration struct{ Starts, Ends Coverage }

// Coverage is how often a moment lay in the band that was shown of it.
type Coverage struct {
	Resolved int // forecasts of which it is known
	Inside   int
	// ErrorRatio is the median of how far the median of a band was off, over the time that it really took from the forecast on; NaN without any.
	ErrorRatio float64

	errors []float64 // the latest
}

// Ratio is the part that held; NaN where nothing is known.
func (c *Coverage) Ratio() float64 { return float64(c.Inside) / float64(c.Resolved) }

const (
	mostScores = 2000 // that are remembered
	priorCount = 20   // scores that the draws alone count as
	leastHalf  = 0.1  // least half width of a band, as a logarithm: what a job will do is never certain
	adaption   = 0.01 // how fast the aimed-at miss rates follow the misses
	leastTail  = 0.005
	mostTail   = 0.4
)

// shown is a forecast of a job that was shown and is not resolved.
type shown struct {
	at    float64
	raw   Band
	band  Band
	floor float64 // seconds: less to come counts as so much
}

// scale is how the scores of one kind of moment were, and which quantiles of them bands reach to.
type scale struct {
	scores    []float64 // the latest, in order of time
	low, high float64   // tails that are aimed at
	coverage  Coverage
}

// calibrator learns from forecasts that were shown.
type calibrator struct {
	open         map[core.JobID]*openForecasts
	starts, ends scale
}

// openForecasts are those of a job.
type openForecasts struct {
	starts, ends []shown
}

func newCalibrator() calibrator {
	const tail = (1 - BandRatio) / 2
	fresh := scale{low: tail, high: tail, coverage: Coverage{ErrorRatio: math.NaN()}}
	return calibrator{open: map[core.JobID]*openForecasts{}, starts: fresh, ends: fresh}
}

// ObserveRound learns which forecasts held.
func (f *Forecaster) ObserveRound(r *core.Report) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for i := range r.Changes {
		if c := &r.Changes[i]; c.Action == core.Start {
			if o := f.open[c.Job]; o != nil {
				f.starts.resolve(o.starts, r.View.NowSeconds)
				o.starts = o.starts[:0]
			}
		}
	}
	for _, j := range r.Ended {
		if o := f.open[j.ID]; o != nil {
			if j.State == core.Completed || j.State == core.Failed {
				f.ends.resolve(o.ends, j.FinishSeconds)
			}
			delete(f.open, j.ID)
		}
	}
	return nil
}

// show calibrates the bands of a forecast and notes them.
func (c *calibrator) show(f *Forecast, v *core.View) {
	floor := max(v.IntervalSeconds, 1)
	starts, ends := c.starts.reach(), c.ends.reach()
	for i := range f.Jobs {
		j := &f.Jobs[i]
		o := c.open[j.ID]
		if o == nil {
			o = &openForecasts{}
			c.open[j.ID] = o
		}
		j.Start, j.End = j.rawStart, ends.band(f.AtSeconds, j.rawEnd, floor)
		if !j.Running {
			j.Start = starts.band(f.AtSeconds, j.rawStart, floor)
			o.starts = noted(o.starts, shown{f.AtSeconds, j.rawStart, j.Start, floor})
		}
		o.ends = noted(o.ends, shown{f.AtSeconds, j.rawEnd, j.End, floor})
	}
	f.Calibration = Calibration{c.starts.coverage.told(), c.ends.coverage.told()}
	if n := c.ends.coverage.Resolved; n < priorCount {
		f.Notes = append(f.Notes, fmt.Sprintf("the bands rest on what is drawn: only %d earlier forecasts of ends can be judged", n))
	}
}

// mostShown is how many forecasts of a job are remembered until it is known what became of it: of more, every second one.
const mostShown = 64

func noted(list []shown, s shown) []shown {
	if len(list) == mostShown {
		for i := range mostShown / 2 {
			list[i] = list[2*i+1]
		}
		list = list[:mostShown/2]
	}
	return append(list, s)
}

// ahead is the time to come until a moment.
func (s *shown) ahead(seconds float64) float64 { return max(seconds-s.at, s.floor) }

// halves are the half widths of a band in logarithms.
func halves(at float64, b Band, floor float64) (median, low, high float64) {
	ahead := func(seconds float64) float64 { return math.Log(max(seconds-at, floor)) }
	median = ahead(b.Median)
	low, high = median-ahead(b.Low), ahead(b.High)-median
	if math.IsInf(median, 1) {
		return median, leastHalf, leastHalf
	}
	if math.IsInf(high, 1) {
		high = max(low, 1)
	}
	return median, max(low, leastHalf), max(high, leastHalf)
}

// reach is how far bands reach, in half widths of their draws.
type reach struct{ low, median, high float64 }

// reach is how far the scores, and the prior that the draws are right, have bands reach. O(scores).
func (s *scale) reach() reach {
	all := slices.Clone(s.scores)
	const most = 1 / BandRatio // of an even distribution of which BandRatio lies between -1 and 1
	for i := range priorCount {
		all = append(all, most*(2*(float64(i)+0.5)/priorCount-1))
	}
	slices.Sort(all)
	return reach{quantile(all, s.low), quantile(all, 0.5), quantile(all, 1-s.high)}
}

// band is a band as earlier scores have it.
func (r reach) band(at float64, raw Band, floor float64) Band {
	median, low, high := halves(at, raw, floor)
	if math.IsInf(median, 1) {
		return raw
	}
	of := func(score float64) float64 {
		if score < 0 {
			return at + math.Exp(median+score*low)
		}
		return at + math.Exp(median+score*high)
	}
	b := Band{of(r.low), of(r.median), of(r.high)}
	b.Low, b.High = max(min(b.Low, b.Median-floor), at), max(b.High, b.Median+floor)
	return b
}

// resolve judges forecasts by what happened.
func (s *scale) resolve(list []shown, seconds float64) {
	for i := range list {
		f := &list[i]
		real := f.ahead(seconds)
		median, low, high := halves(f.at, f.raw, f.floor)
		if math.IsInf(median, 1) {
			continue
		}
		score := (math.Log(real) - median)
		if score < 0 {
			score /= low
		} else {
			score /= high
		}
		if s.scores = append(s.scores, score); len(s.scores) > mostScores {
			s.scores = s.scores[len(s.scores)-mostScores:]
		}
		c := &s.coverage
		c.Resolved++
		below, above := seconds < f.band.Low, seconds > f.band.High
		if !below && !above {
			c.Inside++
		}
		const tail = (1 - BandRatio) / 2
		s.low = adapted(s.low, tail, below)
		s.high = adapted(s.high, tail, above)
		c.errors = append(c.errors, math.Abs(f.band.Median-seconds)/real)
		if len(c.errors) > mostScores {
			c.errors = c.errors[1:]
		}
	}
}

// adapted is a tail that is aimed at, after a hit or a miss.
func adapted(tail, wanted float64, missed bool) float64 {
	miss := 0.0
	if missed {
		miss = 1
	}
	return min(max(tail+adaption*(wanted-miss), leastTail), mostTail)
}

// told is the coverage with what is computed of it.
func (c *Coverage) told() Coverage {
	t := Coverage{Resolved: c.Resolved, Inside: c.Inside, ErrorRatio: math.NaN()}
	if len(c.errors) > 0 {
		t.ErrorRatio = quantile(slices.Sorted(slices.Values(c.errors)), 0.5)
	}
	return t
}

// Calibration is how well the bands held that were shown so far.
func (f *Forecaster) Calibration() Calibration {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return Calibration{f.starts.coverage.told(), f.ends.coverage.told()}
}
