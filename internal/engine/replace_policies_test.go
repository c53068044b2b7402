package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/fake"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// machines opens the backend in memory as one of real machines.
type machines struct{}

func (machines) Check(*core.Cluster, core.RoundOptions) core.Diagnostics { return nil }
func (machines) Capabilities() []core.Capability                         { return (*fake.Backend)(nil).Capabilities() }
func (machines) For(backend.Run)                                         {}
func (machines) Dir() string                                             { return "" }

func (machines) Open(_ context.Context, c *core.Cluster, w *workload.Workload) (core.Backend, error) {
	return fake.Open(c, w, fake.Options{Identity: "first"}), nil
}

// life writes down what becomes of the policies that are created.
type life struct {
	mutex    sync.Mutex
	lines    []string
	made     int
	ended    map[int]int // by number: how often
	cannot   error       // why no further one is created
	endFails error
}

func (l *life) note(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// mortal grants what there is, and tells when it is asked first, closed and discarded.
type mortal struct {
	faulty
	life    *life
	name    string
	number  int
	asked   int
	restore bool
}

func (m *mortal) Allocate(ctx context.Context, v *core.View, jobs []core.Candidate) ([]core.Grant, error) {
	m.life.mutex.Lock()
	if m.asked++; m.asked == 1 {
		m.life.note("%s %d is asked", m.name, m.number)
	}
	m.life.mutex.Unlock()
	return m.faulty.Allocate(ctx, v, jobs)
}

func (m *mortal) end(how string) error {
	m.life.mutex.Lock()
	defer m.life.mutex.Unlock()
	m.life.note("%s %d is %s", m.name, m.number, how)
	m.life.ended[m.number]++
	return m.life.endFails
}

// Standing is for ever: rounds are those that are asked for.
func (m *mortal) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }

func (m *mortal) Close() error   { return m.end("closed") }
func (m *mortal) Discard() error { return m.end("discarded") }

func (m *mortal) Snapshot() ([]byte, error) { return []byte(m.name), nil }

func (m *mortal) Restore([]byte) error {
	if !m.restore {
		return errors.New("starts anew")
	}
	return nil
}

// factory creates mortals of a type.
func (l *life) factory(name string, restore bool) core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{Type: name}, core.None{}, func(core.None, core.Settings) (core.Allocator, error) {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		if l.cannot != nil {
			return nil, l.cannot
		}
		l.made++
		l.note("%s %d is made", name, l.made)
		return &mortal{faulty: faulty{until: 1 << 30}, life: l, name: name, number: l.made, restore: restore}, nil
	})
}

// living is a run on machines in memory that goes on until it is stopped.
type living struct {
	*life
	t       *testing.T
	catalog quartet.Catalog
	dir     string
	run     *quartet.Composition
	session quartet.Session
	stop    context.CancelFunc
	take    chan quartet.Takeover
	rounds  chan int
	ended   chan *quartet.Result
}

// spec is the run with an allocation.
func (l *living) spec(allocation string) quartet.Spec {
	s := doortest.Small()
	s.Workload = quartet.Part{Type: "submitted"}
	s.Backend = quartet.Part{Type: "machines"}
	s.Round.OnEvents = true
	s.Pipeline.Allocation.Type = allocation
	return s
}

func (l *living) config(s quartet.Spec) *configs.Config {
	return doortest.Compose(l.t, l.catalog, s).Config
}

func newLiving(t *testing.T) *living {
	l := &living{
		life: &life{ended: map[int]int{}}, t: t, dir: filepath.Join(t.TempDir(), "small"),
		take: make(chan quartet.Takeover, 1), rounds: make(chan int, 100), ended: make(chan *quartet.Result, 1),
	}
	l.catalog = quartet.Builtins().WithBackend(core.NewFactory(core.Info{Type: "machines"}, core.None{}, func(core.None, core.Settings) (backend.Opener, error) { return machines{}, nil })).
		WithAllocation(l.factory("first", false), l.factory("second", false), l.factory("third", true))
	return l
}

// ObserveRound tells of a round.
func (l *living) ObserveRound(r *core.Report) error {
	l.rounds <- r.View.Round
	return nil
}

