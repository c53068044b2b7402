// Package generators draws traces that resemble those of known clusters, and measures how far two traces are apart.
//
// What is drawn from is fitted to published data: shares of sizes, quantiles of durations by size, a rate for every hour of
// the week and shares of tenants, each independent of the others but durations of sizes. Bursts of a user are not modelled.
package generators

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload/exchange"
)

// weekHours is how many rates a week has.
const weekHours = 168

// Fit is what a trace is drawn from.
type Fit struct {
	// Source: what was fitted.
	Source string `json:"source"`
	// JobsPerDay: number of submissions in a day.
	JobsPerDay float64 `json:"jobs_per_day"`
	// Sizes: numbers of devices that jobs ask for.
	Sizes []Size `json:"sizes"`
	// Durations: durations by numbers of devices, ascending.
	Durations []Range   `json:"durations"`
	Hours     []float64 `json:"hours"`   // share of submissions in each hour of a week that begins with the trace's clock
	Tenants   []float64 `json:"tenants"` // shares of jobs, the greatest first
}

// Size is a number of devices with its share of the jobs.
type Size struct {
	// Devices: number of devices.
	Devices int `json:"devices"`
	// Share: share of the jobs, from 0 to 1.
	Share float64 `json:"share"`
}

// Range is the durations of jobs that have at least so many devices, and fewer than the next range.
type Range struct {
	// Devices: least number of devices of the jobs.
	Devices int       `json:"devices"`
	Seconds []float64 `json:"seconds"` // quantiles, at shares
}

// edges are where ranges of sizes begin.
var edges = []int{1, 2, 4, 8, 16}

// shares are the quantiles of durations that a fit keeps: every fortieth, and the tail.
var shares = func() []float64 {
	var s []float64
	for i := range 40 {
		s = append(s, float64(i)/40)
	}
	return append(s, 0.99, 0.999, 1)
}()

//go:embed fits.json
var fitted []byte

// Named is the fit of a name.
func Named(name string) (*Fit, error) {
	fits := map[string]*Fit{}
	if err := json.Unmarshal(fitted, &fits); err != nil {
		return nil, fmt.Errorf("fits: %w", err)
	}
	if fit := fits[name]; fit != nil {
		return fit, nil
	}
	return nil, core.Diagnostics{{Summary: fmt.Sprintf("nothing is fitted to %q", name), Hint: core.SuggestHint(name, "names", Names)}}
}

// Names lists the fits there are.
var Names = []string{"helios", "llm", "openb", "philly"}

// Of fits a trace.
func Of(t *exchange.Trace, source string) *Fit {
	f := &Fit{Source: source, Hours: make([]float64, weekHours)}
	jobs := float64(t.Len())
	sizes, tenants := map[int]int{}, map[string]int{}
	durations := make([][]float64, len(edges))
	first, last := math.Inf(1), 0.0
	for i := range t.Len() {
		r := t.At(i)
		sizes[int(r.Replicas)]++
		tenants[r.Tenant]++
		k := len(edges) - 1
		for edges[k] > int(r.Replicas) {
			k--
		}
		durations[k] = append(durations[k], r.Duration)
		f.Hours[hourOf(r.Submit+t.Epoch)] += 1 / jobs
		first, last = min(first, r.Submit), max(last, r.Submit)
	}
	f.JobsPerDay = round(jobs / (max(last-first, 1) / 86400))
	for devices, n := range sizes {
		f.Sizes = append(f.Sizes, Size{devices, round(float64(n) / jobs)})
	}
	slices.SortFunc(f.Sizes, func(a, b Size) int { return a.Devices - b.Devices })
	for _, n := range tenants {
		f.Tenants = append(f.Tenants, round(float64(n)/jobs))
	}
	slices.Sort(f.Tenants)
	slices.Reverse(f.Tenants)
	for i := range f.Hours {
		f.Hours[i] = round(f.Hours[i])
	}
	for k, d := range durations {
		if len(d) == 0 {
			continue
		}
		slices.Sort(d)
		r := Range{Devices: edges[k]}
		for _, s := range shares {
			r.Seconds = append(r.Seconds, round(d[int(s*float64(len(d)-1))]))
		}
		f.Durations = append(f.Durations, r)
	}
	return f
}

func hourOf(seconds float64) int { return int(math.Mod(seconds, weekHours*3600) / 3600) }

// round keeps four digits, which is more than a sample tells.
func round(x float64) float64 {
	if x == 0 {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(x)))
	return math.Round(x*scale) / scale
}

// Generate draws jobs that are submitted within a span of seconds, 0 for that in which the fitted cluster gets as many.
func (f *Fit) Generate(jobs int, span float64, seed uint64) *exchange.Trace {
	r := rand.New(rand.NewPCG(seed, 0x6c696b65))
	if span == 0 {
		span = float64(jobs) / f.JobsPerDay * 86400
	}
	submissions := make([]float64, jobs)
	highest := slices.Max(f.Hours)
	for i := range submissions {
		for {
			at := r.Float64() * span
			if r.Float64()*highest < f.Hours[hourOf(at)] {
				submissions[i] = math.Floor(at)
				break
			}
		}
	}
	slices.Sort(submissions)
	t := &exchange.Trace{}
	for i, at := range submissions {
		size := f.Sizes[draw(r, len(f.Sizes), func(k int) float64 { return f.Sizes[k].Share })].Devices
		tenant := draw(r, len(f.Tenants), func(k int) float64 { return f.Tenants[k] })
		t.Add(exchange.Record{
			Name: fmt.Sprintf("job-%06d", i), Submit: at, Duration: f.duration(size, r.Float64()), Replicas: int32(size),
			Tenant: fmt.Sprintf("tenant-%03d", tenant+1), Start: math.NaN(), Limit: math.NaN(), Estimate: math.NaN(),
		}, exchange.Details{})
	}
	return t
}

// draw is an index with a probability in proportion to its weight.
func draw(r *rand.Rand, n int, weight func(int) float64) int {
	total := 0.0
	for k := range n {
		total += weight(k)
	}
	rest := r.Float64() * total
	for k := range n - 1 {
		if rest -= weight(k); rest < 0 {
			return k
		}
	}
	return n - 1
}

// duration is that of a job of a size at a quantile, interpolated in its logarithm.
func (f *Fit) duration(size int, share float64) float64 {
	in := f.Durations[0]
	for _, r := range f.Durations {
		if r.Devices <= size {
			in = r
		}
	}
	k := 1
	for k < len(shares)-1 && shares[k] < share {
		k++
	}
	low, high := math.Log(in.Seconds[k-1]), math.Log(in.Seconds[k])
	part := (share - shares[k-1]) / (shares[k] - shares[k-1])
	return max(math.Round(math.Exp(low+(high-low)*part)), 1)
}
