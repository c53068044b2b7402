package configs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/restart"
)

// counting is the config of an allocation that counts on the cost of a restart.
type counting struct{ restart.Cost }

// planning is the config of a policy that plans deadlines with one pause for all jobs.
type planning struct {
	Overhead time.Duration `config:"overhead" doc:"pause" min:"0s"`
}

func (p planning) PlannedOverhead() (overhead time.Duration, setting string) {
	return p.Overhead, "overhead"
}

// pausing is the config of a policy that counts one pause for every restart.
type pausing struct {
	Pause time.Duration `config:"pause" doc:"pause" min:"0s"`
}

func (p pausing) CountedRestart() (pause time.Duration, setting string) { return p.Pause, "pause" }

func restartCatalog() Catalog {
	return fakeCatalog().WithAllocation(
		fake[core.Allocator]("counting", counting{restart.Cost{RestartOverhead: 30 * time.Second}}),
		fake[core.Allocator]("planning", planning{Overhead: time.Second}),
	).WithAdmission(fake[core.Admitter]("planning", planning{Overhead: time.Second})).
		WithElasticity(fake[core.Elasticity]("pausing", pausing{Pause: time.Second})).
		WithScaler(fake[core.ClusterScaler]("pausing", pausing{Pause: time.Second}))
}

const restartHead = "version: 1\ncluster: {nodes: [{name: n, accelerator: t4, devices: 4}]}\nworkload: {type: generated}\n"

