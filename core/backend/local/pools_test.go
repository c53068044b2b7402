package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity/scaler"
)

// slots is a cluster of one pool, whose nodes have one device each.
func slots(start, least, most int) *core.Cluster {
	c := &core.Cluster{Accelerators: []string{"gpu"}, Pools: []core.Pool{{Name: "p", Devices: 1, Min: least, Max: most, PricePerHour: 3600}}}
	for i := range start {
		c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("p-%d", i), Devices: 1, Pool: "p"})
	}
	return c
}

// untilThere wants some nodes until they are there, and others from then on.
type untilThere struct{ first, then int }

func (u *untilThere) Scale(_ context.Context, v *core.View, _ *core.Plan) (core.ClusterTarget, error) {
	if len(v.Cluster.Nodes) >= u.first {
		u.first = u.then
	}
	return core.ClusterTarget{Pools: []core.PoolTarget{{Pool: "p", Nodes: u.first}}}, nil
}

// forJobs wants a node while there are jobs.
type forJobs struct{}

func (forJobs) Scale(_ context.Context, v *core.View, _ *core.Plan) (core.ClusterTarget, error) {
	return core.ClusterTarget{Pools: []core.PoolTarget{{Pool: "p", Nodes: min(len(v.Active), 1)}}}, nil
}

// sizes wants as many nodes as is scheduled.
type sizes []struct {
	from  float64 // seconds of the run
	nodes int
}

func (s sizes) Scale(_ context.Context, v *core.View, _ *core.Plan) (core.ClusterTarget, error) {
	var target core.ClusterTarget
	for _, size := range s {
		if v.NowSeconds >= size.from {
			target.Pools = []core.PoolTarget{{Pool: "p", Nodes: size.nodes}}
		}
	}
	return target, nil
}

// onlyPaced skips what takes a real clock and many processes, so that it runs beside no other test.
func onlyPaced(t *testing.T) {
	t.Helper()
	if !*paced {
		t.Skip("it takes a real clock and many processes: make pools runs it")
	}
}

