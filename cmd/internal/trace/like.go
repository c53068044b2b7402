package trace

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload/exchange"
	"github.com/quartet-sched/quartet/core/workload/generators"
)

// likeFlags have a trace drawn that resembles another.
type likeFlags struct {
	like    string
	compare string
}

// write draws a trace and, where it is asked for, tells on stderr how far it is from that of a file.
func (f *likeFlags) write(ctx context.Context, a *app, sets []string, seed uint64) error {
	fit, err := generators.Named(f.like)
	if err != nil {
		return asFlag("--like", err)
	}
	jobs, span, err := likeSettings(sets)
	if err != nil {
		return err
	}
	var other *exchange.Trace
	if f.compare != "" { // problems with it are reported before anything is written
		if other, err = f.other(ctx, a); err != nil {
			return err
		}
	}
	trace := fit.Generate(jobs, span.Seconds(), seed)
	if err := exchange.WriteCSV(a.Stdout, trace); err != nil || other == nil {
		return err
	}
	table := render.Table{Columns: []render.Column{{Name: "what"}, {Name: "ks", Numeric: true}, {Name: "wasserstein", Numeric: true}, {Name: "unit"}}}
	for _, d := range generators.Compare(trace, other) {
		table.Rows = append(table.Rows, []any{d.What, thousandths(d.KS), thousandths(d.Wasserstein), d.Unit})
	}
	return table.Write(a.Stderr, a.Format)
}

// other reads the trace to compare with.
func (f *likeFlags) other(ctx context.Context, a *app) (*exchange.Trace, error) {
	in, err := a.openLog(ctx, f.compare)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	trace, counts, err := exchange.Import(ctx, f.compare, in, exchange.Options{From: exchange.CSV})
	if err == nil && counts.Kept == 0 {
		err = cli.Problem(f.compare, "has no job to compare with", "")
	}
	return trace, err
}

func thousandths(x float64) float64 { return math.Round(x*1000) / 1000 }

// likeSettings are the settings that a fitted trace has: jobs and span.
func likeSettings(sets []string) (jobs int, span time.Duration, err error) {
	var ds core.Diagnostics
	add := func(summary, hint string) {
		ds = append(ds, core.Diagnostic{Position: core.Position{File: "--set"}, Summary: summary, Hint: hint})
	}
	const most = 10_000_000
	jobs = 1000
	for _, set := range sets {
		name, value, _ := strings.Cut(set, "=")
		switch name {
		case "jobs":
			if jobs, err = strconv.Atoi(value); err != nil || jobs < 1 || jobs > most {
				add(fmt.Sprintf("jobs is %q", value), fmt.Sprintf("expected a whole number from 1 to %d", most))
			}
		case "span":
			if span, err = time.ParseDuration(value); err != nil || span <= 0 {
				add(fmt.Sprintf("span is %q", value), "expected a duration above 0s, such as 24h")
			}
		default:
			add(fmt.Sprintf("%q is no setting of a fitted trace", name), "valid settings: jobs, span")
		}
	}
	return jobs, span, ds.Err()
}

// asFlag names a flag in problems with what it gave.
func asFlag(name string, err error) error {
	if ds, ok := err.(core.Diagnostics); ok { //nolint:errorlint // as it was made just now
		for i := range ds {
			ds[i].Position.File = name
		}
	}
	return err
}
