package quartet_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
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
		return fmt.Sprintf(growingPool, 2, 4, trace, true, "deadline", "requested", "none", "")
	}
	for seed := range uint64(30) {
		for _, from := range []float64{0, 1.7e9, 9.6e10} {
			c, err := quartet.Parse(quartet.Builtins(), "far.yaml", text(from, seed), quartet.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if is := simulate(t, c).Summary.Deadlines; is.Broken > 0 || is.Met == 0 || is.Declined == 0 {
				t.Errorf("seed %d, from %v s on: %+v", seed, from, is)
			}
		}
	}
}
