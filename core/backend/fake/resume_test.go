package fake_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/fake"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/workload"
)

// counting is every stage: it gives each job one device, those that run first, then in the order of ids or against it, and counts
// how often it was asked.
type counting struct {
	backwards, rejects, broken bool
	asked                      int
}

func (c *counting) Admit(_ context.Context, _ *core.View, waiting []*core.Job) (verdicts []core.Verdict, err error) {
	for _, j := range waiting {
		if c.rejects {
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.Reject, Reason: core.PolicyDecision})
		}
	}
	return verdicts, nil
}

func (c *counting) Respond(_ context.Context, _ *core.View, jobs []*core.Job) (responses []core.Response, err error) {
	for _, j := range jobs {
		responses = append(responses, core.Response{Job: j.ID, MinReplicas: 1, MaxReplicas: 1})
	}
	return responses, nil
}

func (c *counting) Allocate(_ context.Context, _ *core.View, candidates []core.Candidate) (grants []core.Grant, err error) {
	c.asked++
	for _, running := range []bool{true, false} {
		for i := range candidates {
			j := &candidates[i]
			if c.backwards {
				j = &candidates[len(candidates)-1-i]
			}
			if (j.State == core.Running) == running {
				grants = append(grants, core.Grant{Job: j.ID, Accelerator: core.AnyAccelerator, Replicas: 1})
			}
		}
	}
	return grants, nil
}

func (c *counting) Place(_ context.Context, v *core.View, grants []core.Grant) (s core.Seating, err error) {
	var free core.Ledger
	free.Reset(v.Cluster)
	for _, g := range grants {
		p := core.Placement{Job: g.Job, Seats: v.Job(g.Job).Seats}
		for n := core.NodeID(0); p.Seats == nil && int(n) < len(v.Cluster.Nodes); n++ {
			if free.Free(n) > 0 {
				p.Seats = []core.Seat{{Node: n, Devices: free.FreeDevices(n).Lowest(1)}}
			}
		}
		if p.Seats == nil || !free.Occupy(p.Seats) {
			s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices})
			continue
		}
		s.Placed = append(s.Placed, p)
	}
	return s, nil
}

func (c *counting) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	return nil, nil
}

func (c *counting) Snapshot() ([]byte, error) { return json.Marshal(c.asked) }

func (c *counting) Restore(learned []byte) error {
	if c.broken {
		return errors.New("of no use")
	}
	return json.Unmarshal(learned, &c.asked)
}

func (c *counting) stages() core.Stages {
	return core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission/some", Policy: c}},
		Allocation: core.Component[core.Allocator]{ID: "allocation/counting", Policy: c},
		Placement:  core.Component[core.Placer]{ID: "placement/first", Policy: c},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/rigid", Policy: c},
	}
}

// watching notes what rounds decide, and ends the run after some.
type watching struct {
	rounds, most int
	stop         context.CancelFunc
	resumed      []*core.Resumed
	ended        map[string]core.Job
	atRound      func(n int)
}

func (w *watching) ObserveRound(r *core.Report) error {
	if r.Repeated {
		return nil
	}
	if r.Resumed != nil {
		w.resumed = append(w.resumed, r.Resumed)
	}
	for _, j := range r.Ended {
		w.ended[j.Name] = *j
	}
	if w.rounds++; w.atRound != nil {
		w.atRound(w.rounds)
	}
	if w.rounds == w.most {
		w.stop()
	}
	return nil
}

func newBackend() *fake.Backend {
	w := &workload.Workload{}
	for i := range 12 {
		w.Jobs = append(w.Jobs, workload.Job{Spec: core.JobSpec{
			ID: core.JobID(i), Name: fmt.Sprintf("job-%d", i), SubmitSeconds: float64(i / 4), Weight: 1, Requested: 1, MinReplicas: 1, MaxReplicas: 1, TotalWork: float64(3 + i),
		}})
	}
	return fake.Open(cluster(), w, fake.Options{Identity: "first"})
}

func cluster() *core.Cluster {
	return &core.Cluster{Accelerators: []string{"gpu"}, Nodes: []core.Node{{ID: 0, Name: "a", Devices: 2}, {ID: 1, Name: "b", Devices: 2}}}
}

// drive lets a composition decide for so many rounds; 0 for all.
func drive(t *testing.T, b *fake.Backend, c *counting, again *counting, rounds int, atRound func(p *core.Pipeline, n int)) *watching {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	seen := &watching{most: rounds, stop: stop, ended: map[string]core.Job{}}
	p := core.NewPipeline(cluster(), c.stages(), core.PipelineOptions{
		Rounds:    core.RoundOptions{OnEvents: true},
		Observers: []core.Observer{seen},
		Memory:    b,
		NewStages: func(context.Context) (core.Stages, error) { return again.stages(), nil },
	})
	if atRound != nil {
		seen.atRound = func(n int) { atRound(p, n) }
	}
	if err := p.Run(ctx, b); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return seen
}

