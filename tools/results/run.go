package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/lab/study"
)

// bench runs what tables need, as a study: runs that were kept are not run again, whichever table wanted them first.
type bench struct {
	quartet, data string // the binary that is timed, and the folder of published data
	kept          string // folder of the study
	inputs        string // folder of the files that runs read and that are made here
	build         string // identifies this program
	workers       int    // runs at a time
}

// newBench keeps runs, and the files that are made for them, in a folder.
func newBench(quartet, data, folder string, workers int) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(text)
	b := &bench{quartet: quartet, data: data, kept: folder, build: hex.EncodeToString(hash[:]), workers: workers}
	b.inputs = filepath.Join(folder, "inputs-"+b.build[:12])
	return b, os.MkdirAll(b.inputs, 0o755)
}

// outcome is what one run came to.
type outcome struct {
	*metrics.Summary
	jobs map[string]*metrics.Job // by name
}

// The numbers of a summary that tables tell, times in seconds.
func (o *outcome) meanJCT() float64      { return float64(o.JCTSeconds.Mean) }
func (o *outcome) p99JCT() float64       { return float64(o.JCTSeconds.P99) }
func (o *outcome) makespan() float64     { return float64(o.MakespanSeconds) }
func (o *outcome) meanRestarts() float64 { return float64(o.Restarts.Mean) }

// run is a composition, by its path below configs/, and what is set in it. Its seed is that of its config, or one that is set.
type run struct {
	config string
	sets   []string
}

func (r run) String() string { return strings.Join(append([]string{r.config}, r.sets...), " ") }

// simulate runs a shipped composition of a publication.
func (b *bench) simulate(config string, sets ...string) (*outcome, error) {
	outcomes, err := b.all([]run{paper(config, sets...)})
	if err != nil {
		return nil, err
	}
	return outcomes[0], nil
}

func paper(config string, sets ...string) run {
	return run{config: filepath.Join("papers", config), sets: sets}
}

// all runs compositions as a study of one axis. Its folder keeps the runs of the studies of all tables.
func (b *bench) all(runs []run) ([]*outcome, error) {
	s, places, err := asStudy(runs)
	if err != nil {
		return nil, err
	}
	result, err := study.Execute(context.Background(), s, study.Options{
		Catalog: quartet.Builtins(), Config: configs.Options{Env: os.LookupEnv}, Dir: b.kept, Workers: b.workers, Build: b.build,
	})
	if err != nil {
		return nil, err
	}
	var errs []error
	for i := range result.Rows {
		if row := &result.Rows[i]; row.Outcome == study.Failed {
			errs = append(errs, fmt.Errorf("%s: %s", s.Axes[0].Items[i].Name, row.Error))
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	kept, err := study.ReadKept(b.kept)
	if err != nil {
		return nil, err
	}
	outcomes := make([]*outcome, len(runs))
	for i, at := range places {
		if outcomes[i], err = outcomeOf(kept, &kept.Runs[at]); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// asStudy is the study of runs, and the item of its axis that each run is. Equal runs are one item.
func asStudy(runs []run) (s *study.Study, places []int, err error) {
	axis := study.Axis{Name: "composition"}
	for _, r := range runs {
		name := r.String()
		at := slices.IndexFunc(axis.Items, func(i study.Item) bool { return i.Name == name })
		if places = append(places, at); at >= 0 {
			continue
		}
		places[len(places)-1] = len(axis.Items)
		item := study.Item{Name: name, Files: []string{filepath.Join("configs", r.config)}, At: core.Position{File: r.config}}
		for _, text := range r.sets {
			setting, err := study.ParseSetting(text)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", r.config, err)
			}
			setting.At = item.At
			item.Set = slices.DeleteFunc(item.Set, func(earlier study.Setting) bool { return earlier.Path == setting.Path })
			item.Set = append(item.Set, setting)
		}
		axis.Items = append(axis.Items, item)
	}
	return &study.Study{
		Name: "results", Axes: []study.Axis{axis}, Seeds: study.Seeds{Config: true, Count: 1}, Baseline: -1, Metrics: []string{"jct_seconds.mean"},
	}, places, nil
}

func outcomeOf(kept *study.Kept, r *study.KeptRun) (*outcome, error) {
	jobs, err := kept.Jobs(r)
	if err != nil {
		return nil, err
	}
	o := &outcome{Summary: r.Summary, jobs: make(map[string]*metrics.Job, len(jobs))}
	for i := range jobs {
		o.jobs[jobs[i].Name] = &jobs[i]
	}
	return o, nil
}

// readRows reads a CSV file without its header, by the value in a column.
func readRows(path string, key int) (map[string][]string, error) {
	records, err := readCSV(path)
	if err != nil {
		return nil, err
	}
	rows := make(map[string][]string, len(records))
	for _, record := range records[1:] {
		rows[record[key]] = record
	}
	return rows, nil
}

// readCSV reads a file that has a header.
func readCSV(path string) ([][]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err == nil && len(records) == 0 {
		err = errors.New("no header")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return records, nil
}

// The columns of the references that are compared.
const (
	polluxJCT                    = 4
	bloxFirstRun, bloxCompletion = 5, 6
)

// tail is the 99th percentile of the JCT as the published figures take it, and the moment at which the last job
// finished. Every job has to have completed.
func (o *outcome) tail() (p99, last float64, err error) {
	var times []float64
	for name, job := range o.jobs {
		if !job.JCTSeconds.Known() {
			return 0, 0, fmt.Errorf("job %q did not complete", name)
		}
		times, last = append(times, float64(job.JCTSeconds)), max(last, float64(job.FinishSeconds))
	}
	slices.Sort(times)
	return percentile(times, 0.99), last, nil
}

// percentile interpolates linearly between sorted values, as NumPy does, by which published figures were made: the quantiles of a
// summary are empirical.
func percentile(sorted []float64, part float64) float64 {
	at := part * float64(len(sorted)-1)
	below := int(at)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (sorted[above]-sorted[below])*(at-float64(below))
}

// same reports whether a time of a run is that of a reference; one that is not known is not.
func same(got metrics.Number, want string, offset float64) bool {
	w, err := strconv.ParseFloat(want, 64)
	return err == nil && float64(got)+offset == w
}

func mean(values []float64) float64 { return stat.Mean(values, nil) }

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

func percent(got, want float64) string { return fmt.Sprintf("%+.3f %%", 100*(got/want-1)) }
