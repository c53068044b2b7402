package promise

import (
	"cmp"
	"math"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
)

// What is planned for is the candidate as it is now.
func TestOf(t *testing.T) {
	t.Parallel()
	curve := []core.Curve{{OneNode: []float64{0, 2, 3, 4}, ManyNodes: []float64{0, 1, 1.5, 3.5}}}
	for name, tc := range map[string]struct {
		spec     core.JobSpec
		held     int
		asOf     float64
		did      float64 // work, at that moment
		rate     float64 // from then on
		response core.Response
		most     int
		buffer   []Level
		want     Job
	}{
		"waits, though the pause of its last change is not over": {
			spec: core.JobSpec{ID: 3, SubmitSeconds: 5, DeadlineSeconds: 90}, asOf: 30, most: 4,
			response: core.Response{MinReplicas: 1, MaxReplicas: 4, Curves: curve, RemainingWork: 7},
			want:     Job{ID: 3, Deadline: 95, Left: 7, Levels: []Level{{2, 2}, {4, 3.5}}, Ready: 20},
		},
		"runs again soon": {
			held: 2, asOf: 30, most: 4, response: core.Response{MinReplicas: 1, MaxReplicas: 4, Curves: curve, RemainingWork: 7},
			want: Job{Deadline: math.Inf(1), Left: 7, Levels: []Level{{2, 2}, {4, 3.5}}, Held: 2, Ready: 30},
		},
		"runs": {
			held: 1, asOf: 10, most: 3, response: core.Response{MinReplicas: 2, MaxReplicas: 4, Curves: curve, RemainingWork: 7},
			want: Job{Deadline: math.Inf(1), Left: 7, Levels: []Level{{2, 2}}, Held: 1, Ready: 20},
		},
		"is told of nothing but its range": {
			most: 4, response: core.Response{MinReplicas: 1, MaxReplicas: 4, RemainingWork: 7},
			want: Job{Deadline: math.Inf(1), Left: 7, Levels: []Level{{1, math.NaN()}}, Ready: 20},
		},
		"has declared seconds": {
			spec: core.JobSpec{Requested: 3, TotalWork: 8}, most: 4, response: core.Response{MinReplicas: 1, MaxReplicas: 4, RemainingWork: 7},
			want: Job{Deadline: math.Inf(1), Left: 7, Levels: []Level{{3, 1}}, Ready: 20},
		},
		"has declared seconds on more than it can": {
			spec: core.JobSpec{Requested: 9, TotalWork: 8}, most: 4, response: core.Response{MinReplicas: 1, MaxReplicas: 4, RemainingWork: 7},
			want: Job{Deadline: math.Inf(1), Left: 7, Levels: []Level{{4, 1}}, Ready: 20},
		},
		"has done all that it declares, and not ended": {
			spec: core.JobSpec{Requested: 1, TotalWork: 7}, held: 1, asOf: 10, did: 6.5, rate: 0.05, most: 4, response: core.Response{MinReplicas: 1, MaxReplicas: 4, RemainingWork: 7},
			want: Job{Deadline: math.Inf(1), Left: math.Nextafter(20, 21) - 20, Levels: []Level{{1, 1}}, Held: 1, Ready: 20},
		},
		"goes on longer than it declares": {
			spec: core.JobSpec{Requested: 1, TotalWork: 7}, held: 1, asOf: 10, did: 6.5, rate: 0.05 + 1e-9, most: 4, response: core.Response{MinReplicas: 1, MaxReplicas: 4, RemainingWork: 7},
			want: Job{Deadline: math.Inf(1), Left: 0, Levels: []Level{{1, 1}}, Held: 1, Ready: 20},
		},
		"is told to have nothing left, and declares nothing": {
			held: 1, asOf: 10, most: 2, response: core.Response{MinReplicas: 2, MaxReplicas: 4, Curves: curve},
			want: Job{Deadline: math.Inf(1), Left: 0, Levels: []Level{{2, 2}}, Held: 1, Ready: 20},
		},
		"comes behind others": {
			most: 4, buffer: []Level{{8, 8}}, response: core.Response{MinReplicas: 1, MaxReplicas: 4, Curves: curve, RemainingWork: 7},
			want: Job{Deadline: math.Inf(1), Left: 7, Levels: []Level{{2, 2}, {4, 3.5}}, Ready: 20},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := core.NewJob(&tc.spec)
			job.Held, job.ProgressAsOf, job.Progress, job.ProgressRate = tc.held, tc.asOf, tc.did, tc.rate
			got, buffer := NewJob(&core.Candidate{Job: job, Response: &tc.response}, &core.Cluster{Accelerators: []string{"gpu"}}, core.AnyAccelerator, 20, 2, tc.most, PowersOfTwo, tc.buffer)
			if diff := gocmp.Diff(tc.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := gocmp.Diff(append(tc.buffer, tc.want.Levels...), buffer, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("the buffer, -want +got:\n%s", diff)
			}
		})
	}
}

