package accounts_test

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// rowsOf are the rows of a file of a run, below its header.
func rowsOf(t *testing.T, r *quartet.Result, name string) [][]string {
	t.Helper()
	for _, f := range r.Files {
		if f.File == name {
			rows, err := csv.NewReader(bytes.NewReader(f.Content)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			return rows[1:]
		}
	}
	t.Fatalf("the run wrote no %s", name)
	return nil
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestStaysAddUpToGPUSeconds(t *testing.T) {
	s := doortest.Small()
	s.Output.Write = []string{"jobs", "timeline", "usage", "training"}
	c := doortest.Compose(t, quartet.Builtins(), s)
	c.Dir, c.Keep = "", true
	r := doortest.Simulate(t, c)
	held := map[string]float64{}
	for _, row := range rowsOf(t, r, "timeline.csv") {
		held[row[0]] += (number(t, row[2]) - number(t, row[1])) * number(t, row[4])
	}
	for _, row := range rowsOf(t, r, "jobs.csv") {
		if want := number(t, row[10]); held[row[0]] != want {
			t.Errorf("the stays of job %s add up to %v, its gpu_seconds are %v", row[0], held[row[0]], want)
		}
	}
	if rows := rowsOf(t, r, "usage.csv"); len(rows) < 2 || rows[0][0] != "0" {
		t.Errorf("usage.csv has %d rows", len(rows))
	}
}
