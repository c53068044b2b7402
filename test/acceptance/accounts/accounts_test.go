package accounts_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/timeline"
)

// sharedJob is a job of a random run, and the part that each of its replicas has of a device, as its trace says.
type sharedJob struct {
	share, profile string
	part           float64
	column         string // of share_milli, or of mig_profile
	replicas       int
	seconds        float64
	bestEffort     bool
	tier           string
	accelerator    string
}

// drawSharedJob draws a job, and works out its part anew.
func drawSharedJob(t *rapid.T, how core.Sharing) sharedJob {
	j := sharedJob{
		replicas: rapid.IntRange(1, 3).Draw(t, "replicas"), seconds: float64(rapid.IntRange(1, 40000).Draw(t, "tenths")) / 10, part: 1,
		bestEffort: rapid.Bool().Draw(t, "best effort"), accelerator: rapid.SampledFrom([]string{"", "t4", "v100"}).Draw(t, "accelerator"),
		tier: rapid.SampledFrom([]string{"", core.Premium, core.Standard}).Draw(t, "tier"),
	}
	profiles := []string{"1g", "2g", "3g", "4g", "7g"}
	compute := []int{1, 2, 3, 4, 7}
	milli := -1
	switch rapid.SampledFrom([]string{"whole", "part", "none", "slice"}).Draw(t, "asks for") {
	case "part":
		milli = rapid.SampledFrom([]int{1, 142, 143, 250, 333, 500, 999, 1000}).Draw(t, "thousandths")
	case "none":
		milli = 0
	case "slice":
		j.profile = rapid.SampledFrom(profiles).Draw(t, "profile")
	}
	if milli >= 0 {
		j.share = strconv.Itoa(milli)
	}
	switch how {
	case core.Fractional:
		if j.column = j.share; milli >= 0 {
			j.part = float64(milli) / 1000
		}
		if j.profile != "" {
			j.column = "1000" // all of it, as a part
		}
	case core.Mig:
		slice := slices.Index(profiles, j.profile)
		if slice < 0 {
			slice = len(profiles) - 1
			for i := len(profiles) - 1; i >= 0 && milli >= 0; i-- {
				if compute[i]*1000 >= milli*7 {
					slice = i
				}
			}
		}
		if j.column, j.part = profiles[slice], float64(compute[slice])/7; milli == 0 {
			j.column, j.part = "", 0
		}
	}
	return j
}

type heldDevice struct {
	node   string
	device int
}

// All accounts of a run agree with what its timeline says who held when, whatever part of a device jobs have: an account counts a device that a job
// holds as that part of it.
func TestAccountsAgreeWithTheTimeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		how := rapid.SampledFrom([]core.Sharing{core.Fractional, core.Mig, core.TimeSlice, core.Exclusive}).Draw(t, "sharing")
		var jobs []sharedJob
		trace := "name,submit_s,duration_s,replicas,share_milli,mig_profile,best_effort,tier,accelerators\n"
		submits := make([]float64, rapid.IntRange(1, 8).Draw(t, "jobs"))
		for i := range submits {
			j := drawSharedJob(t, how)
			submits[i] = float64(rapid.IntRange(0, 2000).Draw(t, "submit"))
			if i > 0 {
				submits[i] = max(submits[i], submits[i-1])
			}
			jobs = append(jobs, j)
			trace += fmt.Sprintf("j%d,%v,%v,%d,%s,%s,%v,%s,%s\n", i, submits[i], j.seconds, j.replicas, j.share, j.profile, j.bestEffort, j.tier, j.accelerator)
		}
		folder, err := os.MkdirTemp("", "accounts")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(folder) }()
		path := filepath.Join(folder, "trace.csv")
		if err := os.WriteFile(path, []byte(trace), 0o600); err != nil {
			t.Fatal(err)
		}
		pipeline := map[core.Sharing]string{
			core.Fractional: "allocation: {type: fifo, config: {queue: all}}, placement: {type: fgd}", core.Mig: "allocation: {type: las}, placement: {type: packing}",
			core.TimeSlice: "allocation: {type: antman}, placement: {type: antman}", core.Exclusive: "allocation: {type: las}, placement: {type: first_fit}",
		}[how]
		c, err := quartet.Parse(quartet.Builtins(), "accounts.yaml", fmt.Sprintf(`version: 1
cluster: {sharing: %v, nodes: [{name: a, count: 1, accelerator: t4, devices: 3}, {name: b, count: 3, accelerator: v100, devices: 1}]}
workload: {type: csv, config: {path: %q}}
round: {interval: 10m, on_events: true}
pipeline: {%s}
output: {write: [jobs, timeline, usage, accelerators]}
`, how, path, pipeline), quartet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c.Keep = true
		r, err := c.Simulate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		for _, f := range r.Files {
			files[f.File] = f.Content
		}
		stays, err := timeline.ReadTimeline(bytes.NewReader(files["timeline.csv"]), "timeline.csv")
		if err != nil {
			t.Fatal(err)
		}
		(&accounts{T: t, how: how, jobs: jobs, submits: submits, result: r, files: files, stays: stays}).check()
	})
}

