//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
)

// The load that a scheduler is measured under.
const (
	loadJobs    = 2000
	loadDevices = 64
)

// loaded is a scheduler of loadDevices in this process.
type loaded struct {
	*Backend
	stop    context.CancelFunc
	ended   chan error
	mutex   sync.Mutex
	change  *sync.Cond
	ends    map[core.JobID]core.EventKind
	started int
	now     float64
}

func (l *loaded) ObserveRound(r *core.Report) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, e := range r.Events {
		switch e.Kind {
		case core.JobFinished, core.JobFailed, core.JobCancelled:
			l.ends[e.Job] = e.Kind
		}
	}
	for _, c := range r.Changes {
		if c.Action == core.Start {
			l.started++
		}
	}
	l.now = r.View.NowSeconds
	l.change.Broadcast()
	return nil
}

// await waits for a state between rounds.
func (l *loaded) await(reached func() bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for !reached() {
		l.change.Wait()
	}
}

func load(tb testing.TB, dir string) *loaded {
	tb.Helper()
	o := coretest.Component(New(realClock{}), map[string]any{"grace": "200ms"}, discard).(*Opener)
	o.For(Run{Dir: dir, Identity: "test"})
	cluster := &core.Cluster{Accelerators: []string{"gpu"}}
	for i := range loadDevices / 8 {
		cluster.Nodes = append(cluster.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("node-%d", i), Devices: 8})
	}
	opened, err := o.Open(context.Background(), cluster, &workload.Workload{Open: true})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &loaded{Backend: opened.(*Backend), stop: stop, ended: make(chan error, 1), ends: map[core.JobID]core.EventKind{}}
	l.change = sync.NewCond(&l.mutex)
	stages, rounds := compose(patient, discard)
	go func() {
		l.ended <- core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: rounds, Observers: []core.Observer{l}}).Run(ctx, l.Backend)
	}()
	return l
}

// halt ends the rounds.
func (l *loaded) halt(tb testing.TB) {
	tb.Helper()
	l.stop()
	if err := <-l.ended; !errors.Is(err, context.Canceled) {
		tb.Error(err)
	}
}

// end ends the scheduler, and what runs.
func (l *loaded) end(tb testing.TB) {
	tb.Helper()
	l.halt(tb)
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
}

// die ends the scheduler as a kill does: what runs goes on.
func (l *loaded) die(tb testing.TB) {
	tb.Helper()
	l.halt(tb)
	if _, err := l.Leave(); err != nil {
		tb.Fatal(err)
	}
}

func (l *loaded) take(tb testing.TB, jobs ...string) {
	text := "{version: 1, jobs: [" + strings.Join(jobs, ", ") + "]}"
	if _, err := l.Submit(context.Background(), backend.JobFile{Name: "jobs.yaml", Text: []byte(text), Dir: "/"}); err != nil {
		tb.Error(err)
	}
}

func short(i int) string { return fmt.Sprintf("{name: short-%d, command: [\"true\"]}", i) }

// BenchmarkSubmit submits short jobs to a scheduler that starts them meanwhile: in one file, and one by one.
func BenchmarkSubmit(b *testing.B) {
	for name, callers := range map[string]int{"file": 0, "one by one": 1, "16 at once": 16} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				l := load(b, b.TempDir())
				b.StartTimer()
				if callers == 0 {
					var jobs []string
					for i := range loadJobs {
						jobs = append(jobs, short(i))
					}
					l.take(b, jobs...)
				}
				var work sync.WaitGroup
				for caller := range callers {
					work.Go(func() {
						for i := caller; i < loadJobs; i += callers {
							l.take(b, short(i))
						}
					})
				}
				work.Wait()
				b.StopTimer()
				l.end(b)
				b.StartTimer()
			}
			b.ReportMetric(loadJobs*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkLoad takes short jobs to their end, then watches a quiet scheduler with a long job on each device, and another one
// that took its place.
func BenchmarkLoad(b *testing.B) {
	const quiet = 10 * time.Second
	share := func() float64 {
		before := processorTime(syscall.RUSAGE_SELF)
		time.Sleep(quiet)
		return 100 * (processorTime(syscall.RUSAGE_SELF) - before).Seconds() / quiet.Seconds()
	}
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "live")
		l := load(b, dir)
		began, before := realClock{}.Now(), processorTime(syscall.RUSAGE_SELF)
		var jobs []string
		for i := range loadJobs {
			jobs = append(jobs, short(i))
		}
		l.take(b, jobs...)
		l.await(func() bool { return len(l.ends) == loadJobs })
		took := realClock{}.Now().Sub(began)
		b.ReportMetric(loadJobs/took.Seconds(), "jobs/s")
		b.ReportMetric(1000*(processorTime(syscall.RUSAGE_SELF)-before).Seconds()/loadJobs, "ms-cpu/job")
		for id, kind := range l.ends {
			if kind != core.JobFinished {
				b.Errorf("job %d: %v", id, kind)
			}
		}
		jobs = nil
		for i := range loadDevices {
			jobs = append(jobs, fmt.Sprintf("{name: long-%d, command: [sleep, \"3600\"]}", i))
		}
		l.take(b, jobs...)
		l.await(func() bool { return l.started == loadJobs+loadDevices })
		time.Sleep(quiet / 2) // until they are started
		b.ReportMetric(share(), "%-of-a-core")
		until := l.now
		l.die(b)
		began = realClock{}.Now()
		l = load(b, dir)
		l.await(func() bool { return l.now >= until })
		b.ReportMetric(1000*realClock{}.Now().Sub(began).Seconds(), "ms-to-resume")
		time.Sleep(quiet / 2)
		b.ReportMetric(share(), "%-of-a-core-resumed")
		l.end(b)
	}
}

// processorTime is what this process or its children have used.
func processorTime(who int) time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(who, &used) // it never fails
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
