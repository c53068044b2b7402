package admission

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/promise"
)

// linear tells that a job works as fast as it has replicas, up to eight, and that its work counts device-seconds.
func linear(j *core.Job) core.Response {
	rates := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	return core.Response{
		Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas, RemainingWork: math.NaN(),
		Curves: []core.Curve{{OneNode: rates, ManyNodes: rates}},
	}
}

// due is a job of so many device-seconds and so many seconds until its deadline.
func due(work, deadline float64) *coretest.JobBuilder {
	return coretest.MakeJob("due").Elastic(1, 1, 8).Work(work).Deadline(deadline)
}

// candidates makes candidates of jobs, the first ones admitted already.
func candidates(devices, admitted int, jobs ...*coretest.JobBuilder) (v *core.View, first, waiting []core.Candidate) {
	v = coretest.MakeView(coretest.MakeCluster().Nodes(devices, "t4", 1).Obj()).Jobs(jobs...).Obj()
	v.IntervalSeconds = 0
	for i, j := range v.Jobs {
		response := linear(j)
		c := core.Candidate{Job: j, Response: &response}
		if i < admitted {
			j.State = core.Waiting
			first = append(first, c)
		} else {
			waiting = append(waiting, c)
		}
	}
	return v, first, waiting
}

// fatal is what tests, benchmarks and properties have in common.
type fatal interface {
	Helper()
	Fatal(...any)
}

