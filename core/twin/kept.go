package twin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core"
)

// What a forecaster learned outlives it as JSON. All that knows of its form is in this file.

// keptSchema names the form. It changes when a field changes its meaning.
const keptSchema = "quartet.calibration/v1"

type keptCalibration struct {
	Schema string     `json:"schema"`
	Starts keptScale  `json:"starts"`
	Ends   keptScale  `json:"ends"`
	Open   []keptOpen `json:"open"` // by job
}

type keptScale struct {
	Since    number      `json:"since"`
	Resolved int         `json:"resolved"`
	Inside   int         `json:"inside"`
	Rank     number      `json:"rank"`
	Scores   []keptScore `json:"scores"`
}

type keptScore struct {
	At     number     `json:"at"`
	Job    core.JobID `json:"job"`
	Value  number     `json:"value"`
	Known  bool       `json:"known"`
	Error  number     `json:"error"`
	Weight int        `json:"weight"`
}

type keptOpen struct {
	Job    core.JobID  `json:"job"`
	Starts []keptShown `json:"starts"`
	Ends   []keptShown `json:"ends"`
}

type keptShown struct {
	At     number    `json:"at"`
	Raw    [3]number `json:"raw"`
	Band   [3]number `json:"band"`
	Floor  number    `json:"floor"`
	Weight int       `json:"weight"`
}

// number is one that may be infinite: as a text then, which JSON has no number for.
type number float64

// MarshalJSON writes it.
func (n number) MarshalJSON() ([]byte, error) {
	if x := float64(n); math.IsInf(x, 0) || math.IsNaN(x) {
		return strconv.AppendQuote(nil, strconv.FormatFloat(x, 'g', -1, 64)), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads it.
func (n *number) UnmarshalJSON(text []byte) error {
	var quoted string
	if err := json.Unmarshal(text, &quoted); err != nil {
		return json.Unmarshal(text, (*float64)(n))
	}
	x, err := strconv.ParseFloat(quoted, 64)
	*n = number(x)
	return err
}

// Snapshot is what was learned of how bands held, and the forecasts of which that is not known yet.
func (f *Forecaster) Snapshot() ([]byte, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	k := keptCalibration{Schema: keptSchema, Starts: keepScale(&f.starts), Ends: keepScale(&f.ends), Open: []keptOpen{}}
	for _, id := range slices.Sorted(maps.Keys(f.open)) {
		k.Open = append(k.Open, keptOpen{id, keepShown(f.open[id].starts), keepShown(f.open[id].ends)})
	}
	return json.Marshal(k)
}

// Restore takes up what another forecaster of the run had learned, which then gets the rounds after that. After an error it is as if it was not called.
func (f *Forecaster) Restore(learned []byte) error {
	var k keptCalibration
	if err := json.Unmarshal(learned, &k); err != nil {
		return fmt.Errorf("read how accurate intervals were: %w", err)
	}
	if k.Schema != keptSchema {
		return fmt.Errorf("the record of how accurate intervals were is of schema %q, this program reads %q", k.Schema, keptSchema)
	}
	open := make(map[core.JobID]*openForecasts, len(k.Open))
	for _, o := range k.Open {
		starts, ofStarts := shownAgain(o.Starts)
		ends, ofEnds := shownAgain(o.Ends)
		if open[o.Job] != nil || !ofStarts || !ofEnds {
			return errors.New("read how accurate intervals were: a forecast is damaged")
		}
		open[o.Job] = &openForecasts{starts, ends}
	}
	starts, ofStarts := scaleAgain(&k.Starts)
	ends, ofEnds := scaleAgain(&k.Ends)
	if !ofStarts || !ofEnds {
		return errors.New("read how accurate intervals were: what was learned is damaged")
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.open, f.starts, f.ends = open, starts, ends
	return nil
}

func keepScale(s *scale) keptScale {
	k := keptScale{Since: number(s.since), Resolved: s.resolved, Inside: s.inside, Rank: number(s.rank), Scores: []keptScore{}}
	for _, c := range s.scores {
		k.Scores = append(k.Scores, keptScore{number(c.at), c.job, number(c.value), c.known, number(c.error), c.weight})
	}
	return k
}

func scaleAgain(k *keptScale) (s scale, valid bool) {
	s = scale{since: float64(k.Since), resolved: k.Resolved, inside: k.Inside, rank: float64(k.Rank)}
	if !(s.rank >= leastRank && s.rank <= mostRank) || s.inside < 0 || s.inside > s.resolved || len(k.Scores) > 2*mostScores || !finite(k.Since) {
		return s, false
	}
	for _, c := range k.Scores {
		if c.Weight < 1 || !finite(c.At) || !finite(c.Value) || math.IsNaN(float64(c.Error)) {
			return s, false
		}
		s.scores = append(s.scores, score{float64(c.At), c.Job, float64(c.Value), c.Known, float64(c.Error), c.Weight})
	}
	return s, true
}

func keepShown(list []shown) []keptShown {
	kept := []keptShown{}
	for _, s := range list {
		kept = append(kept, keptShown{number(s.at), keepBand(s.raw), keepBand(s.band), number(s.floor), s.weight})
	}
	return kept
}

func shownAgain(kept []keptShown) (list []shown, valid bool) {
	if len(kept) > mostShown {
		return nil, false
	}
	for _, k := range kept {
		raw, rawValid := bandAgain(k.Raw)
		band, bandValid := bandAgain(k.Band)
		if !rawValid || !bandValid || k.Weight < 1 || !finite(k.At) || !finite(k.Floor) || k.Floor <= 0 {
			return nil, false
		}
		list = append(list, shown{float64(k.At), raw, band, float64(k.Floor), k.Weight})
	}
	return list, true
}

func keepBand(b Band) [3]number { return [3]number{number(b.Low), number(b.Median), number(b.High)} }

func bandAgain(k [3]number) (b Band, valid bool) {
	b = Band{Low: float64(k[0]), Median: float64(k[1]), High: float64(k[2])}
	return b, b.Low <= b.Median && b.Median <= b.High
}

func finite(n number) bool { return !math.IsInf(float64(n), 0) && !math.IsNaN(float64(n)) }
