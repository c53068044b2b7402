package cli

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// RedrawEvery is how often the progress bar is drawn, whatever the pace of the rounds.
const RedrawEvery = 100 * time.Millisecond

// progress shows how many jobs have ended, or simulations begun. To count one costs one addition.
type progress struct {
	ended atomic.Int64
	done  chan struct{} // nil when nothing is shown
	drawn sync.WaitGroup
	over  sync.Once
}

// StartProgress shows a bar on stderr, if that is a terminal and the user wants to see it.
func (a *App) StartProgress(w *workload.Workload) *progress {
	p := &progress{}
	if !a.Quiet && !w.Open && IsTerminal(a.Stderr) {
		p.show(a.Stderr, "jobs ended", len(w.Jobs), 0)
	}
	return p
}

// patience is how long people wait for an answer before they want to know what takes so long.
const patience = time.Second

// StartSimulations shows how many simulations were begun, if that takes longer than people wait; nobody knows how many there will be.
func (a *App) StartSimulations() *progress {
	p := &progress{}
	if !a.Quiet && IsTerminal(a.Stderr) {
		p.show(a.Stderr, "simulations", -1, patience)
	}
	return p
}

// Count counts one.
func (p *progress) Count() { p.ended.Add(1) }

// show draws a bar from some time on; of -1 for how many it is known only that something goes on.
func (p *progress) show(w io.Writer, what string, all int, after time.Duration) {
	bar := progressbar.NewOptions(all,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetSpinnerChangeInterval(0), // it draws when it is told, and leaves nothing that goes on
	)
	p.done = make(chan struct{})
	p.drawn.Go(func() {
		select {
		case <-p.done:
			return // nothing was drawn
		case <-time.After(after):
		}
		tick := time.NewTicker(RedrawEvery)
		defer tick.Stop()
		for {
			select {
			case <-p.done:
				_ = bar.Clear() // nothing depends on what is drawn
				return
			case <-tick.C:
				_ = bar.Set64(p.ended.Load())
			}
		}
	})
}

// ObserveRound counts the jobs that ended.
func (p *progress) ObserveRound(r *core.Report) error {
	if len(r.Ended) > 0 {
		p.ended.Add(int64(len(r.Ended)))
	}
	return nil
}

// Stop takes the bar away, if that was not done.
func (p *progress) Stop() {
	if p.done != nil {
		p.over.Do(func() { close(p.done) })
		p.drawn.Wait()
	}
}
