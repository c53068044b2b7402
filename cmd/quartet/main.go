// Command quartet composes a GPU-cluster scheduler from four parts, simulates it, and runs it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/quartet-sched/quartet/core/backend/local"
)

func main() {
	local.KeepIfAsked()
	local.StandInIfAsked(wallClock{})
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if len(os.Args) < 2 || os.Args[1] != "run" || isTerminal(os.Stderr) {
		ends = append(ends, syscall.SIGHUP) // to a run without a terminal it says that the config was changed
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
