package control

import (
	"fmt"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// BenchmarkSubmit is what handing in a file of one job costs, without the backend's part in it: over one connection, one
// file after the other, and as by the command, which opens a connection for each.
func BenchmarkSubmit(b *testing.B) {
	f := &fake{submit: func(backend.JobFile) ([]string, error) { return []string{"a"}, nil }}
	_, path := serve(b, f, NewBoard(cluster()), discard)
	b.Run("connected", func(b *testing.B) {
		c := dial(b, path)
		for b.Loop() {
			if _, err := c.Submit(b.Context(), file); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
	})
	b.Run("connecting", func(b *testing.B) {
		for b.Loop() {
			c, err := Dial(b.Context(), path)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := c.Submit(b.Context(), file); err != nil {
				b.Fatal(err)
			}
			if err := c.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
	})
}

// BenchmarkRound is what the board costs a round in which one of a hundred thousand jobs changed, and BenchmarkJobs what
// listing them costs a reader.
func BenchmarkRound(b *testing.B) {
	board := NewBoard(cluster())
	v, r := crowd(b, board)
	b.ReportAllocs()
	for b.Loop() {
		board.cursor-- // to one change ago
		if err := board.ObserveRound(&core.Report{View: v, Events: r.Events, Verdicts: r.Verdicts}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJobs(b *testing.B) {
	board := NewBoard(cluster())
	crowd(b, board)
	_, path := serve(b, &fake{}, board, discard)
	c := dial(b, path)
	for b.Loop() {
		if jobs, _, err := c.Jobs(b.Context(), false); err != nil || len(jobs) != 100_000 {
			b.Fatal(len(jobs), err)
		}
	}
}

// crowd puts a hundred thousand jobs on a board, and returns the view and a report of one that is told to wait.
func crowd(b *testing.B, board *Board) (*core.View, *core.Report) {
	var view *core.View
	w := newWorld(b, board, observer(func(r *core.Report) error {
		view = r.View
		return nil
	}))
	for range 100_000 {
		w.submit(fmt.Sprint("job-", w.jobs), 1)
	}
	w.round()
	return view, &core.Report{
		Events:   []core.Event{{Kind: core.JobInterrupted, Job: 7}},
		Verdicts: []core.Verdict{{Job: 7, Code: core.Defer, Reason: core.WaitingForDevices, By: "allocation/las"}},
	}
}
