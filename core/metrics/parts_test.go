package metrics

import (
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// What a job has of its devices may change while it holds them, by its owner or where a run goes on with another sharing: what it had until then stays.
func TestAPartThatChanges(t *testing.T) {
	for name, change := range map[string]func(*core.Report){
		"by its owner": func(r *core.Report) {
			r.Events = []core.Event{{Kind: core.JobChanged, AtSeconds: 100, Job: 0, Spec: r.View.Jobs[0].JobSpec}}
		},
		"with the sharing": func(r *core.Report) { r.Resumed = &core.Resumed{} },
	} {
		t.Run(name, func(t *testing.T) {
			c := coretest.MakeCluster().Nodes(1, "t4", 2).Obj()
			c.Sharing = core.Fractional
			c.Pools = []core.Pool{{Name: "p", Accelerator: 0, Devices: 2, Max: 1, PricePerHour: 72}}
			c.Nodes[0].Pool = "p"
			v := coretest.MakeView(c).Jobs(coretest.MakeJob("a").Share(250).Running(0, coretest.Seat(0, 0, 1))).Obj()
			j := v.Jobs[0]
			var jobs, accelerators strings.Builder
			collector := NewCollector(Components{}, Outputs{Jobs: &jobs, Accelerators: &accelerators})
			observe := func(r *core.Report) {
				t.Helper()
				r.View = v
				if err := collector.ObserveRound(r); err != nil {
					t.Fatal(err)
				}
			}
			observe(&core.Report{
				Events: []core.Event{{Kind: core.JobSubmitted, Job: 0, Spec: j.JobSpec}}, Changes: []core.Change{{Action: core.Start, Job: 0, Seats: j.Seats}},
			})
			v.NowSeconds = 100
			j.Executed, j.Attained, j.AsOfSeconds = 100, 50, 100
			whole := *j.JobSpec
			whole.Share = &core.Share{Milli: 500}
			j.JobSpec = &whole
			r := &core.Report{View: v}
			change(r)
			observe(r)
			if _, err := collector.Finish(v.Jobs, 200); err != nil {
				t.Fatal(err)
			}
			for _, file := range []struct{ name, got, want string }{
				{"jobs.csv", jobs.String(), "\n0,a,,0,0,,,0,2,0,150,unfinished,1.5,500,0\n"},
				{"accelerators.csv", accelerators.String(), "\n0,t4,150,200,1\n"},
			} {
				if !strings.HasSuffix(file.got, file.want) {
					t.Errorf("%s\n%s\nwant its end%s", file.name, file.got, file.want)
				}
			}
		})
	}
}
