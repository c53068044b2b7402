package study

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/internal/inputfile"
)

// The files of a study.
const (
	StudyFile     = "study.yaml"
	RunsFile      = "runs.csv"
	StatsFile     = "stats.csv"
	JobsFile      = "jobs.csv.gz"
	WarningsFile  = "warnings.csv"
	PublishedFile = "published.csv"
)

// jobsHeader is that of jobs.csv with the run before it.
const jobsHeader = "run,job,name,application,submit_s,first_start_s,finish_s,jct_s,queueing_s,replicas_mean,restarts,gpu_seconds,outcome\n"

// write writes the tables. They depend on the study and on what is kept, and on nothing else.
func (r *Result) write(kept *store, o *Options) error {
	r.Stats = r.Study.compare(r.Rows, kept.jobs, r.Looks, o.Workers)
	errs := []error{
		writeTable(filepath.Join(o.Dir, RunsFile), r.runsTable()),
		writeTable(filepath.Join(o.Dir, StatsFile), r.statsTable()),
		writeTable(filepath.Join(o.Dir, WarningsFile), r.warningsTable()),
		r.join(kept, jobsTable, jobsHeader, filepath.Join(o.Dir, JobsFile)),
	}
	if len(r.Study.Points) > 0 {
		errs = append(errs, writeTable(filepath.Join(o.Dir, PublishedFile), r.publishedTable()))
	}
	for _, name := range r.Study.Write {
		if header := r.headerOf(name); header != "" {
			errs = append(errs, r.join(kept, name, "run,"+header+"\n", filepath.Join(o.Dir, name+".csv.gz")))
		}
	}
	return errors.Join(errs...)
}

// headerOf is the header of a table as the first run that has it wrote it.
func (r *Result) headerOf(name string) string {
	for i := range r.Rows {
		if r.Rows[i].Record != nil && r.Rows[i].Tables[name] != "" {
			return r.Rows[i].Tables[name]
		}
	}
	return ""
}

func writeTable(path string, rows [][]string) error {
	return replaceBy(path, func(to io.Writer) error {
		w := csv.NewWriter(to)
		return w.WriteAll(rows) // it flushes
	})
}

// runsTable has a row for each run, in the order of the axes.
func (r *Result) runsTable() [][]string {
	header := append([]string{"run"}, r.Study.axisNames()...)
	header = append(append(header, "replicate", "seed", "offered_load", "outcome"), Columns()...)
	table := [][]string{header}
	for i := range r.Rows {
		row := &r.Rows[i]
		offered := nan
		if row.Record != nil {
			offered = float64(row.OfferedLoad)
		}
		cells := append(r.cell(row), strconv.FormatUint(row.Seed, 10), decimal(offered), row.outcome())
		for _, n := range summaryNumbers() {
			value := nan
			if row.Record != nil && row.Summary != nil {
				value = n.of(row.Summary)
			}
			cells = append(cells, decimal(value))
		}
		table = append(table, cells)
	}
	return table
}

// cell names a run: its id, its items and its replicate.
func (r *Result) cell(row *Row) []string {
	cells := append([]string{row.ID()}, r.Study.itemNames(row.Items)...)
	return append(cells, strconv.Itoa(row.Replicate))
}

func (s *Study) itemNames(items []int) []string {
	names := make([]string, len(items))
	for a, k := range items {
		if names[a] = Pooled; k >= 0 {
			names[a] = s.Axes[a].Items[k].Name
		}
	}
	return names
}

// decimal is the shortest text that reads back as x; empty for what is not known.
func decimal(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// warningsTable says what people should know of runs.
func (r *Result) warningsTable() [][]string {
	table := [][]string{append(append([]string{"run"}, r.Study.axisNames()...), "replicate", "kind", "message")}
	runs := make([]*Run, len(r.Rows))
	for i := range r.Rows {
		runs[i] = r.Rows[i].Run
	}
	other := r.Study.otherJobs(runs)
	for i := range r.Rows {
		row := &r.Rows[i]
		tell := func(kind, message string) { table = append(table, append(r.cell(row), kind, message)) }
		if other[i] != nil {
			tell("unequal_inputs", r.Study.otherJobsText(other[i]))
		}
		if row.Record == nil {
			tell(Missing, "the run was not run yet")
			continue
		}
		if row.Error != "" {
			tell(Failed, row.Error)
		}
		for _, note := range row.Notes {
			tell("note", note)
		}
		if row.Summary == nil {
			continue
		}
		if n := row.Summary.Jobs; n.Unfinished > 0 {
			tell(Unfinished, strconv.Itoa(n.Unfinished)+" of "+strconv.Itoa(n.Submitted)+" jobs did not end: means of completion times leave them out")
		} else if n.Rejected > 0 {
			tell("rejected", strconv.Itoa(n.Rejected)+" of "+strconv.Itoa(n.Submitted)+" jobs were rejected: means of completion times leave them out")
		}
	}
	return table
}

// join writes the rows of a table of all runs as they are kept: a gzip file of several members is one.
func (r *Result) join(kept *store, name, header, path string) error {
	return replaceBy(path, func(to io.Writer) error {
		w := bufio.NewWriterSize(to, 1<<20)
		z := gzip.NewWriter(w)
		if _, err := io.WriteString(z, header); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		written := map[string]bool{}
		for i := range r.Rows {
			row := &r.Rows[i]
			if row.Record == nil || row.Record.Outcome == Failed || written[row.Run.Hash] || !slices.Contains(row.tables(), name) {
				continue
			}
			written[row.Run.Hash] = true
			f, err := inputfile.Open(kept.tablePath(row.Run.Hash, name))
			if err != nil {
				return err
			}
			_, err = io.Copy(w, f)
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
		}
		return w.Flush()
	})
}
