package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/timeline"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// failing is a test that may fail.
type failing interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// deviceOf names a device.
type deviceOf struct {
	node   string
	device int
}

// checkTimeline holds the files of a timeline, which are timeline.csv, nodes.csv, usage.csv and training.csv, against jobs.csv
// and against each other.
func checkTimeline(t failing, jobsFile string, files [4]string, how core.Sharing) {
	t.Helper()
	jobs, err := timeline.ReadJobs(strings.NewReader(jobsFile), "jobs.csv")
	if err != nil {
		t.Fatal(err)
	}
	stays, err := timeline.ReadTimeline(strings.NewReader(files[0]), "timeline.csv")
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := timeline.ReadNodes(strings.NewReader(files[1]), "nodes.csv")
	if err != nil {
		t.Fatal(err)
	}
	usage, err := timeline.ReadUsage(strings.NewReader(files[2]), "usage.csv")
	if err != nil {
		t.Fatal(err)
	}
	training, err := timeline.ReadTraining(strings.NewReader(files[3]), "training.csv")
	if err != nil {
		t.Fatal(err)
	}
	parts := sharesOf(t, jobsFile)
	attained, executed := map[core.JobID]float64{}, map[core.JobID]float64{}
	byDevice := map[deviceOf][]*timeline.Stay{}
	for i := range stays {
		s := &stays[i]
		if i > 0 && (s.End < stays[i-1].End || s.End == stays[i-1].End && s.Job < stays[i-1].Job) {
			t.Errorf("stay %d is out of order", i)
		}
		attained[s.Job] += s.DeviceSeconds()
		executed[s.Job] += s.End - s.Start
		if part, shares := parts[s.Job]; shares && part == 0 {
			continue // it computes on CPUs alone
		}
		for _, seat := range s.Seats {
			for _, d := range seat.Devices.List() {
				byDevice[deviceOf{seat.Node, d}] = append(byDevice[deviceOf{seat.Node, d}], s)
			}
		}
	}
	total := 0.0
	for i := range jobs {
		total += jobs[i].GPUSeconds
		got, exact := attained[jobs[i].ID], 0.0
		if part, shares := parts[jobs[i].ID]; shares {
			got, exact = got*part, 1e-9*got
		}
		if math.Abs(got-jobs[i].GPUSeconds) > exact {
			t.Errorf("the stays of job %d add up to %v device-seconds, jobs.csv says %v", i, got, jobs[i].GPUSeconds)
		}
	}
	once := checkSeats(t, byDevice, nodes, how)
	if how == core.Exclusive {
		once = total
	}
	checkUsage(t, usage, nodes, once)
	for _, j := range training {
		if math.Abs(j.Seconds-executed[j.Job]) > 1e-9*executed[j.Job] || j.EfficiencyMean <= 0 || j.EfficiencyMean > 1+1e-9 || j.BatchMean <= 0 || j.GoodputMean < 0 {
			t.Errorf("training.csv has %+v, and the job ran for %v s", j, executed[j.Job])
		}
	}
}

// sharesOf is the part of a device that each replica of a job has, for those that have one: column share_milli of jobs.csv.
func sharesOf(t failing, jobsFile string) map[core.JobID]float64 {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(jobsFile)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	parts := map[core.JobID]float64{}
	column := slices.Index(rows[0], "share_milli")
	if column < 0 {
		return parts
	}
	for _, row := range rows[1:] {
		id, err := strconv.Atoi(row[0])
		if err != nil {
			t.Fatal(err)
		}
		if row[column] == "" {
			continue
		}
		milli, err := strconv.ParseFloat(row[column], 64)
		if err != nil {
			t.Fatal(err)
		}
		parts[core.JobID(id)] = milli / core.WholeDevice
	}
	return parts
}

// checkSeats refuses a device that does not exist, or is in two stays at once although none is shared. It returns the seconds in which devices are in
// some stay.
func checkSeats(t failing, byDevice map[deviceOf][]*timeline.Stay, nodes []timeline.NodeHealth, how core.Sharing) (once float64) {
	t.Helper()
	devices := map[string]int{}
	for _, n := range nodes {
		devices[n.Node] = n.Devices
	}
	for at, stays := range byDevice {
		if at.device >= devices[at.node] {
			t.Errorf("node %q has no device %d", at.node, at.device)
		}
		slices.SortFunc(stays, func(a, b *timeline.Stay) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
		})
		end := math.Inf(-1)
		for _, s := range stays {
			once += max(0, s.End-max(s.Start, end))
			end = max(end, s.End)
		}
		for i := 1; i < len(stays) && how == core.Exclusive; i++ {
			if stays[i].Start < stays[i-1].End {
				t.Errorf("device %d of node %q is in two stays at once: %+v, %+v", at.device, at.node, *stays[i-1], *stays[i])
			}
		}
	}
	return once
}

