package twin

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
)

// Bands are calibrated by what became of jobs, as in normalised conformal prediction (Papadopoulos et al., ECML 2002): the score of an earlier forecast is how far what
// happened was from its median, in half widths of its draws, both in logarithms of the time to come; the bands of later ones reach as far as the quantile of the recent
// scores. Both sides have one reach: forecasts of a queue are wrong together, now too early and now too late, and what was learned of one side would be wrong of the next queue.
// The rank of the quantile follows how often bands held (Gibbs and Candès, NeurIPS 2021). Jobs that have not come that far yet count as censored ones (Kaplan and Meier, JASA
// 1958): otherwise short jobs, of which it is known first what became of them, would stand for all.

// Calibration is how well bands held so far, as they were shown.
type Calibration struct {
	Starts, Ends Coverage // of starts, and of ends
}

// Coverage is how often a moment lay in the band that was shown of it.
type Coverage struct {
	Resolved int // forecasts of which it is known: those whose band is over count as misses before the moment is there
	Inside   int // forecasts whose band held
	// ErrorRatio is the median of how far the median of a band was off, over the time that it really took from the forecast on; NaN without any.
	ErrorRatio float64
}

// Ratio is the part that held; NaN where nothing is known.
func (c *Coverage) Ratio() float64 { return float64(c.Inside) / float64(c.Resolved) }

const (
	mostScores = 1000 // that are remembered
	mostShown  = 16   // forecasts of a job that are remembered until it is known what became of it
	priorJobs  = 10   // jobs that the draws alone count as,
	priorReach = 1.5  // as if BandRatio of them had been off by so many half widths at most: what little a young run taught is believed too firmly
	leastHalf  = 0.2  // that half widths of draws, as logarithms, are added to: draws that agree may all be wrong
	mostShift  = 5    // how far bands may be off their draws, as a logarithm
)

// shown is a forecast of a job that was shown and is not resolved.
type shown struct {
	at     float64
	raw    Band // of the draws alone
	band   Band
	floor  float64 // seconds: less to come counts as so much
	weight int     // forecasts that it stands for
}

// calibrator learns from forecasts that were shown.
type calibrator struct {
	open         map[core.JobID]*openForecasts
	starts, ends scale
	random       *rand.Rand
}

// openForecasts are those of a job.
type openForecasts struct {
	starts, ends []shown
}

func newCalibrator(seed uint64) calibrator {
	return calibrator{
		open: map[core.JobID]*openForecasts{}, random: core.NewRand(seed, "calibration"), starts: scale{rank: BandRatio}, ends: scale{rank: BandRatio},
	}
}

// ObserveRound learns which forecasts held. It fails never. O(changes and ends of the round, of jobs that were forecast).
func (f *Forecaster) ObserveRound(r *core.Report) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for i := range r.Changes {
		if c := &r.Changes[i]; c.Action == core.Start {
			if o := f.open[c.Job]; o != nil {
				f.starts.resolve(c.Job, o.starts, r.View.NowSeconds)
				o.starts = o.starts[:0]
			}
		}
	}
	for _, j := range r.Ended {
		if o := f.open[j.ID]; o != nil {
			if j.State == core.Completed || j.State == core.Failed {
				f.ends.resolve(j.ID, o.ends, j.FinishSeconds)
			}
			delete(f.open, j.ID)
		}
	}
	return nil
}

// show calibrates the bands of a forecast and notes them. O(forecasts that are remembered).
func (c *calibrator) show(f *Forecast, v *core.View) {
	floor := leastBand(v)
	startsOpen, endsOpen := c.waiting(f.AtSeconds)
	starts, ends := c.starts.reach(startsOpen), c.ends.reach(endsOpen)
	for i := range f.Jobs {
		j := &f.Jobs[i]
		o := c.open[j.ID]
		if o == nil {
			o = &openForecasts{}
			c.open[j.ID] = o
		}
		j.Start, j.End = j.rawStart, stretched(j.rawEnd, ends, f.AtSeconds, floor)
		if !j.Running {
			j.Start = stretched(j.rawStart, starts, f.AtSeconds, floor)
			j.End = j.End.notBefore(j.Start)
			o.starts = c.noted(o.starts, shown{f.AtSeconds, j.rawStart, j.Start, floor, 1})
		}
		o.ends = c.noted(o.ends, shown{f.AtSeconds, j.rawEnd, j.End, floor, 1})
	}
	f.Calibration = Calibration{c.starts.coverage(startsOpen), c.ends.coverage(endsOpen)}
	f.addNotes(v, c.ends.jobs())
}

