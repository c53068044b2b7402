package workload

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quartet-sched/quartet/core"
)

// Bounds of what a cell may hold: far above any real trace, far below where sums of float64 or int lose their meaning.
const (
	maxSeconds = 1e11
	maxCount   = 1 << 20
	maxNumber  = 1e300
	aboveZero  = math.SmallestNonzeroFloat64
)

// columns names the columns of a format. A column is then known by its index in required followed by optional.
type columns struct {
	required []string
	optional []string
	headless bool // the file has no header: its columns are exactly the required ones, in order
	tabs     bool // tabs divide the columns, and quotes mean nothing
}

func (c *columns) all() []string { return slices.Concat(c.required, c.optional) }

// table reads a strict CSV file row by row. A cell that is not what its reader asks for becomes a diagnostic, the row
// is then not ok, and reading goes on, so that all problems are reported together. Blank lines hold no row.
type table struct {
	file     string
	csv      *csv.Reader
	names    []string
	fields   []int // index in record by column, -1 where the file lacks an optional column
	width    int
	record   []string
	rows     int
	rejected uint64 // bit i for column i of this row
	labels   map[string]string
	problems core.Diagnostics
}

// openTable reads the header. Problems with it leave a table without rows.
func openTable(in *input, cols columns) *table {
	content := bufio.NewReader(in)
	if start, _ := content.Peek(3); string(start) == "\ufeff" {
		_, _ = content.Discard(len(start)) // just peeked at
	}
	t := &table{file: in.Path, csv: csv.NewReader(content), names: cols.all(), labels: map[string]string{}}
	t.csv.FieldsPerRecord = -1 // told with a position by next
	t.csv.ReuseRecord = true
	if cols.tabs {
		t.csv.Comma, t.csv.LazyQuotes = '\t', true
	}
	if start, _ := content.Peek(2); string(start) == "\xff\xfe" || string(start) == "\xfe\xff" {
		t.report(core.Position{File: t.file}, "is UTF-16 text", "save it as UTF-8")
		return t
	}
	if cols.headless {
		t.width = len(t.names)
		for i := range t.names {
			t.fields = append(t.fields, i)
		}
		return t
	}
	t.readHeader(len(cols.required))
	return t
}

func (t *table) readHeader(required int) {
	header, err := t.csv.Read()
	switch {
	case err == io.EOF:
		t.report(core.Position{File: t.file}, "the file is empty", "expected the header "+strings.Join(t.names[:required], ","))
		return
	case err != nil:
		t.reportSyntax(err)
		return
	}
	if divider := t.otherDivider(header); divider != "" {
		t.report(core.Position{File: t.file, Line: 1}, "columns are divided by "+strconv.Quote(divider), "divide them by commas")
		return
	}
	fields := make([]int, len(t.names))
	for i := range fields {
		fields[i] = -1
	}
	for i, name := range header {
		column := slices.Index(t.names, name)
		switch {
		case column < 0:
			t.report(t.position(i), "unknown column "+quote(name), core.SuggestHint(name, "columns", t.names))
		case fields[column] >= 0:
			t.report(t.position(i), fmt.Sprintf("column %q appears twice", name), "")
		default:
			fields[column] = i
		}
	}
	for column, name := range t.names[:required] {
		if fields[column] < 0 {
			t.report(core.Position{File: t.file, Line: 1}, fmt.Sprintf("missing column %q", name), "")
		}
	}
	if len(t.problems) == 0 {
		t.fields, t.width = fields, len(header)
	}
}

// otherDivider is what divides the columns of a header in the place of commas; empty when nothing else does.
func (t *table) otherDivider(header []string) string {
	if len(header) != 1 {
		return ""
	}
	for _, divider := range []string{";", "\t", "|"} {
		if names := strings.Split(header[0], divider); len(names) > 1 && slices.Contains(t.names, names[0]) {
			return divider
		}
	}
	return ""
}

// next moves to the next row of the right width; false at the end.
func (t *table) next() bool {
	for t.width > 0 {
		record, err := t.csv.Read()
		switch {
		case err == io.EOF:
			return false
		case err != nil:
			t.reportSyntax(err)
			if _, ok := errors.AsType[*csv.ParseError](err); !ok {
				return false
			}
			t.rows++
		case len(record) != t.width:
			t.rows++
			t.report(t.position(0), fmt.Sprintf("%d fields", len(record)), fmt.Sprintf("expected %d", t.width))
		default:
			t.rows++
			t.record, t.rejected = record, 0
			return true
		}
	}
	return false
}

