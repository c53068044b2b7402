package configs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// Admitters of one type are told apart by their number, and an item of a list can be replaced as a whole.
func TestAdmittersAreNumbered(t *testing.T) {
	c := mustParse(t, strings.Replace(minimal, "pipeline:", "pipeline:\n  admission: [{type: quota}, {type: accept_all}, {type: quota}]", 1), Options{})
	ids := func(c *Config) (list []string) {
		for _, s := range c.Admission {
			list = append(list, s.ID)
		}
		return list
	}
	if diff := cmp.Diff([]string{"admission/quota", "admission/accept_all", "admission/quota#2"}, ids(c)); diff != "" {
		t.Errorf("admitters (-want +got):\n%s", diff)
	}
	c = mustParse(t, minimal, Options{Sets: []string{"pipeline.admission=[{type: accept_all}, {type: accept_all}]", "pipeline.admission[1]={type: quota}", "pipeline.admission[2]={type: quota}"}})
	if diff := cmp.Diff([]string{"admission/accept_all", "admission/quota", "admission/quota#2"}, ids(c)); diff != "" {
		t.Errorf("admitters after items were set (-want +got):\n%s", diff)
	}
}

// Each file that cannot be read is told, and nothing of what follows from its absence.
func TestEveryMissingFileIsTold(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	_, err := Load(fakeCatalog(), Options{Files: []string{a, b}})
	if want := a + ": cannot read the config: no such file or directory\n" + b + ": cannot read the config: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("loaded with\n%v\nwant\n%s", err, want)
	}
}

// A key that is removed goes, the others stay where they are.
func TestNodeRemoves(t *testing.T) {
	n := newMapping(core.Position{})
	for _, key := range []string{"a", "b", "c", "b"} {
		n.put(key, &node{scalar: key})
	}
	n.remove("b")
	n.remove("z")
	if diff := cmp.Diff([]string{"a", "c"}, n.keys); diff != "" || len(n.fields) != 2 || n.fields["b"] != nil {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestNodeFinds(t *testing.T) {
	leaf := &node{scalar: 1}
	list := &node{kind: listKind, list: []*node{leaf}}
	root := newMapping(core.Position{})
	root.put("l", list)
	cases := map[string]struct {
		path []step
		want *node
		ok   bool
	}{
		"nothing":           {nil, root, true},
		"key":               {[]step{{key: "l"}}, list, true},
		"item":              {[]step{{key: "l"}, {isIndex: true}}, leaf, true},
		"beyond":            {[]step{{key: "l"}, {index: 1, isIndex: true}}, list, false},
		"key of a list":     {[]step{{key: "l"}, {key: "x"}}, list, false},
		"index of a key":    {[]step{{isIndex: true}}, root, false},
		"below a leaf":      {[]step{{key: "l"}, {isIndex: true}, {key: "x"}}, leaf, false},
		"item below a leaf": {[]step{{key: "l"}, {isIndex: true}, {isIndex: true}}, leaf, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, ok := root.find(tc.path); got != tc.want || ok != tc.ok {
				t.Errorf("found %+v, %v", got, ok)
			}
		})
	}
}

// A stage for which there is no component has a schema without cases.
func TestSchemaOfNothing(t *testing.T) {
	if got := componentSchema[core.Placer](nil); got["allOf"] != nil {
		t.Errorf("cases %v of no component", got["allOf"])
	}
	if got := componentSchema(fakeCatalog().Placement); len(got["allOf"].([]any)) != 2 {
		t.Errorf("cases %v of two components", got["allOf"])
	}
}