func loadRestart(t *testing.T, rest string, o Options) *Config {
	t.Helper()
	o.Outside = fakeOutside
	c, err := Parse(restartCatalog(), "restart.yaml", []byte(restartHead+rest), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every component that has a setting for the cost of a restart takes it from the section, unless it says otherwise itself.
func TestRestartReachesEveryComponent(t *testing.T) {
	const s = time.Second
	apps := []restart.Application{{Application: "a", Overhead: 40 * s, Devices: 2}}
	for name, tc := range map[string]struct {
		rest    string
		sets    []string
		backend time.Duration
		policy  restart.Cost
	}{
		"absent":               {"pipeline: {allocation: {type: counting}}\n", nil, 0, restart.Cost{RestartOverhead: 30 * s}},
		"empty":                {"restart: {}\npipeline: {allocation: {type: counting}}\n", nil, 0, restart.Cost{RestartOverhead: 30 * s}},
		"one for all":          {"restart: {overhead: 10s}\npipeline: {allocation: {type: counting}}\n", nil, 10 * s, restart.Cost{RestartOverhead: 10 * s}},
		"none for all":         {"restart: {overhead: 0s}\npipeline: {allocation: {type: counting}}\n", nil, 0, restart.Cost{}},
		"by a flag":            {"pipeline: {allocation: {type: counting}}\n", []string{"restart.overhead=5s"}, 5 * s, restart.Cost{RestartOverhead: 5 * s}},
		"applications":         {"restart: {applications: [{application: a, overhead: 40s, devices: 2}]}\npipeline: {allocation: {type: counting}}\n", nil, 0, restart.Cost{RestartOverhead: 30 * s, ApplicationOverhead: apps}},
		"the policy's own":     {"restart: {overhead: 10s}\npipeline: {allocation: {type: counting, config: {restart_overhead: 0s}}}\n", nil, 10 * s, restart.Cost{}},
		"the backend's own":    {"restart: {overhead: 10s}\npipeline: {allocation: {type: counting}}\nbackend: {type: simulator, config: {restart_overhead: 20s}}\n", nil, 20 * s, restart.Cost{RestartOverhead: 10 * s}},
		"own list of no items": {"restart: {overhead: 10s, applications: [{application: a, overhead: 40s}]}\npipeline: {allocation: {type: counting, config: {application_overhead: []}}}\n", nil, 10 * s, restart.Cost{RestartOverhead: 10 * s, ApplicationOverhead: []restart.Application{}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := loadRestart(t, tc.rest, Options{Sets: tc.sets})
			if got := c.Backend.Config.(*fakeSimulator).RestartOverhead; got != tc.backend {
				t.Errorf("the backend charges %v, want %v", got, tc.backend)
			}
			if diff := cmp.Diff(tc.policy, c.Allocation.Config.(*counting).Cost); diff != "" {
				t.Errorf("the policy counts (-want +got):\n%s", diff)
			}
		})
	}
}

// Policies that plan with one pause have the longest of the section.
func TestRestartReachesPlans(t *testing.T) {
	const pipeline = "pipeline: {admission: [{type: planning}], allocation: {type: planning, config: {}}, " +
		"elasticity: {job: {type: pausing}, cluster: {type: pausing, config: {}}}}\n"
	for name, tc := range map[string]struct {
		section string
		want    time.Duration
	}{
		"absent":                {"", time.Second},
		"one for all":           {"restart: {overhead: 10s}\n", 10 * time.Second},
		"a longer application":  {"restart: {overhead: 10s, applications: [{application: a, overhead: 40s}, {application: b, overhead: 20s}]}\n", 40 * time.Second},
		"a shorter application": {"restart: {overhead: 10s, applications: [{application: a, overhead: 4s}]}\n", 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			c := loadRestart(t, tc.section+pipeline, Options{})
			for _, config := range []any{c.Admission[0].Config, c.Allocation.Config} {
				if got := config.(*planning).Overhead; got != tc.want {
					t.Errorf("plans with %v, want %v", got, tc.want)
				}
			}
			for _, config := range []any{c.Elasticity.Config, c.Scaler.Config} {
				if got := config.(*pausing).Pause; got != tc.want {
					t.Errorf("counts %v, want %v", got, tc.want)
				}
			}
			own := loadRestart(t, tc.section+strings.ReplaceAll(pipeline, "{type: pausing}", "{type: pausing, config: {pause: 7s}}"), Options{})
			if got := own.Elasticity.Config.(*pausing).Pause; got != 7*time.Second {
				t.Errorf("with a setting of its own it counts %v, want 7s", got)
			}
		})
	}
}

// What the section gave is resolved to the same config, and told with the place where it was written.
func TestRestartIsResolved(t *testing.T) {
	const section = "restart: {overhead: 10s, applications: [{application: a, overhead: 40s}]}\n"
	c := loadRestart(t, section+"pipeline: {allocation: {type: counting}}\n", Options{})
	first, err := c.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(first), "\nrestart:\n  overhead: 10s\n  applications: [{application: a, overhead: 40s, devices: 0}]\n") {
		t.Errorf("the section is not rendered:\n%s", first)
	}
	again, err := Parse(restartCatalog(), "again.yaml", first, Options{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := again.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Errorf("resolved again (-first +second):\n%s", diff)
	}
	from := map[string]string{}
	for _, o := range c.Origins() {
		from[o.Path] = o.From
	}
	for path, want := range map[string]string{
		"restart.overhead":                            "restart.yaml:4:11",
		"backend.config.restart_overhead":             "restart.yaml:4:11",
		"pipeline.allocation.config.restart_overhead": "restart.yaml:4:11",
		"backend.config.broken":                       "default",
	} {
		if from[path] != want {
			t.Errorf("%s is from %q, want %q", path, from[path], want)
		}
	}
	absent := loadRestart(t, "pipeline: {allocation: {type: counting}}\n", Options{})
	if text, _ := absent.Resolved(); strings.Contains(string(text), "\nrestart:") {
		t.Errorf("a section that nobody wrote is rendered:\n%s", text)
	}
}

// A program that says nothing of restarts leaves every component its own.
func TestRestartOfAProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		section Restart
		want    time.Duration
	}{
		"nothing":  {Restart{}, 30 * time.Second},
		"a figure": {Restart{Overhead: time.Minute}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := DefaultFile()
			f.Name, f.Restart = "program", tc.section
			f.Cluster.Nodes = []NodeGroup{{Name: "n", Count: 1, Accelerator: "t4", Devices: 4}}
			f.Workload.Type, f.Pipeline.Allocation.Type = "generated", "counting"
			c, err := Build(restartCatalog(), f, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Allocation.Config.(*counting).RestartOverhead; got != tc.want {
				t.Errorf("the policy counts %v, want %v", got, tc.want)
			}
		})
	}
}

// What is wrong with the section is reported there, once.
func TestRestartProblems(t *testing.T) {
	for rest, want := range map[string]string{
		"restart: {overhead: -1s}\n":                                      `restart.yaml:4:11: restart.overhead: must be at least 0s, got -1s`,
		"restart: {overhead: 30}\n":                                       `restart.yaml:4:11: restart.overhead: expected a duration such as "60s", got number 30; write "30s"`,
		"restart: {applications: [{overhead: 3s}]}\n":                     `restart.yaml:4:26: restart.applications[0].application: must not be empty`,
		"restart: {applications: [{application: a}, {application: a}]}\n": `restart.yaml:4:45: restart.applications[1].application: application "a" is listed twice`,
	} {
		_, err := Parse(restartCatalog(), "restart.yaml", []byte(restartHead+rest+"pipeline: {allocation: {type: counting}}\n"), Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%sgot %v, want %s", rest, err, want)
		}
	}
}

