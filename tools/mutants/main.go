// Command mutants measures how much the tests of a package hold: it changes the code in one place at a time, runs the package's
// own tests on each change, and lists the changes that no test noticed.
//
//	go run ./tools/mutants [flags] PACKAGE...
//
// All changes of a package are compiled into one test binary and chosen by a variable of the environment, so that a change
// costs one run of the tests and no build. See docs/mutants.md for what is changed and what survives.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	var o options
	flag.Float64Var(&o.atLeast, "at-least", 0, "fail when a smaller part in per cent is noticed in any package")
	flag.IntVar(&o.sample, "sample", 0, "try this many changes of each package, drawn by -seed; 0 for all")
	flag.IntVar(&o.total, "total", 0, "try this many changes of all packages with tests together, drawn by -seed; 0 for no such limit")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the samples")
	flag.IntVar(&o.workers, "j", 2, "test runs at a time")
	flag.BoolVar(&o.short, "short", false, "run the tests with -short")
	flag.StringVar(&o.known, "known", "", "file of survivors that were looked at, each with its reason")
	flag.StringVar(&o.only, "run", "", "pattern of tests to run, such as those of one file; empty for all")
	flag.StringVar(&o.skip, "skip", "", "pattern of tests to leave out, such as those of speed")
	flag.StringVar(&o.files, "files", "", "pattern of the names of files to change; empty for all")
	flag.Float64Var(&o.timeoutFactor, "timeout-factor", 4, "how many times the time of the unchanged tests a run may take")
	flag.BoolVar(&o.list, "list", false, "list the changes and run nothing")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "usage: mutants [flags] PACKAGE...\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	atLeast       float64
	sample        int
	total         int
	seed          uint64
	workers       int
	short         bool
	known         string
	only          string
	skip          string
	files         string
	timeoutFactor float64
	list          bool
}

func run(ctx context.Context, o options, patterns []string) error {
	if len(patterns) == 0 {
		return errors.New("name at least one package, such as ./placement")
	}
	known, err := readKnown(o.known)
	if err != nil {
		return err
	}
	packages, err := load(patterns)
	if err != nil {
		return err
	}
	if err := choose(packages, o, known); err != nil {
		return err
	}
	if o.list {
		for _, p := range packages {
			for _, m := range p.chosen {
				fmt.Println(p.path+"/"+m.file, m)
			}
		}
		return nil
	}
	return tryAll(ctx, packages, o, known)
}

// tryAll tries the chosen changes of each package and prints what became of them.
func tryAll(ctx context.Context, packages []*pack, o options, known survivors) error {
	low, all := 0, &score{}
	for _, p := range packages {
		if len(p.chosen) == 0 {
			continue
		}
		started := time.Now()
		s, err := p.try(ctx, o, known)
		if s == nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		fmt.Printf("%s: %s, %s\n", p.path, s, time.Since(started).Round(time.Second))
		for _, m := range s.survivors {
			fmt.Println("  " + m.String())
		}
		for _, m := range s.timedOut {
			fmt.Println("  timed out: " + m.String())
		}
		if err != nil { // it was interrupted, and s holds what was tried until then
			return fmt.Errorf("%s: %w", p.path, err)
		}
		all.add(s)
		if s.percent() < o.atLeast {
			low++
		}
	}
	fmt.Printf("all: %s\n", all)
	switch {
	case o.total > 0 && all.percent() < o.atLeast:
		return fmt.Errorf("%.1f %% of the changes are noticed, below %v %%", all.percent(), o.atLeast)
	case o.total == 0 && low > 0:
		return fmt.Errorf("%d of %d packages are below %v %%", low, len(packages), o.atLeast)
	}
	return ctx.Err()
}
