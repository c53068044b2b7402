package operate

import (
	"math"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
)

// forecastSchema names the form of what forecast writes as JSON.
const forecastSchema = "quartet.forecast/v1"

// ForecastFile is a forecast as JSON.
type ForecastFile struct {
	Schema      string          `json:"schema"`      // form of the document and its version
	AtSeconds   float64         `json:"at_seconds"`  // moment of the forecast, in seconds since the start of the run
	Draws       int             `json:"draws"`       // number of simulated futures
	BandRatio   float64         `json:"band_ratio"`  // part of the futures that is inside a band, 0 to 1
	Calibration calibrationFile `json:"calibration"` // how often earlier bands were right
	Notes       []string        `json:"notes"`       // what the forecast rests on
	Jobs        []ForecastJob   `json:"jobs"`        // jobs that have not ended
}

type calibrationFile struct {
	Starts coverageFile `json:"starts"`
	Ends   coverageFile `json:"ends"`
}

type coverageFile struct {
	Resolved   int      `json:"resolved"`
	Inside     int      `json:"inside"`
	ErrorRatio *float64 `json:"error_ratio"` // null where nothing is known
}

// ForecastJob is what is expected of a job.
type ForecastJob struct {
	Job      string    `json:"job"`      // name of the job
	State    string    `json:"state"`    // state of the job, such as running
	Position *int      `json:"position"` // null of one that runs
	Start    *BandFile `json:"start"`    // null of one that runs
	End      *BandFile `json:"end"`      // band of its end
	Ahead    []string  `json:"ahead"`    // names of the jobs in front of it
}

// BandFile is a band in seconds since the start of the run; null for not forecast.
type BandFile struct {
	Low    *float64 `json:"low_seconds"`    // lower bound, in seconds
	Median *float64 `json:"median_seconds"` // median, in seconds
	High   *float64 `json:"high_seconds"`   // upper bound, in seconds
}

func bandDocument(b twin.Band) *BandFile {
	return &BandFile{finite(b.Low), finite(b.Median), finite(b.High)}
}

// finite is nothing for what is none.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

func forecastDocument(t *quartet.Twin, f *twin.Forecast, jobs []twin.JobForecast) ForecastFile {
	coverage := func(c twin.Coverage) coverageFile { return coverageFile{c.Resolved, c.Inside, finite(c.ErrorRatio)} }
	d := ForecastFile{
		Schema: forecastSchema, AtSeconds: f.AtSeconds, Draws: f.Draws, BandRatio: twin.BandRatio, Notes: append([]string{}, f.Notes...),
		Calibration: calibrationFile{coverage(f.Calibration.Starts), coverage(f.Calibration.Ends)}, Jobs: []ForecastJob{},
	}
	for i := range jobs {
		j := &jobs[i]
		row := ForecastJob{Job: j.Name, State: core.Running.String(), End: bandDocument(j.End), Ahead: []string{}}
		if !j.Running {
			row.State, row.Position, row.Start = core.Waiting.String(), &j.Position, bandDocument(j.Start)
		}
		for _, id := range j.Ahead {
			row.Ahead = append(row.Ahead, t.Names[id])
		}
		d.Jobs = append(d.Jobs, row)
	}
	return d
}