// begin begins the run, and holds its first round.
func (l *living) begin(allocation string) quartet.Takeover {
	ctx, stop := context.WithCancel(l.t.Context())
	l.stop = stop
	l.run = doortest.Compose(l.t, l.catalog, l.spec(allocation))
	l.run.Dir, l.run.Observers = l.dir, []core.Observer{l}
	l.run.Attach = func(s quartet.Session) (quartet.Attachment, error) { l.session = s; return quartet.Attachment{}, nil }
	l.run.Follow = func(_ context.Context, t quartet.Takeover) func() {
		l.take <- t
		return func() {}
	}
	go func() {
		r, err := l.run.Run(ctx)
		if r == nil {
			l.t.Error(err)
		}
		l.ended <- r
	}()
	take := <-l.take
	if _, err := l.session.OpenedBackend.(backend.Operated).Submit(ctx, backend.JobFile{Name: "jobs.yaml", Text: []byte("version: 1\njobs:\n- {name: a, command: [a]}\n")}); err != nil {
		l.t.Fatal(err)
	}
	<-l.rounds
	return take
}

// end stops the run.
func (l *living) end() *quartet.Result {
	l.stop()
	return <-l.ended
}

// What a run came to names the config that decided last, and those before.
func TestAResultNamesTheConfigInForce(t *testing.T) {
	l := newLiving(t)
	take := l.begin("fifo")
	next := l.spec("las")
	next.Output.Write = []string{"jobs"} // the files of the run stay
	if err := take(t.Context(), l.config(next)); err != nil {
		t.Fatal(err)
	}
	<-l.rounds
	next.Pipeline.Placement.Type = "first_fit"
	if err := take(t.Context(), l.config(next)); err != nil {
		t.Fatal(err)
	}
	<-l.rounds
	r := l.end()
	s := r.Summary
	type names struct{ allocation, placement string }
	got := []any{names{s.Components.Allocation, s.Components.Placement}}
	for _, e := range s.Earlier {
		got = append(got, names{e.Allocation, e.Placement}, e.UntilRound, e.Workload)
	}
	want := []any{
		names{"allocation/las", "placement/first_fit"},
		names{"allocation/fifo", "placement/consolidated"},
		1, "workload/submitted",
		names{"allocation/las", "placement/consolidated"},
		2, "workload/submitted",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(names{})); diff != "" {
		t.Errorf("components of the summary (-want +got):\n%s", diff)
	}
	var m quartet.Manifest
	read(t, filepath.Join(l.dir, quartet.ManifestFile), &m)
	resolved := func(s quartet.Spec) string {
		s.Output = l.spec("fifo").Output
		text, err := l.config(s).Resolved()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if diff := cmp.Diff(resolved(next), m.Config); diff != "" {
		t.Errorf("config of the manifest (-want +got):\n%s", diff)
	}
	earlier := []quartet.EarlierConfig{{Config: resolved(l.spec("fifo")), UntilRound: 1}, {Config: resolved(l.spec("las")), UntilRound: 2}}
	if diff := cmp.Diff(earlier, m.Earlier); diff != "" {
		t.Errorf("earlier configs of the manifest (-want +got):\n%s", diff)
	}
	var written metrics.Summary
	read(t, filepath.Join(l.dir, quartet.SummaryFile), &written)
	if diff := cmp.Diff(s.Earlier, written.Earlier); diff != "" {
		t.Errorf("earlier components of summary.json (-want +got):\n%s", diff)
	}
	m.Interrupted = false
	if _, err := quartet.ReadManifest(manifestFile(t, m)); err == nil || !strings.Contains(err.Error(), "the config was changed during the run") {
		t.Errorf("error %v, want that no run of several configs is repeated", err)
	}
}

// Policies that were replaced are ended before those after them are asked anything; those that cannot take over end instead.
func TestOldPoliciesEndBeforeNewOnesDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		takes []string
		want  []string
	}{
		"another type": {[]string{"second"}, []string{
			"first 1 is made", "first 1 is asked", "second 2 is made", "first 1 is closed", "second 2 is asked", "second 2 is discarded",
		}},
		"the same config": {[]string{"first"}, []string{"first 1 is made", "first 1 is asked", "first 1 is discarded"}},
		"two, one after the other": {[]string{"second", "third"}, []string{
			"first 1 is made", "first 1 is asked", "second 2 is made", "first 1 is closed", "second 2 is asked",
			"third 3 is made", "second 2 is closed", "third 3 is asked", "third 3 is discarded",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLiving(t)
			take := l.begin("first")
			for _, allocation := range tc.takes {
				if err := take(t.Context(), l.config(l.spec(allocation))); err != nil {
					t.Fatal(err)
				}
				if allocation != "first" {
					<-l.rounds
				}
			}
			l.end()
			if diff := cmp.Diff(tc.want, l.lines); diff != "" {
				t.Errorf("what became of policies (-want +got):\n%s", diff)
			}
		})
	}
}

