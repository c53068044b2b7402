package configs

import (
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
