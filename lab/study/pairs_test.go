package study

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// A study of many pairs keeps no rows of them.
func TestPairsKeepNoRows(t *testing.T) {
	const pairs, jobs = 40, 4000
	read := func(string) ([]metrics.Job, error) {
		list := make([]metrics.Job, jobs)
		for i := range list {
			list[i] = metrics.Job{ID: core.JobID(i), JCTSeconds: 1, Outcome: completed}
		}
		list[0].Outcome, list[0].JCTSeconds = "unfinished", metrics.Number(nan)
		return list, nil
	}
	at := traces{jobs: read}
	row := func(hash string) *Row {
		return &Row{&Run{Hash: hash}, &Record{Summary: &metrics.Summary{Jobs: metrics.JobCounts{Submitted: jobs, Completed: jobs - 1, Unfinished: 1}}}}
	}
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	for i := range pairs {
		p := at.ends(row(fmt.Sprint(i)), row("baseline"))
		if p.values[CommonMean] != [2]float64{1, 1} || p.values[RestrictedMean] == [2]float64{} || !p.same {
			t.Fatalf("pair %d: %v", i, p)
		}
	}
	if after := used(); after > before+1<<20 {
		t.Errorf("%d pairs of %d jobs hold %d bytes", pairs, jobs, after-before)
	}
	runtime.KeepAlive(&at)
}
