package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/testuser"
)

// programmed is what minimal is, made by a program.
func programmed() File {
	f := DefaultFile()
	f.Cluster.Nodes = []NodeGroup{{Name: "a", Accelerator: "t4", Devices: 4}}
	f.Workload.Type = "generated"
	f.Pipeline.Allocation.Type = "tiresias"
	return f
}

func TestBuild(t *testing.T) {
	cases := map[string]struct {
		change func(*File)
		text   string // the same, in a file
	}{
		"as little as possible": {func(*File) {}, minimal},
		"a name":                {func(f *File) { f.Name = "mine" }, "name: mine\n" + minimal},
		"rounds on events":      {func(f *File) { f.Round.OnEvents = true }, "round: {on_events: true}\n" + minimal},
		"settings": {
			func(f *File) { f.Pipeline.Allocation.Config = map[string]any{"queue": "blocking", "oracle": false} },
			strings.Replace(minimal, "type: tiresias", "type: tiresias, config: {queue: blocking, oracle: false}", 1),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := programmed()
			if tc.change(&f); f.Name == "" {
				f.Name = "test"
			}
			c, err := Build(fakeCatalog(), f, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Resolved()
			if err != nil {
				t.Fatal(err)
			}
			want, err := mustParse(t, tc.text, Options{}).Resolved()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("resolved (-of the file +of the program):\n%s", diff)
			}
		})
	}
}

