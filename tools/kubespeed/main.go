//go:build linux

// Command kubespeed measures how fast gangs come to run on a Kubernetes control plane of this machine, by Quartet's backend and by
// kube-scheduler, in turns, on the same simulated nodes, with the same pods, created by the same client.
//
//	go run ./tools/kubespeed -nodes 1000 -gangs 1250 -size 4 -turns 2
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

type settings struct {
	bin, out              string
	nodes, devices        int
	gangs, size           int
	turns                 int
	workers               int
	quiet                 time.Duration
	profile, onlyQuartets bool
	claims                bool
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == leadArgument {
		fail(lead(os.Args[2:]))
	}
	var s settings
	flag.StringVar(&s.bin, "bin", filepath.Join(".bin", "controlplane"), "folder of the programs of the control plane")
	flag.StringVar(&s.out, "out", "", "folder for profiles and logs; none are kept if left out")
	flag.IntVar(&s.nodes, "nodes", 1000, "nodes")
	flag.IntVar(&s.devices, "devices", 8, "devices of a node")
	flag.IntVar(&s.gangs, "gangs", 1250, "gangs")
	flag.IntVar(&s.size, "size", 4, "pods of a gang, of one device each")
	flag.IntVar(&s.turns, "turns", 2, "turns of each")
	flag.IntVar(&s.workers, "workers", 16, "requests of the client at the same time")
	flag.DurationVar(&s.quiet, "quiet", time.Minute, "for how long nothing happens, once")
	flag.BoolVar(&s.profile, "profile", false, "write profiles of the controller into the folder")
	flag.BoolVar(&s.onlyQuartets, "only-quartet", false, "leave kube-scheduler out")
	flag.BoolVar(&s.claims, "claims", false, "give the devices by claims (DRA) instead of by an extended resource")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fail(s.run(ctx))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubespeed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (s *settings) run(ctx context.Context) (err error) {
	if s.gangs*s.size > s.nodes*s.devices || s.size > s.nodes {
		return errors.New("the gangs do not fit together")
	}
	dir, err := os.MkdirTemp("", "quartet-kubespeed-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r, err := s.start(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.cluster.Stop()) }()
	fmt.Println("| turn | by | pods/s to Running | s | taken by other machines, % | peak RSS, MB | writes a pod: of pods, of all | round, s: median, most | API's time of a round, s: most |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for turn := range s.turns {
		if err := r.ours(ctx, turn); err != nil {
			return err
		}
		if s.onlyQuartets {
			continue
		}
		if err := r.theirs(ctx, turn); err != nil {
			return err
		}
	}
	return nil
}