// checkUsage holds the integrals of usage.csv against the other files.
func checkUsage(t failing, usage []timeline.Usage, nodes []timeline.NodeHealth, gpuSeconds float64) {
	t.Helper()
	used, ready, readyWanted := 0.0, 0.0, 0.0
	for i := 1; i < len(usage); i++ {
		seconds := usage[i].At - usage[i-1].At
		used += seconds * float64(usage[i-1].DevicesUsed)
		ready += seconds * float64(usage[i-1].DevicesReady)
	}
	for _, n := range nodes {
		if n.Health == core.Ready {
			readyWanted += (n.End - n.Start) * float64(n.Devices)
		}
	}
	if math.Abs(used-gpuSeconds) > 1e-9*gpuSeconds {
		t.Errorf("usage.csv adds up to %v device-seconds, jobs.csv to %v", used, gpuSeconds)
	}
	if math.Abs(ready-readyWanted) > 1e-9*readyWanted {
		t.Errorf("usage.csv has %v ready device-seconds, nodes.csv %v", ready, readyWanted)
	}
}

// checkPaces holds the means of training.csv against what efficiency.csv says of each moment.
func checkPaces(t failing, file string, training []timeline.JobTraining) {
	t.Helper()
	paces, err := timeline.ReadEfficiency(strings.NewReader(file), "efficiency.csv")
	if err != nil {
		t.Fatal(err)
	}
	last := map[core.JobID]timeline.Pace{}
	sums := map[core.JobID]timeline.JobTraining{}
	for i, p := range paces {
		if i > 0 && (p.At < paces[i-1].At || p.At == paces[i-1].At && p.Job <= paces[i-1].Job) {
			t.Errorf("row %d of efficiency.csv is out of order", i+2)
		}
		sum := sums[p.Job]
		if before := last[p.Job]; before.Batch > 0 {
			seconds := p.At - before.At
			sum.Seconds += seconds
			sum.BatchMean += seconds * float64(before.Batch)
			sum.EfficiencyMean += seconds * float64(before.Efficiency)
			sum.GoodputMean += seconds * float64(before.Goodput)
		}
		sums[p.Job], last[p.Job] = sum, p
	}
	for _, want := range training {
		got := sums[want.Job]
		got.Job, got.InitialBatch = want.Job, want.InitialBatch
		for _, mean := range [...]*float64{&got.BatchMean, &got.EfficiencyMean, &got.GoodputMean} {
			*mean /= got.Seconds
		}
		if diff := gocmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("efficiency.csv differs from training.csv (-want +got):\n%s", diff)
		}
		if last[want.Job].Batch != 0 {
			t.Errorf("job %d trains on after its last row", want.Job)
		}
	}
	if len(sums) != len(training) {
		t.Errorf("efficiency.csv has %d jobs, training.csv %d", len(sums), len(training))
	}
}

// roundUse is the use of the cluster as the pipeline sees it after each round, as far as nothing else happened at that moment.
type roundUse struct{ moments []timeline.Usage }

func (c *roundUse) ObserveRound(r *core.Report) error {
	v := r.View
	last := len(c.moments) - 1
	for i := range r.Events {
		if last >= 0 && r.Events[i].AtSeconds == c.moments[last].At {
			c.moments = c.moments[:last]
			last = -1
		}
	}
	if last >= 0 && c.moments[last].At == v.NowSeconds {
		c.moments = c.moments[:last]
	}
	u := timeline.Usage{
		At: v.NowSeconds, DevicesReady: v.Devices, DevicesUsed: r.DevicesUsed, Running: len(v.Active) - v.Waiting, Waiting: v.Waiting,
		Pending: -len(v.Active),
	}
	for _, j := range v.Jobs {
		if j != nil {
			u.Pending++
			u.Demand += j.Requested
		}
	}
	c.moments = append(c.moments, u)
	return nil
}

