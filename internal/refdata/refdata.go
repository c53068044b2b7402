// Package refdata finds the published data that tests compare with, and that is not ours to give away.
package refdata

import (
	"compress/gzip"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Variable names the folder that holds data/ and reference/.
const Variable = "QUARTET_DATA"

// Path is a file or folder of the published data. A test is skipped where Variable is not set, and fails where it names a
// folder that lacks the data: what was meant to run is not left out in silence.
func Path(t testing.TB, elements ...string) string {
	t.Helper()
	root := os.Getenv(Variable)
	if root == "" {
		t.Skip(Variable + " is not set: it names the folder that holds data/ and reference/")
	}
	path := filepath.Join(append([]string{root}, elements...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is set, but there is no published data: %v", Variable, err)
	}
	return path
}

// Rows is the rows of a CSV file, its header first; it is unpacked where its name ends with .gz.
func Rows(t testing.TB, path string) [][]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var text io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if text, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(text).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if len(rows) == 0 {
		t.Fatalf("%s: no rows", path)
	}
	return rows
}

// RowsBy is the rows of a CSV file with a header, as columns by their names, by what stands in a column that is the key.
func RowsBy(t testing.TB, path, key string) map[string]map[string]string {
	t.Helper()
	list := Rows(t, path)
	rows := map[string]map[string]string{}
	for _, record := range list[1:] {
		row := map[string]string{}
		for i, column := range list[0] {
			row[column] = record[i]
		}
		rows[row[key]] = row
	}
	return rows
}

// Number is the number that a text is.
func Number(t testing.TB, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
