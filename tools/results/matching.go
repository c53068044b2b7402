package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core/stats"
)

const matchingSeeds = 10

// matchingRow is a composition of the matching market, or one beside it.
type matchingRow struct {
	config, label string
	sets          []string
}

// matching compares compositions on the mix of types of the openb cluster, over the same workloads.
func (b *bench) matching() ([][]string, error) {
	return b.matchingTable([]matchingRow{
		{"matching", "matching market", nil},
		{"matching", "all jobs count alike", []string{"pipeline.allocation.config={urgency: 0}"}},
		{"matching", "moves pay over a job's life", []string{"pipeline.allocation.config={moves_pay: for_life}"}},
		{"matching", "allocation of Sia", []string{"pipeline.allocation={type: sia}"}},
		{"matching", "without draws and kicks", []string{"pipeline.allocation.config={samples: 0, kicks: 0}"}},
		{"matching", "jobs that do not mix types", []string{"workload.config.mixes_types=false"}},
		{"even-split", "even split of the batch", nil},
		{"type-blind", "types ignored", nil},
		{"type-blind", "types ignored, one type a job", []string{"pipeline.placement={type: consolidated}"}},
		{"raw-rate", "raw rates for values", nil},
		{"optimus-matching", "sizes by marginal gain, market as placement", nil},
		{"optimus-matching", "the same with raw rates", []string{"pipeline.placement.config.values=raw_rate"}},
		{"optimus", "sizes by marginal gain, fewest nodes", nil},
	})
}

// matchingLoads repeats the main comparisons with fewer and more jobs, and where restarts cost nothing.
func (b *bench) matchingLoads() ([][]string, error) {
	rows := [][]string{{"workload", "matching market, mean JCT min", "even split", "types ignored", "raw rates"}}
	for _, w := range []struct {
		label string
		sets  []string
	}{
		{"150 jobs in 8 h", []string{"workload.config.jobs=150"}},
		{"250 jobs", nil},
		{"350 jobs", []string{"workload.config.jobs=350"}},
		{"250 jobs, restarts for nothing", []string{"backend.config.restart_overhead=0s", "pipeline.allocation.config.restart_overhead=0s"}},
	} {
		row := []string{w.label}
		var base []float64
		for _, config := range []string{"matching", "even-split", "type-blind", "raw-rate"} {
			got, err := b.matchingRuns(config, w.sets)
			if err != nil {
				return nil, err
			}
			minutes := minutesOf(got)
			if base == nil {
				base = minutes
				row = append(row, interval(minutes, "%.1f"))
				continue
			}
			row = append(row, interval(against(minutes, base), "%+.1f %%"))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// matchingExact compares the search with the exact optimum of each round, on a cluster small enough for it.
func (b *bench) matchingExact() ([][]string, error) {
	return b.matchingTable([]matchingRow{
		{"exact", "exact dynamic programming", nil},
		{"exact", "matching market", []string{"pipeline.allocation.config.search=sampled"}},
		{"exact", "raw rates for values", []string{"pipeline.allocation.config={values: raw_rate}"}},
		{"exact", "types ignored", []string{"pipeline.allocation.config={values: blind}"}},
	})
}

// matchingSeedSets compares the market with Sia's allocation of the same jobs over seeds that were looked at in turn: the price of a
// move was chosen on the second set, and the others were seen by nobody before.
func (b *bench) matchingSeedSets() ([][]string, error) {
	rows := [][]string{{
		"seeds", "matching market, mean JCT min", "allocation of Sia", "difference", "by seed, least", "most", "restarts a job, market", "Sia",
	}}
	for _, seeds := range [][2]int{{1, 3}, {4, 10}, {11, 15}, {16, 20}, {21, 25}} {
		market, err := b.matchingSeeds("matching", nil, seeds[0], seeds[1])
		if err != nil {
			return nil, err
		}
		sia, err := b.matchingSeeds("matching", []string{"pipeline.allocation={type: sia}"}, seeds[0], seeds[1])
		if err != nil {
			return nil, err
		}
		ours, theirs := minutesOf(market), minutesOf(sia)
		apart := against(ours, theirs)
		rows = append(rows, []string{
			fmt.Sprintf("%d to %d", seeds[0], seeds[1]), hundredth(mean(ours)), hundredth(mean(theirs)),
			fmt.Sprintf("%+.2f %%", 100*(mean(ours)/mean(theirs)-1)),
			fmt.Sprintf("%+.2f %%", slices.Min(apart)), fmt.Sprintf("%+.2f %%", slices.Max(apart)),
			hundredth(mean(restartsOf(market))), hundredth(mean(restartsOf(sia))),
		})
	}
	return rows, nil
}

// matchingTable compares compositions with the first.
func (b *bench) matchingTable(compared []matchingRow) ([][]string, error) {
	rows := [][]string{{"composition", "", "mean JCT min", "against the first", "p99 min", "restarts a job"}}
	var base []float64
	for _, c := range compared {
		got, err := b.matchingRuns(c.config, c.sets)
		if err != nil {
			return nil, err
		}
		minutes := minutesOf(got)
		if base == nil {
			base = minutes
		}
		var tails []float64
		for _, o := range got {
			tails = append(tails, o.p99JCT()/60)
		}
		rows = append(rows, []string{
			c.config, c.label, interval(minutes, "%.1f"), interval(against(minutes, base), "%+.1f %%"), interval(tails, "%.0f"), decimal(mean(restartsOf(got))),
		})
	}
	return rows, nil
}

// matchingRuns runs a composition with every seed.
func (b *bench) matchingRuns(config string, sets []string) ([]*outcome, error) {
	return b.matchingSeeds(config, sets, 1, matchingSeeds)
}

func (b *bench) matchingSeeds(config string, sets []string, first, last int) ([]*outcome, error) {
	var runs []run
	for seed := first; seed <= last; seed++ {
		runs = append(runs, run{config: "papers/matching-tpds24/" + config + ".yaml", sets: append([]string{"seed=" + strconv.Itoa(seed)}, sets...)})
	}
	return b.all(runs)
}

func minutesOf(outcomes []*outcome) []float64 {
	var minutes []float64
	for _, o := range outcomes {
		minutes = append(minutes, o.meanJCT()/60)
	}
	return minutes
}

func restartsOf(outcomes []*outcome) []float64 {
	var restarts []float64
	for _, o := range outcomes {
		restarts = append(restarts, o.meanRestarts())
	}
	return restarts
}

// against is by how many per cent values exceed others of the same seeds.
func against(values, base []float64) []float64 {
	var percents []float64
	for i, x := range values {
		percents = append(percents, 100*(x/base[i]-1))
	}
	return percents
}

// interval is the mean of one value for each seed, with the half width of Student's interval of 95 %.
func interval(values []float64, format string) string {
	m := mean(values)
	if i := stats.T(values, 0.95); i.Known() && i.Width() > 0 {
		return fmt.Sprintf(format+" ± %.1f", m, i.Width()/2)
	}
	return fmt.Sprintf(format, m)
}
