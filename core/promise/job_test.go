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
			got, buffer := Of(&core.Candidate{Job: job, Response: &tc.response}, &core.Cluster{Accelerators: []string{"gpu"}}, core.AnyAccelerator, 20, 2, tc.most, Powers, tc.buffer)
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
