package tuning

import (
	"context"
	"encoding/csv"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/search"
)

// Search names a search in a config.
type Search struct {
	Type   string         `config:"type" required:"true" doc:"type of the search"`
	Config map[string]any `config:"config" doc:"its settings"`
}

// chosen is a search that can be made.
type chosen struct {
	path  string
	space []string
}

// choose finds the search of a config.
func (c *Config) choose() (*chosen, core.Diagnostics) {
	if c.Search.Type != "list" {
		return nil, core.Diagnostics{{Path: "search.type", Summary: fmt.Sprintf("unknown search %q", c.Search.Type), Hint: core.SuggestHint(c.Search.Type, "searches", []string{"list"})}}
	}
	path, _ := c.Search.Config["path"].(string)
	return &chosen{path: path}, nil
}

// names are those of the hyper-parameters of the space.
func (c *chosen) names() []string { return c.space }

// new makes the search for a run.
func (c *chosen) new(uint64, *slog.Logger) (search.Search, error) {
	f, err := os.Open(c.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	l := &list{}
	for i := 1; i < len(rows); i++ {
		t := search.Trial{ID: i - 1}
		for k, cell := range rows[i] {
			x, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				return nil, err
			}
			t.Params = append(t.Params, search.Param{Name: rows[0][k], Value: search.Number(x)})
		}
		l.left = append(l.left, t)
	}
	return l, nil
}

type list struct{ left []search.Trial }

func (l *list) Ask(_ context.Context, n int) ([]search.Trial, error) {
	n = min(n, len(l.left))
	asked := l.left[:n]
	l.left = l.left[n:]
	return asked, nil
}
func (*list) Tell(context.Context, []search.Result) ([]int, error) { return nil, nil }
func (*list) Close() error                                         { return nil }

func contains(names []string, name string) bool { return slices.Contains(names, name) }
