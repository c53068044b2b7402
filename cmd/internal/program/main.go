package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core/backend/local"
)

// Main is a whole program on an engine. It ends the process.
func Main(e Engine) {
	local.KeepIfAsked()
	local.StandInIfAsked(cli.WallClock{})
	if !e.Absent {
		_ = os.Unsetenv(handedOver) // what this program starts was not handed over
	}
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if len(os.Args) < 2 || os.Args[1] != "run" || cli.IsTerminal(os.Stderr) {
		ends = append(ends, syscall.SIGHUP) // to a run without a terminal it says that the config was changed
	}
	os.Exit(Run(untilSignal(ends), os.Args[1:], os.Stdout, os.Stderr, e))
}

// sameSignal is how long after a signal another counts as the same one: some programs that end others, such as timeout, send two.
const sameSignal = 500 * time.Millisecond

// untilSignal returns a context that the first of these signals ends. A later one kills.
func untilSignal(ends []os.Signal) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, ends...)
	go func() {
		<-asked
		cancel()
		time.Sleep(sameSignal)
		signal.Stop(asked)
	}()
	return ctx
}
