//go:build linux

// Command kube starts a Kubernetes control plane on this machine, with simulated nodes, for tests and for whoever wants to try
// Quartet on Kubernetes. It builds the programs from pinned modules first, which takes minutes once.
//
//	go run ./tools/kube up -nodes 8      start, and print the kubeconfig
//	go run ./tools/kube down             end
//	go run ./tools/kube build            build only
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/quartet-sched/quartet/internal/kubecluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kube:", err)
		os.Exit(1)
	}
}

const usage = "give one of: up, down, build"

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet("kube "+args[0], flag.ExitOnError)
	bin := flags.String("bin", filepath.Join(".bin", "controlplane"), "folder of the programs")
	module := flags.String("module", filepath.Join("tools", "controlplane"), "folder of the module that pins them")
	dir := flags.String("dir", filepath.Join(".bin", "kube"), "folder of the cluster")
	nodes := flags.Int("nodes", 8, "nodes")
	devices := flags.Int("devices", 8, "devices of a node")
	accelerator := flags.String("accelerator", "a100", "type of the devices")
	scheduler := flags.Bool("scheduler", false, "start kube-scheduler, too")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected %q; %s", flags.Arg(0), usage)
	}
	switch args[0] {
	case "build":
		return kubecluster.Build(ctx, *module, *bin, os.Stderr)
	case "down":
		c, err := kubecluster.Open(*dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // there is nothing to end
		}
		if err != nil {
			return err
		}
		return errors.Join(c.Stop(), os.RemoveAll(c.Dir))
	case "up":
		if _, err := kubecluster.Open(*dir); err == nil {
			return fmt.Errorf("a cluster is in %s already: end it with 'go run ./tools/kube down'", *dir)
		}
		if err := kubecluster.Build(ctx, *module, *bin, os.Stderr); err != nil {
			return err
		}
		c, err := kubecluster.Start(ctx, kubecluster.Options{Bin: *bin, Dir: *dir, Scheduler: *scheduler})
		if err != nil {
			return err
		}
		if err := c.AddNodes(ctx, kubecluster.Pool{Name: "node", Count: *nodes, Devices: *devices, Accelerator: *accelerator}); err != nil {
			return errors.Join(err, c.Stop())
		}
		fmt.Println(c.Kubeconfig)
		return nil
	default:
		return fmt.Errorf("there is no command %q; %s", args[0], usage)
	}
}
