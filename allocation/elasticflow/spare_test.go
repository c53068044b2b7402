package elasticflow

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/promise"
)

// spareJob is a job without a deadline, as the test knows it.
type spareJob struct {
	rates    []float64 // of 1, 2, 4 and 8 devices, ascending
	left     float64   // NaN when unknown
	held     int
	replicas int
}

// deviceSeconds are those of a job on so many replicas until it is done; of one that has none the least on any.
func (j *spareJob) deviceSeconds(replicas int, overhead float64) float64 {
	if replicas == 0 {
		least := math.Inf(1)
		for k, rate := range j.rates {
			least = min(least, j.left/rate*float64(int(1)<<k))
		}
		return least
	}
	for k, rate := range j.rates {
		if replicas == 1<<k {
			seconds := j.left / rate
			if replicas != j.held {
				seconds += overhead
			}
			return seconds * float64(replicas)
		}
	}
	panic("no level")
}

// offer is what a job may get next, and by how much its device-seconds grow for each device; 0 for nothing.
func (j *spareJob) offer(free int, overhead float64) (next int, growth float64) {
	for k := range j.rates {
		n := 1 << k
		if n <= j.replicas || n-j.replicas > free || next > 0 && n != j.held {
			continue
		}
		g := (j.deviceSeconds(n, overhead) - j.deviceSeconds(j.replicas, overhead)) / float64(n-j.replicas)
		if math.IsNaN(g) {
			g = 0
		}
		if next == 0 || g < growth {
			next, growth = n, g
		}
	}
	return next, growth
}

// What no deadline needs is given away as by who looks at all jobs anew before each step. By most growth an offer of what a job holds, which
// grows least, is renewed only when it comes up: nobody holds anything there.
func TestElasticFlowGivesAwayTheRest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		devices := rapid.IntRange(1, 24).Draw(t, "devices")
		overhead := float64(rapid.SampledFrom([]int{0, 5, 60}).Draw(t, "overhead"))
		expand := rapid.SampledFrom([]string{leastGrowth, mostGrowth}).Draw(t, "expand")
		var jobs []*spareJob
		var builders []*coretest.JobBuilder
		free := devices
		for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
			j := &spareJob{left: float64(rapid.IntRange(1, 500).Draw(t, "left"))}
			for rate, k := 0.0, rapid.IntRange(1, 4).Draw(t, "levels"); k > 0; k-- {
				rate += float64(rapid.IntRange(1, 8).Draw(t, "more")) / 4
				j.rates = append(j.rates, rate)
			}
			work := j.left
			if rapid.IntRange(0, 5).Draw(t, "unknown") == 0 {
				j.left, work = math.NaN(), 0
			}
			b := coretest.MakeJob("spare").ID(core.JobID(i)).Elastic(1, 1, 1<<(len(j.rates)-1)).Work(work)
			if held := 1 << rapid.IntRange(0, len(j.rates)-1).Draw(t, "held"); held <= free && expand == leastGrowth && rapid.Bool().Draw(t, "runs") {
				j.held, free = held, free-held
				b = b.Running(0, coretest.Seat(core.NodeID(i), seq(held)...)).Progress(0, 1)
			} else {
				b = b.Waiting()
			}
			jobs, builders = append(jobs, j), append(builders, b)
		}
		v := coretest.MakeView(coretest.MakeCluster().Nodes(devices, "t4", 8).Obj()).Jobs(builders...).Obj()
		v.Devices, v.IntervalSeconds = devices, 10
		config := Config{Levels: promise.PowersOfTwo, Expand: expand, Overhead: time.Duration(overhead) * time.Second}
		p, err := New().New(&config, core.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		grants, err := p.Allocate(t.Context(), v, coretest.Candidates(v, func(job *core.Job) core.Response {
			j := jobs[job.ID]
			rates := make([]float64, 1<<(len(j.rates)-1))
			for k, rate := range j.rates {
				rates[1<<k-1] = rate
			}
			return core.Response{
				Job: job.ID, MinReplicas: 1, MaxReplicas: len(rates), RemainingWork: j.left,
				Curves: []core.Curve{{OneNode: rates, ManyNodes: rates}},
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		got := map[int]int{}
		for _, g := range grants {
			got[int(g.Job)] = g.Replicas
		}
		want := map[int]int{}
		for left := devices; ; {
			best, next, growth := -1, 0, 0.0
			for i, j := range jobs {
				n, g := j.offer(left, overhead)
				switch {
				case n == 0:
					continue
				case best < 0,
					(j.replicas == 0) && jobs[best].replicas > 0,
					(j.replicas == 0) == (jobs[best].replicas == 0) && (expand == leastGrowth && g < growth || expand == mostGrowth && g > growth):
					best, next, growth = i, n, g
				}
			}
			if best < 0 {
				break
			}
			left -= next - jobs[best].replicas
			jobs[best].replicas = next
			want[best] = next
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// seq are the first n numbers.
func seq(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}
