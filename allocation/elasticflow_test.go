package allocation

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/promise"
)

// halved tells that a second device adds half a device's work, and further ones a quarter.
func halved(j *core.Job) core.Response {
	rates := []float64{1, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3}
	return core.Response{
		Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas, RemainingWork: j.TotalWork,
		Curves: []core.Curve{{OneNode: rates, ManyNodes: rates}},
	}
}

// due is a waiting job of so much work until its deadline, 0 for whenever.
func due(work, deadline float64) *coretest.JobBuilder {
	return coretest.MakeJob("due").Elastic(1, 1, 8).Work(work).Deadline(deadline).Waiting()
}

func TestElasticFlowGrants(t *testing.T) {
	t.Parallel()
	on := func(job *coretest.JobBuilder, devices ...int) *coretest.JobBuilder {
		return job.Running(0, coretest.Seat(0, devices...)).Progress(0, 1)
	}
	for name, tc := range map[string]struct {
		config  ElasticFlowConfig
		devices int
		jobs    []*coretest.JobBuilder
		want    map[core.JobID]int
		until   float64 // when a plan changes; 0 for never
	}{
		"what the deadline needs":             {ElasticFlowConfig{}, 2, []*coretest.JobBuilder{due(100, 100), due(100, 100)}, map[core.JobID]int{0: 1, 1: 1}, 0},
		"more devices where one is too slow":  {ElasticFlowConfig{}, 3, []*coretest.JobBuilder{due(150, 100), due(100, 100)}, map[core.JobID]int{0: 2, 1: 1}, 0},
		"nobody idle for want of a deadline":  {ElasticFlowConfig{}, 2, []*coretest.JobBuilder{due(10, 1000), due(10, 2000)}, map[core.JobID]int{0: 1, 1: 1}, 990},
		"what is left grows who has nothing":  {ElasticFlowConfig{}, 2, []*coretest.JobBuilder{due(100, 100), due(50, 0)}, map[core.JobID]int{0: 1, 1: 1}, 0},
		"best effort behind deadlines":        {ElasticFlowConfig{}, 2, []*coretest.JobBuilder{due(50, 0).BestEffort(), due(150, 100)}, map[core.JobID]int{1: 2}, 0},
		"a late job has what is left":         {ElasticFlowConfig{}, 3, []*coretest.JobBuilder{due(900, 100), due(150, 100)}, map[core.JobID]int{0: 1, 1: 2}, 0},
		"least growth to the shorter job":     {ElasticFlowConfig{}, 3, []*coretest.JobBuilder{due(60, 0), due(600, 0)}, map[core.JobID]int{0: 2, 1: 1}, 0},
		"most growth to the longer job":       {ElasticFlowConfig{Expand: mostGrowth}, 3, []*coretest.JobBuilder{due(60, 0), due(600, 0)}, map[core.JobID]int{0: 1, 1: 2}, 0},
		"all levels":                          {ElasticFlowConfig{Levels: promise.All}, 3, []*coretest.JobBuilder{due(60, 0)}, map[core.JobID]int{0: 3}, 0},
		"powers of two":                       {ElasticFlowConfig{}, 3, []*coretest.JobBuilder{due(60, 0)}, map[core.JobID]int{0: 2}, 0},
		"what it holds costs nothing":         {ElasticFlowConfig{Overhead: 50 * time.Second}, 2, []*coretest.JobBuilder{on(due(100, 0), 0), due(100, 0)}, map[core.JobID]int{0: 1, 1: 1}, 0},
		"its deadline does not bear a change": {ElasticFlowConfig{Overhead: 40 * time.Second}, 2, []*coretest.JobBuilder{on(due(99, 100), 0)}, map[core.JobID]int{0: 1}, 0},
		"its deadline bears a change":         {ElasticFlowConfig{Overhead: time.Second}, 2, []*coretest.JobBuilder{on(due(50, 100), 0)}, map[core.JobID]int{0: 2}, 40},
		"nor that a change is put off":        {ElasticFlowConfig{Overhead: 20 * time.Second}, 2, []*coretest.JobBuilder{due(78, 100).Running(50, coretest.Seat(0, 0, 1))}, map[core.JobID]int{0: 1}, 0},
		"but for nothing if nothing is lost":  {ElasticFlowConfig{Overhead: 20 * time.Second}, 2, []*coretest.JobBuilder{due(78, 100).Running(0, coretest.Seat(0, 0, 1))}, map[core.JobID]int{0: 2}, 0},
		"pinned jobs keep what they hold":     {ElasticFlowConfig{}, 2, []*coretest.JobBuilder{on(due(500, 0).Pinned(), 0, 1), due(10, 100)}, map[core.JobID]int{0: 2}, 0},
		"nobody knows how long it takes":      {ElasticFlowConfig{}, 2, []*coretest.JobBuilder{due(0, 100), due(10, 100)}, map[core.JobID]int{0: 1, 1: 1}, 90},
		"others have what is needed later":    {ElasticFlowConfig{}, 4, []*coretest.JobBuilder{due(100, 150), due(195, 100)}, map[core.JobID]int{0: 2, 1: 2}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.config.Levels == "" {
				tc.config.Levels = promise.Powers
			}
			if tc.config.Expand == "" {
				tc.config.Expand = leastGrowth
			}
			p, err := NewElasticFlow().New(&tc.config, core.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", tc.devices).Obj()).Jobs(tc.jobs...).Obj()
			v.IntervalSeconds = 10
			grants, err := p.Allocate(t.Context(), v, coretest.Candidates(v, halved))
			if err != nil {
				t.Fatal(err)
			}
			if until := p.(core.Steady).Standing().UntilSeconds; until != tc.until && (tc.until != 0 || !math.IsInf(until, 1)) {
				t.Errorf("stands until %v, want %v", until, tc.until)
			}
			got := map[core.JobID]int{}
			for _, g := range grants {
				got[g.Job] = g.Replicas
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// An answer stands only for the jobs that were asked about, and as long as it is asked in each round.
func TestElasticFlowAnswersAnew(t *testing.T) {
	t.Parallel()
	config := ElasticFlowConfig{Levels: promise.Powers, Expand: leastGrowth}
	p, err := NewElasticFlow().New(&config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(due(60, 0), due(60, 0)).Obj()
	v.IntervalSeconds = 10
	ask := func(round int, jobs []core.Candidate) (got []core.Grant) {
		t.Helper()
		v.Round = round
		if got, err = p.Allocate(t.Context(), v, jobs); err != nil {
			t.Fatal(err)
		}
		return got
	}
	both := coretest.Candidates(v, halved)
	ask(1, both[:1])
	if got := ask(2, both[1:]); len(got) != 1 || got[0].Job != 1 {
		t.Errorf("asked about another job: %v", got)
	}
	narrow := coretest.Candidates(v, func(j *core.Job) core.Response {
		r := halved(j)
		r.MinReplicas, r.MaxReplicas = 3, 3
		return r
	})
	late := coretest.Candidates(coretest.MakeView(v.Cluster).Jobs(due(60, 1000)).Obj(), halved)
	if ask(3, late); p.(core.Steady).Standing().UntilSeconds != 940 {
		t.Errorf("a plan changes at 940 s, and the answer stands until %v", p.(core.Steady).Standing().UntilSeconds)
	}
	if ask(4, both); !math.IsInf(p.(core.Steady).Standing().UntilSeconds, 1) {
		t.Errorf("there are no plans any more, and the answer stands until %v", p.(core.Steady).Standing().UntilSeconds)
	}
	if got := ask(6, narrow[1:]); len(got) != 1 || got[0].Replicas != 3 {
		t.Errorf("after a round without it, in which its range changed: %v", got)
	}
}