func TestPlannable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job  Job
		want bool
	}{
		"known":         {Job{Left: 1, Levels: []Level{{1, 1}}}, true},
		"done":          {Job{Left: 0, Levels: []Level{{1, 1}}}, false},
		"unknown":       {Job{Left: math.NaN(), Levels: []Level{{1, 1}}}, false},
		"no level":      {Job{Left: 1}, false},
		"no rate":       {Job{Left: 1, Levels: []Level{{1, 0}}}, false},
		"unknown rates": {Job{Left: 1, Levels: []Level{{1, math.NaN()}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.job.Plannable(); got != tc.want {
				t.Errorf("plannable %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		a, b Job
		want int
	}{
		"an earlier deadline":    {Job{ID: 2, Deadline: 5}, Job{ID: 1, Deadline: 6}, -1},
		"a later deadline":       {Job{ID: 1, Deadline: 6}, Job{ID: 2, Deadline: 5}, 1},
		"the same, submitted":    {Job{ID: 1, Deadline: 5}, Job{ID: 2, Deadline: 5}, -1},
		"the same, after":        {Job{ID: 2, Deadline: 5}, Job{ID: 1, Deadline: 5}, 1},
		"none, and a deadline":   {Job{ID: 1, Deadline: math.Inf(1)}, Job{ID: 2, Deadline: 5}, 1},
		"none of both":           {Job{ID: 1, Deadline: math.Inf(1)}, Job{ID: 2, Deadline: math.Inf(1)}, -1},
		"a job and the same job": {Job{ID: 1, Deadline: 5}, Job{ID: 1, Deadline: 5}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cmp.Compare(Compare(&tc.a, &tc.b), 0); got != tc.want {
				t.Errorf("compared %d, want %d", got, tc.want)
			}
		})
	}
}

func TestFastestAndCheapest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job               Job
		overhead          float64
		fastest, cheapest float64
	}{
		"on most devices":              {Job{Left: 30, Levels: []Level{{1, 1}, {2, 1.5}}, Ready: 5}, 0, 25, 30},
		"after a change":               {Job{Left: 30, Levels: []Level{{1, 1}, {2, 1.5}}, Ready: 5}, 4, 29, 30},
		"on what it holds":             {Job{Left: 30, Levels: []Level{{1, 1}, {2, 1.5}}, Held: 1, Ready: 5}, 20, 35, 30},
		"a change is worth it":         {Job{Left: 30, Levels: []Level{{1, 1}, {2, 1.5}}, Held: 1, Ready: 5}, 9, 34, 30},
		"instead of the change before": {Job{Left: 30, Levels: []Level{{1, 1}, {2, 1.5}}, Held: 1, Ready: 12}, 9, 34, 30},
		"better than in proportion":    {Job{Left: 30, Levels: []Level{{1, 1}, {2, 3}}, Held: 2, Ready: 5}, 9, 15, 20},
		"nothing that it can run on":   {Job{Left: 30}, 0, math.Inf(1), math.Inf(1)},
		"the first level is the best":  {Job{Left: 30, Levels: []Level{{3, 10}}, Ready: 5}, 0, 8, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.job.Fastest(5, tc.overhead); got != tc.fastest {
				t.Errorf("fastest %v, want %v", got, tc.fastest)
			}
			if got := tc.job.Cheapest(); got != tc.cheapest {
				t.Errorf("cheapest %v, want %v", got, tc.cheapest)
			}
		})
	}
}

