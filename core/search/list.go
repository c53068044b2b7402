package search

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// given tries trials that are told: in the config, or in a CSV file with one column for each hyper-parameter, whose first line names them. It ends with them.
type given struct {
	list  []Params
	input Input
	history
}

// Input is a file that a search was made from.
type Input struct {
	Path   string // path of the file, as it was given
	SHA256 string // of its bytes, hex
}

// Reader is implemented by a search that was made from files.
type Reader interface {
	// Inputs lists the files with their digests.
	Inputs() []Input
}

// ListConfig says where the trials are.
type ListConfig struct {
	Trials []map[string]any `config:"trials" doc:"the trials, each a value for every hyper-parameter"`                // trials, each a value for every hyper-parameter
	Path   string           `config:"path" doc:"CSV file with a header and a line for each trial, instead of trials"` // CSV file with a trial in each line, instead of Trials
}

// Validate reports trials that are nowhere or in two places, and values that are none.
func (c ListConfig) Validate() error {
	switch {
	case c.Path == "" && len(c.Trials) == 0:
		return errors.New("trials: required but missing, unless path names a file")
	case c.Path != "" && len(c.Trials) > 0:
		return errors.New("path: stands beside trials")
	}
	_, problems := c.listed("trials", nil)
	if len(problems) == 0 {
		return nil
	}
	return problems
}

// suits holds the trials of the config to the space; those of a file are when it is read.
func (c ListConfig) suits(path, _ string, p Problem) core.Diagnostics {
	_, ds := c.listed(core.JoinPath(path, "trials"), p.Space)
	return ds
}

// listed are the trials of the config, each in the order of the space or, without one, by name.
func (c ListConfig) listed(path string, space Space) (trials []Params, ds core.Diagnostics) {
	for i, item := range c.Trials {
		at := fmt.Sprintf("%s[%d]", path, i)
		var p Params
		good := true
		for _, name := range slices.Sorted(maps.Keys(item)) {
			v, err := valueOf(item[name])
			if err != nil {
				ds, good = append(ds, core.Diagnostic{Path: core.JoinPath(at, name), Summary: err.Error()}), false
			}
			p = append(p, Param{name, v})
		}
		if !good {
			continue
		}
		p, err := space.Arrange(p)
		switch {
		case err != nil:
			ds = append(ds, core.Diagnostic{Path: at, Summary: err.Error()})
		case len(p) == 0:
			ds = append(ds, core.Diagnostic{Path: at, Summary: "has no values"})
		default:
			trials = append(trials, p)
		}
	}
	return trials, ds
}

// NewList makes the factory of the search `list`.
func NewList() core.Factory[Method] {
	return core.NewFactory(core.Info{
		Type: "list", Summary: "tries the trials that it is given",
		Description: "In their order, from the config or from a CSV file whose first line names the hyper-parameters. Where the config has a space, they are held to it.",
	}, ListConfig{}, func(c ListConfig, _ core.Settings) (Method, error) {
		return func(p Problem) (Search, error) { return newGiven(c, p.Space) }, nil
	})
}

func newGiven(c ListConfig, space Space) (Search, error) {
	g := &given{}
	if c.Path == "" {
		trials, problems := c.listed("trials", space)
		g.list = trials
		return g, problems.Err()
	}
	text, err := inputfile.Read(c.Path, inputfile.Document)
	if err != nil {
		if pathError, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathError.Err
		}
		return nil, core.Diagnostics{{Position: core.Position{File: c.Path}, Summary: fmt.Sprintf("cannot be read: %v", err)}}
	}
	sum := sha256.Sum256(text)
	g.input = Input{c.Path, hex.EncodeToString(sum[:])}
	var problems core.Diagnostics
	g.list, problems = readTrials(c.Path, text, space)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return g, nil
}

// readTrials reads a CSV file with a header and tells every problem.
func readTrials(file string, text []byte, space Space) (trials []Params, ds core.Diagnostics) {
	refuse := func(line, column int, summary string) {
		ds = append(ds, core.Diagnostic{Position: core.Position{File: file, Line: line, Column: column}, Summary: summary})
	}
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	r.FieldsPerRecord = -1 // told with a position
	header, err := r.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			refuse(0, 0, "the file is empty; its first line names the hyper-parameters")
		} else {
			refuse(1, 0, err.Error())
		}
		return nil, ds
	}
	for i, name := range header {
		_, column := r.FieldPos(i)
		switch err := checkName(name); {
		case err != nil:
			refuse(1, column, err.Error())
		case slices.Contains(header[:i], name):
			refuse(1, column, fmt.Sprintf("column %q is there twice", name))
		}
	}
	if len(header) > maxParams {
		refuse(1, 0, fmt.Sprintf("%d columns, at most %d are allowed", len(header), maxParams))
	}
	if len(ds) > 0 {
		return nil, ds
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if syntax, ok := errors.AsType[*csv.ParseError](err); ok {
			refuse(syntax.Line, syntax.Column, syntax.Err.Error())
			break
		}
		line, _ := r.FieldPos(0)
		if len(row) != len(header) {
			refuse(line, 0, fmt.Sprintf("%d cells, the header has %d", len(row), len(header)))
			continue
		}
		p := make(Params, len(row))
		good := true
		for i, cell := range row {
			line, column := r.FieldPos(i)
			v, err := space.read(header[i], cell)
			if cell == "" {
				err = errors.New("is empty")
			}
			if err != nil {
				refuse(line, column, fmt.Sprintf("%s: %v", header[i], err))
				good = false
			}
			p[i] = Param{header[i], v}
		}
		if !good {
			continue
		}
		if p, err = space.Arrange(p); err != nil {
			refuse(line, 0, err.Error())
			continue
		}
		trials = append(trials, p)
	}
	if len(ds) == 0 && len(trials) == 0 {
		refuse(0, 0, "the file has no trials")
	}
	return trials, ds
}

// read takes the text of a value: of a dimension with choices that which is written so, of others a number where it looks like one.
func (s Space) read(name, text string) (Value, error) {
	i := slices.IndexFunc(s, func(d Dimension) bool { return d.Name == name })
	v, err := readValue(text)
	if i >= 0 && s[i].Listed() {
		for _, choice := range s[i].Choices {
			if choice.String() == text || err == nil && choice.Equal(v) {
				return choice, nil
			}
		}
	}
	if err == nil {
		err = v.check()
	}
	return v, err
}

// Ask returns the next trials.
func (g *given) Ask(_ context.Context, n int) ([]Trial, error) {
	if err := checkAsk(n); err != nil {
		return nil, err
	}
	var trials []Trial
	for len(trials) < n && len(g.trials) < len(g.list) {
		trials = append(trials, g.add(g.list[len(g.trials)]))
	}
	return trials, nil
}

// Tell learns nothing.
func (g *given) Tell(_ context.Context, results []Result) ([]int, error) { return nil, g.tell(results) }

// Inputs is the file, if there is one.
func (g *given) Inputs() []Input {
	if g.input.Path == "" {
		return nil
	}
	return []Input{g.input}
}

func (g *given) Close() error { return nil }
