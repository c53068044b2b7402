package promises_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// Promises are kept however far from the first second they are given, where moments are coarser.
func TestPromisesFarFromTheFirstSecond(t *testing.T) {
	t.Parallel()
	text := func(from float64, seed uint64) string {
		random := rand.New(rand.NewPCG(seed, 1))
		rows := strings.Builder{}
		rows.WriteString("name,submit_s,duration_s,replicas,min_replicas,max_replicas,deadline_s\n")
		for i := range 40 {
			seconds := 60 * float64(1+random.IntN(60))
			factor := []float64{60, 60, 61, 90, 300}[random.IntN(5)]
			replicas := 1 << random.IntN(3)
			fmt.Fprintf(&rows, "j%d,%v,%v,%d,%d,%d,%v\n", i, from+60*float64(random.IntN(100)), seconds, replicas, replicas, replicas, seconds*factor/60)
		}
		trace := filepath.Join(t.TempDir(), "jobs.csv")
		if err := os.WriteFile(trace, []byte(rows.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(doortest.GrowingPool, 2, 4, trace, true, "deadline", "requested", "none", "")
	}
	for seed := range uint64(30) {
		for _, from := range []float64{0, 1.7e9, 9.6e10} {
			c, err := quartet.Parse(quartet.Builtins(), "far.yaml", text(from, seed), quartet.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if is := doortest.Simulate(t, c).Summary.Deadlines; is.Broken > 0 || is.Met == 0 || is.Declined == 0 {
				t.Errorf("seed %d, from %v s on: %+v", seed, from, is)
			}
		}
	}
}

// Promises are kept in whatever unit times are multiples of, though few of these are numbers that a machine has: jobs without slack end when others come,
// and then all that rounding adds decides who is first. Nor does it help a job to be late by what is hardly more than rounding.
func TestNoPromiseIsBrokenInAnyUnit(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var sum promises
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]float64{60, 60. / 7, 1. / 3, 0.1, 3.7, math.Pi}).Draw(t, "unit")
		from := rapid.SampledFrom([]float64{0, 1.7e9}).Draw(t, "from")
		shakes := rapid.SampledFrom([]float64{0, 0, 1e-9, 1e-8, 1e-7, 1e-6}).Draw(t, "shaken by")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) // draws of their own would be mostly zero, and jobs alike
		shaken := func(seconds float64) float64 { return seconds + shakes*random.Float64() }
		rows := strings.Builder{}
		rows.WriteString("name,submit_s,duration_s,replicas,min_replicas,max_replicas,deadline_s\n")
		for i := range rapid.IntRange(1, 50).Draw(t, "jobs") {
			seconds := shaken(unit * float64(1+random.IntN(60)))
			factor := []float64{60, 60, 61, 90, 300}[random.IntN(5)]
			replicas := 1 << random.IntN(3)
			fmt.Fprintf(&rows, "j%d,%v,%v,%d,%d,%d,%v\n", i, shaken(from+unit*float64(random.IntN(100))), seconds, replicas, replicas, replicas,
				shaken(seconds*factor/60))
		}
		trace := filepath.Join(folder, "jobs.csv")
		if err := os.WriteFile(trace, []byte(rows.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		interval := rapid.SampledFrom([]string{"7s", "10s", "60s"}).Draw(t, "interval")
		text := fmt.Sprintf(doortest.GrowingPool, 2, 4, trace, true, "deadline", "requested", "none", "")
		text = strings.Replace(text, "interval: 60s", "interval: "+interval, 1)
		c, err := quartet.Parse(quartet.Builtins(), "units.yaml", text, quartet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		result, err := c.Simulate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d := result.Summary.Deadlines
		if d.Broken > 0 || d.Missed > 0 || result.Summary.Jobs.Unfinished > 0 {
			t.Fatalf("%+v, %d unfinished\n%s\n%s", *d, result.Summary.Jobs.Unfinished, text, rows.String())
		}
		sum.add(d)
	})
	sum.check(t)
}
