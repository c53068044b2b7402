package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
)

const (
	phillyTimestamp = iota
	phillyDuration
	phillyReplicas
	phillyDeviceSeconds
	phillyCluster
)

var phillyColumns = columns{required: []string{"timestamp", "duration", "num_gpus", "gpu_time", "cluster"}}

// NewPhilly makes the factory of the source `philly`.
func NewPhilly() core.Factory[Source] {
	return newTraceFactory(core.Info{
		Type:    "philly",
		Summary: "trace of Microsoft's Philly cluster, as CSV",
		Description: "Each row is a rigid job that runs for its duration on num_gpus devices. The time of the earliest row is 0, " +
			"and the virtual cluster is the tenant. Rows have no names and come in no order: jobs are named philly-000000, " +
			"philly-000001, … in the order of the rows' contents, so that the order in the file does not matter. " +
			"gpu_time is checked to be a number and not used.",
		Source: "Jeon et al., ATC 2019",
	}, readPhilly)
}

type phillyRow struct {
	submitted     int64 // Unix seconds
	duration      float64
	replicas      int
	deviceSeconds float64
	cluster       string
	at            core.Position
}

func readPhilly(in *input) (*Workload, error) {
	t := openTable(in, phillyColumns)
	var rows []phillyRow
	for t.next() {
		row := phillyRow{
			submitted:     t.timestamp(phillyTimestamp),
			duration:      t.span(phillyDuration),
			replicas:      t.count(phillyReplicas),
			deviceSeconds: t.number(phillyDeviceSeconds, 0, maxNumber, "a number of seconds"),
			cluster:       t.label(phillyCluster),
			at:            t.declaration(),
		}
		if t.ok() {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, comparePhillyRows)
	jobs := make([]Job, len(rows))
	for i := range rows {
		row := &rows[i]
		submit := float64(row.submitted - rows[0].submitted)
		jobs[i] = newDurationJob(fmt.Sprintf("philly-%06d", i), submit, row.duration, row.replicas)
		jobs[i].Spec.Tenant = row.cluster
		jobs[i].At = row.at
	}
	return assemble(jobs, []Input{in.Input}, t.finish())
}

// comparePhillyRows orders rows by content, and equal ones by line, which tells them apart in messages only.
func comparePhillyRows(a, b phillyRow) int {
	return cmp.Or(
		cmp.Compare(a.submitted, b.submitted),
		cmp.Compare(a.duration, b.duration),
		cmp.Compare(a.replicas, b.replicas),
		cmp.Compare(a.deviceSeconds, b.deviceSeconds),
		strings.Compare(a.cluster, b.cluster),
		cmp.Compare(a.at.Line, b.at.Line),
	)
}

// timestamp is a moment such as 2017-10-09 07:01:55, in Unix seconds.
func (t *table) timestamp(column int) int64 {
	const firstYear, lastYear = 1970, 2999 // far apart, yet within maxSeconds
	moment, err := time.Parse(time.DateTime, t.cell(column))
	if err != nil || len(t.cell(column)) != len(time.DateTime) || moment.Year() < firstYear || moment.Year() > lastYear {
		t.reject(column, fmt.Sprintf("a moment such as 2017-10-09 07:01:55, in the years %d to %d", firstYear, lastYear))
		return 0
	}
	return moment.Unix()
}
