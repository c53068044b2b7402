package operate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/metrics/exposition"
)

// operate lets people watch a run on real machines and give it orders.
func (a *app) operate(s quartet.Session, run *liveRun) (_ quartet.Attachment, err error) {
	can := backend.AbilitiesOf(s.OpenedBackend)
	if can.Operated == nil {
		return quartet.Attachment{}, errors.New("the backend takes no orders")
	}
	log := a.Logger()
	watched := metrics.Run{Name: s.Config.Name, Seed: s.Config.Seed, Wall: s.Stopwatch, Troubles: s.Troubles, Tuning: s.Tuning}
	if can.Clock != nil {
		watched.Now = can.Clock.Present
	}
	health := exposition.NewHealth(s.Stopwatch, exposition.Patience)
	live, board := metrics.NewLive(s.Collector, watched), control.NewBoard(s.Cluster)
	run.outlets.connect(board, live, can.Forecasts)
	stopMetrics := run.metrics.serve(exposition.Source{Snapshot: live.Snapshot, Health: health, Build: buildOf(cli.ReadBuild()), Log: log})
	server, err := run.serve.serve(s.State, can.Operated, board, soFarOf(live), log)
	if err != nil {
		stopMetrics()
		return quartet.Attachment{}, err
	}
	return quartet.Attachment{
		Backend:   health.Watch(s.Backend, replayingOf(can)),
		Observers: []core.Observer{live, board, &roundLog{log, health.Ready}},
		Finish:    live.Finish,
		Stop: func() {
			stopMetrics()
			closeServer(server, log)
		},
	}, nil
}

// soFarOf makes the files that a run writes when it ends.
func soFarOf(live *metrics.Live) control.SoFar {
	return func() (files []control.File, nowSeconds float64, err error) {
		var jobs, accelerators, fairness, tenants bytes.Buffer
		s, nowSeconds, err := live.WriteSoFar(metrics.Outputs{Jobs: &jobs, Accelerators: &accelerators, Fairness: &fairness, Tenants: &tenants})
		if err != nil {
			return nil, 0, err
		}
		summary, err := json.Marshal(s)
		if err != nil {
			return nil, 0, fmt.Errorf("write summary: %w", err)
		}
		files = []control.File{{Name: quartet.SummaryFile, Content: summary}}
		for _, f := range []struct {
			name    string
			content *bytes.Buffer
		}{{"jobs.csv", &jobs}, {"accelerators.csv", &accelerators}, {"fairness.csv", &fairness}, {"tenants.csv", &tenants}} {
			if f.content.Len() > 0 {
				files = append(files, control.File{Name: f.name, Content: f.content.Bytes()})
			}
		}
		return files, nowSeconds, nil
	}
}

// replayingOf reports whether the next round of a backend is one of an earlier scheduler; nil when it repeats none.
func replayingOf(can backend.Abilities) func() bool {
	if can.CatchingUp == nil {
		return nil
	}
	return can.CatchingUp.Replaying
}

func closeServer(s *control.Server, log *slog.Logger) {
	if err := s.Close(); err != nil {
		log.Warn("the socket did not end well", "error", err)
	}
}
