//go:build linux

// Command kubereality holds the simulator against a Kubernetes cluster with simulated nodes, whose trainings package kubetrainee
// plays: it runs the same jobs under several policies there, measures how long starts take, and simulates them with that.
//
// Usage: make kube KUBE_NODES=4 KUBE_DEVICES=4; go run ./tools/kubereality [-seed 1] [-jobs 40] [-only fifo,tiresias]
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
	name string
	sets []string
}{
	{"fifo", nil},
	{"tiresias", []string{"pipeline.allocation={type: tiresias, config: {thresholds: [60]}}"}},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var b bench
	flag.Uint64Var(&b.seed, "seed", 1, "seed of the jobs")
	flag.IntVar(&b.jobs, "jobs", 40, "jobs")
	flag.DurationVar(&b.span, "span", 3*time.Minute, "time within which they are submitted")
	flag.StringVar(&b.cluster, "cluster", filepath.Join(".bin", "kube"), "folder of the cluster")
	only := flag.String("only", "", "policies, separated by commas; all if empty")
	flag.Parse()
	if err := b.measure(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (b *bench) measure(ctx context.Context, only string) (err error) {
	if b.dir, err = os.MkdirTemp("", "kubereality"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	fmt.Printf("seed %d, %d jobs within %v\n\n", b.seed, b.jobs, b.span)
	fmt.Println("| policy | mean JCT, simulated | run | difference | makespan, simulated | run | restarts, simulated | run | mean start, s | load |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	for _, p := range policies {
		if only != "" && !strings.Contains(","+only+",", ","+p.name+",") {
			continue
		}
		real, start, err := b.run(ctx, p.name, p.sets)
		if err != nil {
			return err
		}
		simulated, err := b.simulate(ctx, p.name, start, p.sets)
		if err != nil {
			return err
		}
		load, err := os.ReadFile("/proc/loadavg")
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.1f s | %.1f s | %+.1f %% | %.0f s | %.0f s | %d | %d | %.2f | %s |\n", p.name, simulated.JCT.Mean, real.JCT.Mean,
			100*(real.JCT.Mean/simulated.JCT.Mean-1), simulated.Makespan, real.Makespan, simulated.Restarts.Total, real.Restarts.Total, start,
			strings.Fields(string(load))[0])
	}
	return nil
}
