package admission

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

func newFitsAll(t rapid.TB, config map[string]any) core.Admitter {
	t.Helper()
	decoded, problems := NewFitsAll().Decode(config)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p, err := NewFitsAll().New(decoded, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFitsAll(t *testing.T) {
	drop := map[string]any{"misfits": "drop"}
	job := func(least int) *coretest.JobBuilder { return coretest.MakeJob("a").Elastic(least, least, 64) }
	trains := func(requested int) *coretest.JobBuilder {
		return job(1).Batch(core.BatchSpec{Requested: requested, Initial: 128, Max: 4096, MinPerDevice: 1, MaxPerDevice: 256})
	}
	for name, tc := range map[string]struct {
		config map[string]any
		grows  bool
		active []int
		jobs   []*coretest.JobBuilder
		want   string
	}{
		"all fit":                            {nil, false, nil, []*coretest.JobBuilder{job(4), job(4)}, ""},
		"one more does not":                  {nil, false, nil, []*coretest.JobBuilder{job(4), job(4), job(1)}, "2 defer load_limit 1 of 0"},
		"those that are admitted count":      {nil, false, []int{3, 4}, []*coretest.JobBuilder{job(2), job(1)}, "2 defer load_limit 2 of 1"},
		"those behind are tried":             {drop, false, nil, []*coretest.JobBuilder{job(6), job(4), job(2), job(1)}, "1 reject load_limit 4 of 2; 3 reject load_limit 1 of 0"},
		"too large for all":                  {drop, false, nil, []*coretest.JobBuilder{job(9), job(8)}, "0 reject load_limit 9 of 8"},
		"too large, and nodes may join":      {drop, true, nil, []*coretest.JobBuilder{job(9), job(7), job(2)}, "0 defer awaiting_nodes 9 of 8; 2 reject load_limit 2 of 1"},
		"as many as there are, and others":   {drop, true, []int{1}, []*coretest.JobBuilder{job(8)}, "1 reject load_limit 8 of 7"},
		"would fit with the nodes of a pool": {drop, true, []int{8}, []*coretest.JobBuilder{job(3), job(2), job(1)}, "1 defer awaiting_nodes 3 of 0; 2 reject load_limit 2 of 0; 3 defer awaiting_nodes 1 of 0"},
		"pools that do not grow":             {drop, false, []int{8}, []*coretest.JobBuilder{job(3)}, "1 reject load_limit 3 of 0"},
		"a batch that one holds":             {nil, false, []int{7}, []*coretest.JobBuilder{trains(1024)}, ""},
		"a batch that it keeps":              {map[string]any{"batch": "requested"}, false, []int{5}, []*coretest.JobBuilder{trains(1024)}, "1 defer load_limit 4 of 3"},
		"a batch that it keeps, and one":     {map[string]any{"batch": "requested"}, false, []int{4}, []*coretest.JobBuilder{trains(1024)}, ""},
		"fewer devices than are held":        {nil, false, []int{9}, []*coretest.JobBuilder{job(1)}, "1 defer load_limit 1 of 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*coretest.JobBuilder
			for _, least := range tc.active {
				all = append(all, job(least).Waiting())
			}
			cluster := coretest.MakeCluster().Nodes(2, "t4", 4).Obj()
			cluster.MayGrow = tc.grows
			if strings.Contains(name, "pool") {
				cluster.Pools = []core.Pool{{Name: "p", Devices: 4, Max: 1}}
			}
			v := coretest.MakeView(cluster).Jobs(append(all, tc.jobs...)...).Obj()
			verdicts, err := newFitsAll(t, tc.config).Admit(t.Context(), v, v.Jobs[len(all):])
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range verdicts {
				got = append(got, fmt.Sprintf("%d %v %v %v of %v", d.Job, d.Code, d.Reason, d.Wanted, d.Available))
			}
			if text := strings.Join(got, "; "); text != tc.want {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
}

// A decision on 10,000 jobs that wait, of which 4,000 fit, and on one more beside 10,000 that were admitted.
func BenchmarkFitsAll(b *testing.B) {
	for name, tc := range map[string]struct {
		misfits  string
		admitted int
		nodes    int
	}{
		"queued":   {queueMisfits, 0, 1000},
		"dropped":  {dropMisfits, 0, 1000},
		"one_more": {dropMisfits, 10_000, 2501},
	} {
		b.Run(name, func(b *testing.B) {
			var jobs []*coretest.JobBuilder
			for i := range max(10_000, tc.admitted+1) {
				job := coretest.MakeJob("a").Elastic(1, 2, 8)
				if i < tc.admitted {
					job = job.Waiting()
				}
				jobs = append(jobs, job)
			}
			v := coretest.MakeView(coretest.MakeCluster().Nodes(tc.nodes, "t4", 4).Obj()).Jobs(jobs...).Obj()
			p := &fitsAll{config: FitsAllConfig{Misfits: tc.misfits, Batch: smallestBatch}}
			for b.Loop() {
				verdicts, err := p.Admit(b.Context(), v, v.Jobs[tc.admitted:])
				if err != nil || (len(verdicts) > 0) != (tc.admitted == 0) {
					b.Fatal(len(verdicts), err)
				}
			}
		})
	}
}