// check holds a usage.csv against it.
func (c *roundUse) check(t failing, file string) {
	t.Helper()
	usage, err := timeline.ReadUsage(strings.NewReader(file), "usage.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range c.moments {
		i, exact := slices.BinarySearchFunc(usage, want.At, func(u timeline.Usage, at float64) int { return cmp.Compare(u.At, at) })
		if !exact {
			i--
		}
		got := usage[i]
		got.At = want.At
		if diff := gocmp.Diff(want, got, cmpopts.IgnoreFields(timeline.Usage{}, "Efficiency", "Goodput")); diff != "" {
			t.Errorf("at %v s usage.csv differs from the view (-want +got):\n%s", want.At, diff)
		}
	}
}

// What a job gained by its goodput over its life is its work: nothing is lost when nothing fails.
func TestGoodputAddsUpToTheWork(t *testing.T) {
	for name, sets := range map[string][]string{
		"pollux":       nil,
		"fixed batch":  {"pipeline.elasticity.job={type: fixed}", "pipeline.allocation={type: las}"},
		"interference": {"backend.config={restart_overhead: 45s, interference: 0.3, locality_penalty: 0.1}"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := quartet.Load(catalog(), configs.Options{Sets: append(sets, "output.write=[jobs,timeline,usage,training,efficiency]")})
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := quartet.LoadWorkload(t.Context(), c.Config, nil)
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
			training, err := timeline.ReadTraining(bytes.NewReader(files["training.csv"]), "training.csv")
			if err != nil {
				t.Fatal(err)
			}
			if len(training) != len(jobs.Jobs) {
				t.Errorf("%d of %d jobs trained", len(training), len(jobs.Jobs))
			}
			checkPaces(t, string(files["efficiency.csv"]), training)
			total := 0.0
			for _, j := range training {
				spec := &jobs.Jobs[j.Job].Spec
				want := spec.TotalWork * float64(spec.Batch.Initial)
				if got := j.GoodputMean * j.Seconds; math.Abs(got-want) > 1e-9*want {
					t.Errorf("job %d gained %v samples of %v", j.Job, got, want)
				}
				if j.InitialBatch != spec.Batch.Initial {
					t.Errorf("job %d has initial batch %d, want %d", j.Job, j.InitialBatch, spec.Batch.Initial)
				}
				total += want
			}
			usage, err := timeline.ReadUsage(bytes.NewReader(files["usage.csv"]), "usage.csv")
			if err != nil {
				t.Fatal(err)
			}
			got := 0.0
			for i := 1; i < len(usage); i++ {
				if u := &usage[i-1]; u.Goodput.Known() {
					got += (usage[i].At - u.At) * float64(u.DevicesUsed) * float64(u.Goodput)
				}
			}
			if math.Abs(got-total) > 1e-7*total {
				t.Errorf("usage.csv has %v useful samples, the jobs %v", got, total)
			}
		})
	}
}

// The stays of every shipped composition add up to what its jobs got, to the last bit.
func TestTimelinesOfShippedCompositions(t *testing.T) {
	t.Chdir(t.TempDir()) // for histories, which some write where they run
	for _, name := range configs.EmbeddedNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // no two write the same history
			o := configs.Options{Files: []string{name}, Sets: []string{"output.write=[jobs,timeline,usage,training]"}, Env: os.LookupEnv}
			if strings.HasSuffix(name, "-packed.yaml") { // up to a minute as they are
				o.Sets = append(o.Sets, "sample.window.jobs=100", "measure.first_job=0", "measure.last_job=99")
			}
			switch {
			case name == "papers/pollux-osdi21/pollux-genetic.yaml": // half a minute as it is
				o.Sets = append(o.Sets, "pipeline.allocation.config.generations=3")
				fallthrough
			case strings.Contains(name, "/"):
				refdata.Path(t, "data")
			}
			c, err := quartet.Load(catalog(), o)
			if err != nil {
				t.Fatal(err)
			}
			if c.Backend.ID != "backend/simulator" {
				t.Skip("its processes are real: TestTimelineOfRealProcesses records such a run")
			}
			c.Keep, c.Brief = true, true
			r, err := c.Simulate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{}
			for _, f := range r.Files {
				files[f.File] = string(f.Content)
			}
			checkTimeline(t, files["jobs.csv"], [4]string{files["timeline.csv"], files["nodes.csv"], files["usage.csv"], files["training.csv"]}, c.BuildCluster().Sharing)
		})
	}
}
