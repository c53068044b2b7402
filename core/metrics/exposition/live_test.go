package exposition

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/admission"
	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/placement"
)

func component[S any](t *testing.T, f core.Factory[S]) core.Component[S] {
	t.Helper()
	config, problems := f.Decode(nil)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	made, err := f.New(config, core.Settings{ID: f.Type, Rand: core.NewRand(1, f.Type), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return core.Component[S]{ID: f.Type, Policy: made}
}

// TestScrapesDuringARun is for the race detector: the pipeline changes its jobs while others ask.
func TestScrapesDuringARun(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).Nodes(1, "v100", 4).Obj()
	w := &workload.Workload{}
	for id := range 200 {
		replicas, seconds := 1+id%6, float64(100+1000*(id%7))
		w.Jobs = append(w.Jobs, workload.Job{
			Model: workload.NewDurationModel(seconds, replicas),
			Spec:  *coretest.MakeJob(fmt.Sprint(id)).ID(core.JobID(id)).Submit(float64(300 * id)).Work(seconds).Replicas(replicas).Obj().JobSpec,
		})
	}
	world, err := component(t, sim.NewSimulator()).Policy.Open(t.Context(), cluster, w)
	if err != nil {
		t.Fatal(err)
	}
	collector := metrics.NewCollector(metrics.Components{}, metrics.Outputs{Jobs: io.Discard, ExclusiveTime: workload.NewExclusiveTimes(cluster, w).Seconds})
	live := metrics.NewLive(collector, metrics.Run{Wall: func() time.Duration { return time.Second }})
	health := NewHealth(func() time.Duration { return 0 }, Patience)
	p := core.NewPipeline(cluster, core.Stages{
		Admission:  []core.Component[core.Admitter]{component(t, admission.NewAcceptAll())},
		Allocation: component(t, allocation.NewLAS()),
		Placement:  component(t, placement.NewFirstFit()),
		Elasticity: component(t, elasticity.NewFixed()),
	}, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{live}})

	handler := NewHandler(Source{Snapshot: live.Snapshot, Health: health})
	done := make(chan struct{})
	var scrapers sync.WaitGroup
	for range 2 {
		scrapers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					get(handler, "/metrics")
				}
			}
		})
	}
	err = p.Run(t.Context(), health.Watch(world, nil))
	summary, finishErr := live.Finish(p.Unfinished(), p.NowSeconds())
	close(done)
	scrapers.Wait()
	if err != nil || finishErr != nil {
		t.Fatal(err, finishErr)
	}

	if summary.Preemptions == 0 {
		t.Error("nothing was preempted")
	}
	series := scrape(t, handler)
	for name, want := range map[string]float64{
		"quartet_rounds_total":                       float64(summary.Rounds),
		`quartet_jobs_total{outcome="completed"}`:    float64(summary.Jobs.Completed),
		"quartet_job_completion_max_seconds":         float64(summary.JCTSeconds.Max),
		"quartet_queueing_delay_max_seconds":         float64(summary.QueueingSeconds.Max),
		"quartet_utilization_ratio":                  float64(summary.UtilizationRatio),
		`quartet_fairness_rho_mean{measure="sia"}`:   float64(summary.Fairness.Sia.Mean),
		`quartet_accelerator_gpu_hours{type="v100"}`: float64(summary.Accelerators[1].GPUHours),
		"quartet_preemptions_total":                  float64(summary.Preemptions),
		"quartet_wall_seconds":                       1,
		`quartet_pending_jobs{reason="load_limit"}`:  0,
		"quartet_running_jobs":                       0,
	} {
		if got, told := series[name]; got != want || !told {
			t.Errorf("%s is %v (%v), want %v", name, got, told, want)
		}
	}
}
