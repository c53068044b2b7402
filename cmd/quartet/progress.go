package main

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// redrawEvery is how often the progress bar is drawn, whatever the pace of the rounds.
const redrawEvery = 100 * time.Millisecond

// progress shows how many jobs have ended. Observing a round costs one addition.
type progress struct {
	ended atomic.Int64
	done  chan struct{} // nil when nothing is shown
	drawn sync.WaitGroup
}

// startProgress shows a bar on stderr, if that is a terminal and the user wants to see it.
func (a *app) startProgress(w *workload.Workload) *progress {
	p := &progress{}
	if !a.quiet && !w.Open && isTerminal(a.stderr) {
		p.show(a.stderr, len(w.Jobs))
	}
	return p
}

func (p *progress) show(w io.Writer, jobs int) {
	bar := progressbar.NewOptions(jobs,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("jobs ended"),
		progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(),
	)
	p.done = make(chan struct{})
	p.drawn.Go(func() {
		tick := time.NewTicker(redrawEvery)
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

// stop takes the bar away.
func (p *progress) stop() {
	if p.done != nil {
		close(p.done)
		p.drawn.Wait()
	}
}
