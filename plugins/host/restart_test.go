package host_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/plugins/faulty"
	"github.com/quartet-sched/quartet/plugins/host"
)

// interrupter is a log that ends a run at the first restart.
type interrupter struct {
	stop context.CancelFunc
	said strings.Builder
}

func (i *interrupter) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "restarting a plugin") {
		i.said.Write(line)
		i.stop()
	}
	return len(line), nil
}

// The wait before a restart is announced, not passed in silence.
func TestARestartIsAnnouncedBeforeTheWait(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	i := &interrupter{stop: stop}
	options := quickly(host.Restart)
	options.Backoff = 2 * time.Hour
	options.Log = slog.New(slog.NewTextHandler(i, nil))
	stages, err := faultyAllocation(t, faulty.Config{Fault: "exit"}, options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runIn(ctx, t, stages); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if !strings.Contains(i.said.String(), "in=1m0s") {
		t.Errorf("said %q, want the wait in it", i.said.String())
	}
}
