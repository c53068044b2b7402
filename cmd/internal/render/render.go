// Package render writes one table of rows as text for people, and as JSON, CSV or Markdown for everything else.
package render

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Format is how data is written. It is a flag value.
type Format string

// The formats. Wide is Text with every column, however wide the terminal is. YAML is JSON in another notation: whoever writes
// documents of its own writes JSON, and AsYAML translates it.
const (
	Text     Format = "table"
	Wide     Format = "wide"
	JSON     Format = "json"
	YAML     Format = "yaml"
	CSV      Format = "csv"
	Markdown Format = "markdown"
)

// Formats lists the formats in the order of the help.
var Formats = []string{string(Text), string(Wide), string(JSON), string(YAML), string(CSV), string(Markdown)}

// String returns the format as the user writes it, such as "json".
func (f *Format) String() string { return string(*f) }

// Type names the flag's value in the help.
func (f *Format) Type() string { return "format" }

// Set takes a format by name.
func (f *Format) Set(name string) error {
	if slices.Contains(Formats, name) {
		*f = Format(name)
		return nil
	}
	return fmt.Errorf("unknown format %q; valid values: %s", name, strings.Join(Formats, ", "))
}

// Column is the name of a column, which is also the key of its values in JSON.
type Column struct {
	Name    string // heading of the column
	Numeric bool   // values are right-aligned
	Wide    bool   // only in the formats for programs and with Wide
	// Drop says how soon the column is left out where the terminal is too narrow: higher numbers first, 0 never.
	Drop int
}

// Table is rows of values. A value is a string, an integer, a bool or a float64, whose NaN stands for not known.
type Table struct {
	Columns []Column // from left to right
	Rows    [][]any  // a value for each column
}

// Write writes the table.
func (t Table) Write(w io.Writer, f Format) error {
	switch f {
	case JSON:
		return t.writeJSON(w)
	case CSV:
		return t.writeCSV(w)
	case YAML:
		var text bytes.Buffer
		if err := t.writeJSON(&text); err != nil {
			return err
		}
		return AsYAML(w, text.Bytes())
	case Markdown:
		return t.without(func(c Column) bool { return c.Wide }).writeMarkdown(w)
	case Wide:
		return t.writeText(w)
	default:
		return t.without(func(c Column) bool { return c.Wide }).fit(widthOf(w)).writeText(w)
	}
}

func (t Table) writeText(w io.Writer) error {
	return t.draw(w, func(cell string) string { return cell },
		tablewriter.WithRendition(tw.Rendition{
			Borders: tw.BorderNone,
			Settings: tw.Settings{
				Lines:      tw.LinesNone,
				Separators: tw.SeparatorsNone,
			},
		}),
		tablewriter.WithPadding(tw.Padding{Left: tw.Empty, Right: "  ", Overwrite: true}),
	)
}

func (t Table) writeMarkdown(w io.Writer) error {
	escape := strings.NewReplacer("|", `\|`, "\r\n", " ", "\n", " ", "\r", " ")
	return t.draw(w, escape.Replace, tablewriter.WithRenderer(renderer.NewMarkdown()))
}

// draw lays the table out with tablewriter, without the blanks that it leaves at the ends of lines.
func (t Table) draw(w io.Writer, clean func(string) string, options ...tablewriter.Option) error {
	align := make(tw.Alignment, len(t.Columns))
	header := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		align[i], header[i] = tw.AlignLeft, clean(c.Name)
		if c.Numeric {
			align[i] = tw.AlignRight
		}
	}
	var drawn bytes.Buffer
	table := tablewriter.NewTable(&drawn, append(options,
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithAlignment(align),
	)...)
	table.Header(header)
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, value := range row {
			cells[i] = clean(text(value))
		}
		if err := table.Append(cells); err != nil {
			return err
		}
	}
	if err := table.Render(); err != nil {
		return err
	}
	for line := range bytes.Lines(drawn.Bytes()) {
		if _, err := fmt.Fprintf(w, "%s\n", bytes.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func (t Table) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	record := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		record[i] = c.Name
	}
	_ = out.Write(record) // kept by out, told by Error
	for _, row := range t.Rows {
		for i, value := range row {
			record[i] = strings.Map(plain, text(value))
		}
		_ = out.Write(record)
	}
	out.Flush()
	return out.Error()
}

// plain replaces what a terminal would obey: a CSV is often looked at with cat.
func plain(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return unicode.ReplacementChar
	}
	return r
}

// writeJSON writes a list of objects whose keys are in the order of the columns.
func (t Table) writeJSON(w io.Writer) error {
	var flat, indented bytes.Buffer
	encode := json.NewEncoder(&flat)
	encode.SetEscapeHTML(false)
	flat.WriteByte('[')
	for i, row := range t.Rows {
		if i > 0 {
			flat.WriteByte(',')
		}
		flat.WriteByte('{')
		for k, value := range row {
			if k > 0 {
				flat.WriteByte(',')
			}
			if x, ok := value.(float64); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
				value = nil
			}
			if err := encode.Encode(t.Columns[k].Name); err != nil {
				return err
			}
			flat.WriteByte(':')
			if err := encode.Encode(value); err != nil {
				return err
			}
		}
		flat.WriteByte('}')
	}
	flat.WriteString("]\n")
	if err := json.Indent(&indented, flat.Bytes(), "", "  "); err != nil {
		return err
	}
	_, err := indented.WriteTo(w)
	return err
}

// Document writes a value as indented JSON, texts as they are.
func Document(w io.Writer, value any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// text is a value as it stands in a cell: numbers in their shortest exact form, nothing for what is not known.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return ""
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}
