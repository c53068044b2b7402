package main

import (
	"errors"
	"log/slog"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/metrics/exposition"
)

// surroundings are what a run goes on in.
type surroundings interface {
	backend() core.Backend
	observers() []core.Observer
	finish(unfinished []*core.Job, endSeconds float64) (*metrics.Summary, error)
	stop()
}

// undisturbed is a run that nobody else has to do with.
type undisturbed struct {
	collector *metrics.Collector
	world     core.Backend
}

func (s *undisturbed) backend() core.Backend      { return s.world }
func (s *undisturbed) observers() []core.Observer { return []core.Observer{s.collector} }
func (s *undisturbed) stop()                      {}

func (s *undisturbed) finish(unfinished []*core.Job, endSeconds float64) (*metrics.Summary, error) {
	return s.collector.Finish(unfinished, endSeconds)
}

// onMachines is a run that people watch and give orders to.
type onMachines struct {
	world core.Backend
	live  *metrics.Live
	board *control.Board
	log   *roundLog
	stops []func()
}

func (o *onMachines) backend() core.Backend      { return o.world }
func (o *onMachines) observers() []core.Observer { return []core.Observer{o.live, o.board, o.log} }

func (o *onMachines) finish(unfinished []*core.Job, endSeconds float64) (*metrics.Summary, error) {
	return o.live.Finish(unfinished, endSeconds)
}

func (o *onMachines) stop() {
	for _, stop := range o.stops {
		stop()
	}
	o.stops = nil
}

// operate lets people watch a run and give it orders.
func (a *app) operate(c *configs.Config, cluster *core.Cluster, real *realRun, collector *metrics.Collector, e *ending, stopwatch func() time.Duration) (_ surroundings, err error) {
	machine, operable := e.Backend.(backend.Operated)
	if !operable {
		return nil, errors.New("the backend takes no orders")
	}
	log := a.logger()
	watched := metrics.Run{Name: c.Name, Seed: c.Seed, Wall: stopwatch, Troubles: a.troubles}
	if clock, ticks := e.Backend.(backend.Ticking); ticks {
		watched.Now = clock.Present
	}
	health := exposition.NewHealth(stopwatch, exposition.Patience)
	o := &onMachines{
		live:  metrics.NewLive(collector, watched),
		world: health.Watch(e, replayingOf(machine)), board: control.NewBoard(cluster), log: &roundLog{log, health.Ready},
	}
	defer func() {
		if err != nil {
			o.stop()
		}
	}()
	stop := real.metrics.serve(exposition.Source{Snapshot: o.live.Snapshot, Health: health, Build: buildOf(readBuild()), Log: log})
	o.stops = append(o.stops, stop)
	server, err := real.serve.serve(real.folder, machine, o.board, log)
	if err != nil {
		return nil, err
	}
	o.stops = append(o.stops, func() { closeServer(server, log) })
	return o, nil
}

// replayingOf tells whether the next round of a backend is one of an earlier scheduler; nil when it repeats none.
func replayingOf(b any) func() bool {
	if r, repeats := b.(interface{ Replaying() bool }); repeats {
		return r.Replaying
	}
	return nil
}

func closeServer(s *control.Server, log *slog.Logger) {
	if err := s.Close(); err != nil {
		log.Warn("the socket did not end well", "error", err)
	}
}
