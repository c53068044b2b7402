package search

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Problem is what a search is for.
type Problem struct {
	Space Space // hyper-parameters and their ranges
	Goal  Goal  // metric and its direction
}

// Method makes a search of its kind for a problem.
type Method func(Problem) (Search, error)

// suiting is implemented by the Config of a search that is not for every problem. What is wrong lies
// in its own config, which is at a path, or in the space.
type suiting interface {
	suits(path, spacePath string, p Problem) core.Diagnostics
}

// Factories are the searches that there are.
func Factories() []core.Factory[Method] {
	return []core.Factory[Method]{NewRandom(), NewGrid(), NewList(), NewTPE(), NewExternal()}
}

// Setting names a search in a config.
type Setting struct {
	Type   string         `config:"type" doc:"type of the search" required:"true"` // type of the search
	Config map[string]any `config:"config" doc:"its settings"`                     // settings of the search
}

// Chosen is a search that can be made.
type Chosen struct {
	factory core.Factory[Method]
	config  any
	problem Problem
}

// Decode finds and checks the search that a config names at a path, for a problem whose space the config describes at another. All problems are reported.
func (s Setting) Decode(path, spacePath string, p Problem) (*Chosen, core.Diagnostics) {
	factories := Factories()
	names := make([]string, len(factories))
	for i, f := range factories {
		if names[i] = f.Type; f.Type != s.Type {
			continue
		}
		config, found := f.Decode(s.Config)
		for j := range found {
			found[j].Path = core.JoinPath(core.JoinPath(path, "config"), found[j].Path)
		}
		if c, ok := config.(suiting); ok && len(found) == 0 {
			found = append(found, c.suits(core.JoinPath(path, "config"), spacePath, p)...)
		}
		if len(found) > 0 {
			return nil, found
		}
		return &Chosen{f, config, p}, nil
	}
	return nil, core.Diagnostics{{
		Path: core.JoinPath(path, "type"), Summary: fmt.Sprintf("unknown search %q", s.Type), Hint: core.SuggestHint(s.Type, "searches", names),
	}}
}

// New makes the search with its stream of the seed of a run. What it has to say goes to the log.
func (c *Chosen) New(seed uint64, log *slog.Logger) (Search, error) {
	id := "search/" + c.factory.Type
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	method, err := c.factory.New(c.config, core.Settings{ID: id, Seed: seed, Rand: core.NewRand(seed, id), Log: log.With("search", c.factory.Type)})
	if err != nil {
		return nil, err
	}
	return method(c.problem)
}

// Type is the name of the search.
func (c *Chosen) Type() string { return c.factory.Type }

// Endless reports whether it proposes trials for ever. One that is a process of its own says when it ends.
func (c *Chosen) Endless() bool { return slices.Contains(endless, c.factory.Type) }

var endless = []string{"random", "tpe"}

// Identity is all that a search with these settings follows from but its seed, as JSON: two that differ in it propose different trials.
func (c *Chosen) Identity() ([]byte, error) {
	return plainJSON(struct {
		Type   string         `json:"type"`
		Config map[string]any `json:"config"`
		Space  Space          `json:"space"`
		Goal   string         `json:"goal"`
	}{c.factory.Type, core.Encode(c.config), c.problem.Space, c.problem.Goal.String()})
}

// needsSpace refuses a problem without dimensions.
func needsSpace(path string, p Problem) core.Diagnostics {
	if len(p.Space) > 0 {
		return nil
	}
	return core.Diagnostics{{Path: path, Summary: "has no hyper-parameters"}}
}
