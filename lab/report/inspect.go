package report

import (
	"fmt"
	"strconv"
	"strings"
)

// What a page shows of each file; a file of an earlier version may lack some of it. Columns of text come behind the bar.
var shownColumns = map[string]string{
	"jobs.csv":       "job submit_s first_start_s finish_s jct_s queueing_s replicas_mean restarts gpu_seconds | name application outcome",
	"rounds.csv":     "time_s devices_used devices_usable running waiting gap_ratio |",
	"timeline.csv":   "job start_s end_s replicas | accelerator seats end",
	"nodes.csv":      "start_s devices | node accelerator health",
	"usage.csv":      "at_s devices_used devices_ready running waiting demand efficiency goodput |",
	"efficiency.csv": "job at_s batch efficiency |",
	"fairness.csv":   "job exclusive_s rho |",
	"tenants.csv":    "jobs gpu_seconds jct_mean_s jct_p99_s queueing_mean_s restarts_mean rho_mean | tenant",
	"training.csv":   "job initial_batch batch_mean efficiency_mean goodput_mean |",
	"reports.csv":    "job at_s step value | metric",
}

// inspect says which columns of a file a page lacks, and which cells of them are no numbers, unless that was told. It is done when
// the file is read: to write a page changes nothing.
func (r *Run) inspect(name string, t *table) {
	if t == nil || len(t.names) == 0 {
		return // there is none, or it cannot be read, which is told
	}
	numbers, texts, _ := strings.Cut(shownColumns[name], "|")
	var missing []string
	for column := range strings.FieldsSeq(numbers + texts) {
		if !t.has(column) {
			missing = append(missing, strconv.Quote(column))
		}
	}
	switch {
	case len(missing) == 1:
		r.problem("%s: there is no column %s.", name, missing[0])
	case len(missing) > 1:
		r.problem("%s: there are no columns %s.", name, strings.Join(missing, ", "))
	}
	if name == "jobs.csv" || name == "timeline.csv" || name == "nodes.csv" {
		return // what is taken of them at once is told there
	}
	for column := range strings.FieldsSeq(numbers) {
		if _, err := t.numbers(column); err != nil {
			r.problem("%s: %v.", name, err)
		}
	}
}

func (r *Run) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}
