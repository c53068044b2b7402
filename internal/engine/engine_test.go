package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// faulty grants what fits, until a round in which it does otherwise.
type faulty struct {
	until int
	then  func() ([]core.Grant, error)
}

func (f *faulty) Allocate(_ context.Context, v *core.View, jobs []core.Candidate) (grants []core.Grant, _ error) {
	if v.Round >= f.until {
		return f.then()
	}
	for i := range jobs {
		grants = append(grants, core.Grant{Job: jobs[i].ID, Accelerator: core.AnyAccelerator, Replicas: jobs[i].Response.MinReplicas})
	}
	return grants, nil
}

// Whatever ends a run, what was until then is written, the manifest says why, and nothing of an earlier run is beside it.
func TestAFailedRunWritesWhatWasUntilThen(t *testing.T) {
	cases := map[string]struct {
		until int
		then  func() ([]core.Grant, error)
		want  string
	}{
		"an error in round 5": {5, func() ([]core.Grant, error) { return nil, errors.New("out of ideas") }, "out of ideas"},
		"an error at once":    {1, func() ([]core.Grant, error) { return nil, errors.New("out of ideas") }, "out of ideas"},
		"a broken rule":       {3, func() ([]core.Grant, error) { return []core.Grant{{Job: 0, Replicas: 100}}, nil }, "broke"},
		"a panic":             {3, func() ([]core.Grant, error) { panic("lost") }, `round 3: component "allocation/faulty" panicked: lost`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := doortest.Small()
			s.Pipeline.Allocation.Type = "faulty"
			dir := filepath.Join(t.TempDir(), "small")
			run := func(f *faulty) (*quartet.Result, error) {
				c := doortest.Compose(t, quartet.Builtins().WithAllocation(quartet.Given[core.Allocator]("faulty", f)), s)
				c.Dir, c.Keep = dir, true
				return c.Simulate(t.Context())
			}
			whole, err := run(&faulty{until: 1 << 30})
			if err != nil {
				t.Fatal(err)
			}
			r, err := run(&faulty{tc.until, tc.then})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want one with %q", err, tc.want)
			}
			if r == nil {
				t.Fatal("no result besides the error")
			}
			var m quartet.Manifest
			read(t, filepath.Join(dir, quartet.ManifestFile), &m)
			if !strings.Contains(m.Failed, tc.want) {
				t.Errorf("the manifest says %q of the failure", m.Failed)
			}
			for i, f := range r.Files {
				onDisk, err := os.ReadFile(filepath.Join(dir, f.File))
				if err != nil {
					t.Error(err)
				}
				if !bytes.Equal(onDisk, f.Content) {
					t.Errorf("%s is not that of the failed run", f.File)
				}
				if f.File != "jobs.csv" && !bytes.HasPrefix(whole.Files[i].Content, f.Content) {
					t.Errorf("%s is not how the whole run began", f.File)
				}
			}
			if _, err := quartet.ReadManifest(filepath.Join(dir, quartet.ManifestFile)); err == nil || !strings.Contains(err.Error(), "the run failed") {
				t.Errorf("the manifest of a failed run can be repeated: %v", err)
			}
		})
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRunsDoNotWriteOverEachOther(t *testing.T) {
	out := t.TempDir()
	var notes []string
	run := func(change func(*quartet.Spec)) string {
		t.Helper()
		s := doortest.Small()
		change(&s)
		c := doortest.Compose(t, quartet.Builtins(), s)
		c.Dir = filepath.Join(out, c.Name)
		c.Note = func(text string) { notes = append(notes, strings.ReplaceAll(text, out+"/", "")) }
		r := doortest.Simulate(t, c)
		return filepath.Base(r.Dir)
	}
	same := func(*quartet.Spec) {}
	las := func(s *quartet.Spec) { s.Pipeline.Allocation.Type = "las" }
	seed := func(s *quartet.Spec) { s.Seed, s.Round.OnEvents = 9, true }
	less := func(s *quartet.Spec) { s.Output.Write = []string{"jobs"} }
	steps := []struct {
		change func(*quartet.Spec)
		want   string
	}{{same, "small"}, {same, "small"}, {las, "small-2"}, {seed, "small-3"}, {las, "small-2"}, {same, "small"}, {less, "small"}}
	for i, step := range steps {
		if got := run(step.change); got != step.want {
			t.Errorf("step %d: written into %s, want %s", i, got, step.want)
		}
	}
	want := []string{
		"small holds another run (pipeline.allocation.type: las, there fifo): this one goes to small-2",
		"small holds another run (seed: 9, there 1, and 1 more): this one goes to small-3",
		"small holds another run (pipeline.allocation.type: las, there fifo): this one goes to small-2",
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(out, "small", "rounds.csv")); err == nil {
		t.Error("rounds.csv of the earlier run is beside a run that wrote none")
	}
}

