package report

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// A Study is what the tables of a study hold.
type Study struct {
	Dir       string   // folder of the study, as it was given
	Problems  []string // what is missing or cannot be read, a sentence each
	runs      *table
	stats     *table
	warnings  *table
	published *table
	folder    fs.FS
	file      string // study.yaml
	axes      []string
	compared  string
}

// The names of the tables of a study.
const (
	runsFile      = "runs.csv"
	statsFile     = "stats.csv"
	publishedFile = "published.csv"
)

// IsStudy reports whether a folder holds a study, and no run.
func IsStudy(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, runsFile))
	return err == nil
}

// ReadStudy reads the folder of a study. Files that are missing or broken are reported on the page; without runs.csv there is none.
func ReadStudy(dir string) (*Study, error) { return ReadStudyFS(inputfile.Folder(dir), dir) }

// ReadStudyFS is ReadStudy of a file system that holds the files of one study.
func ReadStudyFS(files fs.FS, dir string) (*Study, error) {
	s := &Study{Dir: dir, folder: files, runs: &table{}, stats: &table{}, warnings: &table{}, published: &table{}}
	for _, f := range []struct {
		name string
		to   **table
	}{{runsFile, &s.runs}, {statsFile, &s.stats}, {"warnings.csv", &s.warnings}, {publishedFile, &s.published}} {
		in, err := files.Open(f.name)
		if errors.Is(err, fs.ErrNotExist) {
			if f.name == publishedFile {
				continue // few studies have one
			}
			if f.name == runsFile {
				return nil, fmt.Errorf("%s holds no study: runs.csv is not there", dir)
			}
			s.Problems = append(s.Problems, f.name+" is not there.")
			continue
		}
		if err == nil {
			var t *table
			t, err = readTable(io.LimitReader(in, largestFile))
			*f.to, err = t, errors.Join(err, in.Close())
		}
		if err != nil {
			s.Problems = append(s.Problems, fmt.Sprintf("%s cannot be read whole: %v.", f.name, err))
		}
	}
	if text, err := fs.ReadFile(files, "study.yaml"); err == nil {
		s.file = string(text)
	}
	if end := slices.Index(s.runs.names, "replicate"); end > 0 {
		s.axes = s.runs.names[1:end]
	}
	if at := slices.Index(s.stats.names, "baseline"); at > 0 {
		s.compared = s.stats.names[at-1]
	} else if len(s.axes) > 0 {
		s.compared = s.axes[0]
	}
	return s, nil
}

// others are the axes but the compared one.
func (s *Study) others() []string {
	return slices.DeleteFunc(slices.Clone(s.axes), func(axis string) bool { return axis == s.compared })
}

// apart reports whether study.yaml says that the items of a cell do not go together.
func (s *Study) apart() func(cell []string) bool {
	var file struct {
		Axes map[string][]struct {
			Name string
			With map[string]yaml.Node
		}
	}
	if err := yaml.Unmarshal([]byte(s.file), &file); err != nil {
		return func([]string) bool { return false } // nothing is known then
	}
	return func(cell []string) bool {
		for a, axis := range s.axes {
			for _, item := range file.Axes[axis] {
				if item.Name != cell[a] {
					continue
				}
				for b, other := range s.axes {
					with, restricted := item.With[other]
					if !restricted {
						continue
					}
					one, list := "", []string{}
					if with.Decode(&one) == nil {
						list = append(list, one)
					} else if with.Decode(&list) != nil {
						continue
					}
					if !slices.Contains(list, cell[b]) {
						return true
					}
				}
			}
		}
		return false
	}
}

// rows visits the rows of a packed table of all runs, such as usage.csv.gz, with the cells of some columns. What is wrong with the
// table is noted; one that is not there has no rows.
func (s *Study) rows(name string, columns []string, visit func(run string, cells []string)) {
	name += ".csv.gz"
	in, err := s.folder.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = errors.Join(eachRow(in, columns, visit), in.Close())
	}
	if err == nil {
		return
	}
	if problem := fmt.Sprintf("%s cannot be read whole: %v.", name, err); !slices.Contains(s.Problems, problem) { // some are read twice
		s.Problems = append(s.Problems, problem)
	}
}

func eachRow(packed io.Reader, columns []string, visit func(run string, cells []string)) error {
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	in := csv.NewReader(io.LimitReader(plain, largestFile))
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return err
	}
	at := make([]int, 1+len(columns))
	for i, column := range append([]string{"run"}, columns...) {
		if at[i] = slices.Index(header, column); at[i] < 0 {
			return fmt.Errorf("there is no column %q", column)
		}
	}
	cells := make([]string, len(columns))
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range cells {
			cells[i] = row[at[i+1]]
		}
		visit(row[at[0]], cells)
	}
}

