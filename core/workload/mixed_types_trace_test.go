package workload

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// readUnlike loads a trace, over which the seed draws.
func readUnlike(t *testing.T, seed uint64, rows ...string) (*Workload, error) {
	t.Helper()
	factory := NewMixedTypes()
	path := writeFile(t, "name,submit_s,duration_s,replicas,application,tenant,accelerators\n"+strings.Join(rows, "\n"), t.TempDir(), "trace.csv")
	config, problems := factory.Decode(map[string]any{"path": path})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	source, err := factory.New(config, core.Settings{Rand: core.NewRand(seed, "workload")})
	if err != nil {
		t.Fatal(err)
	}
	return source.Load(context.Background())
}

func TestUnlikeTrace(t *testing.T) {
	rows := []string{"b,60,1000,4,,,", "a,0,3600,2,bert,vision,", "c,90,600,64,,,T4|G2|H100", "d,120,600,1,gpt2,,"}
	w, err := readUnlike(t, 1, rows...)
	if err != nil {
		t.Fatal(err)
	}
	checkWorkload(t, w)
	type job struct {
		name, tenant         string
		submit, seconds      float64
		least, requested     int
		types                []string
		mixes, elasticEnough bool
	}
	all := []string{"T4", "P100", "V100M16", "V100M32", "A10", "G2", "G3"}
	want := []job{
		{"a", "vision", 0, 3600, 1, 2, all, true, true},
		{"b", "", 60, 1000, 1, 4, all, true, true},
		{"c", "", 90, 600, 1, 16, []string{"T4", "G2"}, true, true}, // no more than it can use
		{"d", "", 120, 600, 1, 1, []string{"V100M32", "A10", "G2", "G3"}, true, true},
	}
	var got []job
	for i := range w.Jobs {
		s := &w.Jobs[i].Spec
		step := s.StepTimes
		at := slices.IndexFunc(step.Types, func(on core.TypeTimes) bool { return on.Accelerator == referenceType })
		seconds := s.TotalWork * step.Types[at].OneNode[s.Requested-1]
		if i < 2 && !slices.Equal(s.Accelerators, all) { // b may train gpt2
			s.Accelerators = all
		}
		got = append(got, job{
			s.Name, s.Tenant, s.SubmitSeconds, math.Round(seconds/10) * 10, s.MinReplicas, s.Requested, s.Accelerators,
			s.MixesTypes, s.MaxReplicas == len(step.MixedTypes.SyncSeconds),
		})
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(job{})); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if len(w.Inputs) != 1 {
		t.Errorf("%d inputs, want the trace", len(w.Inputs))
	}
	slices.Reverse(rows)
	again, err := readUnlike(t, 1, rows...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Jobs {
		if a, b := w.Jobs[i].Spec.Application, again.Jobs[i].Spec.Application; a != b {
			t.Errorf("job %s trains %s, and %s with the rows reversed", w.Jobs[i].Spec.Name, a, b)
		}
	}
}

// Where no application is named, all are drawn, but for those that do not fit on the types allowed.
func TestUnlikeTraceDrawsApplications(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(100) {
		w, err := readUnlike(t, seed, "a,0,1,1,,,T4", "b,0,1,1,,,")
		if err != nil {
			t.Fatal(err)
		}
		if w.Jobs[0].Spec.Application == "gpt2" {
			t.Error("gpt2 on a T4")
		}
		seen[w.Jobs[1].Spec.Application] = true
	}
	if len(seen) != len(mixedTasks) {
		t.Errorf("draws %v, want all %d applications", seen, len(mixedTasks))
	}
}

func TestUnlikeTraceProblems(t *testing.T) {
	_, err := readUnlike(t, 1, "a,0,1,1,brt,,", "b,0,1,1,gpt2,,T4|P100", "c,0,1,1,,,H100")
	for _, want := range []string{
		`2:1: job "a" trains unknown application "brt"`, `did you mean "bert"?`,
		`3:1: job "b" can run on none of its types, T4, P100`, "its application runs on V100M32, A10, G2, G3",
		`4:1: job "c" can run on none of its types, H100`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v\nlacks %s", err, want)
		}
	}
}