// What a killed run left is no run; one that lives is.
func TestAFolderOfAKilledRun(t *testing.T) {
	out := t.TempDir()
	var notes []string
	composed := func(change func(*quartet.Spec)) *quartet.Composition {
		s := doortest.Small()
		change(&s)
		c := doortest.Compose(t, quartet.Builtins(), s)
		c.Dir = filepath.Join(out, c.Name)
		c.Note = func(text string) { notes = append(notes, strings.ReplaceAll(text, out+"/", "")) }
		return c
	}
	same := func(*quartet.Spec) {}
	las := func(s *quartet.Spec) { s.Pipeline.Allocation.Type = "las" }
	left := filepath.Join(out, "small", ".jobs.csv-123")
	if err := errors.Join(os.Mkdir(filepath.Dir(left), 0o755), os.WriteFile(left, []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	c := composed(same)
	for _, other := range []func(*quartet.Spec){same, las} { // while it lives
		c.Attach = func(next func(quartet.Session) (quartet.Attachment, error)) func(quartet.Session) (quartet.Attachment, error) {
			return func(s quartet.Session) (quartet.Attachment, error) {
				if r := doortest.Simulate(t, composed(other)); filepath.Base(r.Dir) == "small" {
					t.Errorf("it writes into %s, as another does", r.Dir)
				}
				if next == nil {
					return quartet.Attachment{}, nil
				}
				return next(s)
			}
		}(c.Attach)
	}
	r := doortest.Simulate(t, c)
	if filepath.Base(r.Dir) != "small" {
		t.Errorf("written into %s", r.Dir)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the killed run left is there: %v", err)
	}
	for _, f := range r.Outputs {
		if _, err := os.Stat(filepath.Join(r.Dir, f.File)); err != nil {
			t.Error(err)
		}
	}
	// What a killed repetition left goes, too; beside another run nothing is touched.
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	doortest.Simulate(t, composed(las))
	if _, err := os.Stat(left); err != nil {
		t.Error(err)
	}
	doortest.Simulate(t, composed(same))
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the killed run left is there: %v", err)
	}
	want := []string{
		"small holds what a killed run left: this one takes its place",
		"small holds another run (one that has not ended): this one goes to small-2",
		"small holds another run (one that has not ended): this one goes to small-3",
		"small holds another run (pipeline.allocation.type: las, there fifo): this one goes to small-2",
		"small holds what a killed run left: this one takes its place",
	}
	slices.Sort(want)
	slices.Sort(notes)
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestComposeTellsEveryProblem(t *testing.T) {
	s := doortest.Small()
	s.Pipeline.Allocation.Type = "fif"
	s.Round.Interval = -1
	s.Cluster.Nodes[0].Devices = 99
	_, err := quartet.Compose(quartet.Builtins(), s)
	if err == nil {
		t.Fatal("a config with three problems is taken")
	}
	for _, want := range []string{"program: pipeline.allocation.type: unknown allocation", "cluster.nodes[0].devices", "round.interval"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

func TestSimulateTakesNoCatalogOfItsCallerAway(t *testing.T) {
	before := len(quartet.Builtins().Allocation)
	c := quartet.Builtins()
	more := c.WithAllocation(quartet.Given[core.Allocator]("fifo", &faulty{}), quartet.Given[core.Allocator]("mine", &faulty{}))
	if got := len(more.Allocation); got != before+1 {
		t.Errorf("%d allocators, want %d: one is new, one replaces fifo", got, before+1)
	}
	if len(c.Allocation) != before || c.Allocation[0].Summary == "given by the program" {
		t.Error("the catalog that was added to has changed")
	}
}

// more wants one node more than there are.
type more struct{}

func (more) Scale(_ context.Context, v *core.View, _ *core.Plan) (core.ClusterTarget, error) {
	return core.ClusterTarget{Nodes: len(v.Cluster.Nodes) + 1}, nil
}

func TestAScalerThatNobodyObeysIsTold(t *testing.T) {
	for scaler, want := range map[string][]string{
		"none": nil,
		"more": {`program: pipeline.elasticity.cluster.type: what "scaler/more" decides is not carried out: the cluster has no pools`},
	} {
		t.Run(scaler, func(t *testing.T) {
			s := doortest.Small()
			s.Pipeline.Elasticity.Cluster.Type = scaler
			c := doortest.Compose(t, quartet.Builtins().WithScaler(quartet.Given[core.ClusterScaler]("more", more{})), s)
			var notes []string
			c.Note = func(text string) { notes = append(notes, text) }
			doortest.Simulate(t, c)
			if diff := cmp.Diff(want, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheSeedIsToldToChangeNothing(t *testing.T) {
	for kind, want := range map[string][]string{
		"generated": {"workload/generated"},
		"fixed":     nil,
	} {
		t.Run(kind, func(t *testing.T) {
			s := doortest.Small()
			if s.Workload.Type = kind; kind == "fixed" {
				s.Workload.Config = nil
			}
			catalog := quartet.Builtins().WithWorkload(quartet.Given[workload.Source]("fixed", fixed{}))
			c := doortest.Compose(t, catalog, s)
			doortest.Simulate(t, c)
			if diff := cmp.Diff(want, c.SeedUsers()); diff != "" {
				t.Errorf("who drew (-want +got):\n%s", diff)
			}
		})
	}
}

// What nodes and starts of the simulator draw makes the seed matter, as policies do that draw.
func TestTheSeedOfWhatTheSimulatorDraws(t *testing.T) {
	pools := func(world string) string {
		return "backend: {type: simulator, config: {pools: [{pool: spot" + world + "}]}}\ncluster: {pools: [{name: spot, accelerator: t4, devices: 4, start: 1, min: 1, max: 2}]}\n"
	}
	whole := func(settings string) string {
		return "backend: {type: simulator, config: {" + settings + "}}\ncluster: {nodes: [{name: n, count: 1, accelerator: t4, devices: 4}]}\n"
	}
	draws := []string{"backend/simulator"}
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"nothing":             {whole("restart_overhead: 3s"), nil},
		"failures of nodes":   {whole("failures: {mtbf: 100h, repair: 1s}"), draws},
		"a repair of nothing": {whole("failures: {repair: 1s}"), nil},
		"measurements":        {whole("measurement_noise: {spread: 0.1}"), draws},
		"starts":              {whole("start_delay_spread: 1s"), draws},
		"pools, nothing":      {pools(", provisioning: 1s"), nil},
		"provisioning":        {pools(", provisioning: 1s, provisioning_spread: 2s"), draws},
		"fails":               {pools(", provisioning: 1s, fails: 0.5"), draws},
		"evictions":           {pools(", evictions: 100h"), draws},
	} {
		t.Run(name, func(t *testing.T) {
			text := tc.text + "version: 1\nworkload: {type: fixed}\nround: {interval: 1m, on_events: true}\noutput: {write: []}\n" +
				"pipeline: {allocation: {type: fifo}, elasticity: {cluster: {type: queue}}}\n"
			c, err := quartet.Parse(quartet.Builtins().WithWorkload(quartet.Given[workload.Source]("fixed", fixed{})), "seed.yaml", text, quartet.Options{})
			if err != nil {
				t.Fatal(err)
			}
			doortest.Simulate(t, c)
			if diff := cmp.Diff(tc.want, c.SeedUsers()); diff != "" {
				t.Errorf("who drew (-want +got):\n%s", diff)
			}
		})
	}
}

// fixed is one job of a minute.
type fixed struct{}

func (fixed) Load(context.Context) (*workload.Workload, error) {
	return &workload.Workload{Jobs: []workload.Job{{
		Spec:  core.JobSpec{Name: "a", Requested: 1, MinReplicas: 1, MaxReplicas: 1, TotalWork: 60, Weight: 1},
		Model: workload.NewDurationModel(60, 1),
	}}}, nil
}

// The plan of a simulation is its first round, whenever that is, and changes nothing.
func TestThePlanOfASimulationIsItsFirstRound(t *testing.T) {
	for name, change := range map[string]func(s *quartet.Spec){
		"rounds":   func(*quartet.Spec) {},
		"events":   func(s *quartet.Spec) { s.Round.OnEvents = true },
		"all jobs": func(s *quartet.Spec) { s.Workload.Config["span"] = "1s" },
	} {
		t.Run(name, func(t *testing.T) {
			s := doortest.Small()
			change(&s)
			var first *core.Report
			c := doortest.Compose(t, quartet.Builtins(), s)
			c.Observers = append(c.Observers, doortest.ObserverFunc(func(r *core.Report) {
				if first == nil {
					first = &core.Report{View: &core.View{Round: r.View.Round, NowSeconds: r.View.NowSeconds}}
					first.Changes = slices.Clone(r.Changes)
				}
			}))
			doortest.Simulate(t, c)
			for range 2 {
				p, err := doortest.Compose(t, quartet.Builtins(), s).Plan(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(first.Changes, p.Changes); diff != "" || len(p.Changes) == 0 {
					t.Errorf("changes (-simulated +planned):\n%s", diff)
				}
				if p.Round != first.View.Round || p.NowSeconds != first.View.NowSeconds {
					t.Errorf("round %d at %v s, simulated: %d at %v s", p.Round, p.NowSeconds, first.View.Round, first.View.NowSeconds)
				}
			}
		})
	}
	if _, err := doortest.Compose(t, quartet.Builtins(), doortest.Small()).Plan(t.Context(), "no.db"); err == nil {
		t.Error("a simulation was planned on a snapshot")
	}
}

// A run that cannot begin writes nothing, and says whose files are where its own would be.
func TestARunThatCannotBeginSaysWhoseFilesAreThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	broken := quartet.Builtins().WithAllocation(core.NewFactory(core.Info{Type: "fifo"}, core.None{}, func(core.None, core.Settings) (core.Allocator, error) {
		return nil, errors.New("no licence")
	}))
	for _, there := range []bool{false, true} {
		if there {
			c := doortest.Compose(t, quartet.Builtins(), doortest.Small())
			c.Dir = dir
			doortest.Simulate(t, c)
		}
		var notes []string
		c := doortest.Compose(t, broken, doortest.Small())
		c.Dir, c.Note = dir, func(text string) { notes = append(notes, text) }
		r, err := c.Simulate(t.Context())
		if r != nil || err == nil || !strings.Contains(err.Error(), "no licence") {
			t.Fatalf("%v, %v", r, err)
		}
		want := []string(nil)
		if there {
			want = []string{"nothing was written: the files in " + dir + " are of an earlier run"}
		}
		if diff := cmp.Diff(want, notes); diff != "" {
			t.Errorf("there %t: notes (-want +got):\n%s", there, diff)
		}
		if _, err := os.Stat(dir); (err == nil) != there {
			t.Errorf("there %t: %v", there, err)
		}
	}
}

// ending is an allocator that counts how often it ends.
type ending struct {
	faulty
	ends *int
}

func (e *ending) Close() error { *e.ends++; return nil }

// Policies that were created are ended when the run does not begin: a plugin among them is a process.
func TestPoliciesEndWhenARunDoesNotBegin(t *testing.T) {
	broken := core.NewFactory(core.Info{Type: "broken"}, struct{}{}, func(struct{}, core.Settings) (core.Placer, error) {
		return nil, errors.New("no placer")
	})
	cases := map[string]struct {
		placement string
		inFile    bool // the folder of the results is to be in a file
		real      bool
		want      string
	}{
		"another policy cannot be created": {"broken", false, false, "no placer"},
		"the folder cannot be made":        {"first_fit", true, false, "make the output folder"},
		"the backend cannot be opened":     {"first_fit", false, true, "does not run real processes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := doortest.Small()
			s.Pipeline.Allocation.Type = "ending"
			ends := 0
			s.Pipeline.Placement.Type = tc.placement
			given := quartet.Given[core.Allocator]("ending", &ending{faulty{until: 1 << 30}, &ends})
			c := doortest.Compose(t, quartet.Builtins().WithAllocation(given).WithPlacement(broken), s)
			if tc.inFile {
				file := filepath.Join(t.TempDir(), "file")
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				c.Dir = filepath.Join(file, "run")
			}
			begin := c.Simulate
			if tc.real {
				begin = c.Run
			}
			if _, err := begin(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if ends != 1 {
				t.Errorf("it was ended %d times, want once", ends)
			}
		})
	}
}

// Brief leaves out the list of jobs, and nothing else.
func TestBriefListsNoJobs(t *testing.T) {
	run := func(brief bool) *quartet.Result {
		c := doortest.Compose(t, quartet.Builtins(), doortest.Small())
		c.Brief = brief
		r, err := c.Simulate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	whole, brief := run(false), run(true)
	if brief.Jobs != nil || len(whole.Jobs) == 0 {
		t.Errorf("%d jobs, and %d when brief", len(whole.Jobs), len(brief.Jobs))
	}
	if diff := cmp.Diff(whole.Outputs, brief.Outputs); diff != "" {
		t.Errorf("outputs (-whole +brief):\n%s", diff)
	}
}