// finite reads a number; NaN for what is none.
func finite(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// items are the values of an axis in the order of the file.
func items(texts []string) (list []string) {
	seen := map[string]bool{}
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			list = append(list, text)
		}
	}
	return list
}

// A comparison is a row of stats.csv.
type comparison struct {
	metric, item, baseline, method string
	where                          []string // item of each other axis, "all" for pooled
	pooled                         bool     // it is about all cells together: an axis of one item is not pooled
	n                              int
	mean, base, change, low, high  float64 // the last three as parts
	holm, level                    float64
	left, baseLeft                 float64 // jobs that did not complete
	out                            int     // workloads that are left out, for some run of theirs is missing or has no value
}

// otherJobs is the method of what is not compared, for it is of the jobs that completed, and those are others.
const otherJobs = "other_jobs"

// otherJobsText says why nothing is compared.
func (c *comparison) otherJobsText() string {
	of := func(n float64, item string) string {
		return fmt.Sprintf("%s of %s", counted(int(zeroed(n)), "job"), item)
	}
	switch {
	case c.left > 0 && c.baseLeft > 0:
		return fmt.Sprintf("not compared: %s and %s did not complete", of(c.left, c.item), of(c.baseLeft, c.baseline))
	case c.baseLeft > 0:
		return fmt.Sprintf("not compared: %s did not complete", of(c.baseLeft, c.baseline))
	}
	return fmt.Sprintf("not compared: %s did not complete", of(c.left, c.item))
}

// shown reports whether the change is more than chance: its interval does not hold 0.
func (c *comparison) shown() bool { return c.low > 0 || c.high < 0 }

// comparisons reads stats.csv. The interval is that of t, as quartet bench prints it, or the bootstrap's where there is none.
func (s *Study) comparisons() ([]comparison, error) {
	t := s.stats
	var errs []error
	column := func(name string) []float64 {
		list, err := t.numbers(name)
		errs = append(errs, err)
		return list
	}
	n, mean, base, change, holm := column("n"), column("mean"), column("baseline_mean"), column("change"), column("holm_p")
	tLow, tHigh, low, high := column("t_low"), column("t_high"), column("bca_low"), column("bca_high")
	level := column("level")
	left, baseLeft := column("not_completed"), column("baseline_not_completed")
	out := column("left_out")
	metric, item, baseline, method := t.text("metric"), t.text(s.compared), t.text("baseline"), t.text("method")
	var where [][]string
	var several []bool
	for _, axis := range s.others() {
		where = append(where, t.text(axis))
		several = append(several, len(items(s.runs.text(axis))) > 1)
	}
	list := make([]comparison, t.rows)
	for i := range list {
		c := comparison{metric: metric[i], item: item[i], baseline: baseline[i], method: method[i], n: int(zeroed(n[i])), mean: mean[i], base: base[i], change: change[i], low: tLow[i], high: tHigh[i], holm: holm[i], level: level[i], left: left[i], baseLeft: baseLeft[i], out: int(zeroed(out[i]))}
		if math.IsNaN(c.low) || math.IsNaN(c.high) {
			c.low, c.high = low[i], high[i]
		}
		if math.IsNaN(c.level) {
			c.level = usualLevel
		}
		c.pooled = true
		for a, texts := range where {
			c.where = append(c.where, texts[i])
			c.pooled = c.pooled && (texts[i] == "all" || !several[a])
		}
		list[i] = c
	}
	return list, errors.Join(errs...)
}

// workloads counts those that are compared, of how many where some are left out, each in so many words.
func (c *comparison) workloads(word string) string {
	text, last := itoa(c.n), c.n
	if c.out > 0 {
		last += c.out
		text += " of " + itoa(last)
	}
	if word != "" && last != 1 {
		word += "s"
	}
	return text + word
}

// change writes a change with its interval, and ~ where it may be chance.
func (c *comparison) text() string {
	switch {
	case c.method == otherJobs:
		return c.otherJobsText()
	case math.IsNaN(c.change):
		return unknownText
	case math.IsNaN(c.low) || math.IsNaN(c.high):
		return signedPercent(c.change) + " (no interval)"
	}
	mark := ""
	if !c.shown() {
		mark = "~ "
	}
	at := ""
	if c.level != usualLevel {
		at = " at " + levelText(c.level)
	}
	return fmt.Sprintf("%s%s [%s, %s]%s", mark, signedPercent(c.change), signedPercent(c.low), signedPercent(c.high), at)
}

