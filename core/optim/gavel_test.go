package optim_test

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/quartet-sched/quartet/core/optim"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// gavelRows reads a published table of Gavel, less its header.
func gavelRows(t testing.TB, name string) [][]string {
	t.Helper()
	file, err := os.Open(refdata.Path(t, "data", "gavel", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(plain).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// gavelPolytope is the published stream's first jobs with the coefficients of Gavel's max-min, on as many devices of
// each of three types as a quarter of the jobs.
func gavelPolytope(t testing.TB, jobs int) optim.Polytope {
	t.Helper()
	types := []string{"k80", "p100", "v100"}
	rates := map[[3]string]float64{}
	for _, row := range gavelRows(t, "throughputs_flat.csv.gz") {
		if row[3] == "" { // alone
			rate, err := strconv.ParseFloat(row[5], 64)
			if err != nil {
				t.Fatal(err)
			}
			rates[[3]string{row[0], row[1], row[2]}] = rate
		}
	}
	var p optim.Polytope
	for range types {
		p.Capacity = append(p.Capacity, float64(jobs/4))
	}
	for _, row := range gavelRows(t, "continuous_multi_seed0.csv.gz")[:jobs] {
		devices, err := strconv.ParseFloat(row[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		job := optim.ShareJob{Devices: devices}
		var equal float64
		for _, name := range types {
			rate := rates[[3]string{name, row[1], row[2]}]
			equal += rate / float64(len(types))
			job.Rates = append(job.Rates, rate*devices)
		}
		for j := range job.Rates {
			job.Rates[j] /= equal
		}
		p.Jobs = append(p.Jobs, job)
	}
	return p
}

// On the published stream, 2,048 jobs are 83 classes at most; the classes, the
// jobs one by one and the dense simplex agree.
func TestMaxMinOfGavel(t *testing.T) {
	p := gavelPolytope(t, 2048)
	rows, _ := p.Group()
	if len(rows.Jobs) > 83 {
		t.Errorf("%d classes, want at most 83", len(rows.Jobs))
	}
	var s optim.SharesSolver
	each, err := s.MaxMin(context.Background(), p, optim.Level{})
	if err != nil {
		t.Fatal(err)
	}
	classes, err := s.MaxMin(context.Background(), rows, optim.Level{})
	if err != nil {
		t.Fatal(err)
	}
	linear, err := optim.SolveLinear(context.Background(), maxMinProgram(rows, optim.Level{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d classes, level %v", len(rows.Jobs), classes.Level)
	if math.Abs(each.Level-classes.Level) > 1e-9*classes.Level || math.Abs(linear.Value-classes.Level) > 1e-7*classes.Level {
		t.Errorf("level %v for jobs, %v for classes, %v by the dense simplex", each.Level, classes.Level, linear.Value)
	}
}

func BenchmarkMaxMinOfGavel(b *testing.B) {
	p := gavelPolytope(b, 2048)
	var s optim.SharesSolver
	for b.Loop() {
		rows, groups := p.Group()
		r, err := s.MaxMin(context.Background(), rows, optim.Level{})
		if err != nil {
			b.Fatal(err)
		}
		groups.Spread(r.Shares)
	}
}
