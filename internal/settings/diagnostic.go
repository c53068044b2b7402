package settings

import (
	"fmt"
	"slices"
	"strings"
)

// Position is a place in an input file; Line and Column count from 1, 0 means unknown.
type Position struct {
	File         string // path, or whatever else the input is known by; may be empty
	Line, Column int    // from 1; 0 means unknown
}

// String words the position as file:line:column, without the parts that are unknown.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
}

// Diagnostic is one problem in an input, described so that the user can fix it without looking elsewhere.
type Diagnostic struct {
	Position Position // place in the input; the zero value means unknown
	Path     string   // place in a config, such as "pipeline.allocation[0].config"; empty for other inputs
	Summary  string   // what is wrong, lower case, no full stop
	Hint     string   // what to do: valid values, the nearest name; may be empty
}

// String words the problem in one line: its position, its path, what is wrong, and what to do.
func (d Diagnostic) String() string {
	var parts []string
	if pos := d.Position.String(); pos != "" {
		parts = append(parts, pos)
	}
	if d.Path != "" {
		parts = append(parts, d.Path)
	}
	text := strings.Join(append(parts, d.Summary), ": ")
	if d.Hint != "" {
		text += "; " + d.Hint
	}
	return text
}

// Diagnostics is every problem found in an input. It is an error when it is not empty: return it through Err.
type Diagnostics []Diagnostic

// maxShown bounds how many problems one message lists.
const maxShown = 20

// Error words the problems, a line each, of at most 20.
func (ds Diagnostics) Error() string {
	var b strings.Builder
	for i, d := range ds {
		if i == maxShown {
			fmt.Fprintf(&b, "\nand %d more problems", len(ds)-maxShown)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(d.String())
	}
	return b.String()
}

// Err is nil when there is no problem, and ds in order of position otherwise.
func (ds Diagnostics) Err() error {
	if len(ds) == 0 {
		return nil
	}
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		if c := strings.Compare(a.Position.File, b.Position.File); c != 0 {
			return c
		}
		if a.Position.Line != b.Position.Line {
			return a.Position.Line - b.Position.Line
		}
		return a.Position.Column - b.Position.Column
	})
	return ds
}
