package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet"
)

const (
	polluxHistory   = "papers/pollux-osdi21/pollux-history.yaml"
	polluxKnown     = "papers/pollux-osdi21/pollux-known.yaml"
	polluxKnownFast = "papers/pollux-osdi21/pollux-known-fast.yaml"
)

// restsOnAPool reports whether a composition needs what earlier jobs taught.
func restsOnAPool(config string) bool {
	return config == polluxKnown || config == polluxKnownFast || config == polluxHistory
}

// polluxKnowledge runs the compositions that rest on a pool, each with one that it filled on the other four workloads of
// load 1.0.
func (b *bench) polluxKnowledge() ([][]string, error) {
	rows := [][]string{{"composition", "pool", "load", "mean JCT s by workload", "mean JCT s", "against published", "p99", "makespan"}}
	for _, c := range []struct {
		label, config string
		load          string
		pool          func(config, workload string) (string, error)
		poolLabel     string
	}{
		{"pollux-known", polluxKnown, "1.0", b.pool, "of the others"},
		{"pollux-known", polluxKnown, "0.5", b.pool, "of the others"},
		{"pollux-known-fast", polluxKnownFast, "1.0", b.pool, "of the others"},
		{"pollux-known-fast", polluxKnownFast, "0.5", b.pool, "of the others"},
		{"pollux-history", polluxHistory, "1.0", b.pool, "of the others"},
		{"pollux-history", polluxHistory, "0.5", b.pool, "of the others"},
		{"pollux-history", polluxHistory, "1.0", b.wrongPool, "wrong"},
		{"pollux-history", polluxHistory, "0.5", b.wrongPool, "wrong"},
		{"pollux-history", polluxHistory, "1.0", b.noPool, "none"},
		{"pollux-history", polluxHistory, "0.5", b.noPool, "none"},
	} {
		var runs []run
		for _, n := range given[c.load] {
			pool, err := c.pool(c.config, n)
			if err != nil {
				return nil, err
			}
			runs = append(runs, run{config: c.config, sets: onPath(b.workload(c.load, n), withHistory(pool, "true")...)})
		}
		got, err := b.figures(runs)
		if err != nil {
			return nil, err
		}
		want, err := b.published("results-jobload", "pollux-"+c.load, given[c.load])
		if err != nil {
			return nil, err
		}
		ours, theirs := meanOf(got), meanOf(want)
		rows = append(rows, []string{
			c.label, c.poolLabel, c.load + "x", averages(got), decimal(ours.Avg),
			percent(ours.Avg, theirs.Avg), percent(ours.P99, theirs.P99), percent(ours.Makespan, theirs.Makespan),
		})
	}
	return rows, nil
}

// pool is what a composition learns on all workloads of load 1.0 but one.
func (b *bench) pool(config, workload string) (string, error) { return b.poolWithout(config, workload) }

// poolWithout is what a composition learns on all workloads of load 1.0 but some.
func (b *bench) poolWithout(config string, workloads ...string) (string, error) {
	pool := b.poolPath(config, workloads)
	if _, err := os.Stat(pool); err == nil {
		return pool, nil
	}
	part := pool + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that was killed
		return "", err
	}
	for _, other := range given["1.0"] {
		if slices.Contains(workloads, other) {
			continue
		}
		if err := teach(run{config: config, sets: onPath(b.workload("1.0", other), withHistory(part, "false")...)}); err != nil {
			return "", err
		}
	}
	return pool, os.Rename(part, pool)
}

// teach runs a composition for what it leaves in its pool. It is no run of a study: the next one begins with that pool, and one that
// is kept would teach nothing.
func teach(r run) (err error) {
	dir, err := os.MkdirTemp("", "quartet-teach")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := quartet.Load(quartet.Builtins(), quartet.Options{
		Files: []string{filepath.Join("configs", r.config)}, Sets: r.sets, OutDir: dir, Env: os.LookupEnv,
	})
	if err != nil {
		return err
	}
	c.Dir, c.Brief = filepath.Join(dir, c.Name), true
	if _, err := c.Simulate(context.Background()); err != nil {
		return fmt.Errorf("%v: %w", r, err)
	}
	return nil
}

// wrongPool is the same under the names of other applications.
func (b *bench) wrongPool(config, workload string) (string, error) {
	pool, err := b.pool(config, workload)
	if err != nil {
		return "", err
	}
	wrong := pool + ".wrong"
	return wrong, confuse(pool, wrong)
}

// noPool is a file that does not exist.
func (b *bench) noPool(string, string) (string, error) {
	return filepath.Join(b.inputs, "none.yaml"), nil
}

func (b *bench) poolPath(config string, without []string) string {
	return filepath.Join(b.inputs, strings.TrimSuffix(filepath.Base(config), ".yaml")+"-pool-"+strings.Join(without, "-")+".yaml")
}

func withHistory(pool, frozen string) []string {
	return []string{
		"pipeline.elasticity.job.config.history_path=" + pool,
		"pipeline.elasticity.job.config.history_frozen=" + frozen,
	}
}

var applicationName = regexp.MustCompile(`(?m)^(\s*-\s*name:\s*)(\S+)$`)

// confuse copies a pool, each application carrying the name of the next one in the file, the last that of the first.
func confuse(pool, wrong string) error {
	text, err := os.ReadFile(pool)
	if err != nil {
		return err
	}
	names := applicationName.FindAllSubmatch(text, -1)
	i := 0
	text = applicationName.ReplaceAllFunc(text, func(line []byte) []byte {
		i++
		return append(append([]byte{}, names[i-1][1]...), names[i%len(names)][2]...)
	})
	return os.WriteFile(wrong, text, 0o644)
}
