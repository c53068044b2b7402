package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/engine"
	"github.com/quartet-sched/quartet/internal/refdata"
	"github.com/quartet-sched/quartet/plugins/host"
	"github.com/quartet-sched/quartet/plugins/loopback"
	"github.com/quartet-sched/quartet/plugins/sdk"
)

// bloxSized is 3,000 single-device jobs, 8 an hour with the durations of Gavel, on 128 devices in rounds of 300 s.
const bloxSized = `version: 1
name: blox-sized-las
cluster:
  nodes: [{name: v100, count: 32, accelerator: v100, devices: 4}]
workload: {type: generated, config: {jobs: 3000, span: 375h, replicas: one, durations: gavel}}
round: {interval: 300s}
pipeline:
  allocation: {type: las}
  placement: {type: consolidated}
`

// outOfProcess names which stages of a composition run in a process of their own.
var outOfProcess = map[string]func(testing.TB, way, *configs.Config) core.Stages{
	"allocation": func(t testing.TB, by way, c *configs.Config) core.Stages {
		stages, err := engine.BuildStages(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		stages.Allocation = remote(t, by, c.Allocation, c.Seed, host.Allocator)
		return stages
	},
	"all": remoteStages,
}

// BenchmarkPlugin pairs a run of built-ins with one whose stages run in processes of their own. Both are timed from the
// first round to the last; what the start of the processes adds is told apart.
func BenchmarkPlugin(b *testing.B) {
	runs := map[string]func(*testing.B) (*configs.Config, *workload.Workload){
		"blox": func(b *testing.B) (*configs.Config, *workload.Workload) {
			c, err := configs.Parse(catalog(), "blox-sized.yaml", []byte(bloxSized), configs.Options{})
			if err != nil {
				b.Fatal(err)
			}
			jobs, err := quartet.LoadWorkload(context.Background(), c, nil)
			if err != nil {
				b.Fatal(err)
			}
			return c, jobs
		},
		"philly": func(b *testing.B) (*configs.Config, *workload.Workload) {
			c, jobs := loaded(b, "philly/las.yaml", "workload.config.path="+refdata.Path(b, "data", "pollux-osdi21", "philly.csv.gz"))
			jobs.Jobs = jobs.Jobs[:10_000]
			return c, jobs
		},
		"philly-whole": func(b *testing.B) (*configs.Config, *workload.Workload) {
			return loaded(b, "philly/las.yaml", "workload.config.path="+refdata.Path(b, "data", "pollux-osdi21", "philly.csv.gz"))
		},
		"pollux": func(b *testing.B) (*configs.Config, *workload.Workload) { // its rounds hold a millisecond of work
			refdata.Path(b, "data", "pollux-osdi21", "workloads", "workload-1.csv")
			return loaded(b, "pollux-osdi21/pollux-exact.yaml")
		},
	}
	for _, run := range []string{"blox", "philly", "philly-whole", "pollux"} {
		b.Run(run, func(b *testing.B) {
			for _, which := range []string{"allocation", "all"} {
				b.Run(which, func(b *testing.B) {
					c, jobs := runs[run](b)
					pair(b, c, jobs, outOfProcess[which])
				})
			}
		})
	}
}

// pair alternates the two kinds of run and reports their medians, and what the fastest of each differ by: that depends
// least on what else the machine does. Both hold the same rounds, so that it also reports by how much the median round is
// longer. The processor time counts what the processes take to start and end.
func pair(b *testing.B, c *configs.Config, jobs *workload.Workload, isolate func(testing.TB, way, *configs.Config) core.Stages) {
	var direct, isolated, start, added []time.Duration
	var directCPU, isolatedCPU time.Duration
	rounds := 0
	for b.Loop() {
		stages, err := engine.BuildStages(c, nil)
		if err != nil {
			b.Fatal(err)
		}
		used := cpuOfAll(b)
		took, without := timed(b, c, jobs, stages)
		direct = append(direct, took)
		directCPU += cpuOfAll(b) - used

		begin := time.Now()
		used = cpuOfAll(b)
		stages = isolate(b, ownProcess, c)
		start = append(start, time.Since(begin))
		took, with := timed(b, c, jobs, stages)
		isolated = append(isolated, took)
		if rounds = len(with); rounds != len(without) {
			b.Fatalf("%d rounds, want the %d of the built-ins", rounds, len(without))
		}
		for i := range with {
			added = append(added, with[i]-without[i])
		}
		if err := engine.CloseStages(&stages); err != nil {
			b.Fatal(err)
		}
		isolatedCPU += cpuOfAll(b) - used
	}
	without, with := median(direct), median(isolated)
	b.ReportMetric(without.Seconds()*1e3, "built-in-ms")
	b.ReportMetric(with.Seconds()*1e3, "isolated-ms")
	b.ReportMetric(median(start).Seconds()*1e3, "start-ms")
	b.ReportMetric(with.Seconds()/without.Seconds(), "x-wall")
	b.ReportMetric(isolatedCPU.Seconds()/directCPU.Seconds(), "x-cpu")
	b.ReportMetric((with-without).Seconds()*1e6/float64(rounds), "added-µs/round")
	b.ReportMetric((slices.Min(isolated)-slices.Min(direct)).Seconds()*1e6/float64(rounds), "least-added-µs/round")
	b.ReportMetric(median(added).Seconds()*1e6, "p50-added-µs/round")
	b.ReportMetric(float64(rounds), "rounds")

	var count bytesOf
	timed(b, c, jobs, isolate(b, count.loopback, c))
	b.ReportMetric(float64(count.bytes)/float64(rounds), "bytes/round")
}

// cpuOfAll is the processor time used so far by us and by the processes that we ended.
func cpuOfAll(b *testing.B) time.Duration {
	b.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &use); err != nil {
		b.Fatal(err)
	}
	return cpu(b) + time.Duration(use.Utime.Nano()+use.Stime.Nano())
}

