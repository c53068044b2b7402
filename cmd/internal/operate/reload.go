package operate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// reloading is a run whose config may change while it goes on.
type reloading struct {
	takeover quartet.Takeover
	load     func(context.Context) (*configs.Config, error)
	files    *followed
	log      *slog.Logger
}

// lookForChanges is how often the files of a config are looked at. They are read, not watched: that holds on every file system,
// with editors that rename, and with links that change.
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
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				if !r.files.changed() {
					continue
				}
			case <-asked:
			}
			if err := r.reload(ctx); err != nil && ctx.Err() == nil {
				r.refuse(err)
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// reload lets the policies of the config as it is now take over.
func (r *reloading) reload(ctx context.Context) error {
	if err := r.files.read(); err != nil {
		return err
	}
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

// refuse says why a config is not used, a line for each problem of it.
func (r *reloading) refuse(err error) {
	const message = "the new config is not used; the run keeps the old one"
	problems, ok := errors.AsType[core.Diagnostics](err)
	if !ok {
		r.log.Error(message, "error", err)
	}
	for _, problem := range problems {
		r.log.Error(message, "error", problem)
	}
}

// followed are the files of a config that is looked at again and again.
type followed struct {
	files []string
	used  []content // when the config was last read
	seen  []content // at the last look
}

// content tells the contents of files apart; zero for a file that cannot be read.
type content [sha256.Size]byte

// followFiles follows those files that there are: an embedded config and standard input do not change.
func followFiles(files []string) *followed {
	f := &followed{}
	for _, file := range files {
		if c := contentOf(file); c != (content{}) {
			f.files, f.used = append(f.files, file), append(f.used, c)
		}
	}
	f.seen = slices.Clone(f.used)
	return f
}

func contentOf(file string) content {
	text, err := inputfile.Read(file, inputfile.Document)
	if err != nil {
		return content{}
	}
	return sha256.Sum256(text)
}

func (f *followed) look() []content {
	list := make([]content, len(f.files))
	for i, file := range f.files {
		list[i] = contentOf(file)
	}
	return list
}

// changed reports whether the files differ from when they were read, and are as at the last look: nobody reads what is being
// written. A file that is gone is about to be replaced.
func (f *followed) changed() bool {
	before := f.seen
	f.seen = f.look()
	return slices.Equal(f.seen, before) && !slices.Equal(f.seen, f.used) && !slices.Contains(f.seen, content{})
}

// read notes that the files are read as they are now. One that is gone is an error: no embedded config takes its place.
func (f *followed) read() error {
	now := f.look()
	var gone []error
	for i, c := range now {
		if c == (content{}) {
			gone = append(gone, fmt.Errorf("%s is gone, or cannot be read", f.files[i]))
		}
	}
	if gone == nil {
		f.used, f.seen = now, now
	}
	return errors.Join(gone...)
}
