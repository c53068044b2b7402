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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