// laps are the wall times of rounds, each from the end of the one before.
type laps struct {
	last   time.Time
	rounds []time.Duration
}

// ObserveRound ends a lap.
func (l *laps) ObserveRound(*core.Report) error {
	now := time.Now()
	l.rounds, l.last = append(l.rounds, now.Sub(l.last)), now
	return nil
}

// timed runs stages once and returns the wall time of the run, and of each round.
func timed(b *testing.B, c *configs.Config, jobs *workload.Workload, stages core.Stages) (time.Duration, []time.Duration) {
	b.Helper()
	ctx := context.Background()
	cluster, world := openWorld(b, c, jobs)
	collector := metrics.NewCollector(metrics.Components{}, metrics.Outputs{Jobs: io.Discard, Rounds: io.Discard, Decisions: io.Discard})
	var each laps
	p := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: c.Round.Options(), Observers: []core.Observer{collector, &each}})
	begin := time.Now()
	each.last = begin
	if err := p.Run(ctx, world); err != nil {
		b.Fatal(err)
	}
	took := time.Since(begin)
	if _, err := collector.Finish(p.Unfinished(), p.NowSeconds()); err != nil {
		b.Fatal(err)
	}
	return took, each.rounds
}

func median(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}

// bytesOf counts the bytes of the messages, in both directions.
type bytesOf struct{ bytes, calls int }

func (n *bytesOf) loopback(f sdk.Factory, c host.Component) host.Dial {
	dial := loopback.Dial(f, c)
	return func(ctx context.Context) (*host.Session, error) {
		session, err := dial(ctx)
		if err == nil {
			session.Conn = counted{session.Conn, n}
		}
		return session, err
	}
}

type counted struct {
	grpc.ClientConnInterface
	count *bytesOf
}

// Invoke counts both messages of a call.
func (c counted) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	err := c.ClientConnInterface.Invoke(ctx, method, request, answer, options...)
	c.count.bytes += proto.Size(request.(proto.Message)) + proto.Size(answer.(proto.Message))
	c.count.calls++
	return err
}

// BenchmarkChanged asks an allocation policy, in a process of its own, about 10,000 jobs of which a share changed since
// the round before.
func BenchmarkChanged(b *testing.B) {
	const jobs = 10_000
	for _, changed := range []int{0, jobs / 100, jobs} {
		b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) {
			c, err := configs.Parse(catalog(), "blox-sized.yaml", []byte(bloxSized), configs.Options{Sets: []string{"pipeline.allocation={type: fifo}"}})
			if err != nil {
				b.Fatal(err)
			}
			direct, err := engine.BuildStages(c, nil)
			if err != nil {
				b.Fatal(err)
			}
			isolated := outOfProcess["allocation"](b, ownProcess, c)
			var count bytesOf
			counted := outOfProcess["allocation"](b, count.loopback, c)
			settle := func(stages core.Stages) (*crowd, *core.Pipeline) {
				world, p := &crowd{}, core.NewPipeline(c.BuildCluster(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 300}})
				world.round(b, p, world.submit(jobs))
				world.round(b, p, nil) // tells who runs
				world.round(b, p, nil) // tells why the others wait
				return world, p
			}
			world, p := settle(counted)
			before := count.bytes
			world.round(b, p, world.progress(changed))
			bytes := count.bytes - before

			took := map[string]time.Duration{}
			for name, stages := range map[string]core.Stages{"built-in-µs/round": direct, "isolated-µs/round": isolated} {
				world, p := settle(stages)
				begin := time.Now()
				for range b.N {
					world.round(b, p, world.progress(changed))
				}
				took[name] = time.Since(begin)
			}
			b.ReportMetric(float64(bytes), "bytes/round")
			for name, t := range took {
				b.ReportMetric(t.Seconds()*1e6/float64(b.N), name)
			}
			if err := errors.Join(engine.CloseStages(&counted), engine.CloseStages(&isolated)); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// crowd is a world in which many jobs are there all the time.
type crowd struct{ now float64 }

func (c *crowd) round(b *testing.B, p *core.Pipeline, events []core.Event) {
	b.Helper()
	c.now += 300
	if err := p.Round(context.Background(), core.Observation{NowSeconds: c.now, Events: events}, c); err != nil {
		b.Fatal(err)
	}
}

func (c *crowd) submit(jobs int) []core.Event {
	events := make([]core.Event, jobs)
	for i := range events {
		spec := &core.JobSpec{
			ID: core.JobID(i), Name: fmt.Sprintf("job-%06d", i), Weight: 1, Requested: 1, MinReplicas: 1, MaxReplicas: 1, TotalWork: 1e9,
		}
		events[i] = core.Event{Kind: core.JobSubmitted, Job: spec.ID, Spec: spec, StepsLeft: math.NaN()}
	}
	return events
}

func (c *crowd) progress(jobs int) []core.Event {
	events := make([]core.Event, jobs)
	for i := range events {
		events[i] = core.Event{
			Kind: core.JobProgressed, AtSeconds: c.now, Job: core.JobID(i), Progress: c.now, Rate: 1, FromSeconds: c.now, StepsLeft: math.NaN(),
		}
	}
	return events
}

// Next, of a crowd, is called by hand.
func (c *crowd) Next(context.Context, core.Wake) (core.Observation, error) {
	return core.Observation{}, io.EOF
}

// Apply accepts everything.
func (c *crowd) Apply(context.Context, []core.Change) error { return nil }

// Capabilities are none.
func (c *crowd) Capabilities() []core.Capability { return nil }
