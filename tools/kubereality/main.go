//go:build linux

// Command kubereality holds the simulator against a Kubernetes cluster with simulated nodes, whose trainings package kubetrainee
// plays: it runs the same jobs under several policies there, measures how long starts take, and simulates them with that.
//
// Usage: make kube KUBE_NODES=4 KUBE_DEVICES=4; go run ./tools/kubereality [-seed 1] [-jobs 40] [-only fifo,tiresias,pollux,pollux-in-place] [-keep FOLDER]
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

//go:embed kubereality.yaml
var config []byte

// policies are what is set in the config for each of them.
var policies = []struct {
	name    string
	sets    []string
	elastic bool // its jobs are
	worlds  bool // and change while they train
}{
	{"fifo", nil, false, false},
	{"tiresias", []string{"pipeline.allocation={type: tiresias, config: {thresholds: [60]}}"}, false, false},
	{"pollux", pollux("{restart_overhead: 1s}"), true, false},
	{"pollux-in-place", pollux("{restart_overhead: 1s, resize: {in_place: true}}"), true, true},
}

// pollux is what is set for Pollux under some settings of its own.
func pollux(config string) []string {
	return []string{
		"round.on_events=false", fmt.Sprintf("pipeline.allocation={type: pollux, config: %s}", config), "pipeline.placement.type=proposed",
		"pipeline.elasticity.job={type: goodput, config: {declared_work: false}}",
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var b bench
	flag.Uint64Var(&b.seed, "seed", 1, "seed of the jobs")
	flag.IntVar(&b.jobs, "jobs", 40, "jobs")
	flag.DurationVar(&b.span, "span", 3*time.Minute, "time within which they are submitted")
	flag.StringVar(&b.cluster, "cluster", filepath.Join(".bin", "kube"), "folder of the cluster")
	flag.Float64Var(&b.speedup, "speedup", 30, "how many times as fast as their profiles elastic jobs train; theirs are submitted within 4 h of that time")
	flag.StringVar(&b.keep, "keep", "", "folder that keeps what the runs wrote; none if empty")
	only := flag.String("only", "", "policies, separated by commas; all if empty")
	flag.Parse()
	if err := b.measure(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (b *bench) measure(ctx context.Context, only string) (err error) {
	if b.dir = b.keep; b.dir != "" {
		err = os.MkdirAll(b.dir, 0o755)
	} else if b.dir, err = os.MkdirTemp("", "kubereality"); err == nil {
		defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	}
	if err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	fmt.Printf("seed %d, %d jobs within %v\n\n", b.seed, b.jobs, b.span)
	fmt.Println("| policy | mean JCT, simulated | run | difference | makespan, simulated | run | restarts, simulated | run | delays | load |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	for _, p := range policies {
		if only != "" && !strings.Contains(","+only+",", ","+p.name+",") {
			continue
		}
		real, simulated, start, err := b.both(ctx, p.name, p.sets, p.elastic, p.worlds)
		if err != nil {
			return err
		}
		load, err := os.ReadFile("/proc/loadavg")
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.1f s | %.1f s | %+.1f %% | %.0f s | %.0f s | %d | %d | %s | %s |\n", p.name, simulated.JCT.Mean, real.JCT.Mean,
			100*(real.JCT.Mean/simulated.JCT.Mean-1), simulated.Makespan, real.Makespan, simulated.Restarts.Total, real.Restarts.Total, start,
			strings.Fields(string(load))[0])
	}
	return nil
}

// both runs jobs under a policy, simulates them, and says with which delays.
func (b *bench) both(ctx context.Context, name string, sets []string, elastic, worlds bool) (real, simulated *outcome, measured string, err error) {
	if elastic {
		real, simulated, d, err := b.train(ctx, name, sets, worlds)
		if err != nil {
			return nil, nil, "", err
		}
		return real, simulated, fmt.Sprintf("start %.2f s (%d), restart %.2f s (%d), begin %.2f s", d.start, d.starts, d.restart, d.moves, d.begin), nil
	}
	if real, err = b.run(ctx, name, sets, b.list); err != nil {
		return nil, nil, "", err
	}
	start, err := meanStart(filepath.Join(b.dir, name+"-run", "decisions.jsonl"))
	if err != nil {
		return nil, nil, "", err
	}
	simulated, err = b.simulate(ctx, name, start, sets)
	return real, simulated, fmt.Sprintf("start %.2f s", start), err
}