// ok reports whether the cells of this row read so far were as expected.
func (t *table) ok() bool { return t.rejected == 0 }

// accepted reports whether a cell of this row was as expected, or not read yet.
func (t *table) accepted(column int) bool { return t.rejected&(1<<column) == 0 }

// finish reports a file without rows, and returns every problem found.
func (t *table) finish() core.Diagnostics {
	if t.rows == 0 && len(t.problems) == 0 {
		t.report(core.Position{File: t.file}, "no rows", "expected at least one")
	}
	return t.problems
}

func (t *table) position(field int) core.Position {
	line, column := t.csv.FieldPos(field)
	return core.Position{File: t.file, Line: line, Column: column}
}

// declaration is where this row declares its job: the cell of the first required column, its name if it has one.
func (t *table) declaration() core.Position { return t.position(t.fields[0]) }

func (t *table) report(p core.Position, summary, hint string) {
	t.problems = append(t.problems, core.Diagnostic{Position: p, Summary: summary, Hint: hint})
}

func (t *table) reportSyntax(err error) {
	p := core.Position{File: t.file}
	if syntax, ok := errors.AsType[*csv.ParseError](err); ok {
		p.Line, p.Column, err = syntax.Line, syntax.Column, syntax.Err
	}
	t.report(p, err.Error(), "")
}

// reject reports that a cell of this row is not what was expected.
func (t *table) reject(column int, expected string) {
	t.rejected |= 1 << column
	t.report(t.position(t.fields[column]), fmt.Sprintf("%s is %s", t.names[column], quote(t.cell(column))), "expected "+expected)
}

// has reports whether an optional column is there and not empty in this row.
func (t *table) has(column int) bool { return t.fields[column] >= 0 && t.cell(column) != "" }

func (t *table) cell(column int) string { return t.record[t.fields[column]] }

// text is a cell of printable characters, not empty.
func (t *table) text(column int) string {
	s := t.cell(column)
	if s == "" || !printable(s) {
		t.reject(column, "a text of printable characters")
	}
	return s
}

// label is a text that many rows share; it is kept once.
func (t *table) label(column int) string {
	if known, found := t.labels[t.cell(column)]; found {
		return known
	}
	s := strings.Clone(t.text(column))
	if t.accepted(column) {
		t.labels[s] = s
	}
	return s
}

// number is a cell between two bounds, both included; what says what kind of number it is.
func (t *table) number(column int, low, high float64, what string) float64 {
	x, ok := parseNumber(t.cell(column))
	if !ok || x < low || x > high {
		t.reject(column, inRange(what, low, high))
		return low
	}
	return x
}

// whole is a number without a fraction, which may be written as 4.0, from 0 to a bound.
func (t *table) whole(column int, high float64, what string) float64 {
	x := t.number(column, 0, high, what)
	if x != math.Trunc(x) {
		t.reject(column, inRange(what, 0, high))
	}
	return x
}

// inRange words a range of numbers.
func inRange(what string, low, high float64) string {
	if low == aboveZero {
		return fmt.Sprintf("%s above 0, at most %s", what, formatBound(high))
	}
	return fmt.Sprintf("%s from %s to %s", what, formatBound(low), formatBound(high))
}

// formatBound writes 1e11 where all the digits would be hard to read.
func formatBound(x float64) string {
	if x == 0 || 1 <= math.Abs(x) && math.Abs(x) < 1e9 {
		return formatNumber(x)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', -1, 64), "e")
	sign := strings.TrimSuffix(exponent[:1], "+")
	return mantissa + "e" + sign + strings.TrimLeft(exponent[1:], "0")
}

// moment is a time in seconds, 0 or later.
func (t *table) moment(column int) float64 {
	return t.number(column, 0, maxSeconds, "a number of seconds")
}

// span is a length of time in seconds, above 0.
func (t *table) span(column int) float64 {
	return t.number(column, aboveZero, maxSeconds, "a number of seconds")
}

// count is a whole number, 1 or more.
func (t *table) count(column int) int {
	n, err := strconv.Atoi(t.cell(column))
	if err != nil || n < 1 || n > maxCount {
		t.reject(column, fmt.Sprintf("a whole number from 1 to %d", maxCount))
		return 1
	}
	return n
}

// parseNumber accepts finite decimal numbers only.
func parseNumber(s string) (float64, bool) {
	for i := range len(s) {
		switch s[i] {
		case 'x', 'X', '_':
			return 0, false
		}
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// quote shows a cell in a message, shortened when it is long.
func quote(s string) string {
	const most = 40
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:most]) + "…"
}
