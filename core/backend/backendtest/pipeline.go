package backendtest

import (
	"context"
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// fifo is every stage at once: first come, first served, on the first free devices, and nobody is stopped.
type fifo struct{}

func (fifo) Admit(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) { return nil, nil }

func (fifo) Respond(_ context.Context, _ *core.View, jobs []*core.Job) ([]core.Response, error) {
	responses := make([]core.Response, 0, len(jobs))
	for _, j := range jobs {
		responses = append(responses, core.Response{Job: j.ID, MinReplicas: j.Requested, MaxReplicas: j.Requested, RemainingWork: math.NaN()})
	}
	return responses, nil
}

func (fifo) Allocate(_ context.Context, _ *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	grants := make([]core.Grant, 0, len(candidates))
	for _, c := range candidates {
		grants = append(grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Requested, Blocking: true})
	}
	return grants, nil
}

func (fifo) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	var s core.Seating
	var free core.Ledger
	free.Reset(v.Cluster)
	stays := map[core.JobID]bool{}
	for _, g := range grants {
		if j := v.Job(g.Job); j.Held == g.Replicas && free.Occupy(j.Seats) {
			s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: j.Seats})
			stays[g.Job] = true
		}
	}
	blocked := false
	for _, g := range grants {
		if stays[g.Job] {
			continue
		}
		if blocked = blocked || free.Total() < g.Replicas; blocked {
			s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices})
			continue
		}
		p := core.Placement{Job: g.Job}
		for n, missing := core.NodeID(0), g.Replicas; missing > 0; n++ {
			if seat := free.Take(n, missing); seat.Devices != 0 {
				p.Seats = append(p.Seats, seat)
				missing -= seat.Devices.Count()
			}
		}
		s.Placed = append(s.Placed, p)
	}
	return s, nil
}

func (fifo) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	return nil, nil
}

// FIFO are stages that start jobs in the order of their submission, on the first devices that are free.
func FIFO() core.Stages {
	return core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission/all", Policy: fifo{}}},
		Allocation: core.Component[core.Allocator]{ID: "allocation/fifo", Policy: fifo{}},
		Placement:  core.Component[core.Placer]{ID: "placement/first", Policy: fifo{}},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/rigid", Policy: fifo{}},
	}
}

// books hold the reports of a pipeline to what can be known of a run without knowing its backend.
type books struct {
	testing.TB
	ended map[string]core.Job
	begun map[core.JobID]bool
}

func (b *books) ObserveRound(r *core.Report) error {
	if r.DevicesUsed > r.View.Devices {
		b.Errorf("round %d uses %d devices of %d", r.View.Round, r.DevicesUsed, r.View.Devices)
	}
	for _, j := range r.Ended {
		if _, before := b.ended[j.Name]; before {
			b.Errorf("job %q ended twice", j.Name)
		}
		b.ended[j.Name] = *j
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		if c.Action != core.Start || b.begun[c.Job] {
			continue
		}
		b.begun[c.Job] = true
		for later := range b.begun {
			if later > c.Job {
				b.Errorf("job %d starts after job %d", c.Job, later)
			}
		}
	}
	return nil
}

func runsPipeline(t testing.TB, h *Harness, o core.RoundOptions) {
	jobs := []Job{
		{Seconds: 3, Replicas: 2},
		{Seconds: 1},
		{Seconds: 2, Replicas: 3, Fails: !h.NeverFails},
		{Seconds: 1, SubmitSeconds: 1},
		{Seconds: 1, Replicas: 9, SubmitSeconds: 1},
		{Seconds: 2, Replicas: 4, SubmitSeconds: 2},
		{Seconds: 1, SubmitSeconds: 4},
	}
	s := open(t, h, jobs...)
	told := &books{TB: t, ended: map[string]core.Job{}, begun: map[core.JobID]bool{}}
	c := cluster()
	p := core.NewPipeline(c, FIFO(), core.PipelineOptions{Rounds: o, Observers: []core.Observer{told}})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Run(ctx, s.backend); err != nil {
		t.Fatal(err)
	}
	if left := p.Unfinished(); len(left) > 0 {
		t.Errorf("%d jobs are left", len(left))
	}
	for i, j := range h.scaled(jobs) {
		got, ended := told.ended[j.Name]
		if !ended {
			t.Errorf("job %q did not end", j.Name)
			continue
		}
		want := core.Completed
		switch {
		case j.Replicas > c.Devices():
			want = core.Rejected
		case j.Fails:
			want = core.Failed
		}
		if got.State != want {
			t.Errorf("job %q is %v, want %v", j.Name, got.State, want)
		}
		if int(got.ID) != i {
			t.Errorf("job %q is job %d, want %d", j.Name, got.ID, i)
		}
		if want == core.Rejected {
			continue
		}
		if got.Preemptions == 0 {
			h.checkSpan(t, got.FinishSeconds-got.FirstStart, j.Seconds)
		}
		if service := got.Executed * float64(j.Replicas); math.Abs(got.Attained-service) > 1e-6*service {
			t.Errorf("job %q attained %v device-seconds in %v s on %d devices", j.Name, got.Attained, got.Executed, j.Replicas)
		}
	}
}
