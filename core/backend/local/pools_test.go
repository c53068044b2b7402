package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/metrics/exposition"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
)

// slots is a cluster of one pool, whose nodes have one device each.
func slots(start, least, most int) *core.Cluster {
	c := &core.Cluster{Accelerators: []string{"gpu"}, Pools: []core.Pool{{Name: "p", Devices: 1, Min: least, Max: most, PricePerHour: 3600}}}
	for i := range start {
		c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("p-%d", i), Devices: 1, Pool: "p"})
	}
	return c
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

// lives is what became of nodes and jobs, as the pipeline was told, and which devices processes were seen on.
type lives struct {
	*testing.T
	b        *Backend
	dir      string
	log      []string  // what happened, in words
	sizes    []int     // nodes that were ready, whenever that changed
	names    []string  // by NodeID: the device of its slot
	ready    []float64 // by NodeID; NaN before
	gone     []float64 // by NodeID; +Inf before
	health   []core.Health
	held     map[core.JobID][]core.Seat
	finished int
	bill     *metrics.Collector
	live     *metrics.Live // of it

	mutex   sync.Mutex
	samples []sample
}

// sample is a process seen on a device between two moments.
type sample struct {
	device   string
	from, to float64
}

func (l *lives) ObserveRound(r *core.Report) error {
	c := r.View.Cluster
	for len(l.health) < len(c.Nodes) {
		l.health, l.names = append(l.health, absent), append(l.names, "")
		l.ready, l.gone = append(l.ready, math.NaN()), append(l.gone, math.Inf(1))
		if id := len(l.health) - 1; !slices.ContainsFunc(r.Events, func(e core.Event) bool { return e.Kind == core.NodeAdded && int(e.Node) == id }) {
			l.health[id], l.ready[id], l.names[id] = core.Ready, 0, l.b.devices.names[id][0]
			l.sizes = []int{l.count()}
		}
	}
	for i := range r.Events {
		e := &r.Events[i]
		words := fmt.Sprint(e.Kind)
		if e.Kind.OfNode() {
			words += " " + c.Nodes[e.Node].Name
		}
		switch e.Kind {
		case core.NodeAdded:
			if l.health[e.Node] != absent || e.Added.Health != core.Provisioning {
				l.Errorf("node %d joins again, or %v", e.Node, e.Added.Health)
			}
			l.health[e.Node] = core.Provisioning
		case core.NodeChanged:
			words += " " + e.Health.String()
			if was := l.health[e.Node]; was == core.Gone || was == absent || e.Health >= core.Provisioning {
				l.Errorf("node %d, which was %v, becomes %v", e.Node, was, e.Health)
			}
			l.health[e.Node] = e.Health
			if math.IsNaN(l.ready[e.Node]) {
				l.ready[e.Node], l.names[e.Node] = e.AtSeconds, l.b.devices.names[e.Node][0]
			}
		case core.NodeRemoved:
			if l.health[e.Node] == core.Gone {
				l.Errorf("node %d goes again", e.Node)
			}
			l.health[e.Node], l.gone[e.Node] = core.Gone, e.AtSeconds
			for job, seats := range l.held {
				if slices.ContainsFunc(seats, func(s core.Seat) bool { return s.Node == e.Node }) {
					l.Errorf("node %d goes with job %d on it", e.Node, job)
				}
			}
		case core.JobInterrupted:
			words += " " + e.Cause.String()
			delete(l.held, e.Job)
		case core.JobFinished:
			l.finished++
			delete(l.held, e.Job)
		case core.JobFailed:
			words += " " + e.Cause.String()
			delete(l.held, e.Job)
		case core.JobProgressed:
			continue
		default:
			delete(l.held, e.Job)
		}
		l.log = append(l.log, words)
		if n := l.count(); n != l.sizes[len(l.sizes)-1] {
			l.sizes = append(l.sizes, n)
		}
	}
	for _, change := range r.Changes {
		for _, seat := range change.Seats {
			if l.health[seat.Node] != core.Ready {
				l.Errorf("job %d is put on node %d, which is %v", change.Job, seat.Node, l.health[seat.Node])
			}
		}
		if change.Action != core.Tune {
			l.held[change.Job] = slices.Clone(change.Seats)
		}
	}
	return l.live.ObserveRound(r)
}