// accounts are those of a run.
type accounts struct {
	*rapid.T
	how     core.Sharing
	jobs    []sharedJob
	submits []float64
	result  *quartet.Result
	files   map[string][]byte
	stays   []timeline.Stay
}

func (a *accounts) near(what string, got, want float64) {
	if math.IsNaN(got) || math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		a.Fatalf("%s: %v, the timeline has %v", what, got, want)
	}
}

// rows are those of a file, by the names of its columns.
func (a *accounts) rows(file string) (list []map[string]string) {
	all, err := csv.NewReader(bytes.NewReader(a.files[file])).ReadAll()
	if err != nil {
		a.Fatal(err)
	}
	for _, row := range all[1:] {
		named := map[string]string{}
		for i, cell := range row {
			named[all[0][i]] = cell
		}
		list = append(list, named)
	}
	return list
}

func (a *accounts) number(cell string) float64 {
	x, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		a.Fatal(err)
	}
	return x
}

func (a *accounts) check() {
	of := func(s *timeline.Stay) *sharedJob { return &a.jobs[s.Job] }
	service, executed, replicaSeconds := make([]float64, len(a.jobs)), make([]float64, len(a.jobs)), make([]float64, len(a.jobs))
	byType, total := map[string]float64{}, 0.0
	on := map[heldDevice][]*timeline.Stay{}
	moments := []float64{}
	for i := range a.stays {
		s := &a.stays[i]
		seconds := s.End - s.Start
		replicaSeconds[s.Job] += seconds * float64(s.Replicas())
		executed[s.Job] += seconds
		service[s.Job] += seconds * float64(s.Replicas()) * of(s).part
		byType[s.Accelerator] += seconds * float64(s.Replicas()) * of(s).part
		total += seconds * float64(s.Replicas()) * of(s).part
		moments = append(moments, s.Start, s.End)
		for _, seat := range s.Seats {
			for _, device := range seat.Devices.List() {
				on[heldDevice{seat.Node, device}] = append(on[heldDevice{seat.Node, device}], s)
			}
		}
	}
	slices.Sort(moments)
	moments = slices.Compact(moments)
	used := 0.0
	shared := make([]float64, len(a.jobs))
	for i := range max(len(moments)-1, 0) {
		from, to := moments[i], moments[i+1]
		beside := make([]bool, len(a.jobs))
		for at, stays := range on {
			owners, parts := []core.JobID{}, 0.0
			for _, s := range stays {
				if s.Start <= from && to <= s.End && of(s).part > 0 {
					owners, parts = append(owners, s.Job), parts+of(s).part
				}
			}
			if parts > 1+1e-9 && a.how != core.TimeSlice || len(owners) > 2 && a.how == core.TimeSlice {
				a.Fatalf("jobs %v have %v of device %v from %v to %v s", owners, parts, at, from, to)
			}
			if len(owners) > 0 {
				used += to - from
			}
			for _, id := range owners {
				beside[id] = beside[id] || len(owners) > 1
			}
		}
		for id, shares := range beside {
			if shares {
				shared[id] += to - from
			}
		}
	}
	a.checkJobs(service, executed, replicaSeconds, shared)
	a.checkTypes(service, byType)
	a.checkSums(total, used)
}

