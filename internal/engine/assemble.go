package engine

import (
	"context"
	"errors"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/journal"
)

// assemble puts together what holds the rounds: who watches them, the workload that reacts to them, and the pipeline.
func (e *execution) assemble(ctx context.Context) error {
	if err := e.attach(); err != nil {
		return errors.Join(err, CloseStages(&e.stages))
	}
	e.atEnd(func(*Result, error) error { e.attached.Stop(); return nil })
	e.policies = &policies{config: e.Config, deciding: e.Config, stages: e.stages, log: e.log}
	if err := e.beginManifest(); err != nil {
		return errors.Join(err, e.policies.close(true))
	}
	e.driveWorkload(ctx)
	observers := e.observers()
	o := core.PipelineOptions{
		Rounds: e.Round.Options(), Stopwatch: e.stopwatch, Observers: observers, Watchers: e.watchers(ctx), Scaling: e.can.Scaling,
		KeepDevices: e.can.KeepsDevices, Reseat: e.can.Reseat(), WakeOnReports: e.driver != nil /* a search may stop a trial by them */, RetryBackend: e.retryBackend(pause),
	}
	if e.chooser != nil {
		o.Chooser = e.chooser
	}
	if e.can.Memory != nil {
		o.Memory, o.NewStages = e.can.Memory, e.policies.again
	}
	e.pipeline = core.NewPipeline(e.cluster, e.stages, o)
	if e.can.Memory != nil && e.Follow != nil {
		stop := e.Follow(ctx, e.takeover(e.policies, e.pipeline))
		e.atEnd(func(*Result, error) error { stop(); return nil })
	}
	return nil
}

// attach asks who watches the run, and fills in what they leave to the run.
func (e *execution) attach() (err error) {
	e.counted = &measuredJobs{Backend: e.backend, window: e.window, left: e.window.Of(len(e.jobs.Jobs))}
	a := &e.attached
	if e.Attach != nil {
		*a, err = e.Attach(Session{
			Config: e.Config, Cluster: e.cluster, Workload: e.jobs, Backend: e.counted, OpenedBackend: e.backend, State: e.state, Collector: e.collector,
			Stopwatch: e.stopwatch, Troubles: e.troubles, Tuning: tuningOf(e.reactive),
		})
		if err != nil {
			return err
		}
	}
	if a.Backend == nil {
		a.Backend = e.counted
	}
	if a.Finish == nil {
		a.Finish = e.collector.Finish
		a.Observers = append([]core.Observer{e.collector}, a.Observers...)
	}
	if a.Stop == nil {
		a.Stop = func() {}
	}
	return nil
}

// driveWorkload begins to drive a live run by its reactive workload, if it has one.
func (e *execution) driveWorkload(ctx context.Context) {
	e.holding = ctx
	if e.can.Driven == nil || e.reactive == nil {
		return
	}
	within, fail := context.WithCancelCause(ctx)
	e.atEnd(func(*Result, error) error { fail(nil); return nil })
	e.holding, e.driver = within, newWorkloadDriver(within, e.reactive, e.can.Driven, fail)
}

// observers are those of the rounds, in the order in which they see them. They end with those that go by what others wrote.
func (e *execution) observers() []core.Observer {
	list := append(append(e.attached.Observers, e.Observers...), e.counted, &scalingLimits{e.note, map[[2]string]bool{}})
	if e.recorder != nil {
		list = append(list, e.recorder)
	}
	if e.can.Observer != nil {
		list = append(list, e.can.Observer)
	}
	if o, observes := e.reactive.(core.Observer); observes {
		list = append(list, o)
	}
	if e.driver != nil {
		list = append(list, e.driver)
	}
	chooser, choosing := e.newSynthesizer(e.policies, e.can.Memory != nil)
	if e.chooser = chooser; chooser != nil {
		e.atEnd(func(*Result, error) error { chooser.Close(); return nil })
	}
	list = append(list, choosing...)
	if e.can.Memory != nil {
		list = append(list, journal.Announce(e.log, e.cluster), &liveFiles{execution: e})
	}
	return list
}

// watchers make the observers that also look at the pipeline.
func (e *execution) watchers(ctx context.Context) (list []func(*core.Pipeline) core.Observer) {
	if e.Watch != nil {
		list = append(list, func(p *core.Pipeline) core.Observer { return e.Watch(p, e.backend) })
	}
	e.asked = e.attached.Backend
	if e.can.Clock != nil && e.OnForecast != nil && e.Stopwatch != nil {
		list = append(list, func(p *core.Pipeline) core.Observer {
			f := e.forecastLive(ctx, p)
			e.atEnd(func(*Result, error) error { f.end(); return nil })
			e.asked = between{e.asked, &f.idle}
			return f
		})
	}
	return list
}
