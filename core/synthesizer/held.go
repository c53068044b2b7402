package synthesizer

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/stats"
)

// A switch is measured by the jobs that were there when it was made: how long they are there within the first half of the horizon. It is taken back where
// that is longer than what was forecast of the candidate, by more than forecasts of single draws are apart, and also longer than what was forecast
// of the one before it. What comes meanwhile differs from what was drawn, and is left out: only its crowding counts.

// measuredAfter is the part of the horizon after which a switch is measured.
const measuredAfter = 0.5

// barredFor is how many horizons a candidate that was taken back is not chosen; twice as many at each time that it happens again.
const barredFor = 4

// worse is how many times as long jobs must be there as was forecast, for that to count.
const worse = 1.01

// promise is what was forecast at a switch.
type promise struct {
	From      int          `json:"from"` // candidate before
	AtSeconds float64      `json:"at_seconds"`
	Jobs      []core.JobID `json:"jobs"` // that were there, in order
	Ends      []float64    `json:"ends"` // of those that have ended since; 0 for those that have not
	// Forecast and Stayed are the mean seconds that these jobs are there within the part of the horizon, draw by draw: by the candidate, and by the one before.
	Forecast []float64 `json:"forecast"`
	Stayed   []float64 `json:"stayed"`
}

// newPromise keeps what the tests of a look say of the jobs that are there.
func newPromise(l *look, to, from []outcome) *promise {
	r := l.rulers[0]
	p := &promise{From: l.inForce, AtSeconds: r.from}
	for i := range r.present {
		p.Jobs = append(p.Jobs, r.jobs[i].id)
	}
	p.Ends = make([]float64, len(p.Jobs))
	within := measuredAfter * l.settings.HorizonSeconds
	for i := range to {
		p.Forecast, p.Stayed = append(p.Forecast, meanUpTo(to[i].present, within)), append(p.Stayed, meanUpTo(from[i].present, within))
	}
	return p
}

// meanUpTo is the mean of values of which none counts for more than the most.
func meanUpTo(x []float64, most float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += min(v, most)
	}
	return sum / float64(max(len(x), 1))
}

// standing is who decides, and by what.
type standing struct {
	InForce int              `json:"in_force"`
	Since   float64          `json:"since"`
	Seconds []float64        `json:"seconds"` // that each was in force before
	Looks   int              `json:"looks"`
	Log     []metrics.Switch `json:"log"`
	Promise *promise         `json:"promise,omitempty"` // nil for none to be measured
	Barred  []float64        `json:"barred"`            // until when, by candidate
	Failed  []int            `json:"failed"`            // how often each was taken back
}

func newStanding(n int) standing {
	return standing{Seconds: make([]float64, n), Barred: make([]float64, n), Failed: make([]int, n)}
}

// Switches is how often others took over.
func (s *standing) Switches() int { return len(s.Log) }

// change puts a candidate in force.
func (s *standing) change(v *core.View, to int, l metrics.Switch, c []Candidate) {
	l.AtSeconds, l.Round, l.From, l.To = metrics.Number(v.NowSeconds), v.Round+1, c[s.InForce].Name, c[to].Name
	s.Log = append(s.Log, l)
	s.Seconds[s.InForce] += v.NowSeconds - s.Since
	s.InForce, s.Since, s.Promise = to, v.NowSeconds, nil
}

// bar keeps a candidate from being chosen for a while.
func (s *standing) bar(i int, now, horizon float64) {
	s.Barred[i] = now + barredFor*horizon*math.Exp2(float64(s.Failed[i]))
	s.Failed[i]++
}

func (s *standing) barred(i int, now float64) bool { return now < s.Barred[i] }

// ended is a job that did.
type ended struct {
	id core.JobID
	at float64
}

func endsOf(r *core.Report) (list []ended) {
	for _, j := range r.Ended {
		if j.State != core.Rejected {
			list = append(list, ended{j.ID, j.FinishSeconds})
		}
	}
	return list
}

// note notes the ends of the jobs by which the last switch is measured.
func (s *standing) note(list []ended) {
	if s.Promise == nil {
		return
	}
	for _, e := range list {
		if at, found := slices.BinarySearch(s.Promise.Jobs, e.id); found {
			s.Promise.Ends[at] = e.at
		}
	}
}

// broken reports whether the last switch is to be taken back, and why.
func (s *standing) broken(v *core.View, horizon float64) (is bool, why string) {
	p, within := s.Promise, measuredAfter*horizon
	if p == nil || v.NowSeconds < p.AtSeconds+within {
		return false, ""
	}
	s.Promise = nil
	took := make([]float64, len(p.Jobs))
	for i, end := range p.Ends {
		if took[i] = within; end > 0 {
			took[i] = end - p.AtSeconds
		}
	}
	was := meanUpTo(took, within)
	if was <= worse*mean(p.Stayed) || was <= worse*highest(p.Forecast) {
		return false, ""
	}
	s.Promise = p // of which the way back is known
	return true, fmt.Sprintf("the jobs there were to take %.0f s of the %.0f s since, %.0f s without the switch, and took %.0f s", mean(p.Forecast), within, mean(p.Stayed), was)
}

// highest is the upper end of Student's interval for one more value of a sample, at 90 %.
func highest(x []float64) float64 {
	m, deviation := stat.MeanStdDev(x, nil)
	if deviation == 0 {
		return m
	}
	half := stats.T(x, 0.9).Width() / 2 // t s/√n
	return m + half*math.Sqrt(float64(len(x))+1)
}

// kept is what is kept when a run is left.
type kept struct {
	standing
	Names  []string `json:"names"`
	Bandit bandit   `json:"bandit"`
}

// Snapshot is who is in force and why.
func (s *Synthesizer) Snapshot() ([]byte, error) {
	is := kept{standing: s.is, Bandit: s.bandit}
	for i := range s.candidates {
		is.Names = append(is.Names, s.name(i))
	}
	return json.Marshal(is)
}

// Restore goes on with the candidate that was in force. Where the candidates are others now, it begins anew.
func (s *Synthesizer) Restore(learned []byte) error {
	var was kept
	if err := json.Unmarshal(learned, &was); err != nil {
		err = fmt.Errorf("what the synthesizer had learned: %w", err)
		s.log.Warn("the choice between compositions begins anew", "why", err)
		return err
	}
	n := len(s.candidates)
	anew := func(why string) error {
		s.log.Warn("the choice between compositions begins anew", "why", why)
		return nil
	}
	if len(was.Names) != n {
		return anew(fmt.Sprintf("there were %d candidates, and are %d", len(was.Names), n))
	}
	if len(was.Seconds) != n || len(was.Barred) != n || len(was.Failed) != n || !was.Bandit.of(n) || was.InForce < 0 || was.InForce >= n {
		return anew("what was kept of it does not fit together")
	}
	if p := was.Promise; p != nil && (p.From < 0 || p.From >= n || len(p.Ends) != len(p.Jobs)) {
		was.Promise = nil
	}
	for i := range s.candidates {
		if was.Names[i] != s.name(i) {
			return anew(fmt.Sprintf("candidate %d was %s, and is %s", i+1, was.Names[i], s.name(i)))
		}
	}
	s.is, s.bandit = was.standing, was.Bandit
	s.is.note(s.repeated)
	s.repeated = nil
	return nil
}
