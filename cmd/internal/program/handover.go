package program

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
)

// Light is the engine of a program without Kubernetes: commands that need it are handed to quartet-kubernetes.
func Light() Engine {
	return Engine{cluster.Elsewhere(), func(*cli.App) []*cobra.Command {
		elsewhere := func(name, short string) *cobra.Command {
			return &cobra.Command{
				Use: name, Short: short, DisableFlagParsing: true, // that program knows its flags
				RunE: func(*cobra.Command, []string) error { return cluster.ErrElsewhere() },
			}
		}
		return []*cobra.Command{cli.Group("kube", "Install Quartet on a Kubernetes cluster",
			elsewhere("manifests", "Print everything that installs the controller, or write it for Kustomize or Helm"),
			elsewhere("crd", "Print the definition of training jobs"))}
	}}
}

// handedOver is set in the environment of a program that is handed a command, so that it does not hand it on.
const handedOver = cli.HandedOverVariable

// handOver has the program with Kubernetes run the command line in the place of this one, with the same streams and environment. It returns
// only where the system cannot do that, or where standard input was read already, which the other program is then given: with its exit code.
func (a *app) handOver(args []string) (code int, err error) {
	if os.Getenv(handedOver) != "" {
		return 0, cli.Problem("", "this "+cluster.Program+" does not include Kubernetes", howToGet)
	}
	path, err := findBeside(cluster.Program)
	if err != nil {
		return 0, cli.Problem("", fmt.Sprintf("this program does not include Kubernetes, and %s is neither beside it nor on PATH", cluster.Program), howToGet)
	}
	environment := append(os.Environ(), handedOver+"=1")
	if text := a.Stdin(); text != nil {
		return runChild(path, args, environment, text)
	}
	return replaceProcess(path, args, environment)
}

const howToGet = `build it with "go build -o DIR ./cmd/` + cluster.Program + `", DIR being the folder of quartet, ` +
	`or "go install github.com/quartet-sched/quartet/cmd/` + cluster.Program + `@latest"`

// findBeside finds a program in the folder of this one, whatever link it was started by, or else on PATH.
func findBeside(name string) (string, error) {
	if own, err := os.Executable(); err == nil {
		if own, err = filepath.EvalSymlinks(own); err == nil {
			if path, err := exec.LookPath(filepath.Join(filepath.Dir(own), name)); err == nil {
				return path, nil
			}
		}
	}
	return exec.LookPath(name)
}

// runChild runs a program in a process of its own and returns its exit code. It is sent the signals that this one gets.
func runChild(path string, args, environment []string, stdin []byte) (code int, err error) {
	c := exec.Command(path, args...) //nolint:noctx // it ends by the signals that it is sent
	c.Env, c.Stdin, c.Stdout, c.Stderr = environment, os.Stdin, os.Stdout, os.Stderr
	if stdin != nil {
		c.Stdin = bytes.NewReader(stdin)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := c.Start(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				_ = c.Process.Signal(s) // it may just have ended
			case <-ended:
				return
			}
		}
	}()
	err = c.Wait()
	close(ended)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exitCodeOf(exit.ProcessState), nil
	}
	return 0, err
}

// completesElsewhere reports whether a shell asks for the completion of a command that only the program with Kubernetes can complete.
func completesElsewhere(args []string) bool {
	if len(args) == 0 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		return false
	}
	return len(args) > 1 && args[1] == "kube" || slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return name == "--context" || name == "--kubeconfig"
	})
}
