package configs

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// A config that is not there is looked for among the embedded ones.
func TestTheNearestEmbeddedConfigIsTold(t *testing.T) {
	for name, want := range map[string]string{
		"default":           `default: cannot read the config: no such file or directory; did you mean the embedded "default.yaml"?`,
		"defalt.yaml":       `defalt.yaml: cannot read the config: no such file or directory; did you mean the embedded "default.yaml"?`,
		"nothing-like.this": "nothing-like.this: cannot read the config: no such file or directory",
		".":                 ".: cannot read the config: is a directory",
	} {
		if _, err := Load(fakeCatalog(), Options{Files: []string{name}}); err == nil || err.Error() != want {
			t.Errorf("%s: error\n%v\nwant\n%s", name, err, want)
		}
	}
}

// real is a backend with machines of its own.
type real struct{ fakeOpener }

func (real) For(backend.Run) {}

func (real) Dir() string { return "" }

// Real machines are neither more nor fewer for the sake of the load.
func TestRealMachinesAreWhatTheyAre(t *testing.T) {
	catalog := fakeCatalog().WithBackend(core.NewFactory(core.Info{Type: "real", Summary: "machines"}, core.None{},
		func(core.None, core.Settings) (backend.Opener, error) { return real{}, nil }))
	for load, want := range map[string]string{
		"{by: nodes, factor: 2}":       `sample.load.by: "backend/real" has the machines it has; use thinning or compression`,
		"{by: nodes, factor: 1}":       "",
		"{by: thinning, factor: 2}":    "",
		"{by: compression, factor: 2}": "",
	} {
		for kind, want := range map[string]string{"real": want, "simulator": ""} {
			_, err := Parse(catalog, "test.yaml", []byte(minimal), Options{Sets: []string{"backend.type=" + kind, "sample.load=" + load, "cluster.nodes[0].count=2"}})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: error %v, want %q", kind, load, err, want)
			}
		}
	}
}

