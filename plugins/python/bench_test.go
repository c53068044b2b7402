package python_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// BenchmarkSmallRound is a round of an allocation policy in Python as its host sees it, over a Unix socket with TLS: 20
// candidates, one of which changes.
func BenchmarkSmallRound(b *testing.B) {
	ctx := context.Background()
	session, err := policies(b).Session(ctx, host.Component{Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "las", ID: "allocation/las"})
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	client := stagev1.NewAllocationServiceClient(session.Conn)
	job := func(id int, attained float64) *stagev1.Job {
		return &stagev1.Job{
			Id: int32(id), State: stagev1.JobState_JOB_STATE_RUNNING, WaitingReason: "none", AttainedDeviceSeconds: attained,
			Seats: []*stagev1.Seat{{Node: int32(id), Devices: 1}},
		}
	}
	const jobs = 20
	first := &stagev1.ViewUpdate{Sequence: 1, Full: true, Round: 1, IntervalSeconds: 60, Submitted: jobs, Accelerators: []string{"t4"}}
	for id := range jobs {
		first.Nodes = append(first.Nodes, &stagev1.Node{Id: int32(id), Health: stagev1.Health_HEALTH_READY, Devices: 4})
		j := job(id, 0)
		j.Spec = &stagev1.JobSpec{Name: "job", Requested: 1, MinReplicas: 1, MaxReplicas: 1}
		j.Response = &stagev1.Response{Job: int32(id), MinReplicas: 1, MaxReplicas: 1}
		first.Jobs = append(first.Jobs, j)
	}
	if _, err := client.Allocate(ctx, &stagev1.AllocateRequest{View: first}); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		update := &stagev1.ViewUpdate{
			Sequence: uint64(i) + 2, Round: int64(i) + 2, NowSeconds: 60 * float64(i), IntervalSeconds: 60,
			Jobs: []*stagev1.Job{job(i%jobs, 1000*float64(i))},
		}
		start := time.Now()
		answer, err := client.Allocate(ctx, &stagev1.AllocateRequest{View: update})
		took = append(took, time.Since(start))
		if err != nil || answer.GetResync() || len(answer.GetEdit().GetSteps()) == 0 {
			b.Fatalf("got %v, error %v", answer, err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkStart is the time from nothing to a configured policy.
func BenchmarkStart(b *testing.B) {
	binary := policies(b)
	for b.Loop() {
		session, err := binary.Session(context.Background(), host.Component{
			Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "las", ID: "allocation/las",
		})
		if err != nil {
			b.Fatal(err)
		}
		session.Close()
	}
}
