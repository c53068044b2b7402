// Command trainer is an elastic training: data-parallel mini-batch SGD on a data set that it makes, by any number of
// replicas, each a process. It shows a job that speaks the agent protocol (docs/agent.md) from one end to the other: it
// reports step times and gradient statistics, is retuned while it runs, and goes on from its checkpoint on another
// number of replicas, with the very steps that it would have taken on any.
//
// Started by a scheduler, it is one replica. Started by hand with -replicas it starts them itself:
//
//	go run ./examples/trainer -replicas 4 -model mlp
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet/core/agent"
)

// The exit codes of a training that did not finish.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitStopped = 75 // may go on later
)

// killDelay is how long a replica may take to stop before it is killed.
const killDelay = 10 * time.Second

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, lookup func(string) (string, bool), out, problems io.Writer) int {
	o, err := readOptions(args, problems)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	env, wrong := agent.ReadEnvironment(lookup)
	if _, started := lookup(agent.RankVariable); started && o != nil && o.Replicas > 0 {
		wrong = errors.Join(wrong, fmt.Errorf("-replicas: a scheduler started this one, %s is set", agent.RankVariable))
	}
	if err = errors.Join(err, wrong); err != nil {
		fmt.Fprintln(problems, "trainer:", err)
		return exitUsage
	}
	if o.Replicas > 1 {
		err = startReplicas(ctx, o.Replicas, env, args, out, problems)
	} else {
		err = train(ctx, o, env, out)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errStopped):
		fmt.Fprintln(problems, "trainer:", err)
		return exitStopped
	default:
		fmt.Fprintln(problems, "trainer:", err)
		return exitFailed
	}
}

// startReplicas is what a scheduler does for its jobs: it starts the replicas with a folder to meet in, all or none,
// and waits for them. When one fails the others are stopped.
func startReplicas(ctx context.Context, replicas int, env agent.Environment, args []string, out, problems io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if env.Rendezvous, err = os.MkdirTemp("", "trainer"); err != nil {
		return err
	}
	defer os.RemoveAll(env.Rendezvous)
	env.Replicas = replicas
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, replicas)
	for env.Rank = range replicas {
		c := exec.CommandContext(stop, self, append([]string{}, args...)...)
		c.Args = append(c.Args, "-replicas", "0")
		c.Env = append(os.Environ(), env.Variables()...)
		c.Stdout, c.Stderr = out, problems
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
		c.WaitDelay = killDelay
		if err := c.Start(); err != nil {
			cancel()
			ended <- err
			continue
		}
		go func() { ended <- c.Wait() }()
	}
	var stopped, failed error
	for range replicas {
		err := <-ended
		var exit *exec.ExitError
		switch {
		case err == nil:
		case errors.As(err, &exit) && exit.ExitCode() == exitStopped:
			stopped = errStopped
		case failed == nil:
			failed = fmt.Errorf("a replica ended: %w", err)
			cancel()
		}
	}
	return errors.Join(failed, stopped)
}
