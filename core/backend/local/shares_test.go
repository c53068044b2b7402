package local

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
)

// shared is the machine of the tests, sharing its devices.
func shared(how core.Sharing) *core.Cluster {
	c := machine()
	c.Sharing, c.MaxOwners = how, 2
	return c
}

func share(milli int) *core.Share { return &core.Share{Milli: milli} }

func TestReplicasAreToldTheirParts(t *testing.T) {
	service := t.TempDir()
	none := filepath.Join(service, "none")
	counting := func(how core.Sharing) *core.Cluster {
		c := shared(how)
		c.CountsResources = true
		return c
	}
	cases := map[string]struct {
		cluster *core.Cluster
		job     core.JobSpec
		device  string
		mps     string
		want    []string // after the device
	}{
		"a whole device":                   {cluster: machine(), job: core.JobSpec{CPUs: 2, MemoryGB: 3, DeviceMemoryGB: 4}, device: idA, mps: service},
		"a whole device by its share":      {cluster: shared(core.Fractional), job: core.JobSpec{Share: share(1000), DeviceMemoryGB: 4}, device: idA, mps: service},
		"a whole one where some share":     {cluster: shared(core.Fractional), job: core.JobSpec{DeviceMemoryGB: 4}, device: idA, mps: service},
		"nobody shares":                    {cluster: machine(), job: core.JobSpec{Share: share(300), DeviceMemoryGB: 4}, device: idA, mps: service},
		"a part":                           {cluster: shared(core.Fractional), job: core.JobSpec{Share: share(334)}, device: "3", mps: service, want: []string{"QUARTET_SHARE_MILLI=334"}},
		"a part, with memory":              {cluster: shared(core.Fractional), job: core.JobSpec{Share: share(999), DeviceMemoryGB: 1.5}, device: "3", mps: service, want: []string{"QUARTET_SHARE_MILLI=999", "QUARTET_DEVICE_MEMORY_GB=1.5"}},
		"a part, without a service":        {cluster: shared(core.Fractional), job: core.JobSpec{Share: share(334)}, device: idA, mps: none, want: []string{"QUARTET_SHARE_MILLI=334"}},
		"a part, by the service":           {cluster: shared(core.Fractional), job: core.JobSpec{Share: share(334)}, device: idA, mps: service, want: []string{"QUARTET_SHARE_MILLI=334", "CUDA_MPS_PIPE_DIRECTORY=" + service, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=34"}},
		"the least part":                   {cluster: shared(core.Fractional), job: core.JobSpec{Share: share(1)}, device: idA, mps: service, want: []string{"QUARTET_SHARE_MILLI=1", "CUDA_MPS_PIPE_DIRECTORY=" + service, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=1"}},
		"a part of an instance, by memory": {cluster: shared(core.Fractional), job: core.JobSpec{Share: share(500), DeviceMemoryGB: 2.0001}, device: "MIG-" + idA, mps: service, want: []string{"QUARTET_SHARE_MILLI=500", "QUARTET_DEVICE_MEMORY_GB=2.0001", "CUDA_MPS_PIPE_DIRECTORY=" + service, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2049M"}},
		"turns":                            {cluster: shared(core.TimeSlice), job: core.JobSpec{Share: share(300)}, device: "3", mps: service},
		"turns, by the service":            {cluster: shared(core.TimeSlice), job: core.JobSpec{DeviceMemoryGB: 4}, device: idA, mps: service, want: []string{"QUARTET_DEVICE_MEMORY_GB=4", "CUDA_MPS_PIPE_DIRECTORY=" + service, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4096M"}},
		"CPUs and memory":                  {cluster: counting(core.Exclusive), job: core.JobSpec{CPUs: 1.5, MemoryGB: 0.25, DeviceMemoryGB: 4}, device: idA, mps: service, want: []string{"QUARTET_CPUS=1.5", "QUARTET_MEMORY_GB=0.25"}},
		"neither of them":                  {cluster: counting(core.Exclusive), device: idA, mps: service},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &Backend{cluster: tc.cluster, mps: mps(tc.mps)}
			got := b.parted(&job{Job: &workload.Job{Spec: tc.job}}, tc.device)
			if diff := cmp.Diff(append([]string{visibleDevices + "=" + tc.device}, tc.want...), got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	for how, want := range map[core.Sharing][]string{
		core.Fractional: {"CUDA_VISIBLE_DEVICES=", "QUARTET_SHARE_MILLI=0", "QUARTET_CPUS=2"},
		core.TimeSlice: { // there are no parts of devices
			"CUDA_VISIBLE_DEVICES=" + idA, "QUARTET_DEVICE_MEMORY_GB=4", "CUDA_MPS_PIPE_DIRECTORY=" + service, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4096M", "QUARTET_CPUS=2",
		},
	} {
		b := &Backend{cluster: counting(how), mps: mps(service)}
		got := b.parted(&job{Job: &workload.Job{Spec: core.JobSpec{Share: share(0), CPUs: 2, DeviceMemoryGB: 4}}}, idA)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v, on CPUs: -want +got\n%s", how, diff)
		}
	}
}

func TestTheServiceIsLookedForWhereItIsSaid(t *testing.T) {
	at := func(folder string, set bool) func(string) (string, bool) {
		return func(name string) (string, bool) { return folder, set && name == "CUDA_MPS_PIPE_DIRECTORY" }
	}
	for name, tc := range map[string]struct {
		folder string
		set    bool
		want   mps
	}{
		"not said": {"", false, "/tmp/nvidia-mps"}, "said": {"/run/mps", true, "/run/mps"}, "nothing said": {"", true, "/tmp/nvidia-mps"}, "no place": {"mps", true, "/tmp/nvidia-mps"},
	} {
		if got := mpsOf(at(tc.folder, tc.set)); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// What the pipeline finds room for is started at once while nothing that it ended is still there, and what it has no room for is not: the backend
// counts as core.Shares does.
func TestOccupancyCountsAsDecisionsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &core.Cluster{
			Accelerators: []string{"gpu"}, Sharing: rapid.SampledFrom([]core.Sharing{core.Exclusive, core.Fractional, core.TimeSlice}).Draw(t, "sharing"),
			MaxOwners: rapid.IntRange(1, 3).Draw(t, "owners"), OversubscribesMemory: rapid.Bool().Draw(t, "oversubscribed"), CountsResources: rapid.Bool().Draw(t, "counted"),
		}
		b := &Backend{cluster: c, devices: new(devices)}
		for id := range core.NodeID(2) {
			n := core.Node{
				ID: id, Name: fmt.Sprint(id), Devices: 2, CPUs: rapid.SampledFrom([]float64{0, 0.3, 4}).Draw(t, "CPUs"),
				MemoryGB: rapid.SampledFrom([]float64{0, 1, 8}).Draw(t, "GB"), DeviceMemoryGB: rapid.SampledFrom([]float64{0, 1, 0.3}).Draw(t, "GB of devices"),
			}
			c.Nodes, b.health = append(c.Nodes, n), append(b.health, core.Ready)
			b.devices.give(id, []string{fmt.Sprint("a", id), fmt.Sprint("b", id)})
		}
		var decided core.Shares
		decided.Reset(c)
		there := b.newOccupancy()
		for range rapid.IntRange(1, 12).Draw(t, "jobs") {
			j := &job{Job: &workload.Job{Spec: core.JobSpec{
				CPUs: rapid.SampledFrom([]float64{0, 0.1, 1, 2}).Draw(t, "CPUs"), MemoryGB: rapid.SampledFrom([]float64{0, 0.1, 0.7}).Draw(t, "GB"),
				DeviceMemoryGB: rapid.SampledFrom([]float64{0, 0.1, 0.5, 1}).Draw(t, "GB of devices"),
			}}}
			if rapid.Bool().Draw(t, "shares") {
				j.Spec.Share = share(rapid.SampledFrom([]int{0, 1, 334, 500, 999, 1000}).Draw(t, "milli"))
			}
			seats := []core.Seat{{Node: core.NodeID(rapid.IntRange(0, 1).Draw(t, "node")), Devices: core.DeviceSet(rapid.IntRange(1, 3).Draw(t, "devices"))}}
			served := j.Spec
			if c.Sharing != core.Fractional {
				served.Share = nil // as the pipeline has it
			}
			want := decided.Occupy(&served, seats)
			if got := there.fits(j, seats); got != want {
				t.Fatalf("%+v on %v fits: %v, decisions say %v", j.Spec, seats, got, want)
			}
			if want {
				there.add(j, b.devicesOf(seats))
			}
		}
	})
}

// openedOn is a backend on a cluster, whose jobs are stopped when the test ends.
func openedOn(t *testing.T, dir string, c *core.Cluster, w *workload.Workload, log *slog.Logger, settings map[string]any) *Backend {
	t.Helper()
	raw := map[string]any{"grace": "200ms"}
	maps.Copy(raw, settings)
	o := coretest.Component(New(realClock{}), raw, log).(*Opener)
	o.For(Run{Dir: dir, Identity: "test"})
	opened, err := o.Open(t.Context(), c, w)
	if err != nil {
		t.Fatal(err)
	}
	b := opened.(*Backend)
	t.Cleanup(func() { _ = b.Close() }) // it may be closed already
	return b
}

// noted waits for a line in the file of a ledger.
func noted(t *testing.T, ledger, file, line string) {
	t.Helper()
	for range 1000 {
		if slices.Contains(lines(t, ledger, file), line) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%q is not in %s: %q", line, file, lines(t, ledger, file))
}

// A job that is to have the part of one that is stopped begins when that is gone, and not before; one for which there is room begins at once.
func TestAPartIsFreeWhenItsProcessesAreGone(t *testing.T) {
	t.Parallel()
	for _, counted := range []bool{false, true} { // of a device, or of CPUs beside it
		t.Run(fmt.Sprint("counted ", counted), func(t *testing.T) {
			dir, ledger := t.TempDir(), t.TempDir()
			c := shared(core.Fractional)
			specs := [3]core.JobSpec{{Share: share(600)}, {Share: share(600)}, {Share: share(400)}}
			if counted {
				c.Sharing, c.CountsResources, c.Nodes[0].CPUs = core.Exclusive, true, 3
				specs = [3]core.JobSpec{{CPUs: 2}, {CPUs: 2}, {CPUs: 1}}
			}
			kinds := [3]string{"deaf", "plain", "plain"} // the first ends by SIGKILL, after the grace
			var jobs []workload.Job
			for i, spec := range specs {
				j := command(fmt.Sprint("j", i), testProgram(t), "work", ledger, kinds[i], []string{"60000", "20", "20"}[i])
				j.Spec.Share, j.Spec.CPUs = spec.Share, spec.CPUs
				jobs = append(jobs, j)
			}
			b := openedOn(t, dir, c, commands(jobs...), discard, map[string]any{"limits": "off", "grace": "1s"})
			seen(t, b)
			at := func(id core.JobID) core.Change {
				seat := core.Seat{Node: 0, Devices: 1}
				if counted && id > 0 {
					seat = core.Seat{Node: 0, Devices: 2}
				}
				return core.Change{Action: core.Start, Job: id, Seats: []core.Seat{seat}}
			}
			apply(t, b, at(0))
			noted(t, ledger, "begun", "j0-0")
			if counted { // its device is free, and not its CPUs
				apply(t, b, core.Change{Action: core.Stop, Job: 0}, at(1))
			} else {
				apply(t, b, core.Change{Action: core.Stop, Job: 0}, at(1), at(2))
				noted(t, ledger, "begun", "j2-0")
			}
			if b.jobs[1].run.Number != 0 || !b.jobs[0].run.Keeper.Alive() {
				t.Fatalf("the second job has run %d while the first is there: %v", b.jobs[1].run.Number, b.jobs[0].run.Keeper.Alive())
			}
			for !b.jobs[1].ended {
				seen(t, b)
				apply(t, b)
			}
			if wrong := lines(t, ledger, "violations"); len(wrong) > 0 {
				t.Errorf("not room for all: %q", wrong)
			}
		})
	}
}

// Two jobs on a device are found by the scheduler after theirs, with their parts.
func TestJobsOnADeviceAreTakenOver(t *testing.T) {
	t.Parallel()
	for _, how := range []core.Sharing{core.Fractional, core.TimeSlice} {
		t.Run(how.String(), func(t *testing.T) {
			dir := t.TempDir()
			var jobs []workload.Job
			for i := range 3 {
				j := command(fmt.Sprint("j", i), "sleep", "60")
				j.Spec.Share = share(500)
				jobs = append(jobs, j)
			}
			b := openedOn(t, dir, shared(how), commands(jobs...), discard, nil)
			seen(t, b)
			apply(t, b, on(0, 1), on(1, 1))
			running, err := b.Leave()
			if running != 2 || err != nil {
				t.Fatalf("%d jobs run on, error %v, want 2", running, err)
			}
			b = openedOn(t, dir, shared(how), commands(jobs...), discard, nil)
			for b.Replaying() {
				seen(t, b)
				apply(t, b, on(0, 1), on(1, 1))
			}
			b.wakeUp()
			third := b.jobs[2]
			third.seats, third.decided = []core.Seat{{Node: 0, Devices: 1}}, b.jobs[0].decided
			held := b.newOccupancy()
			for _, j := range b.jobs[:2] {
				if !j.live() || !j.wanted() || j.run.Number != 1 || !slices.Equal(j.run.Names, []string{"0"}) {
					t.Fatalf("%s is not found: run %+v", j.Spec.Name, j.run)
				}
				held.add(j, j.run.Names)
			}
			if held.fits(third, third.seats) {
				t.Error("there is room for a third")
			}
			third.seats = nil
		})
	}
}

// Where nothing holds jobs to their CPUs and memory, the run says so when it begins, and not for each job.
func TestThatNothingHoldsJobsToTheirCPUsIsSaidOnce(t *testing.T) {
	const told = "nothing enforces these limits"
	cases := map[string]struct {
		counted bool
		limits  string
		want    int
	}{
		"off": {true, "off", 1}, "off, and not counted": {false, "off", 0}, "required": {true, keeper.LimitsRequired, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			c := machine()
			c.CountsResources = tc.counted
			openedOn(t, t.TempDir(), c, commands(command("j", "true")), slog.New(slog.NewTextHandler(&said, nil)), map[string]any{"limits": tc.limits})
			if got := strings.Count(said.String(), told); got != tc.want {
				t.Errorf("said %d times, want %d: %s", got, tc.want, said.String())
			}
		})
	}
	t.Run("try", func(t *testing.T) {
		var said bytes.Buffer
		c := machine()
		c.CountsResources = true
		why := keeper.CheckLimits()
		jobs := []workload.Job{command("a", "sh", "-c", "echo $QUARTET_CPUS"), command("b", "true")}
		for i := range jobs {
			jobs[i].Spec.CPUs = 0.5
		}
		dir := t.TempDir()
		b := openedOn(t, dir, c, commands(jobs...), slog.New(slog.NewTextHandler(&said, nil)), nil)
		seen(t, b)
		apply(t, b, on(0, 1), core.Change{Action: core.Start, Job: 1, Seats: []core.Seat{{Node: 1, Devices: 1}}})
		for b.active > 0 {
			seen(t, b)
			apply(t, b)
		}
		want := 0
		if why != nil {
			want = 1
		}
		if got := strings.Count(said.String(), told); got != want || strings.Contains(said.String(), keeper.NoLimits) {
			t.Errorf("said %d times, want %d, for limits are possible, but for: %v\n%s", got, want, why, said.String())
		}
		if got := logOf(t, dir, "a", "0.out"); got != "0.5\n" {
			t.Errorf("got %q CPUs, want 0.5", got)
		}
	})
}

// A job that wants more memory than is its own fails for that, and the one beside it does not notice.
func TestAJobThatWantsMoreMemoryFailsForIt(t *testing.T) {
	if err := keeper.CheckLimits(); err != nil {
		t.Skipf("control groups are not permitted: %v; run the tests as root, or where a control group is delegated", err)
	}
	c := shared(core.Fractional)
	c.CountsResources = true
	jobs := []workload.Job{command("greedy", "tail", "/dev/zero"), command("modest", "sleep", "2")}
	for i := range jobs {
		jobs[i].Spec.Share, jobs[i].Spec.MemoryGB = share(500), 0.0625
	}
	b := openedOn(t, t.TempDir(), c, commands(jobs...), discard, nil)
	seen(t, b)
	apply(t, b, on(0, 1), on(1, 1))
	if e := until(t, b, core.JobFailed); e.Job != 0 || e.Message != "replica 0 exceeded its memory limit of 64 MB" {
		t.Errorf("job %d failed: %q", e.Job, e.Message)
	}
	apply(t, b)
	if e := until(t, b, core.JobFinished); e.Job != 1 {
		t.Errorf("job %d finished", e.Job)
	}
}

// Old drivers call instances by paths: two of them are two claims.
func TestInstancesAreClaimedApart(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "claims")
	one, other := "MIG-"+idA+"/1/0", "MIG-"+idA+"/2/0"
	first, err := claim(folder, "/first", []string{one}, 0)
	if err != nil {
		t.Fatal(err)
	}
	second, err := claim(folder, "/second", []string{other}, 0)
	if err != nil {
		t.Fatalf("an instance beside one of another run: %v", err)
	}
	if c, err := claim(folder, "/third", []string{one}, 0); err == nil {
		t.Errorf("claimed %v twice", c)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 2 {
		t.Errorf("%d files of claims, error %v, want 2", len(files), err)
	}
	if err := first.release(); err != nil {
		t.Error(err)
	}
	if err := second.release(); err != nil {
		t.Error(err)
	}
}
