package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

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
	began := time.Now()
	p.done = make(chan struct{})
	p.drawn.Go(func() {
		select {
		case <-p.done:
			return // nothing was drawn
		case <-time.After(after):
		}
		tick := time.NewTicker(RedrawEvery)
		defer tick.Stop()
		blank := ""
		for {
			select {
			case <-p.done:
				fmt.Fprint(w, blank)
				return
			case <-tick.C:
				text := barText(what, p.ended.Load(), int64(all), time.Since(began))
				if columns := columnsOf(w); utf8.RuneCountInString(text) >= columns {
					text = string([]rune(text)[:columns-1]) // a line that wraps cannot be taken away
				}
				fmt.Fprint(w, blank, text)
				blank = "\r" + strings.Repeat(" ", utf8.RuneCountInString(text)) + "\r"
			}
		}
	})
}

// columnsOf is how many characters a line of a terminal has, or 80.
func columnsOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 80
}

// barWidth is the width of the bar in characters.
const barWidth = 30

// barText is what is drawn: the share of what there is, as a bar, the count, the time that was taken, and, where it can be known, the
// time left at the same pace.
func barText(what string, count, all int64, taken time.Duration) string {
	if all <= 0 {
		return fmt.Sprintf("%s (%d) [%s]", what, count, taken.Truncate(time.Second))
	}
	count = min(count, all)
	left := ""
	if count > 0 {
		left = ":" + time.Duration(float64(taken)/float64(count)*float64(all-count)).Truncate(time.Second).String()
	}
	full := int(barWidth * count / all)
	return fmt.Sprintf("%s %3d%% |%s%s| (%d/%d) [%s%s]", what, 100*count/all, strings.Repeat("█", full), strings.Repeat(" ", barWidth-full),
		count, all, taken.Truncate(time.Second), left)
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
