//go:build linux

// Command kube starts a Kubernetes control plane on this machine, with simulated nodes, for tests and for whoever wants to try
// Quartet on Kubernetes. It builds the programs from pinned modules first, which takes minutes once.
//
//	go run ./tools/kube up -nodes 8      start, and print the kubeconfig
//	go run ./tools/kube down             end
//	go run ./tools/kube build            build only
//
// Simulated nodes run no process. Up starts one program that plays those of trainings: package kubetrainee says of which pods.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet/internal/kubecluster"
	"github.com/quartet-sched/quartet/internal/kubetrainee"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kube:", err)
		os.Exit(1)
	}
}

// play is the command that up starts as a program of the cluster.
const play = "play"

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
		return down(*dir)
	case "up":
		if _, err := kubecluster.Open(*dir); err == nil {
			return fmt.Errorf("a cluster is in %s already: end it with 'go run ./tools/kube down'", *dir)
		}
		if err := kubecluster.Build(ctx, *module, *bin, os.Stderr); err != nil {
			return err
		}
		return up(ctx, kubecluster.Options{Bin: *bin, Dir: *dir, Scheduler: *scheduler},
			kubecluster.Pool{Name: "node", Count: *nodes, Devices: *devices, Accelerator: *accelerator})
	case play:
		c, err := kubecluster.Open(*dir)
		if err != nil {
			return err
		}
		return kubetrainee.Run(ctx, kubetrainee.Config{
			Cluster: c, Dir: filepath.Join(c.Dir, trainee),
			Clock: time.Now, //nolint:forbidigo // a clock is what it is
			Log:   slog.New(slog.NewTextHandler(os.Stderr, nil)),
		})
	default:
		return fmt.Errorf("there is no command %q; %s", args[0], usage)
	}
}

// up starts a cluster with nodes, and prints its kubeconfig.
func up(ctx context.Context, o kubecluster.Options, nodes kubecluster.Pool) error {
	c, err := kubecluster.Start(ctx, o)
	if err != nil {
		return err
	}
	if err := c.AddNodes(ctx, nodes); err != nil {
		return errors.Join(err, c.Stop())
	}
	if err := addTrainee(c); err != nil {
		return errors.Join(err, c.Stop())
	}
	now := time.Now() //nolint:forbidigo // a certificate holds from now on
	if err := kubecluster.WriteCertificate(filepath.Join(c.Dir, "agent"), now); err != nil {
		return errors.Join(err, c.Stop())
	}
	fmt.Println(c.Kubeconfig)
	return nil
}

// down ends a cluster and removes its folder.
func down(dir string) error {
	c, err := kubecluster.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is nothing to end
	}
	if err != nil {
		return err
	}
	return errors.Join(c.Stop(), os.RemoveAll(c.Dir))
}

const trainee = "trainee"

// addTrainee starts a copy of this program that plays the processes of trainings: the one that 'go run' made goes with it.
func addTrainee(c *kubecluster.Cluster) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(own)
	if err != nil {
		return err
	}
	path := filepath.Join(c.Dir, "kube")
	if err := os.WriteFile(path, content, 0o700); err != nil {
		return err
	}
	return c.Add(trainee, path, play, "-dir", c.Dir)
}
