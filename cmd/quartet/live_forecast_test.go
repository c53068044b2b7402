package main

import (
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/cmd/internal/operate"
)

var (
	forecastJobs  = flag.Int("forecast.jobs", 12, "jobs of each run of TestLiveForecasts; with 40 and more, 3 of 4 first intervals must be right")
	forecastSpeed = flag.Float64("forecast.speedup", 40, "seconds of the run that pass in one")
	forecastSeed  = flag.Uint64("forecast.seed", 1, "seed of the jobs")
)

// pacedTrace is a trace of jobs of half a minute to ten, of 1 to 4 replicas, that come twice as fast as 8 devices can do them.
func pacedTrace(jobs int, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var text strings.Builder
	text.WriteString("name,submit_s,duration_s,replicas\n")
	at := 0.0
	for i := range jobs {
		seconds := min(max(math.Exp(math.Log(150)+0.8*r.NormFloat64()), 30), 600)
		fmt.Fprintf(&text, "job-%d,%.0f,%.0f,%d\n", i, at, seconds, []int{1, 1, 1, 2, 2, 4}[r.IntN(6)])
		at += 20 * r.ExpFloat64()
	}
	return text.String()
}

// endBand is an expected end in seconds of the run; without a bound it is not foreseen.
type endBand struct{ low, high float64 }

func (b endBand) holds(seconds float64) bool { return b.low <= seconds && seconds <= b.high }

func boundOf(x *float64) float64 {
	if x == nil {
		return math.Inf(1)
	}
	return *x
}

// forecastEnds are the bands that were shown of the end of each job, and those of the command forecast.
type forecastEnds struct{ shown, asked map[string][]endBand }

// watch notes what is shown of a run until it ends.
func (l *liveRun) watch() (f forecastEnds) {
	f = forecastEnds{map[string][]endBand{}, map[string][]endBand{}}
	for look := 1; ; look++ {
		select {
		case <-l.ends:
			return f
		case <-time.After(time.Second):
		}
		var jobs []struct {
			Job  string
			Low  *float64 `json:"expected_end_low_s"`
			High *float64 `json:"expected_end_high_s"`
		}
		if text, err := l.ask("jobs", "--wait", "0s", "-o", "json"); err != nil || json.Unmarshal(text, &jobs) != nil {
			continue // it ends
		}
		for _, j := range jobs {
			if j.Low == nil {
				continue
			}
			list, band := f.shown[j.Job], endBand{*j.Low, boundOf(j.High)}
			if len(list) == 0 || list[len(list)-1] != band {
				f.shown[j.Job] = append(list, band)
			}
		}
		var forecast operate.ForecastFile
		if look%20 != 5 {
			continue
		}
		if text, err := l.ask("forecast", "--wait", "0s", "-o", "json"); err != nil || json.Unmarshal(text, &forecast) != nil {
			continue
		}
		for _, j := range forecast.Jobs {
			if j.End != nil && j.End.Low != nil {
				f.asked[j.Job] = append(f.asked[j.Job], endBand{*j.End.Low, boundOf(j.End.High)})
			}
		}
	}
}

// realEnds are when jobs ended, by name.
func (l *liveRun) realEnds() map[string]float64 {
	l.Helper()
	file, err := os.Open(filepath.Join(l.dir, "live", "jobs.csv"))
	if err != nil {
		l.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		l.Fatal(err)
	}
	ends := map[string]float64{}
	for _, row := range rows[1:] {
		if ends[row[1]], err = strconv.ParseFloat(row[5], 64); err != nil {
			l.Fatal(err)
		}
	}
	return ends
}

// bandsHeld counts bands and those that held: all of them, and the first of each job.
type bandsHeld struct{ jobs, first, bands, inside int }

func (h bandsHeld) String() string {
	return fmt.Sprintf("%d of %d bands held, the first one of %d of %d jobs", h.inside, h.bands, h.first, h.jobs)
}

func heldOf(shown map[string][]endBand, ends map[string]float64) (h bandsHeld) {
	for job, bands := range shown {
		h.jobs++
		for i, b := range bands {
			h.bands++
			if b.holds(ends[job]) {
				h.inside++
				if i == 0 {
					h.first++
				}
			}
		}
	}
	return h
}

// What a run on real machines shows of the ends of its jobs while it goes on comes true as often as it says. A few jobs on a busy machine only tell that
// it is shown at all and is not absurd.
func TestLiveForecasts(t *testing.T) {
	needsProcesses(t)
	least, allocations := 0.25, []string{"fifo"} // on a busy machine jobs that LAS preempts in each round may not come to an end
	if *forecastJobs >= 40 {
		least, allocations = 0.75, append(allocations, "las")
	}
	for _, allocation := range allocations {
		for name, declared := range map[string]bool{"declared": true, "undeclared": false} {
			t.Run(allocation+"/"+name, func(t *testing.T) {
				t.Parallel()
				trace := filepath.Join(t.TempDir(), "trace.csv")
				if err := os.WriteFile(trace, []byte(pacedTrace(*forecastJobs, *forecastSeed)), 0o600); err != nil {
					t.Fatal(err)
				}
				l := goLive(t, fmt.Sprintf(`
version: 1
name: live
cluster: {nodes: [{name: n, count: 4, accelerator: gpu, devices: 2}]}
workload: {type: csv, config: {path: %q}}
round: {interval: 10s}
pipeline: {allocation: {type: %s}}
backend: {type: local, config: {declared: %v, speedup: %v}}
output: {write: [jobs]}
`, trace, allocation, declared, *forecastSpeed))
				f := l.watch()
				ends := l.realEnds()
				if len(ends) != *forecastJobs {
					t.Errorf("%d jobs ended, want %d", len(ends), *forecastJobs)
				}
				for by, shown := range map[string]map[string][]endBand{"jobs": f.shown, "forecast": f.asked} {
					h := heldOf(shown, ends)
					t.Logf("%s: %v", by, h)
					if h.jobs == 0 {
						t.Errorf("%s: no end was forecast", by)
					}
					if float64(h.first) < least*float64(h.jobs) {
						t.Errorf("%s: %v, want %.0f %%", by, h, 100*least)
						for job, bands := range shown {
							t.Logf("%s ended at %.0f: %.0f", job, ends[job], bands)
						}
					}
				}
			})
		}
	}
}
