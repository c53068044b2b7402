package elasticity

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

func finished(works ...float64) (list []ending) {
	for _, w := range works {
		list = append(list, ending{work: w, seconds: w, finished: true})
	}
	return list
}

// What is left is the mean over the jobs that came so far; beyond all of them, a guess that doubles.
func TestWorkLeft(t *testing.T) {
	stopped := func(w float64) ending { return ending{work: w, seconds: w} }
	cases := map[string]struct {
		endings []ending
		want    map[float64]float64 // by work done
	}{
		"all alike":            {finished(100, 100), map[float64]float64{0: 100, 40: 60, 100: 100, 150: 50, 200: 200}},
		"two kinds":            {finished(100, 300), map[float64]float64{0: 200, 99: 101, 100: 200, 200: 100}},
		"one was stopped":      {append(finished(100), stopped(50)), map[float64]float64{0: 100, 60: 40}},
		"all were stopped":     {[]ending{stopped(50)}, map[float64]float64{0: 100, 60: 40}},
		"the last was stopped": {append(finished(100), stopped(100)), map[float64]float64{0: 150}},
		"nothing is known":     {nil, map[float64]float64{0: math.NaN()}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := newTotal(tc.endings, byWork)
			for done, want := range tc.want {
				if got := d.left(done); math.Abs(got-want) > 1e-9 || math.IsNaN(got) != math.IsNaN(want) {
					t.Errorf("%v is left of a job that did %v, want %v", got, done, want)
				}
			}
		})
	}
}

// What jobs had to do is known in the next run; of an application that was never seen, in time on one device. Jobs that have
// more or less to do than any before prove it wrong.
func TestWorkOfEarlierRuns(t *testing.T) {
	p := workPool{unmeasured: 600}
	if got := p.left("app", false, 700*3, 3); got != 500*3 {
		t.Errorf("%v is left though nothing is known, want 1500", got)
	}
	p.read("app", finished(100, 100))
	p.read("other", []ending{{work: 10, seconds: 1000, finished: true}})
	if got := p.left("app", false, 25, 1); got != 75 {
		t.Errorf("%v is left, want 75", got)
	}
	if got := p.whole("app"); got != 100 {
		t.Errorf("a job that has not begun needs %v s, want 100", got)
	}
	if got := p.left("new", false, 0, 2); math.Abs(got-800) > 1e-9 {
		t.Errorf("%v is left of an unseen application, want the mean over all, 800", got)
	}
	if got := p.left("app", true, 0, 1); math.Abs(got-400) > 1e-9 {
		t.Errorf("%v is left of a changed application, want the mean over all, 400", got)
	}
	p.add("app", ending{work: 201, seconds: 201, finished: true})
	if got := p.left("app", false, 0, 1); got != 201 {
		t.Errorf("%v is left once earlier runs are proved wrong, want 201", got)
	}
	if got := p.whole("app"); got != 201 {
		t.Errorf("a job that has not begun needs %v s, want 201", got)
	}
}

// ends lets a job of an application run, and end with so much work done.
func ends(t testing.TB, p *goodputAgent, application string, work float64, state core.JobState) {
	t.Helper()
	j := trainingJob()
	j.Application = application
	ran(j, truth, 1, 1, 64)
	respond(t, p, j)
	j.Progress, j.State = work, state
	if err := p.Ended(context.Background(), &core.View{}, []*core.Job{j}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Respond(context.Background(), &core.View{Jobs: []*core.Job{nil}, Changed: []core.JobID{j.ID}}, nil); err != nil {
		t.Fatal(err)
	}
}

// The work that jobs had is in the pool, and the response of the next run.
func TestHistoryTellsTheWorkLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool.yaml")
	settings := map[string]any{"declared_work": false}
	first := remembering(t, path, settings)
	ends(t, first, "app", 500, core.Completed)
	ends(t, first, "app", 300, core.Failed)
	closed(t, first)
	j := trainingJob()
	j.Progress, j.ProgressRate = 100, 0
	if got := respond(t, remembering(t, path, settings), j); got.RemainingWork != 400 {
		t.Errorf("%v is left, want 400", got.RemainingWork)
	}
}

// Runs that write at once lose nothing of each other.
func TestHistoryOfRunsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool.yaml")
	const runs = 8
	var all []*goodputAgent
	for i := range runs {
		p := remembering(t, path, nil)
		ends(t, p, "shared", 100+float64(i), core.Completed)
		ends(t, p, fmt.Sprintf("own-%d", i), 1, core.Completed)
		all = append(all, p)
	}
	var wait sync.WaitGroup
	for _, p := range all {
		wait.Go(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	got, _, err := readPool(path)
	if err != nil {
		t.Fatal(err)
	}
	shared := got.named("shared")
	if len(got.applications) != runs+1 || got.runs != runs || shared == nil || len(shared.endings) != runs || shared.jobs != runs {
		t.Errorf("the pool has %d applications of %d runs, %+v; want %d of %d, each ending once", len(got.applications), got.runs, shared, runs+1, runs)
	}
}

// Pools are bounded: the oldest endings go first.
func TestEndingsAge(t *testing.T) {
	var list []ending
	for i := range 3 * mostEndings {
		list = newest(append(list, finished(float64(i+1))...))
	}
	if len(list) != mostEndings || list[0].work != 2*mostEndings+1 {
		t.Errorf("%d endings are kept, from %v on", len(list), list[0].work)
	}
}

// A pool that is too large to be one is refused.
func TestHugeHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool.yaml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, inputfile.Document+1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readPool(path); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("reads a pool of 64 MiB and a byte: error %v", err)
	}
}