// leastBand is the width in seconds of the narrowest band: a round, or a minute where rounds are held at events as well.
func leastBand(v *core.View) float64 {
	if v.OnEvents {
		return max(min(v.IntervalSeconds, 60), 1)
	}
	return max(v.IntervalSeconds, 1)
}

// addNotes notes what people should know of the bands; ended is the number of jobs that bands of ends were judged by.
func (f *Forecast) addNotes(v *core.View, ended int) {
	switch {
	case ended == 0:
		f.Notes = append(f.Notes, "no job that was forecast has ended yet: the intervals rest on simulated futures alone")
	case ended < priorJobs:
		f.Notes = append(f.Notes, fmt.Sprintf("the intervals of ends rest on simulated futures more than on what happened: of earlier forecasts, only those of %d jobs can be judged", ended))
	}
	undeclared, never := 0, 0
	for i := range f.Jobs {
		if j := v.Job(f.Jobs[i].ID); j != nil && j.TotalWork == 0 {
			undeclared++
		}
		if math.IsInf(f.Jobs[i].End.Median, 1) {
			never++
		}
	}
	if undeclared > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%d of %d jobs declare no work: how long they take is estimated from jobs before them", undeclared, len(f.Jobs)))
	}
	if never > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%d of %d jobs end in fewer than half of the futures that were drawn", never, len(f.Jobs)))
	}
}

// waiting are the open forecasts of starts and of ends, in no order.
func (c *calibrator) waiting(now float64) (starts, ends open) {
	starts.now, ends.now = now, now
	for _, o := range c.open {
		starts.add(o.starts)
		ends.add(o.ends)
	}
	return starts, ends
}

// noted is a list with one more. Of a full one, each two forecasts become one of them, which then stands for both: each as likely as its weight.
func (c *calibrator) noted(list []shown, s shown) []shown {
	if len(list) == mostShown {
		for i := range mostShown / 2 {
			both := list[2*i].weight + list[2*i+1].weight
			keep := 2 * i
			if c.random.IntN(both) >= list[2*i].weight {
				keep++
			}
			list[i] = list[keep]
			list[i].weight = both
		}
		list = list[:mostShown/2]
	}
	return append(list, s)
}

// ahead is the time to come until a moment.
func (s *shown) ahead(seconds float64) float64 { return max(seconds-s.at, s.floor) }

// score is where a moment lies in the draws: 0 at their median, -1 and 1 at the ends of their band; false where they have no median.
func (s *shown) score(seconds float64) (float64, bool) {
	median, low, high := halves(s.at, s.raw, s.floor)
	if math.IsInf(median, 1) {
		return 0, false
	}
	score := math.Log(s.ahead(seconds)) - median
	if score < 0 {
		return score / low, true
	}
	return score / high, true
}

// halves are the median and the half widths of a band, in logarithms of the seconds to come.
func halves(at float64, b Band, floor float64) (median, low, high float64) {
	ahead := func(seconds float64) float64 { return math.Log(max(seconds-at, floor)) }
	if median = ahead(b.Median); math.IsInf(median, 1) {
		return median, leastHalf, leastHalf
	}
	low, high = median-ahead(b.Low), ahead(b.High)-median
	if math.IsInf(high, 1) {
		high = max(low, 1)
	}
	return median, math.Hypot(low, leastHalf), math.Hypot(high, leastHalf)
}

// notBefore is a band of what comes after something else.
func (b Band) notBefore(o Band) Band {
	return Band{max(b.Low, o.Low), max(b.Median, o.Median), max(b.High, o.High)}
}

// stretched is a band that reaches so many half widths of its draws from their median. It is at least as wide as the floor.
func stretched(raw Band, reach, at, floor float64) Band {
	median, low, high := halves(at, raw, floor)
	if math.IsInf(median, 1) {
		return Band{max(raw.Low, at), raw.Median, raw.High}
	}
	off := func(by float64) float64 { return at + math.Exp(median+min(max(by, -mostShift), mostShift)) }
	b := Band{off(-reach * low), off(0), off(reach * high)}
	b.Low, b.High = max(min(b.Low, b.Median-floor/2), at), max(b.High, b.Median+floor/2)
	if math.IsInf(raw.High, 1) {
		b.High = raw.High
	}
	return b
}

// Calibration is how well the bands held that were shown so far.
func (f *Forecaster) Calibration() Calibration {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return Calibration{f.starts.coverage(open{}), f.ends.coverage(open{})}
}
