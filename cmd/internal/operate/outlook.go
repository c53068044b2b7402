package operate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/twin"
)

// foretold hands forecasts of a run to those who tell of it.
type foretold struct {
	mutex sync.Mutex
	board *control.Board // nil before there is one
	live  *metrics.Live
	tells backend.ForecastReporter // nil where nobody else is told
}

func (f *foretold) to(b *control.Board, l *metrics.Live, world core.Backend) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.board, f.live = b, l
	f.tells, _ = world.(backend.ForecastReporter)
}

func (f *foretold) take(forecast *twin.Forecast) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.board != nil {
		f.board.SetForecasts(outlooksOf(forecast))
		f.live.SetForecast(metricsOf(forecast))
	}
	if f.tells != nil {
		f.tells.ReportForecasts(expectedOf(forecast))
	}
}

// expectedOf is a forecast as a backend has it.
func expectedOf(f *twin.Forecast) []backend.Expected {
	all := make([]backend.Expected, len(f.Jobs))
	for i := range f.Jobs {
		j := &f.Jobs[i]
		all[i] = backend.Expected{
			Job: j.ID, AtSeconds: f.AtSeconds, Position: j.Position, End: backend.ExpectedBand(j.End), Judged: f.Calibration.Ends.Resolved, Held: f.Calibration.Ends.Inside,
		}
		if !j.Running {
			all[i].Start, all[i].Judged, all[i].Held = backend.ExpectedBand(j.Start), f.Calibration.Starts.Resolved, f.Calibration.Starts.Inside
		}
	}
	return all
}

// not says why the run is not forecast; empty when that is over.
func (f *foretold) not(why string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.board != nil {
		f.board.SetNoForecast(why)
		f.live.SetForecast(nil)
	}
}

// metricsOf is a forecast as the metrics have it.
func metricsOf(f *twin.Forecast) *metrics.Forecast {
	judged := func(c twin.Coverage) metrics.Judged { return metrics.Judged{Bands: c.Resolved, Held: c.Inside} }
	told := &metrics.Forecast{AtSeconds: f.AtSeconds, Starts: judged(f.Calibration.Starts), Ends: judged(f.Calibration.Ends)}
	for i := range f.Jobs[:min(len(f.Jobs), metrics.MostForecastJobs)] {
		j := &f.Jobs[i]
		add := func(moment string, b twin.Band) {
			told.Jobs = append(told.Jobs, metrics.Expected{ID: j.ID, Job: j.Name, Moment: moment, Low: known(b.Low), Median: known(b.Median), High: known(b.High)})
		}
		if !j.Running {
			add("start", j.Start)
		}
		add("end", j.End)
	}
	return told
}

// known is NaN for what is not foreseen.
func known(seconds float64) float64 {
	if math.IsInf(seconds, 0) {
		return math.NaN()
	}
	return seconds
}

// outlooksOf is a forecast as the board has it.
func outlooksOf(f *twin.Forecast) map[core.JobID]*controlv1.Outlook {
	names := make(map[core.JobID]string, len(f.Jobs))
	for i := range f.Jobs {
		names[f.Jobs[i].ID] = strings.ToValidUTF8(f.Jobs[i].Name, "\uFFFD")
	}
	all := make(map[core.JobID]*controlv1.Outlook, len(f.Jobs))
	for i := range f.Jobs {
		j := &f.Jobs[i]
		o := &controlv1.Outlook{AtSeconds: f.AtSeconds, End: bandMessage(j.End), Judged: uint32(f.Calibration.Ends.Resolved), Held: uint32(f.Calibration.Ends.Inside)}
		if !j.Running {
			o.Start, o.Position = bandMessage(j.Start), uint32(j.Position)
			o.Judged, o.Held = uint32(f.Calibration.Starts.Resolved), uint32(f.Calibration.Starts.Inside)
			for _, id := range j.Ahead {
				o.Ahead = append(o.Ahead, names[id])
			}
		}
		all[j.ID] = o
	}
	return all
}

func bandMessage(b twin.Band) *controlv1.Band {
	return &controlv1.Band{Low: finite(b.Low), Median: finite(b.Median), High: finite(b.High)}
}

// expected words what is expected of a job, as seen at a moment; empty of one that has ended.
func expected(j *controlv1.Job, now float64) string {
	o := j.GetOutlook()
	switch {
	case o == nil && outcomeKnown(j.GetState()):
		return ""
	case o == nil: // it came since, or is still to come
		return notForeseen
	}
	what, band := "end", o.GetEnd()
	if j.GetState() != core.Running.String() && o.GetStart() != nil {
		what, band = "start", o.GetStart()
	}
	return what + " " + wordBand(band, now)
}

