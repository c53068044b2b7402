package twin_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core/twin"
	"github.com/quartet-sched/quartet/internal/refdata"
)

var forecastsWrite = flag.String("forecasts.write", "", "file for the tables of the study of forecasts; empty for not to run it")

// foreseen is how forecasts of a run held.
type foreseen struct {
	run, policy, knows string
	apart              bool // nothing was chosen by it
	starts, ends       twin.Held
}

// Forecasts of published workloads. It takes minutes, and runs where it is to write its tables.
func TestForecastsOfPublishedWorkloads(t *testing.T) {
	refdata.Path(t, "data", "pollux-osdi21")
	if *forecastsWrite == "" {
		t.Skip("-forecasts.write is not given: the forecasts take minutes; make forecasts runs them")
	}
	type workload struct {
		name, policy, file, sets string
		apart                    bool
	}
	var workloads []workload
	pollux := func(policy, file, folder string, apart bool, numbers ...int) {
		for _, n := range numbers {
			name := fmt.Sprintf("Pollux %d", n)
			if apart {
				name += ", half the load"
			}
			workloads = append(workloads, workload{
				name, policy, "papers/pollux-osdi21/" + file + ".yaml",
				fmt.Sprintf("workload.config.path=${QUARTET_DATA}/data/pollux-osdi21/%s/workload-%d.csv", folder, n), apart,
			})
		}
	}
	pollux("Tiresias", "tiresias", "workloads", false, 1, 2, 3, 4, 6)
	pollux("Pollux", "pollux-exact", "workloads", false, 2)
	pollux("Tiresias", "tiresias", "workloads-0.5", true, 1, 2, 3, 4)
	for first := 10000; first <= 70000; first += 5000 {
		for policy, allocation := range map[string]string{"LAS": "", "FIFO": ";pipeline.allocation={type: fifo}", "SRTF": ";pipeline.allocation={type: srtf}"} {
			workloads = append(workloads, workload{
				fmt.Sprintf("Philly from %d", first), policy, "papers/philly/las.yaml",
				fmt.Sprintf("sample.window={first_job: %d, jobs: 400};cluster.nodes[0].count=%d%s", first, 12, allocation), first%10000 != 0,
			})
		}
	}
	var list []foreseen
	for _, w := range workloads {
		for knows, estimate := range map[string]string{"declared rightly": "", "off by sigma 0.84": "estimate={source: noisy, sigma: 0.84}", "not declared": "estimate={source: none}"} {
			if w.policy == "SRTF" && knows == "not declared" {
				continue // it goes by what is declared
			}
			t.Run(w.policy+" on "+w.name+" "+knows, func(t *testing.T) {
				sets := strings.FieldsFunc(w.sets+";"+estimate, func(r rune) bool { return r == ';' })
				c, err := quartet.Load(quartet.Builtins(), quartet.Options{Files: []string{w.file}, Sets: sets, Env: os.LookupEnv})
				if err != nil {
					t.Fatal(err)
				}
				j := judgeRun(t, c, twin.WorkloadModelOptions{Arrivals: twin.ArrivalsRecent}, 1800)
				of := foreseen{run: w.name, policy: w.policy, knows: knows, apart: w.apart}
				of.starts, _ = j.Starts()
				of.ends, _ = j.Ends()
				t.Logf("starts: %.3f of %d, %.2f off; ends: %.3f of %d, %.2f off",
					of.starts.Ratio(), of.starts.Forecasts, of.starts.ErrorRatio, of.ends.Ratio(), of.ends.Forecasts, of.ends.ErrorRatio)
				list = append(list, of)
			})
		}
	}
	if t.Failed() {
		return
	}
	slices.SortFunc(list, func(a, b foreseen) int {
		return cmp.Or(cmp.Compare(a.policy, b.policy), cmp.Compare(a.knows, b.knows), cmp.Compare(a.run, b.run))
	})
	if err := os.WriteFile(*forecastsWrite, []byte(forecastTables(list)), 0o600); err != nil {
		t.Fatal(err)
	}
}

const fewForecasts = 40 // a run with fewer is not counted on its own