func newDeadline(t fatal, overhead time.Duration) *deadline {
	t.Helper()
	p, err := NewDeadline().New(&DeadlineConfig{Overhead: overhead, Levels: promise.PowersOfTwo}, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return p.(*deadline)
}

func TestDeadlineAdmits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		devices, admitted int
		jobs              []*coretest.JobBuilder
		overhead          time.Duration
		now               float64
		grows             bool
		want              map[core.JobID]string // code, reason and message of those that are not admitted
	}{
		"alone":                          {devices: 1, jobs: []*coretest.JobBuilder{due(100, 100)}},
		"on more devices":                {devices: 4, jobs: []*coretest.JobBuilder{due(400, 100)}},
		"too long for all there are":     {devices: 2, jobs: []*coretest.JobBuilder{due(400, 100)}, want: map[core.JobID]string{0: "reject deadline_unreachable: it takes 3m20s at least and has 1m40s"}},
		"too much beside an admitted":    {devices: 1, admitted: 1, jobs: []*coretest.JobBuilder{due(60, 100), due(60, 100)}, want: map[core.JobID]string{1: "reject deadline_unreachable: needs 60 device-seconds, and 40 device-seconds are free until then; it would be done 20s late"}},
		"it would break a promise":       {devices: 1, admitted: 1, jobs: []*coretest.JobBuilder{due(60, 110), due(60, 100)}, want: map[core.JobID]string{1: "reject deadline_unreachable: needs 60 device-seconds, and 50 device-seconds are free until then; it would be done 20s late"}},
		"each by itself":                 {devices: 1, jobs: []*coretest.JobBuilder{due(60, 100), due(60, 100), due(40, 100)}, want: map[core.JobID]string{1: "reject deadline_unreachable: needs 60 device-seconds, and 0 device-seconds are free until then; it would be done 1m late"}},
		"whenever":                       {devices: 1, jobs: []*coretest.JobBuilder{due(60, 100), due(600, 0)}},
		"best effort":                    {devices: 1, jobs: []*coretest.JobBuilder{due(60, 100), due(60, 100).BestEffort()}},
		"nobody knows how long it takes": {devices: 1, jobs: []*coretest.JobBuilder{due(0, 100)}, want: map[core.JobID]string{0: "reject deadline_unreachable: how long it takes is not known"}},
		"a start costs":                  {devices: 1, overhead: time.Second, jobs: []*coretest.JobBuilder{due(100, 100)}, want: map[core.JobID]string{0: "reject deadline_unreachable: it takes 1m41s at least and has 1m40s"}},
		"late already, and others come":  {devices: 2, admitted: 1, jobs: []*coretest.JobBuilder{due(200, 100), due(100, 100), due(100, 100)}, want: map[core.JobID]string{1: "reject deadline_unreachable: needs 100 device-seconds, and 0 device-seconds are free until then; it would be done 50s late", 2: "reject deadline_unreachable: needs 100 device-seconds, and 0 device-seconds are free until then; it would be done 50s late"}},
		"a broken one keeps nobody out":  {devices: 1, admitted: 1, jobs: []*coretest.JobBuilder{due(200, 100), due(100, 100)}},
		"the last of several":            {devices: 1, jobs: []*coretest.JobBuilder{due(60, 100), due(40, 100), due(60, 90)}, want: map[core.JobID]string{2: "reject deadline_unreachable: needs 60 device-seconds, and 0 device-seconds are free until then; it would be done 1m10s late"}},
		"just long enough alone":         {devices: 1, admitted: 1, jobs: []*coretest.JobBuilder{due(100, 100), due(100, 100)}, want: map[core.JobID]string{1: "reject deadline_unreachable: needs 100 device-seconds, and 0 device-seconds are free until then; it would be done 1m40s late"}},
		"another would miss his":         {devices: 2, admitted: 2, overhead: 10 * time.Second, jobs: []*coretest.JobBuilder{due(60, 110), due(70, 100), due(30, 70)}, want: map[core.JobID]string{2: "reject deadline_unreachable: needs 30 device-seconds, and 60 device-seconds are free until then; one with a later deadline would miss it"}},
		"another would miss his, and this one is done just in time": {devices: 2, admitted: 2, overhead: 10 * time.Second, jobs: []*coretest.JobBuilder{due(40, 80), due(40, 100), due(45, 45)}, want: map[core.JobID]string{2: "reject deadline_unreachable: needs 45 device-seconds, and 75 device-seconds are free until then; one with a later deadline would miss it"}},
		"its deadline is now":                  {devices: 2, now: 100, jobs: []*coretest.JobBuilder{due(100, 100)}, want: map[core.JobID]string{0: "reject deadline_unreachable: its deadline was 0s ago"}},
		"an hour":                              {devices: 1, admitted: 1, jobs: []*coretest.JobBuilder{due(3601, 7200), due(3600, 7200)}, want: map[core.JobID]string{1: "reject deadline_unreachable: needs 1.0 device-hours, and 3599 device-seconds are free until then; it would be done 1s late"}},
		"more nodes may come, as time goes by": {devices: 1, now: 30, grows: true, jobs: []*coretest.JobBuilder{due(400, 100)}, want: map[core.JobID]string{0: "defer awaiting_nodes: needs 400 device-seconds, and 70 device-seconds are free until then; on all there are it takes 6m40s, and has 1m10s"}},
		"as time goes by":                      {devices: 1, now: 30, jobs: []*coretest.JobBuilder{due(80, 100)}, want: map[core.JobID]string{0: "reject deadline_unreachable: it takes 1m20s at least and has 1m10s"}},
		"too many at once":                     {devices: 2, jobs: []*coretest.JobBuilder{due(100, 100).Elastic(4, 4, 8)}, want: map[core.JobID]string{0: "reject deadline_unreachable: needs 100 device-seconds, and 200 device-seconds are free until then; it needs 4 at once, and there are 2"}},
		"late before it is asked about":        {devices: 2, now: 120, jobs: []*coretest.JobBuilder{due(100, 100)}, want: map[core.JobID]string{0: "reject deadline_unreachable: its deadline was 20s ago"}},
		"hours":                                {devices: 1, admitted: 1, jobs: []*coretest.JobBuilder{due(3601, 10_000), due(7000, 10_000)}, want: map[core.JobID]string{1: "reject deadline_unreachable: needs 2.0 device-hours, and 1.7 device-hours are free until then; it would be done 10m1s late"}},
		"more nodes may come":                  {devices: 1, admitted: 1, grows: true, jobs: []*coretest.JobBuilder{due(60, 100), due(60, 100), due(900, 100).Elastic(1, 1, 1), due(400, 100)}, want: map[core.JobID]string{3: "defer awaiting_nodes: needs 400 device-seconds, and 40 device-seconds are free until then; on all there are it takes 6m40s, and has 1m40s", 1: "defer awaiting_nodes: needs 60 device-seconds, and 40 device-seconds are free until then; it would be done 20s late", 2: "reject deadline_unreachable: it takes 15m at least and has 1m40s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, admitted, waiting := candidates(tc.devices, tc.admitted, tc.jobs...)
			v.Cluster.MayGrow, v.NowSeconds = tc.grows, tc.now
			verdicts, err := newDeadline(t, tc.overhead).AdmitCandidates(t.Context(), v, admitted, waiting)
			if err != nil {
				t.Fatal(err)
			}
			var got map[core.JobID]string
			for _, verdict := range verdicts {
				if got == nil {
					got = map[core.JobID]string{}
				}
				got[verdict.Job] = fmt.Sprintf("%s %s: %s", verdict.Code, verdict.Reason, verdict.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Each type has devices of its own, and a job counts with the type that serves it best.
func TestDeadlineByType(t *testing.T) {
	t.Parallel()
	twice := func(j *core.Job) core.Response { // as fast on the v100
		r := linear(j)
		r.Curves = append(r.Curves, core.Curve{OneNode: []float64{2, 4, 6, 8}, ManyNodes: []float64{2, 4, 6, 8}})
		return r
	}
	on := func(j *coretest.JobBuilder, types ...string) *coretest.JobBuilder { return j.Accelerators(types...) }
	for name, tc := range map[string]struct {
		jobs  []*coretest.JobBuilder
		rates func(*core.Job) core.Response
		pool  string // type of one that may grow
		want  map[core.JobID]string
	}{
		"one on each":         {jobs: []*coretest.JobBuilder{on(due(100, 100), "t4"), on(due(100, 100), "v100")}},
		"two on one":          {jobs: []*coretest.JobBuilder{on(due(100, 100), "v100"), on(due(90, 100), "v100")}, want: map[core.JobID]string{1: "reject deadline_unreachable: needs 90 device-seconds of v100, and 0 device-seconds are free until then; it would be done 1m30s late"}},
		"the other has room":  {jobs: []*coretest.JobBuilder{on(due(100, 100), "v100"), due(100, 100)}},
		"never of both":       {jobs: []*coretest.JobBuilder{due(200, 100)}, want: map[core.JobID]string{0: "reject deadline_unreachable: it takes 3m20s at least and has 1m40s"}},
		"a faster one":        {rates: twice, jobs: []*coretest.JobBuilder{due(200, 100), due(100, 100)}},
		"is not there for it": {rates: twice, jobs: []*coretest.JobBuilder{due(200, 100), due(200, 100)}, want: map[core.JobID]string{1: "reject deadline_unreachable: needs 200 device-seconds of t4, and 100 device-seconds are free until then; it would be done 1m40s late"}},
		"there are none yet":  {pool: "a100", jobs: []*coretest.JobBuilder{on(due(100, 100), "a100")}, want: map[core.JobID]string{0: "defer awaiting_nodes: needs 100 device-seconds of a100, and 0 device-seconds are free until then; it needs 1 at once, and there are 0"}},
		"nor in time":         {pool: "a100", jobs: []*coretest.JobBuilder{on(due(900, 100), "a100")}, want: map[core.JobID]string{0: "reject deadline_unreachable: it takes 1m53s at least and has 1m40s"}},
		"not for that type":   {pool: "a100", jobs: []*coretest.JobBuilder{on(due(200, 100), "t4")}, want: map[core.JobID]string{0: "reject deadline_unreachable: it takes 3m20s at least and has 1m40s"}},
		"for that, too":       {pool: "a100", jobs: []*coretest.JobBuilder{on(due(200, 100), "t4", "a100")}, want: map[core.JobID]string{0: "defer awaiting_nodes: needs 200 device-seconds of t4, and 100 device-seconds are free until then; on all there are it takes 3m20s, and has 1m40s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := coretest.MakeCluster().Nodes(1, "t4", 1).Nodes(1, "v100", 1).Obj()
			if tc.pool != "" {
				c.Accelerators = append(c.Accelerators, tc.pool)
				c.Pools, c.MayGrow = []core.Pool{{Name: "p", Accelerator: 2, Devices: 8, Max: 1}}, true
			}
			if tc.rates == nil {
				tc.rates = linear
			}
			v := coretest.MakeView(c).Jobs(tc.jobs...).Obj()
			v.IntervalSeconds = 0
			var waiting []core.Candidate
			for _, j := range v.Jobs {
				r := tc.rates(j)
				waiting = append(waiting, core.Candidate{Job: j, Response: &r})
			}
			verdicts, err := newDeadline(t, 0).AdmitCandidates(t.Context(), v, nil, waiting)
			if err != nil {
				t.Fatal(err)
			}
			var got map[core.JobID]string
			for _, verdict := range verdicts {
				if got == nil {
					got = map[core.JobID]string{}
				}
				got[verdict.Job] = fmt.Sprintf("%s %s: %s", verdict.Code, verdict.Reason, verdict.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Nobody hopes for devices before they can be there: nodes of pools take their time, as those that are on their way do.
func TestDeadlineKnowsWhenNodesCome(t *testing.T) {
	t.Parallel()
	pool := core.Pool{Name: "p", Devices: 8, Max: 1}
	for name, tc := range map[string]struct {
		now          float64
		provisioning float64
		most         int     // nodes that the pool may have
		expected     float64 // of a node on its way; 0 for none, -1 for one of which nobody knows
		job          *coretest.JobBuilder
		overhead     time.Duration
		want         string
	}{
		"at once":                             {most: 1, job: due(400, 100), want: "defer awaiting_nodes"},
		"in time":                             {provisioning: 57, most: 1, job: due(400, 100), want: "defer awaiting_nodes"},
		"too late":                            {provisioning: 58, most: 1, job: due(400, 100), want: "reject deadline_unreachable: it takes 1m41s at least and has 1m40s"},
		"later":                               {now: 1000, provisioning: 58, most: 1, job: due(400, 1100), want: "reject deadline_unreachable: it takes 1m41s at least and has 1m40s"},
		"in time, and a start takes too long": {provisioning: 50, overhead: 10 * time.Second, most: 1, job: due(400, 100), want: "reject deadline_unreachable: it takes 1m45s at least and has 1m40s"},
		"nothing before":                      {provisioning: 52, most: 1, job: due(400, 100).Elastic(8, 8, 8), want: "reject deadline_unreachable: it takes 1m42s at least and has 1m40s"},
		"nothing before, in time":             {provisioning: 50, most: 1, job: due(400, 100).Elastic(8, 8, 8), want: "defer awaiting_nodes"},
		"after the deadline":                  {provisioning: 100_000 * 3600, most: 1, job: due(400, 100), want: "reject deadline_unreachable: it takes 6m40s at least and has 1m40s"},
		"the pool has its most":               {provisioning: 1, job: due(400, 100), want: "reject deadline_unreachable: it takes 6m40s at least and has 1m40s"},
		"on its way, in time":                 {provisioning: 1e6, most: 1, expected: 57, job: due(400, 100), want: "defer awaiting_nodes"},
		"on its way, too late":                {provisioning: 1, most: 1, expected: 58, job: due(400, 100), want: "reject deadline_unreachable: it takes 1m41s at least and has 1m40s"},
		"on its way, whenever":                {provisioning: 1e6, most: 1, expected: -1, job: due(400, 100), want: "defer awaiting_nodes"},
		"on its way, and should be there":     {now: 60, provisioning: 1e6, most: 1, expected: 59, job: due(400, 160), want: "defer awaiting_nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, admitted, waiting := candidates(1, 0, tc.job)
			c := v.Cluster
			v.NowSeconds, v.IntervalSeconds = tc.now, 0
			p := pool
			p.ProvisioningSeconds, p.Max = tc.provisioning, tc.most
			c.Pools, c.MayGrow = []core.Pool{p}, true
			if tc.expected != 0 {
				c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(len(c.Nodes)), Pool: "p", Devices: 8, Health: core.Provisioning, ExpectedSeconds: max(tc.expected, 0)})
			}
			verdicts, err := newDeadline(t, tc.overhead).AdmitCandidates(t.Context(), v, admitted, waiting)
			if err != nil || len(verdicts) != 1 {
				t.Fatalf("%v, %v", verdicts, err)
			}
			got := fmt.Sprintf("%s %s: %s", verdicts[0].Code, verdicts[0].Reason, verdicts[0].Message)
			if verdicts[0].Code == core.Defer {
				got, _, _ = strings.Cut(got, ":")
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A job that waits for nodes is asked about again once they would no longer help.
func TestDeadlineDefersUntilItIsHopeless(t *testing.T) {
	t.Parallel()
	v, admitted, waiting := candidates(1, 1, due(90, 100), due(60, 100).Elastic(1, 1, 1))
	v.Cluster.MayGrow = true
	p := newDeadline(t, 0)
	if _, err := p.AdmitCandidates(t.Context(), v, admitted, waiting); err != nil {
		t.Fatal(err)
	}
	if until := p.Standing().UntilSeconds; until > 0 {
		t.Fatalf("stands until %v while a job waits for nodes", until)
	}
	v.NowSeconds = 100 - 60 + 1e-3
	verdicts, err := p.AdmitCandidates(t.Context(), v, admitted, waiting)
	if err != nil || len(verdicts) != 1 || verdicts[0].Code != core.Reject || !strings.Contains(verdicts[0].Message, "at least") {
		t.Fatalf("%v, %v: want a rejection", verdicts, err)
	}
	if until := p.Standing().UntilSeconds; !math.IsInf(until, 1) {
		t.Errorf("stands until %v, where nobody waits", until)
	}
}

// Whoever is admitted has a plan with all others. Nor is nearly everybody turned away.
func TestDeadlineKeepsAllPromises(t *testing.T) {
	t.Parallel()
	asked, promised := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		devices := rapid.IntRange(1, 8).Draw(t, "devices")
		var jobs []*coretest.JobBuilder
		for range rapid.IntRange(1, 12).Draw(t, "jobs") {
			jobs = append(jobs, due(float64(rapid.IntRange(1, 400).Draw(t, "work")), float64(rapid.IntRange(1, 300).Draw(t, "deadline"))))
		}
		v, _, waiting := candidates(devices, 0, jobs...)
		policy := newDeadline(t, rapid.SampledFrom([]time.Duration{0, 5 * time.Second}).Draw(t, "overhead"))
		verdicts, err := policy.AdmitCandidates(t.Context(), v, nil, waiting)
		if err != nil {
			t.Fatal(err)
		}
		var kept []core.Candidate
		for _, c := range waiting {
			if !slices.ContainsFunc(verdicts, func(verdict core.Verdict) bool { return verdict.Job == c.ID }) {
				kept = append(kept, c)
			}
		}
		asked, promised = asked+len(waiting), promised+len(kept)
		again := promise.Ledger{Planner: promise.Planner{Overhead: policy.ledger.Overhead}, Levels: promise.PowersOfTwo}
		again.Collect(v, kept)
		again.Plan()
		for _, e := range again.Jobs() {
			if len(e.Plan) == 0 {
				t.Fatalf("job %d was admitted, and there is no plan for it", e.ID)
			}
		}
	})
	t.Logf("%d of %d were admitted", promised, asked)
	if asked >= 100 && promised*10 < asked {
		t.Errorf("%d of %d were admitted, want at least a tenth", promised, asked)
	}
}

// One job more among 10,000 that have deadlines, within a day, on 4,096 devices.
func BenchmarkDeadline(b *testing.B) {
	const active = 10_000
	for name, last := range map[string]*coretest.JobBuilder{"admitted": due(3600, 40_000), "declined": due(4096*3600, 4000).Elastic(1, 1, 8192)} {
		b.Run(name, func(b *testing.B) {
			rand := core.NewRand(1, "deadline")
			var jobs []*coretest.JobBuilder
			for range active {
				work := 600 + 7200*rand.Float64()
				jobs = append(jobs, due(work, work/8+86_400*rand.Float64()))
			}
			v, admitted, waiting := candidates(1, active, append(jobs, last)...)
			v.Cluster = coretest.MakeCluster().Nodes(1024, "t4", 4).Obj()
			v.Devices, v.IntervalSeconds = 4096, 60
			p := newDeadline(b, 30*time.Second)
			for b.Loop() {
				verdicts, err := p.AdmitCandidates(b.Context(), v, admitted, waiting)
				if err != nil || len(verdicts) > 0 != (name == "declined") {
					b.Fatal(verdicts, err)
				}
			}
		})
	}
}
