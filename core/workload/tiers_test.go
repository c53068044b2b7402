package workload

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// As many jobs as stated get a tier, the same by every sample of the workload, and those that have one keep it.
func TestSampleGivesTiers(t *testing.T) {
	const n = 4000
	w := &Workload{}
	for i := range n {
		job := newDurationJob(fmt.Sprintf("j%d", i), float64(i), 60, 1)
		if job.Spec.ID = core.JobID(i); i%2 == 1 {
			job.Spec.Tier = core.Basic
		}
		w.Jobs = append(w.Jobs, job)
	}
	sample := DefaultSample()
	sample.Tiers = Tiers{Premium: 0.25, Standard: 0.5}
	if !sample.Draws() || sample.Whole() {
		t.Error("a sample that draws tiers is none")
	}
	got, err := sample.Apply(w, 1)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]float64{}
	for i := range got.Jobs {
		if tier := got.Jobs[i].Spec.Tier; i%2 == 0 {
			count[tier] += 2.0 / n
		} else if tier != core.Basic {
			t.Fatalf("job %d lost its tier, and has %q", i, tier)
		}
		if w.Jobs[i].Spec.Tier != "" && i%2 == 0 {
			t.Fatal("the workload was changed")
		}
	}
	want := map[string]float64{core.Premium: 0.25, core.Standard: 0.5, "": 0.25}
	if diff := cmp.Diff(want, count, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 0.03 })); diff != "" {
		t.Errorf("parts of the jobs (-want +got):\n%s", diff)
	}
	sample.Window.Jobs = 10
	fewer, err := sample.Apply(w, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range fewer.Jobs {
		if fewer.Jobs[i].Spec.Tier != got.Jobs[i].Spec.Tier {
			t.Errorf("job %d is %q in a smaller sample, and %q else", i, fewer.Jobs[i].Spec.Tier, got.Jobs[i].Spec.Tier)
		}
	}
	sample.Tiers.Basic = 0.26
	wanted := core.Diagnostics{{Path: "tiers", Summary: "gives more jobs a tier than there are", Hint: "premium, standard and basic come to 1 at most"}}
	if diff := cmp.Diff(wanted, sample.Check()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// What a trace says of tiers is read, written and read again, and what is no tier is told with those that are.
func TestTiersOfTraces(t *testing.T) {
	const header = "name,submit_s,duration_s,replicas,tier\n"
	w, err := readString(readCSV, header+"a,0,1,1,premium\nb,0,1,1,\nc,0,1,1,basic\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range w.Jobs {
		got = append(got, w.Jobs[i].Spec.Tier)
	}
	if diff := cmp.Diff([]string{core.Premium, "", core.Basic}, got); diff != "" {
		t.Errorf("tiers (-want +got):\n%s", diff)
	}
	_, err = readString(readCSV, header+"a,0,1,1,gold\nb,0,1,1,Basic\n")
	const want = "t.csv:2:9: tier is \"gold\"; expected premium, standard, basic\nt.csv:3:9: tier is \"Basic\"; expected premium, standard, basic"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want\n%s", err, want)
	}
	jobs, err := DecodeJobs("j.yaml", []byte("version: 1\njobs: [{name: a, command: [x], tier: standard}, {name: b, command: [x]}]\n"))
	if err != nil || jobs[0].Spec.Tier != core.Standard || jobs[1].Spec.Tier != "" {
		t.Errorf("jobs %v, error %v", jobs, err)
	}
	_, err = DecodeJobs("j.yaml", []byte("version: 1\njobs: [{name: a, command: [x], tier: gold}]\n"))
	if want := `j.yaml:2:32: jobs[0].tier: unknown value "gold"; valid values: premium, standard, basic`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