// count is how many nodes are ready.
func (l *lives) count() (n int) {
	for _, h := range l.health {
		if h == core.Ready {
			n++
		}
	}
	return n
}

// watch looks again and again which devices the processes of the run are on, until the context ends.
func (l *lives) watch(ctx context.Context) {
	for ctx.Err() == nil {
		from := l.b.Present()
		devices := devicesInUse(l.dir)
		to := l.b.Present()
		l.mutex.Lock()
		for _, device := range devices {
			l.samples = append(l.samples, sample{device, from, to + 0.001})
		}
		l.mutex.Unlock()
		time.Sleep(20 * time.Millisecond)
	}
}

// devicesInUse are those that processes of the jobs in a folder have in their environment.
func devicesInUse(dir string) (list []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), dir) {
			continue // it has ended, or is another user's
		}
		for variable := range strings.SplitSeq(string(text), "\x00") {
			if device, is := strings.CutPrefix(variable, visibleDevices+"="); is {
				list = append(list, device)
			}
		}
	}
	return list
}

// check holds every process that was seen to the lives of the nodes that had its device, and no device to two nodes at once.
func (l *lives) check() {
	l.Helper()
	for _, s := range l.samples {
		if !slices.ContainsFunc(l.nodesOf(s.device), func(id int) bool { return l.ready[id] <= s.to && s.from <= l.gone[id] }) {
			l.Errorf("a process was on device %s between %v and %v, when no node had it", s.device, s.from, s.to)
		}
	}
	for id, device := range l.names {
		if math.IsNaN(l.ready[id]) {
			continue
		}
		for _, other := range l.nodesOf(device) {
			if other > id && l.ready[other] < l.gone[id] && l.ready[id] < l.gone[other] {
				l.Errorf("nodes %d and %d have device %s at once", id, other, device)
			}
		}
	}
	if l.Failed() {
		l.Logf("what happened: %q", l.log)
	}
}

