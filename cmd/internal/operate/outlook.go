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

// forecastOutlets passes the forecasts of a run on to whatever reports them.
type forecastOutlets struct {
	mutex    sync.Mutex
	board    *control.Board           // answers commands; nil until it exists
	live     *metrics.Live            // serves metrics
	reporter backend.ForecastReporter // publishes forecasts in the cluster; nil if the backend does not
}

// connect sets what reports forecasts from now on.
func (f *forecastOutlets) connect(b *control.Board, l *metrics.Live, reporter backend.ForecastReporter) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.board, f.live, f.reporter = b, l, reporter
}

// publish reports a forecast everywhere.
func (f *forecastOutlets) publish(forecast *twin.Forecast) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.board != nil {
		f.board.SetForecasts(outlooksOf(forecast))
		f.live.SetForecast(metricsOf(forecast))
	}
	if f.reporter != nil {
		f.reporter.ReportForecasts(expectedOf(forecast))
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

// publishNone reports why there is no forecast of the run; an empty reason ends that.
func (f *forecastOutlets) publishNone(why string) {
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
	all := &metrics.Forecast{AtSeconds: f.AtSeconds, Starts: judged(f.Calibration.Starts), Ends: judged(f.Calibration.Ends)}
	for i := range f.Jobs[:min(len(f.Jobs), metrics.MostForecastJobs)] {
		j := &f.Jobs[i]
		add := func(moment string, b twin.Band) {
			all.Jobs = append(all.Jobs, metrics.Expected{ID: j.ID, Job: j.Name, Moment: moment, Low: known(b.Low), Median: known(b.Median), High: known(b.High)})
		}
		if !j.Running {
			add("start", j.Start)
		}
		add("end", j.End)
	}
	return all
}

// known is NaN for a time that is unknown.
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
		return unknownTime
	}
	what, band := "end", o.GetEnd()
	if j.GetState() != core.Running.String() && o.GetStart() != nil {
		what, band = "start", o.GetStart()
	}
	if vague(j, band, now) {
		return what + " " + unknownTime
	}
	return what + " " + wordBand(band, now)
}

const unknownTime = "unknown"

// wordBand words a band as time from now on.
func wordBand(b *controlv1.Band, now float64) string {
	from := func(x *float64) string { return render.Span(max(*x-now, 0)) }
	switch {
	case b == nil || b.Low == nil:
		return unknownTime
	case b.High == nil:
		return "in " + from(b.Low) + " or later"
	case *b.High <= now:
		return "by now"
	}
	return "in " + from(b.Low) + " to " + from(b.High)
}

// vagueRatio is how many times as far away the upper end of an interval is as the lower one from which on it says nothing.
const vagueRatio = 100

// vague reports whether the forecast of a time says nothing: its interval is very wide, the job declares no duration, and no earlier forecast
// shows how such intervals turn out.
func vague(j *controlv1.Job, b *controlv1.Band, now float64) bool {
	if b == nil || b.Low == nil || b.High == nil || j.GetTotalWork() > 0 || j.GetOutlook().GetJudged() > 0 {
		return false
	}
	low, high := *b.Low-now, *b.High-now
	return low > 0 && high > vagueRatio*low
}

// anyForecast reports whether there is a forecast of some of the jobs.
func anyForecast(jobs []*controlv1.Job) bool {
	return slices.ContainsFunc(jobs, func(j *controlv1.Job) bool { return j.GetOutlook() != nil })
}

// expectedColumns tell what is expected of jobs, where something is of some: to people in words, to programs with a column for each moment.
func expectedColumns(m *moreColumns[*controlv1.Job], jobs []*controlv1.Job, words bool, now float64) {
	if !anyForecast(jobs) {
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

// outlookLines word the forecast of a job, for describe and explain.
func outlookLines(j *controlv1.Job, now float64, line func(name, value string)) {
	o := j.GetOutlook()
	if o == nil {
		return
	}
	moment := func(name string, b *controlv1.Band) {
		switch text := wordBand(b, now); {
		case vague(j, b, now):
			line(name, unknownTime+" (no earlier forecast could be checked, and the job declares no duration; set seconds: in the job file)")
		case text == unknownTime:
			line(name, text)
		default:
			line(name, "expected "+text)
		}
	}
	if o.GetStart() != nil && j.GetState() != core.Running.String() {
		moment("start", o.GetStart())
		line("position", position(o))
	}
	moment("end", o.GetEnd())
	line("forecast", fmt.Sprintf("made %s ago. 80 %% intervals; %s.", render.Span(max(now-o.GetAtSeconds(), 0)), wordJudged(o)))
}

// outlookSentence is a line of outlookLines as explain writes it; empty for an unknown value.
func outlookSentence(name, value string) string {
	switch {
	case value == "":
		return ""
	case name == "forecast":
		return "Forecast " + value + "\n"
	case name == "position":
		return "Position in the queue: " + value + "\n"
	}
	return fmt.Sprintf("Expected %s: %s\n", name, strings.TrimPrefix(value, "expected "))
}

// oldForecast is the age in seconds from which on a list of jobs says how old its forecast is.
const oldForecast = 180

// listForesight says how old the forecasts in a list of jobs are and what their intervals mean; empty without forecasts.
func listForesight(jobs []*controlv1.Job, now float64) string {
	if !anyForecast(jobs) {
		return ""
	}
	at := math.Inf(1)
	for _, j := range jobs {
		if o := j.GetOutlook(); o != nil {
			at = min(at, o.GetAtSeconds())
		}
	}
	text := "Forecast by simulation"
	if age := now - at; age > oldForecast {
		text += ", made " + render.Span(age) + " ago"
	}
	return text + ". 80 % intervals."
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

// wordJudged says how many such intervals were right so far.
func wordJudged(o *controlv1.Outlook) string {
	if o.GetJudged() == 0 {
		return "none could be checked yet"
	}
	return fmt.Sprintf("so far %d of %d were right", o.GetHeld(), o.GetJudged())
}
