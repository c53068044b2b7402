package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
)

// backwards breaks the ties of an allocator otherwise: those that wait are served the last first.
type backwards struct{ core.Allocator }

func (b backwards) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	grants, err := b.Allocator.Allocate(ctx, v, candidates)
	waits := func(g core.Grant) bool { return v.Job(g.Job).State == core.Waiting }
	var running, waiting []core.Grant
	for _, g := range grants {
		if g.Blocking = false; waits(g) {
			waiting = append(waiting, g)
		} else {
			running = append(running, g)
		}
	}
	slices.Reverse(waiting)
	return append(running, waiting...), err
}

// composer is a scheduler of a test.
type composer struct {
	identity string
	policy   string
	tie      bool // broken otherwise
	cluster  *core.Cluster
}

func (c *composer) stages(log *slog.Logger) core.Stages {
	s, _ := compose(c.policy, log)
	if c.tie {
		s.Allocation.Policy = backwards{s.Allocation.Policy}
	}
	return s
}

// decisions counts what is decided about each job, and ends the run when so many have ended.
type decisions struct {
	starts, ended map[core.JobID]int
	stops         map[core.JobID]int // decisions that take a job's devices away: preemptions and moves
	resumed       *core.Resumed
	first         int // changes of the round in which others took over
	until         int
	stop          context.CancelFunc
}

func (d *decisions) ObserveRound(r *core.Report) error {
	for i := range r.Changes {
		c := &r.Changes[i]
		if c.Action == core.Start || c.Action == core.Move {
			d.starts[c.Job]++
		}
		if c.Action == core.Stop || c.Action == core.Move {
			d.stops[c.Job]++
		}
	}
	for _, j := range r.Ended {
		d.ended[j.ID] = int(j.State)
	}
	if r.Resumed != nil && !r.Repeated {
		d.resumed, d.first = r.Resumed, len(r.Changes)
	}
	if len(d.ended) >= d.until {
		d.stop()
	}
	return nil
}

// goOn runs a scheduler until so many jobs have ended, and lets the others run on.
func (c *composer) goOn(t *testing.T, dir string, w *workload.Workload, until int) (b *Backend, d *decisions, said string) {
	t.Helper()
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	o := coretest.Component(New(realClock{}), map[string]any{"grace": "200ms"}, log).(*Opener)
	o.For(Run{Dir: dir, Identity: c.identity})
	cluster := *c.cluster
	cluster.Nodes = slices.Clone(cluster.Nodes)
	opened, err := o.Open(t.Context(), &cluster, w)
	if err != nil {
		t.Fatal(err)
	}
	b = opened.(*Backend)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	d = &decisions{starts: map[core.JobID]int{}, stops: map[core.JobID]int{}, ended: map[core.JobID]int{}, until: until, stop: stop}
	_, rounds := compose(c.policy, log)
	p := core.NewPipeline(&cluster, c.stages(log), core.PipelineOptions{
		Rounds:    rounds,
		Observers: []core.Observer{d, journal.Announce(log, &cluster)},
		Memory:    b,
		NewStages: func(context.Context) (core.Stages, error) { return c.stages(log), nil },
	})
	if err := p.Run(ctx, b); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatalf("%v\n%s", err, text.String())
	}
	abandon(t, b)
	return b, d, text.String()
}

// nodesOfTest is two nodes with so many devices.
func nodesOfTest(a, b int) *core.Cluster {
	return &core.Cluster{Accelerators: []string{"gpu"}, Nodes: []core.Node{{ID: 0, Name: "a", Devices: a}, {ID: 1, Name: "b", Devices: b}}}
}

// A run goes on with another binary, another policy, and other devices: all jobs end, none is started again without need, and
// what is decided otherwise is said.
func TestARunOutlivesItsPolicies(t *testing.T) {
	t.Parallel()
	const jobs, half, most = 40, 20, 30
	begun := composer{"fifo", patient, false, nodesOfTest(4, 4)}
	cases := map[string]struct {
		next composer
		why  string // in what is said
		lost int    // jobs that lose their devices at most
	}{
		"the same":           {begun, "", 0},
		"another binary":     {composer{"fifo", patient, true, nodesOfTest(4, 4)}, "was decided otherwise before", 0},
		"another allocation": {composer{"las", preempting, false, nodesOfTest(4, 4)}, "begun by another composition", 0},
		"two devices more":   {composer{"more", patient, false, nodesOfTest(6, 4)}, "begun by another composition", 0},
		"one device fewer":   {composer{"fewer", patient, false, nodesOfTest(3, 4)}, "begun by another composition", 1},
		"a node fewer":       {composer{"fewer", patient, false, &core.Cluster{Accelerators: []string{"gpu"}, Nodes: begun.cluster.Nodes[1:]}}, "begun by another composition", 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			ledger, dir := filepath.Join(root, "ledger"), filepath.Join(root, "live")
			if err := os.Mkdir(ledger, 0o700); err != nil {
				t.Fatal(err)
			}
			w := commands()
			for i := range jobs {
				j := worker(t, ledger, "plain", 1)
				j.Spec.Name, j.Spec.ID = fmt.Sprintf("job-%d", i), core.JobID(i)
				j.Spec.Command[len(j.Spec.Command)-1] = fmt.Sprint(100 + 37*i%200)
				w.Jobs = append(w.Jobs, j)
			}
			_, _, first := begun.goOn(t, dir, w, half)
			_, took, told := tc.next.goOn(t, dir, w, most)
			b, d, said := tc.next.goOn(t, dir, w, jobs)
			if d.resumed != nil {
				t.Errorf("the third scheduler does not repeat the second: %+v", d.resumed)
			}
			if len(d.ended) != jobs {
				t.Fatalf("%d jobs ended, want %d\n%s", len(d.ended), jobs, said)
			}
			again := 0
			for _, j := range b.jobs {
				if d.ended[j.Spec.ID] != int(core.Completed) {
					t.Errorf("job %q has state %d\n%s\n%s\n%s", j.Spec.Name, d.ended[j.Spec.ID], first, told, said)
				}
				if j.run.Number > d.starts[j.Spec.ID] {
					t.Errorf("job %q was started %d times, decided %d times", j.Spec.Name, j.run.Number, d.starts[j.Spec.ID])
				}
				if again := j.run.Number - 1; tc.next.policy == preempting && again > d.stops[j.Spec.ID] {
					t.Errorf("job %q was restarted %d times, and lost its devices %d times", j.Spec.Name, again, d.stops[j.Spec.ID])
				}
				again += j.run.Number - 1
			}
			if tc.next.policy == patient && again > tc.lost {
				t.Errorf("%d restarts, want at most %d\n%s", again, tc.lost, said)
			}
			if tc.why == "" {
				if took.resumed != nil {
					t.Errorf("others took over: %+v", took.resumed)
				}
				return
			}
			if took.resumed == nil || !strings.Contains(took.resumed.Why, tc.why) {
				t.Errorf("took over: %+v, want why %q\n%s", took.resumed, tc.why, told)
			}
			if got := strings.Count(told, "new policy decides differently"); got != took.first {
				t.Errorf("%d lines about %d changes\n%s", got, took.first, told)
			}
			if wrong := lines(t, ledger, "violations"); len(wrong) > 0 {
				t.Errorf("ran twice at once: %q", wrong)
			}
			for _, p := range keeper.Find(dir) {
				t.Errorf("process %d of %s is left", p.PID, p.Run)
			}
		})
	}
}