const notForeseen = "not foreseen"

// wordBand words a band as time from now on.
func wordBand(b *controlv1.Band, now float64) string {
	from := func(x *float64) string { return render.Span(max(*x-now, 0)) }
	switch {
	case b == nil || b.Low == nil:
		return notForeseen
	case b.High == nil:
		return "in " + from(b.Low) + " or later"
	case *b.High <= now:
		return "by now"
	}
	return "in " + from(b.Low) + " to " + from(b.High)
}

// foreseen reports whether something is expected of some of the jobs.
func foreseen(jobs []*controlv1.Job) bool {
	return slices.ContainsFunc(jobs, func(j *controlv1.Job) bool { return j.GetOutlook() != nil })
}

// expectedColumns tell what is expected of jobs, where something is of some: to people in words, to programs with a column for each moment.
func expectedColumns(m *moreColumns[*controlv1.Job], jobs []*controlv1.Job, words bool, now float64) {
	if !foreseen(jobs) {
		return
	}
	if words {
		m.add(render.Column{Name: "expected", Wide: true}, func(j *controlv1.Job) any { return expected(j, now) })
		return
	}
	moments := func(name string, of func(*controlv1.Outlook) *controlv1.Band) {
		for _, part := range [...]struct {
			name string
			of   func(*controlv1.Band) *float64
		}{
			{"low_s", func(b *controlv1.Band) *float64 { return b.Low }},
			{"s", func(b *controlv1.Band) *float64 { return b.Median }},
			{"high_s", func(b *controlv1.Band) *float64 { return b.High }},
		} {
			m.add(render.Column{Name: name + "_" + part.name, Numeric: true}, func(j *controlv1.Job) any {
				if b := of(j.GetOutlook()); b != nil {
					return orUnknown(part.of(b))
				}
				return math.NaN()
			})
		}
	}
	moments("expected_start", (*controlv1.Outlook).GetStart)
	moments("expected_end", (*controlv1.Outlook).GetEnd)
}

// outlookLines word what is expected of a job, for describe and explain.
func outlookLines(j *controlv1.Job, now float64, line func(name, value string)) {
	o := j.GetOutlook()
	if o == nil {
		return
	}
	moment := func(name string, b *controlv1.Band) {
		text := wordBand(b, now)
		if text != notForeseen {
			text = "expected " + text
		}
		line(name, text)
	}
	if o.GetStart() != nil && j.GetState() != core.Running.String() {
		moment("start", o.GetStart())
		line("position", position(o))
	}
	moment("end", o.GetEnd())
	line("foreseen", fmt.Sprintf("%s ago; %s", render.Span(max(now-o.GetAtSeconds(), 0)), wordJudged(o)))
}

// oldForecast is the age in seconds from which on a list of jobs says how old its forecast is.
const oldForecast = 180

// listForesight says how to take what a list expects of its jobs; empty where nothing is expected of any.
func listForesight(jobs []*controlv1.Job, now float64) string {
	if !foreseen(jobs) {
		return ""
	}
	at := math.Inf(1)
	for _, j := range jobs {
		if o := j.GetOutlook(); o != nil {
			at = min(at, o.GetAtSeconds())
		}
	}
	text := "Expected by simulations"
	if age := now - at; age > oldForecast {
		text += " " + render.Span(age) + " ago"
	}
	return text + "; bands are to hold for 80 % of jobs."
}

// position words the place of a job among those that wait.
func position(o *controlv1.Outlook) string {
	if o.GetPosition() == 0 {
		return ""
	}
	text := strconv.FormatUint(uint64(o.GetPosition()), 10)
	if ahead := o.GetAhead(); len(ahead) > 0 {
		const most = 5
		text += ", after " + strings.Join(ahead[:min(len(ahead), most)], ", ")
		if int(o.GetPosition())-1 > most {
			text += fmt.Sprintf(" and %d more", int(o.GetPosition())-1-most)
		}
	}
	return text
}

// wordJudged says how well such bands held so far.
func wordJudged(o *controlv1.Outlook) string {
	if o.GetJudged() == 0 {
		return "bands are to hold for 80 % of jobs, and none can be judged yet"
	}
	return fmt.Sprintf("bands are to hold for 80 %% of jobs, and held in %s of %d", render.Percent(float64(o.GetHeld())/float64(o.GetJudged())), o.GetJudged())
}
