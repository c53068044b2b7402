package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A table is a CSV file by columns. Columns that are not there read as empty.
//
// core/timeline and core/metrics read CSV in ways of their own: row by row, with every column there and every cell told that is
// wrong. A reader for all three would keep whole columns for those that need a row, or rows for this one; what they share is
// encoding/csv.
type table struct {
	names []string
	cells [][]string // by column
	rows  int
}

// readTable reads a CSV file with a header. Of a file that breaks off, the rows before are returned with the error.
func readTable(r io.Reader) (*table, error) {
	t := &table{}
	in := csv.NewReader(r)
	in.ReuseRecord, in.FieldsPerRecord = true, 0
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return t, errors.New("it is empty: not even a header")
	}
	if err != nil {
		return t, err
	}
	t.names = slices.Clone(header)
	if t.names[0] = strings.TrimPrefix(t.names[0], "\ufeff"); len(slices.Compact(slices.Sorted(slices.Values(t.names)))) < len(header) {
		return &table{}, errors.New("two columns have one name")
	}
	t.cells = make([][]string, len(header))
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return t, err
		}
		for i, cell := range row {
			t.cells[i] = append(t.cells[i], cell)
		}
		t.rows++
	}
}

func (t *table) has(name string) bool { return slices.Contains(t.names, name) }

// text is a column as it is written.
func (t *table) text(name string) []string {
	if i := slices.Index(t.names, name); i >= 0 {
		if t.cells[i] == nil {
			return []string{}
		}
		return t.cells[i]
	}
	return make([]string, t.rows)
}

// numbers is a column of numbers: NaN for an empty cell, and for one that is no number, which is told.
func (t *table) numbers(name string) (list []float64, err error) {
	list = make([]float64, t.rows)
	for i, cell := range t.text(name) {
		list[i] = math.NaN()
		if cell == "" {
			continue
		}
		v, parseErr := strconv.ParseFloat(cell, 64)
		if parseErr != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			if err == nil {
				err = fmt.Errorf("row %d, %s: %.40q is no number", i+2, name, cell)
			}
			continue
		}
		list[i] = v
	}
	return list, err
}