// How nodes of pools come and go below jobs.
func TestPools(t *testing.T) {
	onlyPaced(t)
	t.Parallel()
	sleeping := func(name, seconds string) workload.Job { return command(name, "sleep", seconds) }
	// Where a job is to be there when something happens, it is held until then: a busy machine may be late.
	files := t.TempDir()
	file := func(name string) string { return filepath.Join(files, name) }
	held := func(file string) workload.Job {
		return shell("a", "until [ -e "+file+" ]; do sleep 0.05; done")
	}
	cases := map[string]struct {
		cluster  *core.Cluster
		settings map[string]any
		sizes    core.ClusterScaler
		jobs     *workload.Workload
		then     map[string]func(*lives)
		want     []string // that happens in this order
		never    []string
	}{
		"a node is ready at once": {
			cluster: slots(0, 0, 2), sizes: sizes{{0, 1}}, jobs: commands(sleeping("a", "0.2")),
			want: []string{"node_added p-0", "node_changed p-0 ready", "job_finished"},
		},
		"a pool of none grows for a job, and shrinks again": {
			cluster: slots(0, 0, 2), sizes: forJobs{}, jobs: keptOpen(sleeping("a", "0.1")),
			then:     map[string]func(*lives){"node_removed p-0": handIn(sleeping("b", "0.1"))},
			settings: map[string]any{"pools": []any{map[string]any{"pool": "p", "provisioning": "200ms"}}},
			want: []string{
				"node_added p-0", "node_changed p-0 ready", "job_finished", "node_changed p-0 draining", "node_removed p-0",
				"node_added p-1", "node_changed p-1 ready", "job_finished",
			},
		},
		"a pool of none grows for a job of several nodes": {
			cluster: slots(0, 0, 3), sizes: coretest.Component(scaler.NewQueue(), nil, discard), jobs: commands(wide(sleeping("a", "0.3"), 3)),
			settings: map[string]any{"pools": []any{map[string]any{"pool": "p", "provisioning": "100ms", "provisioning_spread": "100ms"}}},
			want:     []string{"node_added p-0", "node_added p-2", "job_finished"},
		},
		"a job does not leave its node in time": {
			cluster: slots(2, 0, 2), sizes: sizes{{0, 2}, {0.3, 1}},
			jobs:     commands(sleeping("a", "1"), command("b", "sh", "-c", "trap '' TERM; sleep 0.4; sleep 0.4")),
			settings: map[string]any{"grace": "100ms", "pools": []any{map[string]any{"pool": "p", "drain_timeout": "1ms"}}},
			want:     []string{"node_changed p-1 draining", "node_removed p-1", "job_finished"},
		},
		"a node leaves while it opens": {
			cluster: slots(1, 1, 2), sizes: &untilThere{2, 1}, jobs: commands(held(file("leaves"))),
			settings: map[string]any{"pools": []any{map[string]any{"pool": "p", "provisioning": "5m"}}},
			then:     map[string]func(*lives){"node_removed p-1": release(file("leaves"))},
			want:     []string{"node_added p-1", "node_removed p-1", "job_finished"}, never: []string{"node_changed p-1 ready"},
		},
		"a node does not come": {
			cluster: slots(1, 1, 2), sizes: sizes{{0, 2}}, jobs: commands(held(file("fails"))),
			settings: map[string]any{"pools": []any{map[string]any{"pool": "p", "provisioning": "100ms", "fails": 1}}},
			then:     map[string]func(*lives){"node_added p-2": release(file("fails"))},
			want:     []string{"node_added p-1", "node_removed p-1", "node_added p-2"}, never: []string{"node_changed p-1 ready"},
		},
		"a node is taken away without notice": {
			cluster: slots(1, 0, 2), sizes: sizes{{0, 1}}, jobs: commands(held(file("taken"))),
			settings: map[string]any{"evict": []any{map[string]any{"node": "p-0", "at": "3s"}}},
			then:     map[string]func(*lives){"node_removed p-0": release(file("taken"))},
			want:     []string{"job_interrupted node_failed", "node_removed p-0", "job_finished"},
		},
		"a node is taken away with notice": {
			cluster: slots(1, 0, 2), sizes: sizes{{0, 1}}, jobs: commands(held(file("noticed"))),
			settings: map[string]any{
				"pools": []any{map[string]any{"pool": "p", "notice": "4s"}}, "evict": []any{map[string]any{"node": "p-0", "at": "6s"}},
			},
			then:  map[string]func(*lives){"node_removed p-0": release(file("noticed"))},
			want:  []string{"node_changed p-0 draining", "node_added p-1", "node_changed p-1 ready", "node_removed p-0", "job_finished"},
			never: []string{"job_interrupted node_failed"},
		},
		"the devices of a node that leaves are waited for": {
			cluster: slots(1, 0, 1), sizes: sizes{{0, 1}}, jobs: commands(held(file("awaited"))),
			settings: map[string]any{
				"pools": []any{map[string]any{"pool": "p", "notice": "4s"}}, "evict": []any{map[string]any{"node": "p-0", "at": "6s"}},
			},
			then: map[string]func(*lives){"node_changed p-1 ready": release(file("awaited"))},
			want: []string{"node_changed p-0 draining", "node_added p-1", "node_removed p-0", "node_changed p-1 ready", "job_finished"},
		},
		"a job that is deaf holds its node": {
			cluster: slots(2, 0, 2), sizes: sizes{{0, 2}, {0.5, 1}},
			jobs: commands(sleeping("a", "1.5"), command("b", "sh", "-c", "trap '' TERM; sleep 1; sleep 1; sleep 1")),
			want: []string{"node_changed p-1 draining", "node_removed p-1", "job_finished"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := live(t, tc.cluster, tc.settings, tc.sizes, tc.jobs, tc.then)
			l.expect(tc.want...)
			for _, never := range tc.never {
				if slices.Contains(l.log, never) {
					t.Errorf("%q happened: %q", never, l.log)
				}
			}
		})
	}
}