// Compositions follow each other; what was decided stands, and what was learned is handed on.
func TestCompositionsFollowEachOther(t *testing.T) {
	cases := map[string]struct {
		identity string
		next     counting
		why      string // empty when nobody takes over
		restored []string
		lost     bool
	}{
		"the same":            {identity: "first"},
		"decides otherwise":   {identity: "first", next: counting{backwards: true}, why: "decided otherwise before", restored: all},
		"would have rejected": {identity: "first", next: counting{rejects: true}, why: "decided otherwise before", restored: all},
		"another":             {identity: "second", next: counting{backwards: true}, why: "another composition", restored: all},
		"cannot take it up":   {identity: "second", next: counting{broken: true}, why: "another composition", lost: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBackend()
			drive(t, b, &counting{}, nil, 4, nil)
			if err := b.Restart(tc.identity); err != nil {
				t.Fatal(err)
			}
			next, again := tc.next, tc.next
			first := drive(t, b, &next, &again, 2, nil)
			if (len(first.resumed) > 0) != (tc.why != "") {
				t.Fatalf("took over: %+v, want %q", first.resumed, tc.why)
			}
			if tc.why != "" {
				r := first.resumed[0]
				if diff := cmp.Diff(tc.restored, r.Restored); diff != "" || !strings.Contains(r.Why, tc.why) || (len(r.Lost) > 0) != tc.lost {
					t.Errorf("%+v, want why %q; restored (-want +got):\n%s", r, tc.why, diff)
				}
			}
			for range 2 { // who comes then repeats the last one exactly
				if err := b.Restart(tc.identity); err != nil {
					t.Fatal(err)
				}
				again := tc.next
				if third := drive(t, b, &again, &counting{}, 2, nil); len(third.resumed) > 0 {
					t.Errorf("the next does not repeat it: %+v", third.resumed[0])
				}
			}
			if err := b.Restart(tc.identity); err != nil {
				t.Fatal(err)
			}
			last := tc.next
			ended := map[string]core.Job{}
			drive(t, b, &last, &counting{}, 0, nil)
			preview(t, b, tc.identity, ended)
		})
	}
}

// all are the ids of the stages in which counting was asked to take up what was learned.
var all = []string{"admission/some", "allocation/counting", "placement/first", "elasticity/rigid"}

// preview repeats a run that is over from its snapshot: every job has ended.
func preview(t *testing.T, b *fake.Backend, identity string, _ map[string]core.Job) {
	t.Helper()
	var text bytes.Buffer
	if err := b.WriteSnapshot(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	whole := text.Bytes()
	m, err := journal.ReadSnapshot(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	p, err := journal.Open(m, "nobody", "").Preview(&workload.Workload{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pipeline := core.NewPipeline(cluster(), (&counting{}).stages(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}})
	if err := pipeline.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if left := pipeline.Unfinished(); len(left) > 0 {
		t.Errorf("%d jobs are left, such as %q, %v", len(left), left[0].Name, left[0].State)
	}
	for at := 0; at < len(whole); at += 97 {
		if _, err := journal.ReadSnapshot(bytes.NewReader(whole[:at])); err == nil {
			t.Fatalf("a snapshot of %d of %d bytes is read", at, len(whole))
		}
		flipped := bytes.Clone(whole)
		flipped[at] ^= 4
		if _, err := journal.ReadSnapshot(bytes.NewReader(flipped)); err == nil {
			t.Fatalf("a snapshot with a wrong byte %d is read", at)
		}
	}
}

// heard is a context that says when somebody waits for its end.
type heard struct {
	context.Context
	waits func()
}

func (h heard) Done() <-chan struct{} {
	h.waits()
	return h.Context.Done()
}

// Another composition takes over while the run goes on, with what the one before had learned.
func TestACompositionIsReplaced(t *testing.T) {
	b := newBackend()
	next := &counting{backwards: true}
	replaced := make(chan error, 1)
	seen := drive(t, b, &counting{}, nil, 0, func(p *core.Pipeline, n int) {
		if n == 3 {
			waits := make(chan struct{}) // until it takes over: the rounds of a virtual clock are over in no time
			ctx := heard{context.Background(), sync.OnceFunc(func() { close(waits) })}
			go func() {
				replaced <- p.Replace(ctx, &core.Composition{Stages: next.stages(), Options: core.RoundOptions{OnEvents: true}, Identity: "second"})
			}()
			select {
			case <-waits:
			case err := <-replaced:
				replaced <- err
			}
		}
	})
	if err := <-replaced; err != nil {
		t.Fatal(err)
	}
	if len(seen.resumed) != 1 || len(seen.resumed[0].Restored) != 4 || next.asked <= 3 {
		t.Errorf("took over: %+v after %d rounds", seen.resumed, next.asked)
	}
	if len(seen.ended) != 12 {
		t.Errorf("%d jobs ended, want 12", len(seen.ended))
	}
}

func TestWithoutAMemoryADecisionMustBeRepeated(t *testing.T) {
	b := newBackend()
	drive(t, b, &counting{}, nil, 4, nil)
	if err := b.Restart("first"); err != nil {
		t.Fatal(err)
	}
	err := core.NewPipeline(cluster(), (&counting{backwards: true}).stages(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}}).Run(t.Context(), b)
	if err == nil || !strings.Contains(err.Error(), "decided otherwise before") {
		t.Errorf("error %v, want one about the decision", err)
	}
}
