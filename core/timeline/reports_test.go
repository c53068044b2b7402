package timeline

import (
	"errors"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

func reported(id core.JobID, at, step, value float64, metric string) core.Event {
	return core.Event{Kind: core.JobReported, AtSeconds: at, Job: id, Metric: metric, Step: step, Value: value}
}

func TestReports(t *testing.T) {
	var out strings.Builder
	r := NewRecorder(&core.Cluster{Accelerators: []string{"t4"}}, Outputs{Reports: &out})
	spec := &core.JobSpec{ID: 0, Name: "a"}
	rounds := [][]core.Event{
		{{Kind: core.JobSubmitted, Job: 0, Spec: spec}},
		{reported(0, 10.5, 1, 2.25, "loss"), reported(0, 10.5, 1, 0.5, "top,5"), reported(7, 11, 1, 1, "of nobody")},
		{{Kind: core.JobFinished, AtSeconds: 20, Job: 0}, reported(0, 21, 2, 1, "too late")},
	}
	for i, events := range rounds {
		v := &core.View{NowSeconds: float64(10 * (i + 1)), Round: i + 1, Cluster: &core.Cluster{}, Jobs: []*core.Job{core.NewJob(spec)}}
		if err := r.ObserveRound(&core.Report{View: v, Events: events}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Finish(nil, 30); err != nil {
		t.Fatal(err)
	}
	if want := reportsHeader + "0,10.5,loss,1,2.25\n0,10.5,\"top,5\",1,0.5\n"; out.String() != want {
		t.Errorf("got\n%s, want\n%s", out.String(), want)
	}
}

func TestReportsThatCannotBeWritten(t *testing.T) {
	r := NewRecorder(&core.Cluster{}, Outputs{Reports: full{}})
	if err := r.Finish(nil, 0); !errors.Is(err, errFull) {
		t.Errorf("%v, want that the disk is full", err)
	}
}

var errFull = errors.New("the disk is full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