// wide is a job of several replicas.
func wide(j workload.Job, replicas int) workload.Job {
	j.Spec.Requested, j.Spec.MinReplicas, j.Spec.MaxReplicas = replicas, replicas, replicas
	return j
}

// keptOpen is a workload to which jobs may be added.
func keptOpen(list ...workload.Job) *workload.Workload {
	w := commands(list...)
	w.Open = true
	return w
}

// Three trainings grow a pool from one slot to four, by what they ask for, and leave it at two, while one slot is taken away with
// notice: all finish, their losses fall, and no process is on a slot outside its life.
func TestTrainingsInAPool(t *testing.T) {
	onlyPaced(t)
	t.Parallel()
	trainer := filepath.Join(t.TempDir(), "trainer")
	if out, err := exec.Command("go", "build", "-o", trainer, "../../../examples/trainer").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	training := func(name string, replicas, iterations int, submitted float64) workload.Job {
		j := command(name, trainer, "-model", "softmax", "-batch", "256", "-report-every", "100ms", "-checkpoint-every", "1s", "-iterations", strconv.Itoa(iterations))
		j.Spec.Requested, j.Process.Checkpoints, j.Spec.SubmitSeconds = replicas, true, submitted
		return j
	}
	w := commands(training("long", 1, 45_000, 0), training("wide", 2, 14_000, 0.2), training("late", 1, 36_000, 0.4))
	l := live(t, slots(1, 1, 4), map[string]any{
		"grace": "20s",
		"pools": []any{map[string]any{"pool": "p", "provisioning": "300ms", "notice": "1s"}},
		"evict": []any{map[string]any{"node": "p-0", "at": "3s"}},
	}, coretest.Component(scaler.NewQueue(), nil, discard), w, nil)
	l.expect("node_added p-1", "node_changed p-1 ready", "node_changed p-0 draining", "node_added p-4", "node_removed p-0", "node_changed p-4 ready")
	wanted := l.sizes
	for _, size := range []int{1, 4, 3, 4, 2} {
		at := slices.Index(wanted, size)
		if at < 0 {
			t.Fatalf("the pool had %d nodes in turn, want 1, 4, 3, 4, 2 among them", l.sizes)
		}
		wanted = wanted[at+1:]
	}
	if len(l.samples) < 20 {
		t.Errorf("processes were seen %d times only", len(l.samples))
	}
	for _, j := range w.Jobs {
		text, err := os.ReadFile(filepath.Join(l.dir, "jobs", j.Spec.Name, "logs", "0.out"))
		if err != nil {
			t.Fatal(err)
		}
		losses := regexp.MustCompile(`loss=([0-9.e+-]+)`).FindAllStringSubmatch(string(text), -1)
		if len(losses) < 2 {
			t.Fatalf("job %q told %d losses: %s", j.Spec.Name, len(losses), text)
		}
		first, _ := strconv.ParseFloat(losses[0][1], 64) // digits are a number
		last, _ := strconv.ParseFloat(losses[len(losses)-1][1], 64)
		if last >= first {
			t.Errorf("the loss of job %q went from %v to %v", j.Spec.Name, first, last)
		}
		t.Logf("%s: loss from %v to %v", j.Spec.Name, first, last)
	}
	t.Logf("nodes in turn: %v; %d sightings of processes", l.sizes, len(l.samples))
}

