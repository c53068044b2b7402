package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// composition is the policies of a run, which others may take the place of.
type composition struct {
	mutex  sync.Mutex
	config *configs.Config
	stages core.Stages
	log    *slog.Logger
}

// again creates the policies anew.
func (c *composition) again(context.Context) (core.Stages, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	stages, err := buildStages(c.config, c.log)
	if err != nil {
		return stages, err
	}
	err = closeStages(&c.stages)
	c.stages = stages
	return stages, err
}

func (c *composition) close() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return closeStages(&c.stages)
}

// reloading is what a new config is held against.
type reloading struct {
	*composition
	pipeline *core.Pipeline
	cluster  *core.Cluster
	jobs     *workload.Workload
	load     func(context.Context) (*configs.Config, error)
	files    []string
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
	r.mutex.Lock()
	now := r.config
	r.mutex.Unlock()
	before, err := identityOf(now, r.jobs)
	if err != nil {
		return err
	}
	identity, err := identityOf(next, r.jobs)
	if err != nil || identity == before {
		return err
	}
	rest := *next
	rest.Admission, rest.Allocation, rest.Placement, rest.Elasticity, rest.Scaler, rest.Round = now.Admission, now.Allocation, now.Placement, now.Elasticity, now.Scaler, now.Round
	if same, err := identityOf(&rest, r.jobs); err != nil || same != before {
		return errors.Join(err, problem("", "changes more than policies and rounds", "the cluster, the backend and the workload take effect when the run is stopped and run again: its jobs go on"))
	}
	cluster := *r.cluster
	if err := checkFit(ctx, next, &cluster, r.jobs, r.log); err != nil {
		return err
	}
	resolved, err := placeless(next).Resolved()
	if err != nil {
		return err
	}
	stages, err := buildStages(next, r.log)
	if err != nil {
		return err
	}
	c := &core.Composition{Stages: stages, Options: next.Round.Options(), Identity: identity, Config: string(resolved)}
	if err := r.pipeline.Replace(ctx, c); err != nil {
		return errors.Join(err, closeStages(&stages))
	}
	r.log.Info("the new config is used from now on")
	r.mutex.Lock()
	defer r.mutex.Unlock()
	old := r.stages
	r.config, r.stages = next, stages
	return closeStages(&old)
}
