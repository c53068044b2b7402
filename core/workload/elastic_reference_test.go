package workload

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/quartet-sched/quartet/core/optim"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// The experiment of the reference on elastic scaling: 40 devices, at most 10 for a job, a round every ten minutes of a day, half a
// minute of pause at each start and change.
const (
	elasticDevices  = 40
	elasticMost     = 10
	elasticInterval = 600.0
	elasticPause    = 30.0
	elasticHorizon  = 86_400.0
	elasticBatches  = 40
)

// elasticCurve is what the reference tells of an application.
type elasticCurve struct {
	LargestBatch   int             `json:"largest_batch"`
	Batches        []int           `json:"batches"`
	Base           float64         `json:"base_samples_per_s"`
	ThroughputS    []float64       `json:"throughput_S"`
	ThroughputAt   []int           `json:"throughput_batch"`
	GoodputS       []float64       `json:"goodput_S"`
	GoodputAt      []int           `json:"goodput_batch"`
	WorkMultiplier map[int]float64 `json:"work_multiplier"`
}

// setting is a batch on so many devices, and the speed-up that it yields; 0 where it cannot run.
type setting struct {
	batch int
	rate  float64
}

// elasticApplication is an application in that experiment.
type elasticApplication struct {
	batches []int
	rate    map[int][]float64 // by batch and devices-1: the speed-up in samples; 0 where it cannot run
	more    map[int]float64   // by batch: how many times the samples it needs
	base    float64           // samples a second
}

func newElasticApplication(p *profile, told *elasticCurve) *elasticApplication {
	a := &elasticApplication{rate: map[int][]float64{}, more: map[int]float64{}}
	first, last := float64(p.batch.Initial), float64(told.LargestBatch)
	for i := range elasticBatches {
		a.batches = append(a.batches, int(math.RoundToEven(first*math.Pow(last/first, float64(i)/(elasticBatches-1)))))
	}
	a.batches = slices.Compact(a.batches)
	for _, batch := range a.batches {
		a.rate[batch] = make([]float64, elasticMost)
		steps := func(batch int) float64 { return slices.Max(p.iterations(batch)) * float64(batch) }
		a.more[batch] = steps(batch) / steps(p.batch.Initial)
		for k := 1; k <= elasticMost; k++ {
			perDevice := (batch + k - 1) / k
			if perDevice < p.batch.MinPerDevice || perDevice > p.batch.MaxPerDevice {
				continue
			}
			if time, ok := p.stepTime(consolidated(k, profileDevicesPerNode), perDevice); ok {
				a.rate[batch][k-1] = float64(batch) / time.total(0)
			}
		}
		a.base = max(a.base, a.rate[batch][0])
	}
	for _, rates := range a.rate {
		for k := range rates {
			rates[k] /= a.base
		}
	}
	return a
}

// best is the setting of the batches with the highest rate on so many devices, each divided by what it costs in samples.
func (a *elasticApplication) best(batches []int, k int, cost func(batch int) float64) (best setting) {
	for _, batch := range batches {
		if rate := a.rate[batch][k-1] / cost(batch); rate > best.rate {
			best = setting{batch, rate}
		}
	}
	return best
}

func readElastic(t *testing.T) (map[string]*elasticApplication, map[string]*elasticCurve) {
	text, err := os.ReadFile(refdata.Path(t, "reference", "elastic-batch-dp", "curves.json"))
	if err != nil {
		t.Fatal(err)
	}
	curves := map[string]*elasticCurve{}
	if err := json.Unmarshal(text, &curves); err != nil {
		t.Fatal(err)
	}
	reader := &profileReader{folder: refdata.Path(t, "data", "pollux-osdi21")}
	applications := map[string]*elasticApplication{}
	for name, curve := range curves {
		p := reader.read(t.Context(), name)
		if p == nil {
			t.Fatal(reader.problems)
		}
		applications[name] = newElasticApplication(p, curve)
	}
	return applications, curves
}

func same(int) float64 { return 1 }

func TestElasticCurves(t *testing.T) {
	applications, curves := readElastic(t)
	for name, curve := range curves {
		a := applications[name]
		if !slices.Equal(a.batches, curve.Batches) {
			t.Errorf("%s: batches %v, want %v", name, a.batches, curve.Batches)
			continue
		}
		for batch, want := range curve.WorkMultiplier {
			if got := a.more[batch]; math.Abs(got-want) > 1e-6 {
				t.Errorf("%s: at a batch of %d it needs %v times the samples, want %v", name, batch, got, want)
			}
		}
		for what, tc := range map[string]struct {
			cost func(int) float64
			want []float64
			at   []int
		}{
			"throughput": {same, curve.ThroughputS, curve.ThroughputAt},
			"goodput":    {func(batch int) float64 { return a.more[batch] }, curve.GoodputS, curve.GoodputAt},
		} {
			for k := 1; k <= elasticMost; k++ {
				got := a.best(a.batches, k, tc.cost)
				if math.Abs(got.rate-tc.want[k-1]) > 1e-6 || got.batch != tc.at[k-1] {
					t.Errorf("%s, %s on %d devices: %v, want %v at %d", name, what, k, got, tc.want[k-1], tc.at[k-1])
				}
			}
		}
	}
}