// Devices that come later are waited for where that is faster, with what is there or with nothing in the meantime.
func TestFastestWith(t *testing.T) {
	t.Parallel()
	small := []Level{{1, 1}, {4, 2}}
	for name, tc := range map[string]struct {
		job   Job // at 5 s; a change takes 4 s
		there int
		more  float64
		want  float64
	}{
		"all are there":                  {Job{Left: 30, Levels: small, Ready: 5}, 4, 15, 9 + 15},
		"all come now":                   {Job{Left: 30, Levels: small, Ready: 5}, 1, 5, 9 + 15},
		"on one until more come":         {Job{Left: 30, Levels: small, Ready: 5}, 1, 15, 19 + (30-6)/2.},
		"on the one that it holds":       {Job{Left: 30, Levels: small, Held: 1, Ready: 5}, 1, 15, 19 + (30-10)/2.},
		"on one that is ready later":     {Job{Left: 30, Levels: small, Held: 1, Ready: 7}, 1, 15, 19 + (30-8)/2.},
		"on two until four come":         {Job{Left: 60, Levels: []Level{{2, 2}, {4, 4}}, Ready: 5}, 2, 15, 19 + (60-12)/4.},
		"nothing until more come":        {Job{Left: 30, Levels: small, Ready: 5}, 0, 15, 19 + 15},
		"more never come":                {Job{Left: 30, Levels: small, Ready: 5}, 1, math.Inf(1), 9 + 30},
		"neither are there nor come any": {Job{Left: 30, Levels: small, Ready: 5}, 0, math.Inf(1), math.Inf(1)},
		"done before more come":          {Job{Left: 3, Levels: small, Ready: 5}, 1, 15, 9 + 3},
		"more come before one is ready":  {Job{Left: 30, Levels: small, Ready: 5}, 1, 7, 11 + 15},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.job.FastestWith(5, 4, tc.there, tc.more); got != tc.want {
				t.Errorf("done at %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	curve := func(rates ...float64) []core.Curve { return []core.Curve{{OneNode: rates, ManyNodes: rates}} }
	for name, tc := range map[string]struct {
		response core.Response
		most     int
		levels   string
		want     []Level
	}{
		"powers":             {core.Response{MinReplicas: 1, MaxReplicas: 6, Curves: curve(1, 2, 3, 4, 5, 6)}, 8, PowersOfTwo, []Level{{1, 1}, {2, 2}, {4, 4}}},
		"all":                {core.Response{MinReplicas: 1, MaxReplicas: 4, Curves: curve(1, 2, 3, 4)}, 8, AllLevels, []Level{{1, 1}, {2, 2}, {3, 3}, {4, 4}}},
		"faster ones only":   {core.Response{MinReplicas: 1, MaxReplicas: 4, Curves: curve(3, 2, 3, 4)}, 8, AllLevels, []Level{{1, 3}, {4, 4}}},
		"times the least":    {core.Response{MinReplicas: 3, MaxReplicas: 12, Curves: curve(1, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)}, 64, PowersOfTwo, []Level{{3, 3}, {6, 6}, {12, 12}}},
		"as many as can be":  {core.Response{MinReplicas: 1, MaxReplicas: 8, Curves: curve(1, 2, 3, 4, 5, 6, 7, 8)}, 3, PowersOfTwo, []Level{{1, 1}, {2, 2}}},
		"times what it runs": {core.Response{MinReplicas: 1, MaxReplicas: 6, Curves: curve(0, 0, 3, 4, 5, 6)}, 8, PowersOfTwo, []Level{{3, 3}, {6, 6}}},
		"the slowest first":  {core.Response{MinReplicas: 1, MaxReplicas: 2, Curves: append(curve(1, 3), curve(2, 4)[0])}, 8, PowersOfTwo, []Level{{1, 1}, {2, 3}}},
		"those it runs with": {core.Response{MinReplicas: 1, MaxReplicas: 4, Curves: curve(0, 2, 0, 4)}, 8, PowersOfTwo, []Level{{2, 2}, {4, 4}}},
		"declared seconds":   {core.Response{MinReplicas: 2, MaxReplicas: 2}, 8, PowersOfTwo, []Level{{2, 1}}},
		"the slowest type":   {core.Response{MinReplicas: 1, MaxReplicas: 2, Curves: append(curve(2, 4), curve(1, 3)[0], curve(1, 1)[0])}, 8, PowersOfTwo, []Level{{1, 1}, {2, 3}}},
		"types it runs on":   {core.Response{MinReplicas: 1, MaxReplicas: 2, Curves: append(curve(0, 0), curve(5, 6)[0])}, 8, PowersOfTwo, []Level{{1, 5}, {2, 6}}},
		"nowhere known":      {core.Response{MinReplicas: 2, MaxReplicas: 4, Curves: curve(0, 0, 0, 0)}, 8, PowersOfTwo, []Level{{2, math.NaN()}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &core.Cluster{Accelerators: []string{"t4", "v100", "forbidden"}}
			job := core.NewJob(&core.JobSpec{Requested: tc.response.MinReplicas, TotalWork: 10, Accelerators: []string{"t4", "v100"}})
			tc.response.RemainingWork = 10
			j, _ := NewJob(&core.Candidate{Job: job, Response: &tc.response}, cluster, core.AnyAccelerator, 0, 8, tc.most, tc.levels, nil)
			if diff := gocmp.Diff(tc.want, j.Levels, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if known := !math.IsNaN(tc.want[0].Rate); j.Plannable() != known {
				t.Errorf("plannable %v, want %v", j.Plannable(), known)
			}
		})
	}
}

// The work left is as of now, whenever elasticity told it.
func TestLeft(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		total, progress, rate, told float64
		batch                       core.BatchSpec
		want                        float64
	}{
		"declared":                {100, 20, 1, math.NaN(), core.BatchSpec{}, 70},
		"steps of one phase":      {100, 20, 1, 100, core.BatchSpec{Requested: 8, Initial: 8}, 70},
		"steps at another batch":  {100, 20, 1, 40, core.BatchSpec{Requested: 16, Initial: 8}, 40},
		"work of the last event":  {100, 20, 1, 80, core.BatchSpec{Requested: 16, Initial: 8}, 70},
		"an estimate that is low": {100, 20, 1, 30, core.BatchSpec{}, 30},
		"only elasticity knows":   {0, 20, 1, 55, core.BatchSpec{}, 55},
		"nobody knows":            {0, 20, 1, math.NaN(), core.BatchSpec{}, math.NaN()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := core.NewJob(&core.JobSpec{TotalWork: tc.total, Batch: tc.batch})
			job.Progress, job.ProgressRate, job.ProgressAsOf = tc.progress, tc.rate, 10
			got := left(&core.Candidate{Job: job, Response: &core.Response{RemainingWork: tc.told}}, 20)
			if got != tc.want && !(math.IsNaN(got) && math.IsNaN(tc.want)) {
				t.Errorf("left %v, want %v", got, tc.want)
			}
		})
	}
}
