package local

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
)

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
	then     map[string]func(*lives)

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
		if then, is := l.then[words]; is {
			delete(l.then, words)
			then(l)
		}
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

// release ends the jobs that are held by a file.
func release(file string) func(*lives) {
	return func(l *lives) {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			l.Error(err)
		}
	}
}

// handIn submits the last job of an open workload.
func handIn(j workload.Job) func(*lives) {
	return func(l *lives) {
		l.then["job_submitted"] = func(l *lives) { l.b.open = false }
		go func() { // the scheduler takes it in, which is who calls
			if err := l.b.intake.Submit(l.Context(), commands(j).Jobs); err != nil {
				l.Error(err)
			}
		}()
	}
}

// live runs jobs in pools of this machine to their end. When something happens for the first time, then is what to do.
func live(t *testing.T, c *core.Cluster, settings map[string]any, scaler core.ClusterScaler, w *workload.Workload, then map[string]func(*lives)) *lives {
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
	l := &lives{T: t, b: b, dir: dir, then: maps.Clone(then), held: map[core.JobID][]core.Seat{}, bill: metrics.NewCollector(metrics.Components{}, metrics.Outputs{}), sizes: []int{0}}
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
	p := core.NewPipeline(c, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 0.1, OnEvents: true}, Observers: []core.Observer{l}, Scaling: b})
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
	if len(b.jobs) != l.finished {
		t.Errorf("%d of %d jobs finished: %q", l.finished, len(b.jobs), l.log)
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