// The variables that policies elsewhere are to see are listed, and those in this process need none.
func TestVariablesOfPoliciesElsewhere(t *testing.T) {
	seeing := func(names ...string) *Remote[core.Admitter] {
		return &Remote[core.Admitter]{Options: PluginOptions{Environment: names}}
	}
	c := Config{Admission: []Selected[core.Admitter]{{Remote: seeing("A", "B")}, {}, {Remote: seeing("C")}}}
	c.Allocation.Remote = &Remote[core.Allocator]{Options: PluginOptions{Environment: []string{"D"}}}
	c.Scaler.Remote = &Remote[core.ClusterScaler]{Options: PluginOptions{Environment: []string{"E"}}}
	if diff := cmp.Diff([]string{"A", "B", "C", "D", "E"}, c.PluginVariables()); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// What flags set is stronger than --set, and its problems are those of the flag.
func TestFlagsOfAProgram(t *testing.T) {
	c := mustParse(t, minimal, Options{Sets: []string{"name=set"}, Flags: []Flag{{Name: "--name", Set: "name=flag"}}})
	if c.Name != "flag" {
		t.Errorf("the name is %q, want that of the flag", c.Name)
	}
	_, err := Parse(fakeCatalog(), "test.yaml", []byte(minimal), Options{Flags: []Flag{{Name: "--mine", Set: "seed=many"}}})
	if err == nil || !strings.Contains(err.Error(), "--mine: seed") {
		t.Errorf("error %v, want one of the flag", err)
	}
}

func TestWhereAListCanBeSet(t *testing.T) {
	for items, want := range map[int]string{
		0: "the list is empty: 0 appends", 1: "the list has 1 item: 0 is it, 1 appends", 3: "the list has 3 items: 0 to 2 are they, 3 appends",
	} {
		if got := holds(items); got != want {
			t.Errorf("%d items: %q, want %q", items, got, want)
		}
	}
	settings := map[string]any{"a": []any{1, 2}}
	for path, want := range map[string]any{"a[1]": 2, "a[2]": nil, "b[0]": nil} {
		if got := lookup(settings, path); got != want {
			t.Errorf("at %s lies %v, want %v", path, got, want)
		}
	}
}

// What has no default is left out, with all that holds nothing else.
func TestNonZero(t *testing.T) {
	got := nonZero(map[string]any{
		"zero": 0, "one": 1, "empty": "", "list": []any{}, "full": []any{0}, "none": map[string]any{"a": 0}, "some": map[string]any{"a": 0, "b": map[string]any{}, "c": "x"},
	})
	if diff := cmp.Diff(map[string]any{"one": 1, "full": []any{0}, "some": map[string]any{"c": "x"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An error of a setting is told where the setting was written; any other one stays as it is.
func TestLocate(t *testing.T) {
	c := mustParse(t, minimal, Options{Sets: []string{"pipeline.allocation.config.queue=backfill"}})
	at := core.Position{File: "elsewhere", Line: 3}
	given := core.Diagnostics{
		{Path: "pipeline.allocation.config.queue", Summary: "a"},
		{Path: "seed", Summary: "b", Position: at},
		{Summary: "c"},
		{Path: "pipeline.allocation.type", Summary: "d"},
	}
	err := c.Locate(given)
	found, ok := err.(core.Diagnostics) //nolint:errorlint // as it is
	if !ok || len(found) != 4 {
		t.Fatalf("located %v", err)
	}
	if found[0].Position.File != "--set" || found[1].Position != at || found[2].Position != (core.Position{}) || found[3].Position.File != "test.yaml" || found[3].Position.Line == 0 {
		t.Errorf("located %v", err)
	}
	other := errors.New("other")
	if got := c.Locate(other); !errors.Is(got, other) {
		t.Errorf("another error becomes %v", got)
	}
	bare := core.Diagnostics{{Path: "seed", Summary: "a"}}
	if diff := cmp.Diff(error(bare), (&Config{}).Locate(bare)); diff != "" {
		t.Errorf("of a config without a tree (-want +got):\n%s", diff)
	}
}

// What a run takes of its workload, and tells of it, is in its config only where it was changed.
func TestResolvedTellsWhatWasChanged(t *testing.T) {
	for sets, want := range map[string]bool{"": false, "sample.load.factor=0.5": true, "sample.window.jobs=5": true} {
		if got := resolvedHas(t, sets, "sample:"); got != want {
			t.Errorf("with %q a sample is told: %v, want %v", sets, got, want)
		}
	}
	for sets, want := range map[string]bool{"": false, "estimate.source=none": true} {
		if got := resolvedHas(t, sets, "estimate:"); got != want {
			t.Errorf("with %q an estimate is told: %v, want %v", sets, got, want)
		}
	}
	if !resolvedHas(t, "pipeline.admission=[]", "admission: []") {
		t.Error("no admission is told otherwise than as []")
	}
}

func resolvedHas(t *testing.T, set, want string) bool {
	t.Helper()
	text, err := mustParse(t, minimal, Options{Sets: strings.Fields(set)}).Resolved()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), want)
}

// Variables of the environment whose values cannot be are told by their names, each of them.
func TestVariablesThatCannotBe(t *testing.T) {
	t.Setenv("QUARTET_SEED", "[")
	t.Setenv("QUARTET_ROUND_INTERVAL", "soon")
	t.Setenv("QUARTET_NAME", "123")
	_, err := Parse(fakeCatalog(), "test.yaml", []byte(minimal), Options{Env: os.LookupEnv})
	for _, want := range []string{"env QUARTET_SEED: ", "env QUARTET_ROUND_INTERVAL: round.interval: "} {
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("error\n%v\nwant one line of %q", err, want)
		}
	}
}

// A file is one document, and what follows it is told.
func TestWhatFollowsAConfig(t *testing.T) {
	for after, want := range map[string]string{"": "", "---\n": "a config is a single YAML document", "---\nseed: 1\n": "a config is a single YAML document", "---\nseed: [\n": "test.yaml:"} {
		_, err := Parse(fakeCatalog(), "test.yaml", []byte(minimal+after), Options{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("followed by %q: error %v, want %q", after, err, want)
		}
	}
	if _, err := Parse(fakeCatalog(), "test.yaml", []byte("seed: !!int x\n"+minimal), Options{}); err == nil || !strings.Contains(err.Error(), `"x" is not a value of !!int`) {
		t.Errorf("a number in words: error %v", err)
	}
}

// A mapping over something else replaces it, and so does something else over a mapping.
func TestNodesThatReplace(t *testing.T) {
	mapping := func(key string) *node {
		n := newMapping(core.Position{})
		n.put(key, &node{scalar: key})
		return n
	}
	scalar := &node{scalar: 1}
	list := &node{kind: listKind, list: []*node{scalar}}
	for _, other := range []*node{scalar, list} {
		if got := mapping("a").merge(other); got != other {
			t.Errorf("merged into %+v, want %+v", got, other)
		}
		over := mapping("b")
		if got := other.merge(over); got != over || len(got.keys) != 1 {
			t.Errorf("merged into %+v, want %+v", got, over)
		}
	}
	if got := mapping("a").merge(mapping("b")); len(got.keys) != 2 {
		t.Errorf("merged into %+v, want both keys", got)
	}
}

// Of every stage a policy elsewhere may use the seed; of what is told of the work, only its error does.
func TestSeedUsersOfEveryStage(t *testing.T) {
	c := mustParse(t, minimal, Options{})
	c.Admission = []Selected[core.Admitter]{{ID: "a", Remote: &Remote[core.Admitter]{}}}
	c.Allocation.Remote, c.Placement.Remote = &Remote[core.Allocator]{}, &Remote[core.Placer]{}
	c.Elasticity.Remote, c.Scaler.Remote = &Remote[core.Elasticity]{}, &Remote[core.ClusterScaler]{}
	want := []string{"a", c.Allocation.ID, c.Placement.ID, c.Elasticity.ID, c.Scaler.ID}
	if diff := cmp.Diff(want, c.SeedUsers()); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
	if got := mustParse(t, minimal, Options{Sets: []string{"estimate.source=limit"}}).SeedUsers(); len(got) > 0 {
		t.Errorf("limits that are told make %v users of the seed", got)
	}
	for set, want := range map[string]bool{"name=a": false, "seed=7": true} {
		if got := mustParse(t, minimal, Options{Sets: []string{set}}).SeedGiven(); got != want {
			t.Errorf("with %s a seed is given: %v, want %v", set, got, want)
		}
	}
}
