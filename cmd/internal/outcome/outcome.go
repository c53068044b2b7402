package outcome

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/configs"
)

// CompositionFlags are the flags of a command that runs a composition and reports what came of it.
type CompositionFlags struct {
	cli.ConfigFlags
	Out    string // folder for the results, instead of output.dir; empty for that
	Strict bool   // jobs that were rejected, failed or did not finish are an error
}

// Complete simulates a composition, or runs it on real machines, and prints what came of it.
func (f *CompositionFlags) Complete(ctx context.Context, a *cli.App, c *quartet.Composition, do func(context.Context) (*quartet.Result, error)) error {
	config := c.Config
	c.Dir = filepath.Join(config.Output.Dir, config.Name)
	r, err := do(ctx)
	if r == nil {
		return err
	}
	if err != nil && !r.Interrupted {
		a.Note("wrote %s: the results up to the failure", r.Dir)
		return err
	}
	if err := Print(a, r, config); err != nil {
		return err
	}
	if config.SeedGiven() && len(config.SeedUsers()) == 0 {
		a.Note("seed %d changes nothing here: no component draws a number at random", config.Seed)
	}
	if r.ReplacedRun {
		a.Note("wrote %s, in the place of the same run", r.Dir)
	} else {
		a.Note("wrote %s", r.Dir)
	}
	return f.Verdict(a, r)
}

// Composition is a config with what this program adds to its runs.
// Its runs show their progress, and attach, which may be nil, adds more to them.
func Composition(a *cli.App, config *configs.Config, attach func(quartet.Session) (quartet.Attachment, error)) *quartet.Composition {
	started := time.Now()
	c := &quartet.Composition{
		Config: config, Brief: true, Log: a.Logger(), Plugins: a.Plugins(), Stopwatch: func() time.Duration { return time.Since(started) },
		Note: func(text string) { a.Note("%s", text) },
	}
	c.Attach = func(s quartet.Session) (quartet.Attachment, error) {
		spareMemory(len(s.Workload.Jobs))
		return attachProgress(a, s, attach)
	}
	return c
}

// attachProgress shows how far a run is, beside what attach adds to it.
func attachProgress(a *cli.App, s quartet.Session, attach func(quartet.Session) (quartet.Attachment, error)) (quartet.Attachment, error) {
	attached := quartet.Attachment{}
	if attach != nil {
		var err error
		if attached, err = attach(s); err != nil {
			return attached, err
		}
	}
	progress := a.StartProgress(s.Workload)
	attached.Observers = append(attached.Observers, progress)
	stop := attached.Stop
	attached.Stop = func() {
		progress.Stop()
		if stop != nil {
			stop()
		}
	}
	return attached, nil
}

// Verdict notes jobs that did not finish, and is the error that a whole, measured run still ends with.
func (f *CompositionFlags) Verdict(a *cli.App, r *quartet.Result) error {
	if r.Interrupted {
		return &cli.ExitError{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted at %s; the results are those up to then", render.Span(r.EndSeconds))}
	}
	if len(r.Unfinished) > 0 {
		a.Note("%s", leftOver(r.Unfinished))
	}
	n := r.Summary.Jobs
	if left := n.Rejected + n.Failed + n.Unfinished; f.Strict && left > 0 {
		return &cli.ExitError{Code: cli.ExitIncomplete, Err: fmt.Errorf("jobs rejected: %d, failed: %d, unfinished: %d", n.Rejected, n.Failed, n.Unfinished)}
	}
	return nil
}