// A policy whose successor knows what it learned leaves that to it; one whose successor does not, leaves it at once.
func TestWhatIsHandedOnIsLeftOnce(t *testing.T) {
	for _, kind := range []string{"first", "third"} {
		t.Run(kind, func(t *testing.T) {
			l := newLiving(t)
			take := l.begin(kind)
			next := l.spec(kind)
			next.Pipeline.Placement.Type = "first_fit"
			if err := take(t.Context(), l.config(next)); err != nil {
				t.Fatal(err)
			}
			<-l.rounds
			l.end()
			how := map[string]string{"first": "closed", "third": "discarded"}[kind]
			want := []string{kind + " 1 is made", kind + " 1 is asked", kind + " 2 is made", kind + " 1 is " + how, kind + " 2 is asked", kind + " 2 is discarded"}
			if diff := cmp.Diff(want, l.lines); diff != "" {
				t.Errorf("what became of policies (-want +got):\n%s", diff)
			}
		})
	}
}

// When the policies of a config cannot be created, those before decide on; so they do when one of these does not end as it should,
// which is no reason to say that nothing was changed.
func TestATakeoverThatFails(t *testing.T) {
	l := newLiving(t)
	take := l.begin("first")
	next := l.config(l.spec("second"))
	l.mutex.Lock()
	l.cannot = errors.New("no such program")
	l.mutex.Unlock()
	if err := take(t.Context(), next); err == nil || !strings.Contains(err.Error(), "no such program") {
		t.Errorf("error %v, want why", err)
	}
	l.mutex.Lock()
	l.cannot, l.endFails = nil, errors.New("disk full")
	l.mutex.Unlock()
	if err := take(t.Context(), next); err != nil {
		t.Error(err)
	}
	<-l.rounds
	l.end()
	want := []string{"first 1 is made", "first 1 is asked", "second 2 is made", "first 1 is closed", "second 2 is asked", "second 2 is discarded"}
	if diff := cmp.Diff(want, l.lines); diff != "" {
		t.Errorf("what became of policies (-want +got):\n%s", diff)
	}
}

// However a takeover and the end of a run meet, every policy ends once, and whoever asked is answered.
func TestARunEndsWhileOthersTakeOver(t *testing.T) {
	for i := range 50 {
		l := newLiving(t)
		take := l.begin("first")
		go func() {
			for range l.rounds { // nobody looks
			}
		}()
		var asking sync.WaitGroup
		for k := range 4 {
			config := l.config(l.spec([]string{"second", "third", "fifo", "las"}[(i+k)%4]))
			asking.Go(func() { _ = take(t.Context(), config) })
		}
		if r := l.end(); r == nil {
			t.Fatal("no result")
		}
		asking.Wait()
		close(l.rounds)
		for number := 1; number <= l.made; number++ {
			if l.life.ended[number] != 1 {
				t.Fatalf("policy %d ended %d times:\n%s", number, l.life.ended[number], strings.Join(l.lines, "\n"))
			}
		}
	}
}

// manifestFile writes a manifest to a file of its own.
func manifestFile(t *testing.T, m quartet.Manifest) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), quartet.ManifestFile)
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