// usualLevel is that of every interval, but for those that decide how many seeds there are.
const usualLevel = .95

func levelText(level float64) string { return stats.LevelText(level) + " %" }

func signedPercent(v float64) string {
	if math.IsNaN(v) {
		return unknownText
	}
	return strings.Replace(fmt.Sprintf("%+.3g %%", 100*v), "-0 %", "0 %", 1)
}

// senseOf reports whether more of a metric is better (1), worse (-1) or neither (0).
func senseOf(metric string) int { return metrics.Sense(metric) }

// class colours a change that is more than chance, and says nothing of others.
func (c *comparison) class() string {
	switch sense := float64(senseOf(c.metric)); {
	case math.IsNaN(c.change) || !c.shown() || sense == 0:
		return ""
	case c.change*sense > 0:
		return "better"
	default:
		return "worse"
	}
}

// unsureText words a change that may be chance, with the means that it compares.
func (c *comparison) unsureText() string {
	write := digits
	if strings.Contains(c.metric, "seconds") {
		write = span
	}
	why := c.workloads(" workload") + " are too few to be sure"
	if c.method == "blocks" {
		why = "one trace is too little to be sure"
	}
	text := fmt.Sprintf("%s on average (%s against %s), but %s: %s to %s", signedPercent(c.change), write(c.mean), write(c.base), why, signedPercent(c.low), signedPercent(c.high))
	if c.level != usualLevel {
		text += " at " + levelText(c.level)
	}
	return text
}

// verdict is what the study came to on its first metric, in a sentence for each item that is held against the baseline.
func verdict(list []comparison) (sentences []string) {
	if len(list) == 0 {
		return nil
	}
	first := list[0].metric
	for i := range list {
		c := &list[i]
		if c.metric != first || !c.pooled || c.item == c.baseline || math.IsNaN(c.change) && c.method != otherJobs {
			continue
		}
		what := fmt.Sprintf("%s of %s against %s over %s: ", c.metric, c.item, c.baseline, c.workloads(" workload"))
		if c.method == "blocks" {
			what = fmt.Sprintf("%s of %s against %s within one trace: ", c.metric, c.item, c.baseline)
		}
		switch {
		case c.method == otherJobs:
			sentences = append(sentences, what+c.otherJobsText()+".")
		case math.IsNaN(c.low):
			sentences = append(sentences, what+signedPercent(c.change)+"; too few workloads for an interval.")
		case !c.shown():
			sentences = append(sentences, what+c.unsureText()+".")
		case !math.IsNaN(c.holm) && c.holm > 1-c.level:
			sentences = append(sentences, what+c.text()+fmt.Sprintf("; with all comparisons of the study in mind it may be chance (p = %s after Holm).", trimmed(c.holm, 2)))
		default:
			sentences = append(sentences, what+c.text()+".")
		}
	}
	return sentences
}

// missingCells lists what the study should hold and does not: runs that failed or were not run, and cells without a row.
func (s *Study) missingCells() (list []string) {
	run, outcome := s.runs.text("run"), s.runs.text("outcome")
	replicate := s.runs.text("replicate")
	columns := make([][]string, len(s.axes))
	for a, axis := range s.axes {
		columns[a] = s.runs.text(axis)
	}
	seen := map[string]bool{}
	most := 1
	for i := range s.runs.rows {
		var cell []string
		for a := range s.axes {
			cell = append(cell, columns[a][i])
		}
		seen[strings.Join(cell, "\x00")] = true
		if outcome[i] == "failed" || outcome[i] == "missing" {
			list = append(list, fmt.Sprintf("%s, replicate %s (run %s): %s", strings.Join(cell, ", "), replicate[i], run[i], outcome[i]))
		}
	}
	var all [][]string
	for a := range s.axes {
		all = append(all, items(columns[a]))
		if most *= len(all[a]); most > 1<<16 {
			return list
		}
	}
	cells := [][]string{{}}
	for _, axis := range all {
		var longer [][]string
		for _, cell := range cells {
			for _, item := range axis {
				longer = append(longer, append(slices.Clone(cell), item))
			}
		}
		cells = longer
	}
	apart := s.apart()
	for _, cell := range cells {
		if len(s.axes) > 0 && s.runs.rows > 0 && !apart(cell) && !seen[strings.Join(cell, "\x00")] {
			list = append(list, strings.Join(cell, ", ")+": no run")
		}
	}
	return list
}

// numeric reports whether all items of an axis are numbers, and lists them.
func numeric(list []string) (values []float64, ok bool) {
	for _, text := range list {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, false
		}
		values = append(values, v)
	}
	return values, len(values) > 0
}