// elasticRun is what came of a stream under a policy.
type elasticRun struct {
	Truth, Pattern, Mode, Policy string
	Seed                         int
	Arrived, Done, Dropped       int
	Pending                      int
	JCT                          float64 `json:"jct_min"`
}

type elasticJob struct {
	submit, work float64
	application  *elasticApplication
	choices      []setting // by devices-1
	levels       []optim.Share
	devices      int
	batch        int
	from         float64 // it makes progress from then on
}

// rateNow is how fast a job gets on with its work, in seconds of it.
func (j *elasticJob) rateNow(truth string) float64 {
	rate := j.application.rate[j.batch][j.devices-1]
	if truth == "progress" {
		rate /= j.application.more[j.batch]
	}
	return rate
}

func readStream(t *testing.T, path string, applications map[string]*elasticApplication, policy string) (jobs []*elasticJob) {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, row := range rows[1:] {
		a := applications[row[1]]
		j := &elasticJob{submit: number(row[0]), work: number(row[2]), application: a}
		batches, cost := a.batches, same
		switch policy {
		case "max":
			batches = batches[len(batches)-1:]
		case "min":
			batches = batches[:1]
		case "rand":
			batches = []int{int(number(row[3]))}
		case "goodput":
			cost = func(batch int) float64 { return a.more[batch] }
		}
		for k := 1; k <= elasticMost; k++ {
			best := a.best(batches, k, cost)
			if j.choices = append(j.choices, best); best.rate > 0 {
				j.levels = append(j.levels, optim.Share{Devices: k, Value: best.rate})
			}
		}
		jobs = append(jobs, j)
	}
	slices.SortStableFunc(jobs, func(a, b *elasticJob) int { return cmp.Compare(a.submit, b.submit) })
	return jobs
}

// run follows the recipe of the reference: a round admits, divides by the dynamic program and lets the jobs go on.
func (r *elasticRun) run(t *testing.T, arriving []*elasticJob) {
	var division optim.Division
	var running, waiting []*elasticJob
	var times float64
	r.Arrived = len(arriving)
	for now := 0.0; now < elasticHorizon; now += elasticInterval {
		for len(arriving) > 0 && arriving[0].submit <= now {
			waiting, arriving = append(waiting, arriving[0]), arriving[1:]
		}
		least := 0
		for _, j := range running {
			least += j.levels[0].Devices
		}
		waiting = slices.DeleteFunc(waiting, func(j *elasticJob) bool {
			if fits := least+j.levels[0].Devices <= elasticDevices; fits {
				least += j.levels[0].Devices
				running = append(running, j)
				return true
			}
			if r.Mode == "drop" {
				r.Dropped++
				return true
			}
			return false
		})
		levels := make([][]optim.Share, len(running))
		for i, j := range running {
			levels[i] = j.levels
		}
		devices, _, ok := division.Solve(elasticDevices, levels)
		if !ok {
			t.Fatal("nothing fits")
		}
		for i, j := range running {
			if batch := j.choices[devices[i]-1].batch; j.devices != devices[i] || j.batch != batch {
				j.devices, j.batch, j.from = devices[i], batch, now+elasticPause
			}
		}
		next := now + elasticInterval
		running = slices.DeleteFunc(running, func(j *elasticJob) bool {
			from := max(now, j.from)
			end := from + j.work/j.rateNow(r.Truth)
			if end <= next {
				r.Done++
				times += end - j.submit
				return true
			}
			j.work -= (next - from) * j.rateNow(r.Truth)
			return false
		})
	}
	r.Pending = len(running) + len(waiting)
	r.JCT = times / float64(r.Done) / 60
}

func TestElasticCounts(t *testing.T) {
	applications, _ := readElastic(t)
	text, err := os.ReadFile(refdata.Path(t, "reference", "elastic-batch-dp", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var results []elasticRun
	if err := json.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	for _, want := range results {
		got := elasticRun{Truth: want.Truth, Pattern: want.Pattern, Mode: want.Mode, Policy: want.Policy, Seed: want.Seed}
		stream := refdata.Path(t, "reference", "elastic-batch-dp", "stream_"+want.Pattern+"_seed"+strconv.Itoa(want.Seed)+".csv")
		got.run(t, readStream(t, stream, applications, want.Policy))
		if math.Abs(got.JCT-want.JCT) > 1e-6*want.JCT {
			t.Errorf("%+v, want a JCT of %v minutes", got, want.JCT)
		}
		if got.JCT = want.JCT; got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}
