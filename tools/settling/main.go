// Command settling measures what it changes that a round settles grants that find no devices: mean JCT, the longest wait of a wide job, restarts, the time of
// allocation and placement, and of the whole run, with passes 1 and with the default, in worlds where jobs need more of a node or of a type than a count of devices shows.
// It prints a table in Markdown for each world.
//
// Usage: go run ./tools/settling [-only WORLD,WORLD] [-allocations TYPE,TYPE] [-times N], with QUARTET_DATA set.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
)

func main() {
	only := flag.String("only", "", "the worlds to measure, separated by commas; all if empty")
	allocations := flag.String("allocations", "", "the allocations to measure, separated by commas; those of the world if empty")
	times := flag.Int("times", 1, "how often each run is repeated; the least of its times counts")
	settle := flag.String("settle", "", "the settings that are compared with {passes: 1}; the default if empty")
	flag.Parse()
	if os.Getenv("QUARTET_DATA") == "" {
		fmt.Fprintln(os.Stderr, "QUARTET_DATA is not set: it names the folder that holds data/ and reference/")
		os.Exit(2)
	}
	for _, w := range worlds() {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), w.name) {
			continue
		}
		if err := w.measure(*allocations, *settle, *times); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// measure prints the table of a world.
func (w *world) measure(allocations, settle string, times int) error {
	of := w.allocations
	if allocations != "" {
		of = strings.Split(allocations, ",")
	}
	fmt.Printf("\n%s: %s\n\n", w.name, w.what)
	fmt.Println("| allocation | mean JCT, s | with | | longest wide wait, s | with | | restarts | with | allocate + place a round, µs | with | | CPU, s | with | |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, a := range of {
		before, err := w.least(a, "{passes: 1}", times)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", w.name, a, err)
		}
		after, err := w.least(a, settle, times)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", w.name, a, err)
		}
		fmt.Printf("| `%s` | %.0f | %.0f | %s | %.0f | %.0f | %s | %d | %d | %.0f | %.0f | %s | %.2f | %.2f | %s |\n", a,
			before.jct, after.jct, percent(after.jct, before.jct), before.wideWait, after.wideWait, times2(after.wideWait, before.wideWait), before.restarts, after.restarts,
			before.decideMicros, after.decideMicros, times2(after.decideMicros, before.decideMicros), before.cpu.Seconds(), after.cpu.Seconds(), times2(after.cpu.Seconds(), before.cpu.Seconds()))
	}
	return nil
}

func percent(a, b float64) string { return fmt.Sprintf("%+.1f %%", 100*(a/b-1)) }

func times2(a, b float64) string { return fmt.Sprintf("%.2f ×", a/max(b, 1e-9)) }

// figures are what a run came to.
type figures struct {
	jct, wideWait float64 // seconds
	restarts      int
	decideMicros  float64 // of allocation and placement, a round
	cpu           time.Duration
}

func (w *world) least(allocation, settle string, times int) (best figures, err error) {
	for i := range max(times, 1) {
		f, err := w.run(allocation, settle)
		if err != nil {
			return best, err
		}
		if i == 0 {
			best = f
			continue
		}
		best.decideMicros, best.cpu = min(best.decideMicros, f.decideMicros), min(best.cpu, f.cpu)
	}
	return best, nil
}

func (w *world) run(allocation, settle string) (f figures, err error) {
	text, round := w.config, w.round
	if settle != "" {
		round = strings.TrimPrefix(round+", settle: "+settle, ", ")
	}
	text += "\nround: {" + round + "}\npipeline: {allocation: " + named(allocation) + ", placement: " + w.placement + w.elasticity + "}\n"
	c, err := quartet.Parse(quartet.Builtins(), w.name, text, quartet.Options{Env: os.LookupEnv})
	if err != nil {
		return f, err
	}
	var spent time.Duration
	rounds := 0
	c.Observers = append(c.Observers, observer(func(r *core.Report) {
		spent += r.StageTime[2] + r.StageTime[3]
		rounds++
	}))
	clock := time.Now()
	c.Stopwatch = func() time.Duration { return time.Since(clock) }
	begin := processorTime()
	result, err := c.Simulate(context.Background())
	if err != nil {
		return f, err
	}
	f.cpu = processorTime() - begin
	f.jct, f.restarts = float64(result.Summary.JCTSeconds.Mean), result.Summary.Restarts.Total
	f.decideMicros = float64(spent.Microseconds()) / float64(max(rounds, 1))
	for i := range result.Jobs {
		j := &result.Jobs[i]
		if j.GPUSeconds > 0 && float64(j.ReplicasMean) >= w.wide {
			f.wideWait = max(f.wideWait, float64(j.QueueingSeconds))
		}
	}
	return f, nil
}

// named is the allocation of a name in a table: a type, or one of the two that have a name of their own.
func named(allocation string) string {
	switch allocation {
	case "fifo backfill":
		return "{type: fifo, config: {queue: backfill}}"
	case "srtf kept":
		return "{type: srtf, config: {preemptive: false}}"
	}
	return "{type: " + allocation + "}"
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

type observer func(*core.Report)

// ObserveRound calls the function.
func (o observer) ObserveRound(r *core.Report) error {
	o(r)
	return nil
}
