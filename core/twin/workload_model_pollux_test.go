package twin_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"sort"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// errors are logarithms of what is believed over what is so.
type beliefErrors struct {
	here, elsewhere, ahead, work []float64
	covered, bands               int // of the work of jobs by the 80 % of draws
	nearElsewhere, ofElsewhere   int // as well, of rates
}

func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[int(q*float64(len(sorted)-1))]
}

func absolute(list []float64) []float64 {
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = math.Abs(x)
	}
	return out
}

func (e *beliefErrors) String() string {
	line := func(name string, list []float64) string {
		a := absolute(list)
		return fmt.Sprintf("%s: %d, median %+.3f, of the amount median %.3f p90 %.3f\n", name, len(list), quantile(list, 0.5), quantile(a, 0.5), quantile(a, 0.9))
	}
	return line("rate where it runs", e.here) + line("rate elsewhere", e.elsewhere) + line("seconds to the end, alone as it is", e.ahead) + line("work", e.work) +
		fmt.Sprintf("80 %% bands of work: %d of %d hold, of rates elsewhere: %d of %d\n", e.covered, e.bands, e.nearElsewhere, e.ofElsewhere)
}

func phaseAt(m workload.Model, progress float64) int {
	last := m.Phases() - 1
	return sort.Search(last, func(p int) bool { return m.PhaseEnd(p) > progress })
}

// secondsLeft is how long a job takes that stays where it is.
func secondsLeft(m workload.Model, progress float64, c workload.Running) float64 {
	seconds := 0.0
	for p := phaseAt(m, progress); p < m.Phases(); p++ {
		seconds += (m.PhaseEnd(p) - progress) / m.Rate(p, c)
		progress = m.PhaseEnd(p)
	}
	return seconds
}

func running(c *core.Cluster, j *core.Job) workload.Running {
	r := workload.Running{Replicas: j.Held, Tuning: j.Tuning}
	for _, s := range j.Seats {
		r.Shape = append(r.Shape, s.Devices.Count())
		r.Accelerators = append(r.Accelerators, c.Accelerators[c.Nodes[s.Node].Accelerator])
	}
	return r
}

// judgeBeliefs runs a composition, and compares what is believed at every so many rounds with what is so.
func judgeBeliefs(t *testing.T, files []string, sets []string, o twin.WorkloadModelOptions, every int) *beliefErrors {
	t.Helper()
	c, err := quartet.Load(quartet.Builtins(), quartet.Options{Files: files, Sets: append(sets, "output.write=[]"), Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	if c.Jobs, err = quartet.LoadWorkload(t.Context(), c.Config, nil); err != nil {
		t.Fatal(err)
	}
	b, e := twin.NewWorkloadModel(o), &beliefErrors{}
	c.Observers = append(c.Observers, b, observer(func(r *core.Report) error {
		v := r.View
		if v.Round%every != 0 {
			return nil
		}
		expected := b.Draw(v, 1, 0, 0)
		var draws []*twin.World
		for i := 1; i <= 30; i++ {
			draws = append(draws, b.Draw(v, 1, i, 0))
		}
		for i, of := range expected.Jobs {
			j, is := v.Job(of.ID), c.Jobs.Jobs[of.ID].Model
			believed := math.Log((of.Model.PhaseEnd(of.Model.Phases()-1) - j.WorkDone(v.NowSeconds)) / (is.PhaseEnd(is.Phases()-1) - j.WorkDone(v.NowSeconds)))
			if !math.IsNaN(believed) {
				e.work = append(e.work, believed)
			}
			var totals []float64
			for _, d := range draws {
				totals = append(totals, d.Jobs[i].Model.PhaseEnd(d.Jobs[i].Model.Phases()-1))
			}
			e.bands++
			if total := is.PhaseEnd(is.Phases() - 1); quantile(totals, 0.1) <= total*(1+1e-9) && total*(1-1e-9) <= quantile(totals, 0.9) {
				e.covered++
			}
			if j.State != core.Running || j.ProgressRate == 0 {
				continue
			}
			here := running(v.Cluster, j)
			done := j.WorkDone(v.NowSeconds)
			compare := func(into *[]float64, c workload.Running) {
				if was, will := is.Rate(phaseAt(is, done), c), of.Model.Rate(phaseAt(of.Model, done), c); was > 0 && will > 0 {
					*into = append(*into, math.Log(will/was))
				}
			}
			compare(&e.here, here)
			if now, then := secondsLeft(is, done, here), secondsLeft(of.Model, done, here); now > 0 && !math.IsInf(now, 1) {
				e.ahead = append(e.ahead, math.Log(then/now))
			}
			for _, shape := range [][]int{{1}, {2}, {4}, {4, 4}} {
				r := workload.Running{Shape: shape, Tuning: core.Tuning{}}
				for _, n := range shape {
					r.Replicas += n
					r.Accelerators = append(r.Accelerators, here.Accelerators[0])
				}
				if r.Replicas != here.Replicas && r.Replicas <= j.MaxReplicas {
					compare(&e.elsewhere, r)
					var rates []float64
					for _, d := range draws {
						m := d.Jobs[i].Model
						rates = append(rates, m.Rate(phaseAt(m, done), r))
					}
					if was := is.Rate(phaseAt(is, done), r); was > 0 {
						e.ofElsewhere++
						if quantile(rates, 0.1) <= was && was <= quantile(rates, 0.9) {
							e.nearElsewhere++
						}
					}
				}
			}
		}
		return nil
	}))
	if _, err := c.Simulate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// What is believed of the jobs of Pollux is near what is so, though nobody tells it. Amounts are medians of the absolute of the logarithm.
func TestBeliefsOfPollux(t *testing.T) {
	refdata.Path(t, "data", "pollux-osdi21")
	for name, tc := range map[string]struct {
		sets        []string
		options     twin.WorkloadModelOptions
		work, ahead float64 // most error
	}{
		"declared":    {nil, twin.WorkloadModelOptions{}, 1e-5, 0.02},
		"misdeclared": {[]string{"estimate.source=noisy", "estimate.sigma=0.7"}, twin.WorkloadModelOptions{}, 0.1, 0.1},
		"history":     {nil, twin.WorkloadModelOptions{Work: twin.WorkHistory}, 0.15, 0.15},
	} {
		t.Run(name, func(t *testing.T) {
			e := judgeBeliefs(t, []string{"papers/pollux-osdi21/pollux-best.yaml"}, tc.sets, tc.options, 30)
			t.Logf("\n%v", e)
			for what, of := range map[string]struct {
				list []float64
				most float64
			}{"the rate where jobs run": {e.here, 0.01}, "the rate elsewhere": {e.elsewhere, 0.12}, "the work left": {e.work, tc.work}, "the seconds left": {e.ahead, tc.ahead}} {
				if len(of.list) < 100 {
					t.Errorf("%s was compared %d times", what, len(of.list))
				}
				if off := quantile(absolute(of.list), 0.5); !(off <= of.most) {
					t.Errorf("%s is off by %.3f, want at most %.3f", what, off, of.most)
				}
			}
			if ratio := float64(e.covered) / float64(e.bands); ratio < 0.7 {
				t.Errorf("bands of the work hold for %.2f of the jobs", ratio)
			}
			if ratio := float64(e.nearElsewhere) / float64(e.ofElsewhere); ratio < 0.65 || ratio > 0.9 {
				t.Errorf("bands of rates elsewhere hold in %.2f of the cases", ratio)
			}
		})
	}
}