// A policy that counts another cost than the backend charges is noted, with both figures.
func TestRestartsThatDifferAreNoted(t *testing.T) {
	const hint = "; set restart.overhead, which both take unless they have a setting of their own, or keep both where a publication does"
	for name, tc := range map[string]struct {
		rest string
		want []string
	}{
		"by default": {
			"pipeline: {allocation: {type: counting}}\n",
			[]string{`restart.yaml:4:12: pipeline.allocation.config.restart_overhead: "allocation/counting" counts 30s for a restart of a job, and "backend/simulator" charges 0s` + hint},
		},
		"the same":                {"restart: {overhead: 20s}\npipeline: {allocation: {type: counting}}\n", nil},
		"a policy without a cost": {"restart: {overhead: 20s}\npipeline: {allocation: {type: las}}\n", nil},
		"a backend without one":   {"pipeline: {allocation: {type: counting}}\nbackend: {type: kube}\n", nil},
		"one pause for all": {
			"restart: {overhead: 20s}\n" +
				"pipeline: {allocation: {type: las}, elasticity: {job: {type: pausing, config: {pause: 3s}}, cluster: {type: pausing, config: {pause: 20s}}}}\n",
			[]string{
				`restart.yaml:5:103: pipeline.elasticity.cluster.type: what "scaler/pausing" decides is not carried out: "backend/simulator" neither adds nor removes nodes`,
				`restart.yaml:5:80: pipeline.elasticity.job.config.pause: "elasticity/pausing" counts 3s for a restart of a job, and "backend/simulator" charges up to 20s` + hint,
			},
		},
		"one pause for all, by default": {
			"pipeline: {allocation: {type: las}, elasticity: {cluster: {type: pausing}}}\n",
			[]string{
				`restart.yaml:4:60: pipeline.elasticity.cluster.type: what "scaler/pausing" decides is not carried out: "backend/simulator" neither adds nor removes nodes`,
				`restart.yaml:4:50: pipeline.elasticity.cluster.config.pause: "scaler/pausing" counts 1s for a restart of a job, and "backend/simulator" charges up to 0s` + hint,
			},
		},
		"applications": {
			"restart: {overhead: 20s}\npipeline: {allocation: {type: counting, config: {application_overhead: [{application: a, overhead: 5s, devices: 4}, {application: b, overhead: 6s}]}}}\n",
			[]string{`restart.yaml:5:41: pipeline.allocation.config.restart_overhead: "allocation/counting" counts 5s for a restart of a job of application "a" on 4 devices, and "backend/simulator" charges 20s, and they differ for 1 more kinds of jobs` + hint},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, n := range loadRestart(t, tc.rest, Options{}).Notes {
				got = append(got, n.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// starting is a backend whose starts take half a minute.
type starting struct{ fakeOpener }

func (starting) LongestStart() backend.Start {
	return backend.Start{Pause: 30 * time.Second, Keys: []string{"restart_overhead"}}
}

// What is noted of a composition is noted of a candidate again only where it is about another setting, or says something else.
func TestNotesOfCandidates(t *testing.T) {
	c := restartCatalog().WithBackend(core.NewFactory(core.Info{Type: "simulator", Summary: "a fake world"}, fakeSimulator{},
		func(fakeSimulator, core.Settings) (backend.Opener, error) { return starting{}, nil }))
	const own = "pipeline: {admission: [{type: planning}], allocation: {type: planning, config: {overhead: 1m}}}\n"
	const promise = ": promises of deadlines may be broken: \"admission/planning\" counts "
	for name, tc := range map[string]struct {
		pipeline string
		want     []string
	}{
		"the same":       {"round: {interval: 2m}", nil},
		"another figure": {"pipeline: {admission: [{type: planning, config: {overhead: 2s}}]}", []string{"synthesizer.candidates[0].pipeline.admission[0].config.overhead" + promise + "2s"}},
		"another place":  {"pipeline: {admission: [{type: accept_all}, {type: planning}]}", []string{"synthesizer.candidates[0].pipeline.admission[1].config.overhead" + promise + "1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := restartHead + own + "synthesizer: {candidates: [{name: other, " + tc.pipeline + "}]}\n"
			config, err := Parse(c, "restart.yaml", []byte(text), Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := append([]string{"pipeline.admission[0].config.overhead" + promise + "1s"}, tc.want...)
			if len(config.Notes) != len(want) {
				t.Fatalf("notes %v, want %v", config.Notes, want)
			}
			for i, n := range config.Notes {
				if got := n.Path + ": " + n.Summary; !strings.HasPrefix(got, want[i]) {
					t.Errorf("note %q, want %q", got, want[i])
				}
			}
		})
	}
}