// Slots outlive schedulers: one after the other goes on with what is provisioned, held and closing, and tells nothing twice.
func TestPoolsOutliveSchedulers(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), commands(command("a", "sleep", "60"))
	open := func() (*Backend, *core.Cluster) {
		c := slots(1, 0, 3)
		o := coretest.Component(New(realClock{}), map[string]any{
			"grace": "200ms", "dir": dir, "pools": []any{map[string]any{"pool": "p", "provisioning": "700ms"}},
		}, discard).(*Opener)
		o.For(Run{Dir: dir, Identity: "test"})
		opened, err := o.Open(t.Context(), c, w)
		if err != nil {
			t.Fatal(err)
		}
		return opened.(*Backend), c
	}
	// hold holds rounds until one tells of an event, with the sizes that are wanted in each.
	hold := func(b *Backend, c *core.Cluster, sizes map[int]core.PoolTarget, until string) (told []string) {
		stages := composition()
		p := core.NewPipeline(c, stages, core.PipelineOptions{
			Rounds: core.RoundOptions{OnEvents: true},
			Observers: []core.Observer{&observer{func(r *core.Report) error {
				if want, scales := sizes[r.View.Round]; scales {
					if err := b.Scale(t.Context(), r.View.Round, []core.PoolTarget{want}); err != nil {
						return err
					}
				}
				for _, e := range r.Events {
					if e.Kind.OfNode() {
						told = append(told, fmt.Sprintf("%v %s %v", e.Kind, c.Nodes[e.Node].Name, e.Health))
					}
				}
				if slices.Contains(told, until) {
					return errEnough
				}
				return nil
			}}},
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.Run(ctx, b); !errors.Is(err, errEnough) {
			t.Fatalf("waited for %q in vain: %v; told %q", until, err, told)
		}
		return told
	}
	sizes := map[int]core.PoolTarget{1: {Pool: "p", Nodes: 3}}
	const added, ready = "node_added p-2 ready", "node_changed p-2 ready"

	b, c := open()
	told := hold(b, c, sizes, added)
	want := []string{"node_added p-1 ready", added}
	if !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
	if _, err := b.Leave(); err != nil {
		t.Fatal(err)
	}

	// The next one repeats what was told and is asked again for what was asked for; the slots open when they would have.
	b, c = open()
	told = hold(b, c, sizes, ready)
	want = append(want, "node_changed p-1 ready", ready)
	if !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
	names := slices.Clone(b.devices.names)
	if len(slices.Compact(slices.Sorted(slices.Values(slices.Concat(names...))))) != 3 {
		t.Errorf("the nodes have devices %v", names)
	}
	rounds := b.journal.Rounds()
	if err := b.Scale(t.Context(), rounds+1, []core.PoolTarget{{Pool: "p", Nodes: 1, Remove: []core.NodeID{0, 2}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Leave(); err != nil { // before anything of that was told
		t.Fatal(err)
	}

	// What was to leave leaves, also the node with the job, which moves.
	b, c = open()
	told = hold(b, c, nil, "node_removed p-0 ready")
	want = append(want, "node_changed p-0 draining", "node_changed p-2 draining", "node_removed p-2 ready", "node_removed p-0 ready")
	if !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
	for id, had := range names {
		if !slices.Equal(b.devices.names[id], had) && b.health[id] != core.Gone {
			t.Errorf("node %d has %v now, and had %v", id, b.devices.names[id], had)
		}
	}
	if err := b.Scale(t.Context(), rounds, []core.PoolTarget{{Pool: "p", Nodes: 3}}); err != nil {
		t.Fatal(err)
	}
	if len(b.pools.Slots) > 3 {
		t.Errorf("sizes of an earlier round were taken in again: %+v", b.pools.Slots)
	}
	if j := b.jobs[0]; j.run.Number != 2 || !j.sits(1) {
		t.Errorf("the job began %d times and has %v, want it to have begun twice, at first and when its node left for p-1", j.run.Number, j.seats)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

var errEnough = errors.New("enough")

type observer struct{ of func(r *core.Report) error }

func (t *observer) ObserveRound(r *core.Report) error { return t.of(r) }