// checkJobs holds jobs.csv against sums over the stays of each job.
func (a *accounts) checkJobs(service, executed, replicaSeconds, shared []float64) {
	parts := false
	for i := range a.jobs {
		parts = parts || a.jobs[i].column != ""
	}
	for id, row := range a.rows("jobs.csv") {
		j := &a.jobs[id]
		a.near("gpu_seconds of job "+row["job"], a.number(row["gpu_seconds"]), service[id])
		share, hasShare := row["share_milli"]
		profile, hasProfile := row["mig_profile"]
		switch {
		case hasProfile != (a.how == core.Mig) || hasShare != (a.how == core.Fractional && parts):
			a.Fatalf("%v has column share_milli: %v, mig_profile: %v", a.how, hasShare, hasProfile)
		case hasShare && share != j.column || hasProfile && profile != j.column:
			a.Fatalf("job %d has %q of a device, want %q", id, share+profile, j.column)
		}
		if row["first_start_s"] == "" {
			continue
		}
		want := replicaSeconds[id] / executed[id]
		if j.part == 0 {
			want = 0
		}
		a.near("replicas_mean of job "+row["job"], a.number(row["replicas_mean"]), want)
		if mean := row["replicas_mean"]; j.part < 1 && strings.Contains(mean, ".") {
			a.Fatalf("replicas_mean of job %d, which never has another number of replicas: %s", id, mean)
		}
		if a.how != core.Exclusive {
			a.near("shared_s of job "+row["job"], a.number(row["shared_s"]), shared[id])
		}
	}
}

// checkTypes holds what is told of accelerator types against sums over the stays on each.
func (a *accounts) checkTypes(service []float64, byType map[string]float64) {
	sums := make([]float64, len(a.jobs))
	for _, row := range a.rows("accelerators.csv") {
		sums[int(a.number(row["job"]))] += a.number(row["device_seconds"])
	}
	for id := range sums {
		a.near(fmt.Sprintf("device_seconds of job %d", id), sums[id], service[id])
	}
	makespan := float64(a.result.Summary.MakespanSeconds)
	for _, u := range a.result.Summary.Accelerators {
		a.near("device_seconds of "+u.Accelerator, float64(u.DeviceSeconds), byType[u.Accelerator])
		a.near("gpu_hours of "+u.Accelerator, float64(u.GPUHours), byType[u.Accelerator]/3600)
		if makespan > 0 {
			a.near("utilisation of "+u.Accelerator, float64(u.UtilizationRatio), byType[u.Accelerator]/(float64(u.Devices)*makespan))
		}
	}
}

// checkSums holds the summary and usage.csv against sums over all stays, and what is fair against what all jobs ask for.
func (a *accounts) checkSums(total, used float64) {
	s := a.result.Summary
	a.near("gpu_hours", float64(s.GPUHours), total/3600)
	if makespan := float64(s.MakespanSeconds); makespan > 0 {
		a.near("utilisation", float64(s.UtilizationRatio), total/(6*makespan))
	}
	usage, err := timeline.ReadUsage(bytes.NewReader(a.files["usage.csv"]), "usage.csv")
	if err != nil {
		a.Fatal(err)
	}
	integral := 0.0
	for i := 1; i < len(usage); i++ {
		integral += (usage[i].At - usage[i-1].At) * float64(usage[i-1].DevicesUsed)
	}
	a.near("usage.csv", integral, used)
	rho, known, most, guaranteed := 0.0, 0, 0.0, 0.0
	guarantees := core.UsualGuarantees()
	for i, j := range a.result.Jobs {
		if j.Outcome != "completed" {
			a.Fatalf("job %d: %s", i, j.Outcome)
		}
		asked := 0.0 // device-seconds, while it was there
		guaranteed = 0
		for k, other := range a.result.Jobs {
			of := &a.jobs[k]
			asked += max(0, min(float64(j.FinishSeconds), float64(other.FinishSeconds))-max(a.submits[i], a.submits[k])) * float64(of.replicas) * of.part
			if of.tier != "" && a.submits[k] <= a.submits[i] && float64(other.FinishSeconds) > a.submits[i] {
				guaranteed += guarantees[core.TierRank(of.tier)] * float64(of.replicas) * of.part
			}
		}
		most = max(most, guaranteed)
		jct := float64(j.JCTSeconds)
		rho += jct / (a.jobs[i].seconds * max(1, asked/jct/6))
		known++
	}
	a.near("rho", float64(s.Fairness.RhoMean), rho/float64(known))
	if s.Tiers != nil {
		a.near("devices that are guaranteed", float64(s.Tiers.GuaranteedDevicesMax), most)
	}
}