// forecastTables are the figures of all runs: together for each policy and what is known of the work, and of each run.
func forecastTables(list []foreseen) string {
	var text strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&text, format+"\n", a...) }
	say("# How forecasts hold")
	say("")
	say("Written by `make forecasts`. The intervals are for 80 %% of jobs. Forecasts every 30 minutes of simulated time, 8 draws, arrivals as lately. Philly: 400 jobs on 12 nodes of 8 devices.")
	say("*Off* is how far the median of an interval was off, over the time that was still to come, and over the whole time from the submission on: of starts the wait. See [forecasts](../forecast.md) and")
	say("[what they must hold](twin.md).")
	for _, apart := range []bool{false, true} {
		say("")
		if apart {
			say("## Kept apart")
			say("")
			say("Nothing was chosen by these workloads.")
		} else {
			say("## Workloads by which the calibration was chosen")
		}
		say("")
		say("What holds is of all forecasts of all runs. The other figures are of runs with %d forecasts or more: the median of what their medians are off, and how many hold for 75 to 85 %%, for fewer, for more.", fewForecasts)
		say("")
		say("| policy, work | starts: hold | off | runs within, below, above | ends: hold | off | runs within, below, above |")
		say("|---|---|---|---|---|---|---|")
		for i := 0; i < len(list); {
			n := i
			for n < len(list) && list[n].policy == list[i].policy && list[n].knows == list[i].knows {
				n++
			}
			part := slices.DeleteFunc(slices.Clone(list[i:n]), func(f foreseen) bool { return f.apart != apart })
			if len(part) > 0 {
				say("| %s, %s |%s |%s |", part[0].policy, part[0].knows,
					together(part, func(f *foreseen) *twin.Held { return &f.starts }), together(part, func(f *foreseen) *twin.Held { return &f.ends }))
			}
			i = n
		}
	}
	say("")
	say("## Each run")
	say("")
	say("| run | starts: hold | off, of the time to come, of the whole | ends: hold | off, of the time to come, of the whole |")
	say("|---|---|---|---|---|")
	for i := range list {
		f := &list[i]
		say("| %s on %s, %s |%s |%s |", f.policy, f.run, f.knows, alone(&f.starts), alone(&f.ends))
	}
	return text.String()
}

// together are the cells of a table for some runs.
func together(part []foreseen, of func(*foreseen) *twin.Held) string {
	var all twin.Held
	var off, whole []float64
	within, below, above := 0, 0, 0
	for i := range part {
		h := of(&part[i])
		all.Forecasts, all.Inside = all.Forecasts+h.Forecasts, all.Inside+h.Inside
		if h.Forecasts < fewForecasts {
			continue
		}
		off, whole = append(off, h.ErrorRatio), append(whole, h.WholeRatio)
		switch ratio := h.Ratio(); {
		case ratio < 0.75:
			below++
		case ratio > 0.85:
			above++
		default:
			within++
		}
	}
	if len(off) == 0 {
		return " | | "
	}
	slices.Sort(off)
	slices.Sort(whole)
	median := func(sorted []float64) float64 { return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2 }
	return fmt.Sprintf(" %.0f %% of %d | %.0f %%, %.0f %% | %d, %d, %d", 100*all.Ratio(), all.Forecasts, 100*median(off), 100*median(whole), within, below, above)
}

// alone are the cells of a table for a run.
func alone(h *twin.Held) string {
	if h.Forecasts == 0 || math.IsNaN(h.ErrorRatio) {
		return " | "
	}
	return fmt.Sprintf(" %.0f %% of %d | %.0f %%, %.0f %%", 100*h.Ratio(), h.Forecasts, 100*h.ErrorRatio, 100*h.WholeRatio)
}

// On a window of Philly, the work of which is declared wrongly, bands of ends hold about as often as they are to. All runs are in docs/results/forecasts.md.
func TestBandsOfAPublishedWorkloadHold(t *testing.T) {
	refdata.Path(t, "data", "pollux-osdi21")
	for name, tc := range map[string]struct{ allocation, window string }{
		"LAS":  {"{type: las}", "{first_job: 20000, jobs: 400}"},
		"FIFO": {"{type: fifo}", "{first_job: 25000, jobs: 400}"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := quartet.Load(quartet.Builtins(), quartet.Options{Files: []string{"papers/philly/las.yaml"}, Env: os.LookupEnv, Sets: []string{
				"sample.window=" + tc.window, "cluster.nodes[0].count=12", "pipeline.allocation=" + tc.allocation, "estimate={source: noisy, sigma: 0.84}",
			}})
			if err != nil {
				t.Fatal(err)
			}
			all, _ := judgeRun(t, c, twin.WorkloadModelOptions{Arrivals: twin.ArrivalsRecent}, 1800).Ends()
			t.Logf("%+v", all)
			if ratio := all.Ratio(); all.Forecasts < 1000 || ratio < 0.72 || ratio > 0.9 {
				t.Errorf("%.3f of %d bands hold, want 0.72 to 0.9 of 1000 or more", ratio, all.Forecasts)
			}
		})
	}
}
