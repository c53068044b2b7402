package render

import (
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	gap        = 2  // blanks between columns
	readable   = 24 // width to which a column of text is wrapped before another one is left out
	leastWidth = 8  // width to which it is wrapped when none can be left out
)

// widthOf is how many characters a line may have: those of a terminal, and 0, for any number, elsewhere. A writer may tell
// it itself.
func widthOf(w io.Writer) int {
	switch w := w.(type) {
	case interface{ Columns() int }:
		return w.Columns()
	case *os.File:
		if columns, _, err := term.GetSize(int(w.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// without is the table without some of its columns.
func (t Table) without(drop func(Column) bool) Table {
	if !slices.ContainsFunc(t.Columns, drop) {
		return t
	}
	var kept []int
	var rest Table
	for i, c := range t.Columns {
		if !drop(c) {
			kept = append(kept, i)
			rest.Columns = append(rest.Columns, c)
		}
	}
	for _, row := range t.Rows {
		cells := make([]any, 0, len(kept))
		for _, i := range kept {
			cells = append(cells, row[i])
		}
		rest.Rows = append(rest.Rows, cells)
	}
	return rest
}

// fit makes the table as narrow as a line: it wraps text as long as that can be read, then leaves out columns in the order of
// Drop, and then wraps further. Where that is not enough the cells of a row stand below each other.
func (t Table) fit(line int) Table {
	if line <= 0 {
		return t
	}
	for {
		widths, fits := t.widths(line, readable)
		if fits {
			return t.wrap(widths)
		}
		drop := 0
		for _, c := range t.Columns {
			drop = max(drop, c.Drop)
		}
		if drop == 0 {
			widths, fits = t.widths(line, leastWidth)
			if !fits && len(t.Columns) > 2 {
				t = t.stacked()
				widths, _ = t.widths(line, leastWidth)
			}
			return t.wrap(widths)
		}
		t = t.without(func(c Column) bool { return c.Drop == drop })
	}
}

// stacked is the table with a line for each cell that is not empty, beside the name of its column, and an empty one between rows.
func (t Table) stacked() Table {
	s := Table{Columns: []Column{{Name: "what"}, {Name: "value"}}}
	for i, row := range t.Rows {
		if i > 0 {
			s.Rows = append(s.Rows, []any{"", ""})
		}
		for k, cell := range row {
			if value := text(cell); value != "" {
				s.Rows = append(s.Rows, []any{t.Columns[k].Name, value})
			}
		}
	}
	return s
}

// widths are those of the columns, the widest ones of text made narrower until all fit a line or none is wider than least.
func (t Table) widths(line, least int) (widths []int, fit bool) {
	widths = make([]int, len(t.Columns))
	total := -gap
	for i, c := range t.Columns {
		widths[i] = utf8.RuneCountInString(c.Name)
		for _, row := range t.Rows {
			for part := range strings.SplitSeq(text(row[i]), "\n") {
				widths[i] = max(widths[i], utf8.RuneCountInString(part))
			}
		}
		total += widths[i] + gap
	}
	for total > line {
		widest := -1
		for i, c := range t.Columns {
			if c.Numeric || widths[i] <= max(least, utf8.RuneCountInString(c.Name)) {
				continue
			}
			if widest < 0 || widths[i] > widths[widest] {
				widest = i
			}
		}
		if widest < 0 {
			return widths, false
		}
		widths[widest]--
		total--
	}
	return widths, true
}

// wrap breaks the cells that are wider than their column.
func (t Table) wrap(widths []int) Table {
	rows := make([][]any, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = slices.Clone(row)
		for k, cell := range row {
			if whole := text(cell); utf8.RuneCountInString(whole) > widths[k] {
				rows[i][k] = wrapText(whole, widths[k])
			}
		}
	}
	t.Rows = rows
	return t
}

// wrapText breaks a text into lines of at most so many characters, at blanks where there are any.
func wrapText(whole string, width int) string {
	var lines []string
	for paragraph := range strings.SplitSeq(whole, "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			switch {
			case line == "":
				line = word
			case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
				line += " " + word
			default:
				lines = append(lines, line)
				line = word
			}
			for runes := []rune(line); len(runes) > width; runes = []rune(line) {
				lines = append(lines, string(runes[:width]))
				line = string(runes[width:])
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