func (l *lives) nodesOf(device string) (ids []int) {
	for id, name := range l.names {
		if name == device && !math.IsNaN(l.ready[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

// expect holds what happened to words that come in this order, with others between them.
func (l *lives) expect(words ...string) {
	l.Helper()
	rest := l.log
	for _, want := range words {
		at := slices.Index(rest, want)
		if at < 0 {
			l.Fatalf("%q did not happen, or too early: %q", want, l.log)
		}
		rest = rest[at+1:]
	}
}

// live runs jobs in pools of this machine to their end.
func live(t *testing.T, c *core.Cluster, settings map[string]any, scaler core.ClusterScaler, w *workload.Workload) *lives {
	t.Helper()
	dir := t.TempDir()
	raw := map[string]any{"grace": "1s", "dir": dir}
	maps.Copy(raw, settings)
	o := coretest.Component(New(realClock{}), raw, discard).(*Opener)
	o.For(Run{Dir: dir, Identity: "test"})
	if err := o.Check(c, core.RoundOptions{}).Err(); err != nil {
		t.Fatal(err)
	}
	opened, err := o.Open(t.Context(), c, w)
	if err != nil {
		t.Fatal(err)
	}
	b := opened.(*Backend)
	l := &lives{T: t, b: b, dir: dir, held: map[core.JobID][]core.Seat{}, bill: metrics.NewCollector(metrics.Components{}, metrics.Outputs{}), sizes: []int{0}}
	l.live = metrics.NewLive(l.bill, metrics.Run{})
	health := exposition.NewHealth(func() time.Duration { return 0 }, exposition.Patience)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	watching := make(chan struct{})
	watched, stop := context.WithCancel(ctx)
	go func() {
		defer close(watching)
		l.watch(watched)
	}()
	stages := composition()
	stages.Scaler = core.Component[core.ClusterScaler]{ID: "scaler", Policy: scaler}
	p := core.NewPipeline(c, stages, core.RoundOptions{IntervalSeconds: 0.1, OnEvents: true}, nil, l)
	p.ScaleBy(b)
	err = p.Run(ctx, health.Watch(b, b.Replaying))
	stop()
	<-watching
	if err != nil {
		t.Fatalf("the pipeline ended with %v; %q", err, l.log)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	l.check()
	if len(w.Jobs) != l.finished {
		t.Errorf("%d of %d jobs finished: %q", l.finished, len(w.Jobs), l.log)
	}
	summary, err := l.live.Finish(nil, p.NowSeconds())
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	exposition.NewHandler(exposition.Source{Snapshot: l.live.Snapshot, Health: health}).
		ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
	l.checkBill(summary, answer.Body.String(), p.NowSeconds())
	return l
}

// checkBill adds the hours of nodes up on its own, and holds the bill to them: what jobs cost and what was idle is all of it. /metrics
// tells the same.
func (l *lives) checkBill(s *metrics.Summary, exposed string, end float64) {
	l.Helper()
	hours := 0.0
	for id, from := range l.ready {
		if !math.IsNaN(from) {
			hours += (min(l.gone[id], end) - from) / 3600
		}
	}
	bill := s.Bill
	if bill == nil || math.Abs(float64(bill.NodeHours)-hours) > 1e-9 {
		l.Fatalf("the bill is %+v, want %v node hours", bill, hours)
	}
	jobs := 0.0
	for _, j := range l.bill.Jobs() {
		jobs += float64(j.Cost)
	}
	if sum := jobs + float64(bill.IdleCost); math.Abs(sum-float64(bill.Cost)) > 1e-9*max(1, sum) || bill.Cost <= 0 || jobs <= 0 {
		l.Errorf("jobs cost %v, idle nodes %v, all nodes %v", jobs, bill.IdleCost, bill.Cost)
	}
	for name, want := range map[string]metrics.Number{
		`quartet_pool_node_hours{pool="p"}`: s.Pools[0].NodeHours, `quartet_pool_cost{pool="p"}`: s.Pools[0].Cost,
		`quartet_pool_idle_cost{pool="p"}`: s.Pools[0].IdleCost, `quartet_bill_cost`: bill.Cost,
	} {
		if line := name + " " + strconv.FormatFloat(float64(want), 'g', -1, 64); !strings.Contains(exposed, line+"\n") {
			l.Errorf("/metrics does not tell %q", line)
		}
	}
}

// onAnIdleMachine skips what happens at moments of a real clock, in tenths of a second: CI is too busy for it.
func onAnIdleMachine(t *testing.T) {
	t.Helper()
	if !*paced {
		t.Skip("its moments are those of a real clock: make pools runs it")
	}
}

// How nodes of pools come and go below jobs.
func TestPools(t *testing.T) {
	onAnIdleMachine(t)
	t.Parallel()
	sleeping := func(name, seconds string) workload.Job { return command(name, "sleep", seconds) }
	cases := map[string]struct {
		cluster  *core.Cluster
		settings map[string]any
		sizes    core.ClusterScaler
		jobs     *workload.Workload
		want     []string // that happens in this order
		never    []string
	}{
		"a node is ready at once": {
			cluster: slots(0, 0, 2), sizes: sizes{{0, 1}}, jobs: commands(sleeping("a", "0.2")),
			want: []string{"node_added p-0", "node_changed p-0 ready", "job_finished"},
		},
		"a pool of none grows for a job, and shrinks again": {
			cluster: slots(0, 0, 2), sizes: sizes{{0, 1}, {0.8, 0}, {1.2, 1}}, jobs: commands(sleeping("a", "0.1"), later(sleeping("b", "0.1"), 1)),
			settings: map[string]any{"pools": []any{map[string]any{"pool": "p", "provisioning": "200ms"}}},
			want: []string{
				"node_added p-0", "node_changed p-0 ready", "job_finished", "node_changed p-0 draining", "node_removed p-0",
				"node_added p-1", "node_changed p-1 ready", "job_finished",
			},
		},
		"a pool of none grows for a job of several nodes": {
			cluster: slots(0, 0, 3), sizes: coretest.Component(elasticity.NewQueueScaler(), nil, discard), jobs: commands(wide(sleeping("a", "0.3"), 3)),
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
			cluster: slots(1, 1, 2), sizes: sizes{{0, 2}, {0.3, 1}}, jobs: commands(sleeping("a", "0.8")),
			settings: map[string]any{"pools": []any{map[string]any{"pool": "p", "provisioning": "20s"}}},
			want:     []string{"node_added p-1", "node_removed p-1", "job_finished"}, never: []string{"node_changed p-1 ready"},
		},
		"a node does not come": {
			cluster: slots(1, 1, 2), sizes: sizes{{0, 2}}, jobs: commands(sleeping("a", "0.8")),
			settings: map[string]any{"pools": []any{map[string]any{"pool": "p", "provisioning": "100ms", "fails": 1}}},
			want:     []string{"node_added p-1", "node_removed p-1", "node_added p-2"}, never: []string{"node_changed p-1 ready"},
		},
		"a node is taken away without notice": {
			cluster: slots(1, 0, 2), sizes: sizes{{0, 1}}, jobs: commands(sleeping("a", "0.6")),
			settings: map[string]any{"evict": []any{map[string]any{"node": "p-0", "at": "300ms"}}},
			want:     []string{"job_interrupted node_failed", "node_removed p-0", "job_finished"},
		},
		"a node is taken away with notice": {
			cluster: slots(1, 0, 2), sizes: sizes{{0, 1}}, jobs: commands(sleeping("a", "0.6")),
			settings: map[string]any{
				"pools": []any{map[string]any{"pool": "p", "notice": "500ms"}}, "evict": []any{map[string]any{"node": "p-0", "at": "800ms"}},
			},
			want:  []string{"node_changed p-0 draining", "node_added p-1", "node_changed p-1 ready", "node_removed p-0", "job_finished"},
			never: []string{"job_interrupted node_failed"},
		},
		"the devices of a node that leaves are waited for": {
			cluster: slots(1, 0, 1), sizes: sizes{{0, 1}}, jobs: commands(sleeping("a", "0.6")),
			settings: map[string]any{
				"pools": []any{map[string]any{"pool": "p", "notice": "500ms"}}, "evict": []any{map[string]any{"node": "p-0", "at": "800ms"}},
			},
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
			l := live(t, tc.cluster, tc.settings, tc.sizes, tc.jobs)
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

// later is a job that is submitted at a moment.
func later(j workload.Job, seconds float64) workload.Job {
	j.Spec.SubmitSeconds = seconds
	return j
}

// Three trainings grow a pool from one slot to four, by what they ask for, and leave it at two, while one slot is taken away with
// notice: all finish, their losses fall, and no process is on a slot outside its life.
func TestTrainingsInAPool(t *testing.T) {
	onAnIdleMachine(t)
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
	}, coretest.Component(elasticity.NewQueueScaler(), nil, discard), w)
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
		p := core.NewPipeline(c, stages, core.RoundOptions{OnEvents: true}, nil, &telling{func(r *core.Report) error {
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
		}})
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
		t.Errorf("told %q, want %q", told, want)
	}
	if _, err := b.Leave(); err != nil {
		t.Fatal(err)
	}

	// The next one repeats what was told and is asked again for what was asked for; the slots open when they would have.
	b, c = open()
	told = hold(b, c, sizes, ready)
	want = append(want, "node_changed p-1 ready", ready)
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
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
		t.Errorf("told %q, want %q", told, want)
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

type telling struct{ of func(r *core.Report) error }

func (t *telling) ObserveRound(r *core.Report) error { return t.of(r) }
