package coretest

import (
	"context"

	"github.com/quartet-sched/quartet/core"
)

// DrawView draws a view as an allocator meets it: a cluster of 1 to 8 nodes with 1 to 8 devices, some of them down or
// draining, and jobs in every state that a live one can be in, running ones on seats of their own, some of them pinned. The candidates are
// its active jobs with rigid and elastic responses, whose curves, where there are any, need not rise.
func DrawView(t *T) (*core.View, []core.Candidate) {
	w, watcher := drawWorld(t), &watcher{chaos: chaos{t: t}}
	w.pins = true
	p := core.NewPipeline(cloneCluster(w.cluster), compose(watcher), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{w}})
	for range intRange(1, 6).Draw(t, "rounds before") {
		watcher.last = question{}
		hold(t, p, w.step(), w)
		if watcher.last.View == nil { // nobody to allocate to
			watcher.last.View = cloneView(w.view)
		}
	}
	return watcher.last.View, watcher.last.Candidates
}

// watcher keeps a copy of what an allocator was asked last.
type watcher struct {
	chaos
	last question
}

func (w *watcher) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	w.last = question{View: v, inputs: inputs{Candidates: candidates}}.clone()
	return w.chaos.Allocate(ctx, v, candidates)
}
