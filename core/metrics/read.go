package metrics

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// ReadJobs reads a jobs.csv of this or an earlier version; columns that it does not know are left out. It refuses a file that
// breaks off, that lacks a column, or that holds what is no number, by its row.
func ReadJobs(r io.Reader) ([]Job, error) {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty: not even a header")
	}
	if err != nil {
		return nil, err
	}
	names := slices.Clone(header)
	names[0] = strings.TrimPrefix(names[0], "\ufeff")
	row := jobRow{at: map[string]int{}}
	var missing []string
	for name := range strings.SplitSeq(strings.TrimSpace(jobsHeader), ",") {
		if row.at[name] = slices.Index(names, name); row.at[name] < 0 {
			missing = append(missing, name)
		}
	}
	for _, name := range [...]string{deadlineColumn, costColumn, tierColumn, experimentColumn} {
		row.at[name] = slices.Index(names, name)
	}
	if missing != nil {
		return nil, fmt.Errorf("columns that are missing: %s", strings.Join(missing, ", "))
	}
	var jobs []Job
	for {
		row.cells, err = in.Read()
		if errors.Is(err, io.EOF) {
			return jobs, nil
		}
		if err != nil {
			return nil, err
		}
		j := Job{
			ID: core.JobID(row.whole("job")), Name: row.text("name"), Application: row.text("application"),
			SubmitSeconds: row.needed("submit_s"), FirstStartSeconds: Number(row.number("first_start_s")),
			FinishSeconds: Number(row.number("finish_s")), JCTSeconds: Number(row.number("jct_s")),
			QueueingSeconds: Number(row.number("queueing_s")), ReplicasMean: Number(row.number("replicas_mean")),
			Restarts: row.whole("restarts"), GPUSeconds: row.needed("gpu_seconds"), Outcome: row.text("outcome"),
		}
		if row.at[deadlineColumn] >= 0 {
			if due := row.number(deadlineColumn); !math.IsNaN(due) {
				j.DeadlineSeconds = due
			}
		}
		if row.at[costColumn] >= 0 {
			j.Cost = Number(row.needed(costColumn))
		}
		if row.at[tierColumn] >= 0 {
			if j.Tier = row.text(tierColumn); core.TierRank(j.Tier) < 0 {
				row.fail(tierColumn, j.Tier, "no tier; valid values: "+strings.Join(core.Tiers(), ", "))
			}
		}
		if row.at[experimentColumn] >= 0 {
			j.Experiment = row.text(experimentColumn)
		}
		if !slices.Contains(outcomeNames[:], j.Outcome) {
			row.fail("outcome", j.Outcome, "no outcome; valid values: "+strings.Join(outcomeNames[:], ", "))
		}
		if row.err != nil {
			return nil, fmt.Errorf("row %d, %w", len(jobs)+2, row.err)
		}
		jobs = append(jobs, j)
	}
}

// jobRow is a row of jobs.csv, with the first thing that is wrong with it.
type jobRow struct {
	at    map[string]int
	cells []string
	err   error
}

func (r *jobRow) text(name string) string { return strings.Clone(r.cells[r.at[name]]) }

func (r *jobRow) fail(name, cell, what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %.40q is %s", name, cell, what)
	}
}

// number is NaN for an empty cell.
func (r *jobRow) number(name string) float64 {
	cell := r.cells[r.at[name]]
	if cell == "" {
		return math.NaN()
	}
	return r.needed(name)
}

func (r *jobRow) needed(name string) float64 {
	cell := r.cells[r.at[name]]
	x, err := strconv.ParseFloat(cell, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		r.fail(name, cell, "no number of at least 0")
	}
	return x
}

func (r *jobRow) whole(name string) int {
	cell := r.cells[r.at[name]]
	n, err := strconv.ParseInt(cell, 10, 32)
	if err != nil || n < 0 {
		r.fail(name, cell, "no whole number of at least 0")
	}
	return int(n)
}
