package main

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
)

// reloading is a run whose config may change while it goes on.
type reloading struct {
	takeover quartet.Takeover
	load     func(context.Context) (*configs.Config, error)
	files    []string
	log      *slog.Logger
}

// lookForChanges is how often the files of a config are looked at.
const lookForChanges = time.Second

// follow puts the policies of a new config in the place of those that decide, at SIGHUP and when its files change, until it is
// stopped. A config that cannot take over changes nothing, and is told of.
func (r *reloading) follow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGHUP)
	var work sync.WaitGroup
	work.Go(func() {
		defer signal.Stop(asked)
		look := time.NewTicker(lookForChanges)
		defer look.Stop()
		for last := contentOf(r.files); ; {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				now := contentOf(r.files)
				if now == last {
					continue
				}
				last = now
			case <-asked:
			}
			if err := r.reload(ctx); err != nil && ctx.Err() == nil {
				r.log.Error("the new config is not used, the run goes on as it was", "error", err)
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// contentOf tells the contents of files apart. A file that cannot be read is empty for a moment, as while it is replaced.
func contentOf(files []string) (sum [sha256.Size]byte) {
	all := sha256.New()
	for _, file := range files {
		text, _ := os.ReadFile(file) // an embedded config has no file
		one := sha256.Sum256(text)
		_, _ = all.Write(one[:])
	}
	return [sha256.Size]byte(all.Sum(nil))
}

// reload lets the policies of the config as it is now take over.
func (r *reloading) reload(ctx context.Context) error {
	next, err := r.load(ctx)
	if err != nil {
		return err
	}
	if err := r.takeover(ctx, next); err != nil {
		return err
	}
	r.log.Info("the config was read again")
	return nil
}
