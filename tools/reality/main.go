// Command reality holds the simulator against reality: it simulates a trace under several policies, replays it with paced
// trainings on declared devices under the same config, and compares what both came to. docs/run.md describes replays.
//
// A policy takes some minutes. Where other programs keep the machine busy, run it with priority, and keep its files in memory:
// what disturbs the trainings is in the figures. To measure that, -beside starts busy neighbours.
//
// Usage: go run ./tools/reality [-seed 3] [-speedup 60] [-only fifo,pollux] [-beside 2] [-keep /dev/shm/reality]
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed reality.yaml
var config []byte

// policies are what is set in the config for each of them.
var policies = []struct {
	name string
	sets []string
}{
	{"fifo", nil},
	{"tiresias", []string{"pipeline.allocation={type: tiresias, config: {thresholds: [7200]}}"}},
	{"pollux", []string{
		"pipeline.allocation.type=pollux", "pipeline.placement.type=proposed", "pipeline.elasticity.job.type=goodput",
	}},
}

func main() {
	var b bench
	flag.Uint64Var(&b.seed, "seed", 3, "seed of the trace")
	flag.Float64Var(&b.speedup, "speedup", 60, "how many seconds of the trace pass in one")
	flag.IntVar(&b.jobs, "jobs", 40, "jobs of the trace")
	flag.DurationVar(&b.span, "span", 0, "time within which they are submitted; that of the config if 0")
	flag.BoolVar(&b.onEvents, "on-events", false, "hold rounds at events too, not on the grid only")
	flag.IntVar(&b.beside, "beside", 0, "how many busy processes compete with each run")
	only := flag.String("only", "", "policies, separated by commas; all if empty")
	keep := flag.String("keep", "", "folder that keeps what the runs wrote; none if empty")
	flag.Parse()
	if err := b.measure(*only, *keep); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (b *bench) measure(only, keep string) (err error) {
	if b.dir = keep; keep == "" {
		if b.dir, err = os.MkdirTemp("", "reality"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	} else if err := os.MkdirAll(keep, 0o755); err != nil {
		return err
	}
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return err
	}
	if err := b.build(); err != nil {
		return err
	}
	fmt.Printf("seed %d, %d jobs, speedup %v\n\n", b.seed, b.jobs, b.speedup)
	fmt.Println("| policy | mean JCT, simulated | run | difference | p90, simulated | run | makespan, simulated | run | restarts, simulated | run | processors busy | load |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, p := range policies {
		if only != "" && !strings.Contains(","+only+",", ","+p.name+",") {
			continue
		}
		simulated, err := b.simulate(p.name, p.sets)
		if err != nil {
			return err
		}
		real, err := b.run(p.name, p.sets)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.0f s | %.0f s | %+.1f %% | %.0f s | %.0f s | %.0f s | %.0f s | %d | %d | %.0f %% | %s |\n", p.name,
			simulated.JCT.Mean, real.JCT.Mean, 100*(real.JCT.Mean/simulated.JCT.Mean-1), simulated.JCT.P90, real.JCT.P90,
			simulated.Makespan, real.Makespan, simulated.Restarts.Total, real.Restarts.Total, 100*real.busy, real.load)
	}
	return nil
}
