package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim/market"
	"github.com/quartet-sched/quartet/core/workload"
)

// matchingStraggler is by how much a step is longer when the batch is split evenly over two devices each of two types,
// instead of by their speeds.
func (*bench) matchingStraggler() ([][]string, error) {
	pairs := [][]string{{"T4", "G2"}, {"T4", "G3"}, {"P100", "V100M16"}, {"V100M32", "G3"}}
	rows := [][]string{{"application"}}
	for _, pair := range pairs {
		rows[0] = append(rows[0], fmt.Sprintf("2 %s + 2 %s", pair[0], pair[1]))
	}
	jobs, err := unlikeApplications()
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		row := []string{jobs[i].Spec.Application}
		for _, pair := range pairs {
			longer, err := straggles(&jobs[i], pair)
			if err != nil {
				return nil, err
			}
			row = append(row, longer)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// unlikeApplications is a job of each application of the source `unlike_workers`, by name.
func unlikeApplications() ([]workload.Job, error) {
	factory := workload.NewMixedTypes()
	config, problems := factory.Decode(nil)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	source, err := factory.New(config, core.Settings{Rand: core.NewRand(1, "workload/unlike_workers")})
	if err != nil {
		return nil, err
	}
	drawn, err := source.Load(context.Background())
	if err != nil {
		return nil, err
	}
	byApplication := func(a, b workload.Job) int {
		return strings.Compare(a.Spec.Application, b.Spec.Application)
	}
	slices.SortStableFunc(drawn.Jobs, byApplication)
	return slices.CompactFunc(drawn.Jobs, func(a, b workload.Job) bool { return byApplication(a, b) == 0 }), nil
}

func straggles(job *workload.Job, pair []string) (string, error) {
	shares := make([]market.Share, 0, 4)
	for _, accelerator := range pair {
		for _, alone := range job.Spec.StepTimes.MixedTypes.SingleDeviceTimes {
			if share := (market.Share{Rate: 1 / alone.Seconds}); alone.Accelerator == accelerator {
				shares = append(shares, share, share)
			}
		}
	}
	if len(shares) < 4 {
		return "does not fit", nil
	}
	running := workload.Running{Shape: []int{2, 2}, Accelerators: pair, Replicas: 4}
	even := job.Model.Rate(0, running)
	split, err := market.Split(job.Spec.Batch.Requested, shares)
	running.Tuning.BatchByReplica = split
	return fmt.Sprintf("%+.0f %%", 100*(job.Model.Rate(0, running)/even-1)), err
}