func TestBuildRefuses(t *testing.T) {
	f := programmed()
	f.Version, f.Pipeline.Allocation.Type = 0, "tyresias"
	_, err := Build(fakeCatalog(), f, Options{})
	for _, want := range []string{"program", "version", `unknown allocation "tyresias"; did you mean "tiresias"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("built with %v, want %q in it", err, want)
		}
	}
}

// A catalog holds each type once, the later in the place of the earlier, and leaves the one it came from alone.
func TestWith(t *testing.T) {
	one, two := fake[core.Placer]("one", core.None{}), fake[core.Placer]("two", core.None{})
	other := one
	other.Summary = "another"
	first := Catalog{}.WithPlacement(one, two)
	second := first.WithPlacement(other)
	if len(first.Placement) != 2 || len(second.Placement) != 2 || second.Placement[0].Summary != "another" || second.Placement[1].Type != "two" {
		t.Errorf("first %+v, then %+v", first.Placement, second.Placement)
	}
	if first.Placement[0].Summary != one.Summary {
		t.Error("the catalog before has changed")
	}
	c := Catalog{}.
		WithAdmission(fake[core.Admitter]("a", core.None{})).WithAllocation(fake[core.Allocator]("b", core.None{})).
		WithElasticity(fake[core.Elasticity]("c", core.None{})).WithScaler(fake[core.ClusterScaler]("d", core.None{})).
		WithWorkload(fake[workload.Source]("e", core.None{})).WithBackend(fake[backend.Opener]("f", core.None{}))
	got := c.Admission[0].Type + c.Allocation[0].Type + c.Elasticity[0].Type + c.Scaler[0].Type + c.Workload[0].Type + c.Backend[0].Type
	if got != "abcdef" {
		t.Errorf("components %q", got)
	}
}

// Beside a catalog comes what it does not have.
func TestBeside(t *testing.T) {
	one, two := fake[core.Placer]("one", core.None{}), fake[core.Placer]("two", core.None{})
	other := one
	other.Summary = "another"
	got := Catalog{}.WithPlacement(one).Beside(Catalog{}.WithPlacement(other, two)).Placement
	if len(got) != 2 || got[0].Summary != one.Summary || got[1].Type != "two" {
		t.Errorf("placements %+v, want the first one and two", got)
	}
	c := Catalog{}.Beside(Catalog{}.
		WithAdmission(fake[core.Admitter]("a", core.None{})).WithAllocation(fake[core.Allocator]("b", core.None{})).WithPlacement(one).
		WithElasticity(fake[core.Elasticity]("c", core.None{})).WithScaler(fake[core.ClusterScaler]("d", core.None{})))
	if got := c.Admission[0].Type + c.Allocation[0].Type + c.Placement[0].Type + c.Elasticity[0].Type + c.Scaler[0].Type; got != "abonecd" {
		t.Errorf("beside nothing come %q", got)
	}
}

func TestDiffer(t *testing.T) {
	cases := map[string]struct {
		a, b string
		want []string
	}{
		"alike":                         {"seed: 1", "seed: 1", nil},
		"empty":                         {"", "", nil},
		"one empty":                     {"seed: 1", "", []string{"seed: 1, there nothing"}},
		"a value":                       {"seed: 1\nname: a", "name: b\nseed: 1", []string{"name: a, there b"}},
		"only there":                    {"seed: 1", "seed: 1\nname: b", []string{"name: nothing, there b"}},
		"where results go":              {"output: {dir: a}", "output: {dir: b}", nil},
		"a type says it all":            {"p: {type: a, config: {x: 1}}\nq: 1", "p: {type: b, config: {x: 2}}\nq: 2", []string{"p.type: a, there b", "q: 1, there 2"}},
		"settings of one type":          {"p: {type: a, config: {x: 1}}", "p: {type: a, config: {x: 2}}", []string{"p.config.x: 1, there 2"}},
		"an item of a list":             {"l: [{x: 1}, {x: 2}]", "l: [{x: 1}, {x: 3}]", []string{"l[1].x: 2, there 3"}},
		"a word that begins like it":    {"outputs: 1", "outputs: 2", []string{"outputs: 1, there 2"}},
		"a section with its defaults":   {"sample: {window: {first_job: 0, jobs: 0}, load: {factor: 1000, by: thinning}}", "", []string{"sample.load.factor: 1000, there 1"}},
		"a section only there":          {"seed: 1", "seed: 1\nsample: {window: {first_job: 5}, load: {factor: 1}}", []string{"sample.window.first_job: 0, there 5"}},
		"a section of both":             {"sample: {load: {factor: 2, by: thinning}}", "sample: {load: {factor: 3}}", []string{"sample.load.factor: 2, there 3", "sample.load.by: thinning, there nothing"}},
		"estimates":                     {"estimate: {source: noisy, sigma: 0}", "", []string{"estimate.source: noisy, there declared"}},
		"what is measured":              {"measure: {last_job: 9}", "", []string{"measure.last_job: 9, there -1"}},
		"a component that is not there": {"p: {type: a, config: {x: 1}}", "", []string{"p.type: a, there nothing"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Differ([]byte(tc.a), []byte(tc.b))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
	for _, pair := range [][2]string{{"[", "a: 1"}, {"a: 1", "["}} {
		if _, err := Differ([]byte(pair[0]), []byte(pair[1])); err == nil {
			t.Errorf("%q and %q are compared", pair[0], pair[1])
		}
	}
}

func TestDiscover(t *testing.T) {
	here, user := t.TempDir(), t.TempDir()
	t.Chdir(here)
	t.Setenv("XDG_CONFIG_HOME", user)
	t.Setenv("HOME", user)
	t.Setenv(FileVariable, "")
	discover := func(want string) {
		t.Helper()
		if got, err := Discover(); err != nil || got != want {
			t.Errorf("discovered %q, %v; want %q", got, err, want)
		}
	}
	write := func(path string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(minimal), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	discover("")
	folder, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	discover(write(filepath.Join(folder, "quartet", FileName)))
	write(filepath.Join(here, FileName))
	discover(FileName)
	t.Setenv(FileVariable, "other.yaml")
	discover("other.yaml")
}

// What is there and cannot be read is told of: the next config is not taken in its place.
func TestDiscoverPassesNothingOver(t *testing.T) {
	cases := map[string]struct {
		lay  func(path string) error
		want string // "" where there is nothing
	}{
		"nothing":           {func(string) error { return nil }, ""},
		"a folder":          {func(path string) error { return os.Mkdir(path, 0o700) }, "it is a folder"},
		"a broken link":     {func(path string) error { return os.Symlink("gone.yaml", path) }, "it is a link to a file that does not exist"},
		"a link in circles": {func(path string) error { return os.Symlink(filepath.Base(path), path) }, "too many levels of symbolic links"},
		"a device":          {func(path string) error { return os.Symlink(os.DevNull, path) }, "it is a device, not a regular file"},
		"no permission":     {func(path string) error { return os.WriteFile(path, []byte(minimal), 0o200) }, "permission denied"},
	}
	for name, tc := range cases {
		for _, inUserFolder := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, user's %v", name, inUserFolder), func(t *testing.T) {
				here, user := t.TempDir(), t.TempDir()
				t.Chdir(here)
				t.Setenv("XDG_CONFIG_HOME", user)
				t.Setenv("HOME", user)
				t.Setenv(FileVariable, "")
				folder, err := os.UserConfigDir()
				if err != nil {
					t.Fatal(err)
				}
				folder = filepath.Join(folder, "quartet")
				if err := os.MkdirAll(folder, 0o700); err != nil {
					t.Fatal(err)
				}
				path := FileName
				if inUserFolder {
					path = filepath.Join(folder, FileName)
				} else if err := os.WriteFile(filepath.Join(folder, FileName), []byte(minimal), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := tc.lay(path); err != nil {
					t.Fatal(err)
				}
				if name == "no permission" {
					testuser.Ordinary(t, here)
				}
				got, err := Discover()
				switch {
				case tc.want == "" && err != nil:
					t.Error(err)
				case tc.want != "" && (err == nil || err.Error() != path+": cannot read the config: "+tc.want):
					t.Errorf("discovered %q, %v; want %q", got, err, tc.want)
				}
			})
		}
	}
}

// A section whose form is wrong hides nothing that is wrong with another.
func TestEveryProblemAtOnce(t *testing.T) {
	const parts = "workload: {type: generated}\npipeline: {allocation: {type: tiresias}}\n"
	cluster := "cluster: {nodes: [{name: a, accelerator: t4, devices: 4}]}\n"
	cases := map[string]struct {
		text string
		want []string
	}{
		"a version and nothing else": {"version: 7\n", []string{"version: unknown version 7; this program reads version 1", "cluster.nodes: required but missing", "workload.type: required", "pipeline.allocation.type: required"}},
		"a version below all":        {"version: -1\nseeds: 3\n" + parts, []string{"version: unknown version -1", "seeds: unknown key", "cluster.nodes: required"}},
		"a version of no form":       {"version: one\nname: a/b\n" + cluster + parts, []string{`version: expected a whole number, got text "one"`, `name: "a/b" is not a plain file name`}},
		"a round":                    {"version: 1\nround: {interval: 0s}\nseed: x\n" + cluster + parts, []string{"round: no round would ever be held", "seed: expected a whole number"}},
		"the same section twice":     {"version: 1\nround: {interval: 60, on_event: true}\n" + cluster + parts, []string{"round.interval: expected a duration", "round.on_event: unknown key"}},
		"an output without a folder": {"version: 1\noutput: {dir: ''}\n" + parts, []string{"output.dir: must not be empty", "cluster.nodes: required"}},
		"a node named as of a pool":  {"version: 1\ncluster:\n  nodes: [{name: a-x, accelerator: t4, devices: 4}, {name: a-7, accelerator: t4, devices: 4}]\n  pools: [{name: a, accelerator: t4, devices: 4, max: 2}]\n" + parts, []string{`cluster.nodes[1].name: pool "a" may call a node of its own "a-7", too`}},
		"nodes of one name":          {"version: 1\nround: [1]\ncluster: {nodes: [{name: a, accelerator: t4, devices: 4}, {name: a, accelerator: t4, devices: 4}]}\n" + parts, []string{`there are two nodes "a"`, "round: expected a mapping"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(fakeCatalog(), "test.yaml", []byte(tc.text), Options{})
			text := fmt.Sprint(err)
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not told in:\n%s", want, text)
				}
			}
			if got := strings.Count(text, "\n") + 1; got != len(tc.want) {
				t.Errorf("%d problems, want %d:\n%s", got, len(tc.want), text)
			}
		})
	}
}

// Prices are numbers from nothing to more than anything costs, at first and later on: what they come to is finite.
func TestPricesOfPools(t *testing.T) {
	const first, later = "cluster.pools[0].price_per_hour: ", "cluster.pools[0].prices[0].per_hour: "
	for price, want := range map[string]string{
		"0": "", "1": "", "1e9": "", "1e-300": "", "1000000001": "must be at most 1e9", "1e308": "must be at most 1e9", "1e400": "", ".inf": "", ".nan": "", "-1": "must be at least 0", "x": "expected a number",
	} {
		bad := want != "" || strings.HasPrefix(price, ".") || price == "1e400"
		text := fmt.Sprintf("version: 1\ncluster: {pools: [{name: a, accelerator: t4, devices: 4, start: 1, max: 2, price_per_hour: %s, prices: [{from: 1h, per_hour: %[1]s}]}]}\nworkload: {type: generated}\npipeline: {allocation: {type: tiresias}}\n", price)
		_, err := Parse(fakeCatalog(), "test.yaml", []byte(text), Options{})
		got := fmt.Sprint(err)
		if bad != strings.Contains(got, first+want) || bad != strings.Contains(got, later+want) {
			t.Errorf("a price of %s: %v", price, err)
		}
	}
}

func TestStrayVariables(t *testing.T) {
	known := []string{"QUARTET_DATA"}
	cases := map[string]struct {
		variable string
		want     string
	}{
		"a key":                  {"QUARTET_SEED=7", ""},
		"a nested key":           {"QUARTET_ROUND_ON_EVENTS=true", ""},
		"of something else":      {"PATH=/bin", ""},
		"known":                  {"QUARTET_DATA=/data", ""},
		"the config":             {"QUARTET_CONFIG=a.yaml", ""},
		"empty":                  {"QUARTET_SEDE=", ""},
		"without a value":        {"QUARTET_SEDE", ""},
		"like a key":             {"QUARTET_SEDE=7", `env QUARTET_SEDE: nothing reads this variable; did you mean "QUARTET_SEED"?`},
		"a key in small letters": {"quartet_seed=7", `env quartet_seed: nothing reads this variable; did you mean "QUARTET_SEED"?`},
		"a misspelt stage":       {"QUARTET_PIPELINE_ALOCATION_TYPE=fifo", `env QUARTET_PIPELINE_ALOCATION_TYPE: nothing reads this variable; did you mean "QUARTET_PIPELINE_ALLOCATION_TYPE"?`},
		"a component's setting":  {"QUARTET_PIPELINE_ALLOCATION_CONFIG_QUEUE=x", `env QUARTET_PIPELINE_ALLOCATION_CONFIG_QUEUE: nothing reads this variable; a setting of a component is given by --set …config.queue=…`},
		"like nothing":           {"QUARTET_XYZZY=1", `env QUARTET_XYZZY: nothing reads this variable; valid variables: ` + strings.Join(Variables(), ", ")},
		"the prefix alone":       {"QUARTET_=1", `env QUARTET_: nothing reads this variable; valid variables: ` + strings.Join(Variables(), ", ")},
		"a word that begins so":  {"QUARTETS=1", ""},
		"a list, which has none": {"QUARTET_OUTPUT_WRITE=jobs", `env QUARTET_OUTPUT_WRITE: nothing reads this variable; did you mean "QUARTET_OUTPUT_DIR"?`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, StrayVariables([]string{tc.variable}, known).Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStdin(t *testing.T) {
	read := func(text string, err error) func() ([]byte, error) {
		return func() ([]byte, error) { return []byte(text), err }
	}
	cases := map[string]struct {
		stdin func() ([]byte, error)
		want  string
	}{
		"read":           {read(minimal, nil), ""},
		"with a mistake": {read("seeds: 1\n"+minimal, nil), "stdin:1:1: seeds: unknown key"},
		"not here":       {nil, "standard input is not read here"},
		"broken":         {read("", errors.New("broken pipe")), "read standard input: broken pipe"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := Load(fakeCatalog(), Options{Files: []string{"-"}, Stdin: tc.stdin})
			switch {
			case tc.want == "" && (err != nil || c.Name != "stdin"):
				t.Errorf("loaded %+v, %v", c, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("loaded with %v, want %q", err, tc.want)
			}
		})
	}
}

// Every component is held to what the backend can tell, and the scaler to what it carries out.
func TestEveryComponentNeeds(t *testing.T) {
	needy := fakeCatalog()
	times := core.CapabilityStepTimes
	needy = needy.WithAdmission(fake[core.Admitter]("needy", core.None{}, times)).
		WithAllocation(fake[core.Allocator]("needy", core.None{}, times)).WithPlacement(fake[core.Placer]("needy", core.None{}, times)).
		WithElasticity(fake[core.Elasticity]("needy", core.None{}, times)).WithScaler(fake[core.ClusterScaler]("needy", core.None{}, times)).
		WithWorkload(fake[workload.Source]("needy", core.None{}, times))
	for _, path := range []string{"workload", "pipeline.admission[0]", "pipeline.allocation", "pipeline.placement", "pipeline.elasticity.job", "pipeline.elasticity.cluster"} {
		_, err := Parse(needy, "test.yaml", []byte(minimal), Options{Sets: []string{path + ".type=needy"}})
		if err == nil || !strings.Contains(err.Error(), path+`.type: "`) || !strings.Contains(err.Error(), `/needy" needs capability "`+string(times)+`", which "backend/simulator" does not give`) {
			t.Errorf("%s: %v", path, err)
		}
	}
	idle := fakeCatalog().WithScaler(fake[core.ClusterScaler]("busy", core.None{}))
	c, err := Parse(idle, "test.yaml", []byte(minimal), Options{Sets: []string{"pipeline.elasticity.cluster.type=busy"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Notes) != 1 || !strings.Contains(c.Notes.Err().Error(), `what "scaler/busy" decides is not carried out: "backend/simulator" neither adds nor removes nodes`) {
		t.Errorf("notes %v", c.Notes)
	}
	if c := mustParse(t, minimal, Options{}); len(c.Notes) > 0 {
		t.Errorf("notes %v", c.Notes)
	}
}

// Without estimates a backend tells everything but the work.
func TestWithoutEstimatesNobodyTellsTheWork(t *testing.T) {
	times := core.CapabilityStepTimes
	catalog := fakeCatalog().WithAllocation(fake[core.Allocator]("needy", core.None{}, times)).WithBackend(
		core.NewFactory(core.Info{Type: "knowing", Summary: "knows all"}, core.None{}, func(core.None, core.Settings) (backend.Opener, error) {
			return fakeOpener{capabilities: []core.Capability{core.CapabilityRemainingWork, times}}, nil
		}))
	for sets, want := range map[string]string{
		"estimate.source=declared pipeline.allocation.type=optimus": "",
		"estimate.source=none pipeline.allocation.type=needy":       "",
		"estimate.source=none pipeline.allocation.type=optimus":     `"allocation/optimus" needs capability "` + string(core.CapabilityRemainingWork) + `", which "backend/knowing with estimate.source none" does not give`,
	} {
		_, err := Parse(catalog, "test.yaml", []byte(minimal), Options{Sets: append(strings.Fields(sets), "backend.type=knowing")})
		if want == "" && err != nil || want != "" && (err == nil || strings.Count(err.Error(), "needs capability") != 1 || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", sets, err, want)
		}
	}
}

// seeded is a policy that tells itself whether the seed makes a difference to it.
type seeded struct {
	core.Placer
	uses bool
}

func (s seeded) UsesSeed() bool { return s.uses }

// A policy that draws nothing while it is made may tell that it uses the seed.
func TestSeedUsersTellThemselves(t *testing.T) {
	for uses, want := range map[bool][]string{true: {"placement/seeded"}, false: nil} {
		made := core.NewFactory(core.Info{Type: "seeded", Summary: "uses the seed"}, core.None{},
			func(core.None, core.Settings) (core.Placer, error) { return seeded{uses: uses}, nil })
		c, err := Parse(fakeCatalog().WithPlacement(made), "test.yaml", []byte(minimal), Options{Sets: []string{"pipeline.placement.type=seeded"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Placement.New(1, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.SeedUsers()); diff != "" {
			t.Errorf("users (-want +got):\n%s", diff)
		}
		if _, err := (Selected[core.Placer]{Factory: made, Config: &core.None{}}).New(1, nil); err != nil { // where nobody asks
			t.Error(err)
		}
	}
}

// The seed makes a difference to what drew from it, and may make one to what lives elsewhere.
func TestSeedUsers(t *testing.T) {
	drawing := func(s core.Settings) {
		if s.Rand != nil {
			s.Rand.Uint64()
		}
	}
	c := mustParse(t, minimal, Options{})
	if got := c.SeedUsers(); len(got) > 0 {
		t.Errorf("before anything is made: %v", got)
	}
	catalog := fakeCatalog().WithPlacement(core.NewFactory(core.Info{Type: "random", Summary: "draws"}, core.None{},
		func(_ core.None, s core.Settings) (core.Placer, error) { drawing(s); return nil, nil }))
	c, err := Parse(catalog, "test.yaml", []byte(minimal), Options{Sets: []string{"pipeline.placement.type=random"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Allocation.New(1, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Placement.New(1, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"placement/random"}, c.SeedUsers()); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
	c = mustParse(t, minimal, Options{Sets: []string{"pipeline.placement.type=first_fit", "pipeline.placement.isolate=true"}, Outside: fakeOutside})
	if diff := cmp.Diff([]string{"placement/first_fit"}, c.SeedUsers()); diff != "" {
		t.Errorf("users in another process (-want +got):\n%s", diff)
	}
}

// The terms of a policy in another process hold what the config says of it, and a fallback that can be made.
func TestTermsOfAPolicyElsewhere(t *testing.T) {
	var asked []Outside
	o := Options{
		Sets: []string{
			"plugins.dirs=[here, there]", "pipeline.allocation.type=backfill",
			"pipeline.allocation.plugin={on_failure: fallback, call_timeout: 3s, fallback: {type: las}}",
		},
		Outside: func(terms Outside) (Catalog, error) {
			asked = append(asked, terms)
			return fakeOutside(terms)
		},
	}
	c := mustParse(t, minimal, o)
	if len(asked) != 1 || asked[0].Isolated || asked[0].Options.CallTimeout != 3*time.Second || asked[0].Instead == nil {
		t.Fatalf("asked for %+v", asked)
	}
	if diff := cmp.Diff([]string{"here", "there"}, asked[0].Dirs); diff != "" {
		t.Errorf("folders (-want +got):\n%s", diff)
	}
	if _, err := asked[0].Instead(core.Settings{}); err != nil {
		t.Error(err)
	}
	if c.Allocation.Remote == nil || c.Allocation.Remote.Isolated || c.Allocation.Remote.Fallback.ID != "allocation/las" {
		t.Errorf("kept %+v", c.Allocation.Remote)
	}
	o.Outside = func(Outside) (Catalog, error) { return Catalog{}, errors.New("no such folder") }
	_, err := Parse(fakeCatalog(), "test.yaml", []byte(minimal), o)
	if err == nil || strings.Count(err.Error(), "plugins: no such folder") != 1 {
		t.Errorf("without plugins: %v", err)
	}
}
