package search_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quartet-sched/quartet/core/search"
	"github.com/quartet-sched/quartet/core/search/searchtest"
)

// every scale, and few enough whole combinations for a grid.
func everyScale() search.Space {
	return search.Space{
		{Name: "lr", Scale: search.LogUniform, Low: 1e-5, High: 1, Points: 3},
		{Name: "momentum", Low: -1, High: 0.99, Points: 2},
		{Name: "layers", Scale: search.Int, Low: 1, High: 3},
		{Name: "batch", Scale: search.LogInt, Low: 1, High: 1024, Points: 2},
		{Name: "optimizer", Scale: search.Choice, Choices: []search.Value{search.Word("sgd"), search.Number(3), search.Word("")}},
		{Name: "epochs", Scale: search.Fixed, Choices: []search.Value{search.Number(90)}},
	}
}

func made(t testing.TB, kind string, config map[string]any, space search.Space, seed uint64) search.Search {
	t.Helper()
	s, err := chosen(t, kind, config, space).New(seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func chosen(t testing.TB, kind string, config map[string]any, space search.Space) *search.Chosen {
	t.Helper()
	c, problems := search.Setting{Type: kind, Config: config}.Decode("search", "space", search.Problem{Space: space})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// external is the config of a search of this package in another process.
func external(kind string) map[string]any {
	return map[string]any{"command": []any{os.Args[0], "external", kind}}
}

const listed = "lr,momentum,layers,batch,optimizer,epochs\n0.1,0.5,2,64,sgd,90\n1e-3,0,1,1,3,90\n1e-3,0,1,1,sgd,90\n1,-1,3,1024,3,90\n0.5,0,1,7,sgd,90\n"

func TestConformance(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trials.csv")
	if err := os.WriteFile(file, []byte(listed), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		kind   string
		config map[string]any
		ends   int
		worlds int
	}{
		"random":          {kind: "random"},
		"grid":            {kind: "grid", ends: 3 * 2 * 3 * 2 * 3},
		"list":            {kind: "list", config: map[string]any{"path": file}, ends: 5},
		"tpe":             {kind: "tpe"},
		"tpe at once":     {kind: "tpe", config: map[string]any{"random": 1, "candidates": 3}},
		"external random": {kind: "external", config: external("random"), worlds: 2},
		"external grid":   {kind: "external", config: external("grid"), ends: 108, worlds: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := searchtest.Case{Space: everyScale(), Ends: tc.ends, Worlds: tc.worlds}
			c.New = func(t testing.TB) search.Search { return made(t, tc.kind, tc.config, c.Space, 7) }
			searchtest.Run(t, c)
		})
		t.Run(name+" on record", func(t *testing.T) {
			c := searchtest.Case{Space: everyScale(), Ends: tc.ends, Worlds: 1}
			c.New = func(t testing.TB) search.Search {
				r, err := chosen(t, tc.kind, tc.config, c.Space).Record(filepath.Join(quickFolder(t), "record"), 7, nil)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			searchtest.Run(t, c)
		})
	}
}
