package timeline

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// table reads a file of a run row by row, and gathers what is wrong with it. Columns that it was not asked for are left alone:
// a later version may add some.
type table struct {
	file     string
	rows     *csv.Reader
	columns  []string
	at       []int // in a row, by column
	row      []string
	problems core.Diagnostics
}

// mostProblems is how many problems of a file are gathered: a file of another kind has one in each row.
const mostProblems = 100

func openTable(r io.Reader, file, header string) *table {
	t := &table{file: file, rows: csv.NewReader(r), columns: strings.Split(strings.TrimSpace(header), ",")}
	t.rows.ReuseRecord = true
	names, err := t.rows.Read()
	switch {
	case errors.Is(err, io.EOF):
		t.problems = core.Diagnostics{{Position: core.Position{File: file}, Summary: "is empty", Hint: "want the columns " + strings.TrimSpace(header)}}
	case err != nil:
		t.refuse(err)
	}
	for _, c := range t.columns {
		i := slices.Index(names, c)
		if t.at = append(t.at, i); i < 0 && len(names) > 0 {
			t.problems = append(t.problems, core.Diagnostic{Position: core.Position{File: file, Line: 1}, Summary: fmt.Sprintf("lacks the column %q", c)})
		}
	}
	return t
}

// refuse notes that the file is no CSV.
func (t *table) refuse(err error) {
	line := 0
	if syntax := (*csv.ParseError)(nil); errors.As(err, &syntax) {
		line, err = syntax.Line, syntax.Err
	}
	t.problems = append(t.problems, core.Diagnostic{Position: core.Position{File: t.file, Line: line}, Summary: err.Error()})
}

// next goes to the next row; false at the end, or when it makes no sense to go on.
func (t *table) next() bool {
	if slices.Contains(t.at, -1) || len(t.problems) >= mostProblems {
		return false
	}
	var err error
	t.row, err = t.rows.Read()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			t.refuse(err)
		}
		return false
	}
	return true
}

func (t *table) text(column int) string { return t.row[t.at[column]] }

// reject notes what is wrong with a cell.
func (t *table) reject(column int, want string) {
	line, at := t.rows.FieldPos(t.at[column])
	t.problems = append(t.problems, core.Diagnostic{
		Position: core.Position{File: t.file, Line: line, Column: at},
		Summary:  fmt.Sprintf("column %s is %q, want %s", t.columns[column], t.text(column), want),
	})
}

// number is a finite number.
func (t *table) number(column int) float64 {
	x, err := strconv.ParseFloat(t.text(column), 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		t.reject(column, "a number")
	}
	return x
}

// optional is a number, or NaN for an empty cell.
func (t *table) optional(column int) metrics.Number {
	if t.text(column) == "" {
		return metrics.Number(math.NaN())
	}
	return metrics.Number(t.number(column))
}

// count is a whole number from least to most.
func (t *table) count(column, least, most int) int {
	n, err := strconv.Atoi(t.text(column))
	if err != nil || n < least || n > most {
		t.reject(column, fmt.Sprintf("a whole number of at least %d", least))
	}
	return n
}

// optionalCount is a whole number, 0 for an empty cell.
func (t *table) optionalCount(column int) int {
	if t.text(column) == "" {
		return 0
	}
	return t.count(column, 0, math.MaxInt32)
}

// name is one of several names, told by its index.
func (t *table) name(column int, names []string) int {
	i := slices.Index(names, t.text(column))
	if i < 0 {
		t.reject(column, "one of "+strings.Join(names, ", "))
	}
	return i
}
