package local

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/admission"
	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/elasticity/scaler"
	"github.com/quartet-sched/quartet/placement"
)

var (
	kills = flag.Int("local.kills", 6, "how often TestSchedulerIsKilled kills a scheduler")
	paced = flag.Bool("local.pools", false, "run TestPools and TestTrainingsInAPool, which take half a minute of a real clock")
	seed  = flag.Uint64("local.seed", 1, "seed of what tests do at random")
)

// The test program is also the keeper, the scheduler that is killed, and the replicas that run: the first argument says.
func TestMain(m *testing.M) {
	KeepIfAsked()
	StandInIfAsked(realClock{})
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "schedule":
			os.Exit(schedule(os.Args[2], os.Args[3], os.Args[4]))
		case "operate":
			os.Exit(operate(os.Args[2], os.Args[3]))
		case "work":
			syscall.Exit(work(os.Args[2:])) // at once, as a program does that no race detector is in
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}

// realClock is the clock of this machine.
type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() } //nolint:forbidigo // a clock is what it is
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// machine is a cluster of two nodes with two devices each.
func machine() *core.Cluster {
	return &core.Cluster{Accelerators: []string{"gpu"}, Nodes: []core.Node{
		{ID: 0, Name: "a", Devices: 2}, {ID: 1, Name: "b", Devices: 2},
	}}
}

// The policies of the scheduler.
const (
	patient    = "patient" // takes no devices away
	preempting = "preempting"
	unhurried  = "unhurried"  // is patient, and holds rounds at an interval only
	leasing    = "leasing"    // takes devices away, at an interval only
	pooling    = "pooling"    // is patient, on a pool whose nodes come, go and are taken away
	sharing    = "sharing"    // is patient, on devices that are shared, and counts CPUs
	contending = "contending" // takes devices away, which are shared
	turning    = "turning"    // is patient, and two jobs are on a device
)

// compose is the composition of a policy, and when it holds rounds.
func compose(policy string, log *slog.Logger) (core.Stages, core.RoundOptions) {
	queue, placer := coretest.Component(allocation.NewFIFO(), nil, log), coretest.Component(placement.NewFirstFit(), nil, log)
	rounds := core.RoundOptions{OnEvents: true}
	var sizes core.ClusterScaler
	switch policy {
	case pooling:
		sizes = coretest.Component(scaler.NewQueue(), nil, log)
	case preempting:
		queue = coretest.Component(allocation.NewLAS(), map[string]any{"quantum_seconds": 0.0}, log)
	case unhurried:
		rounds = core.RoundOptions{IntervalSeconds: 0.05}
	case leasing:
		queue = coretest.Component(allocation.NewLAS(), map[string]any{"quantum_seconds": 0.5}, log)
		rounds = core.RoundOptions{IntervalSeconds: 0.3}
	case sharing:
		queue, placer = coretest.Component(allocation.NewFIFO(), map[string]any{"queue": "all"}, log), coretest.Component(placement.NewBestFit(), nil, log)
	case contending:
		queue, placer = coretest.Component(allocation.NewLAS(), map[string]any{"quantum_seconds": 0.0}, log), coretest.Component(placement.NewPacking(), nil, log)
	case turning:
		queue, placer = coretest.Component(allocation.NewFIFO(), map[string]any{"queue": "all"}, log), besides{}
	}
	return core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission", Policy: coretest.Component(admission.NewAcceptAll(), nil, log)}},
		Allocation: core.Component[core.Allocator]{ID: "allocation", Policy: queue},
		Placement:  core.Component[core.Placer]{ID: "placement", Policy: placer},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity", Policy: coretest.Component(elasticity.NewFixed(), nil, log)},
		Scaler:     core.Component[core.ClusterScaler]{ID: "scaler", Policy: sizes},
	}, rounds
}

// besides seats jobs beside others, where there is room for them: those that run stay where they are.
type besides struct{}

func (besides) Place(_ context.Context, v *core.View, grants []core.Grant) (s core.Seating, err error) {
	var left core.Shares
	left.Reset(v.Cluster)
	stays := map[core.JobID]bool{}
	for _, g := range grants {
		if j := v.Job(g.Job); j.Held == g.Replicas && left.Occupy(j.JobSpec, j.Seats) {
			stays[g.Job] = true
			s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: j.Seats})
		}
	}
	for _, g := range grants {
		if stays[g.Job] {
			continue
		}
		j, missing := v.Job(g.Job), g.Replicas
		var seats []core.Seat
		for n := range v.Cluster.Nodes {
			seat := core.Seat{Node: core.NodeID(n)}
			for device := range v.Cluster.Nodes[n].Devices {
				if missing > 0 && left.FitsOn(j.JobSpec, seat.Node, device) {
					seat.Devices |= 1 << device
					missing--
				}
			}
			if seat.Devices != 0 {
				seats = append(seats, seat)
			}
		}
		if missing > 0 || !left.Occupy(j.JobSpec, seats) {
			s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices})
			continue
		}
		s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: seats})
	}
	return s, nil
}

// clusterOf is the machine as a policy has it.
func clusterOf(policy string) *core.Cluster {
	c := machine()
	switch policy {
	case sharing, contending:
		c.Sharing, c.CountsResources = core.Fractional, policy == sharing
		c.Nodes[0].CPUs = 3
	case turning:
		c.Sharing, c.MaxOwners = core.TimeSlice, 2
	}
	return c
}

// schedule is a scheduler: it runs the jobs of a file to their end.
func schedule(policy, dir, file string) int {
	err := func() error {
		log := slog.New(slog.NewTextHandler(os.Stderr, nil))
		jobs, err := coretest.Component(workload.NewJobs(), map[string]any{"path": file}, log).Load(context.Background())
		if err != nil {
			return err
		}
		settings, cluster := map[string]any{"dir": dir, "grace": "200ms", "retry_delay": "20ms", "retry_delay_max": "100ms"}, clusterOf(policy)
		if policy == pooling {
			cluster = slots(1, 0, 4)
			settings["pools"] = []any{map[string]any{
				"pool": "p", "provisioning": "30ms", "provisioning_spread": "50ms", "fails": 0.1, "evictions": "400ms", "notice": "20ms", "drain_timeout": "50ms",
			}}
		}
		opener := coretest.Component(New(realClock{}), settings, log)
		opener.(*Opener).For(Run{Dir: dir, Identity: "test"})
		b, err := opener.Open(context.Background(), cluster, jobs)
		if err != nil {
			return err
		}
		stages, rounds := compose(policy, log)
		p := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: rounds, Scaling: b.(*Backend)})
		if err := p.Run(context.Background(), b); err != nil {
			return err
		}
		if left := p.Unfinished(); len(left) > 0 {
			return fmt.Errorf("%d jobs did not finish", len(left))
		}
		return b.(*Backend).Close()
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// work is a replica. It holds a lock on its rank and on its device, and complains when somebody else does.
func work(args []string) int {
	ledger, kind := args[0], args[1]
	millis, err := strconv.Atoi(args[2])
	if err != nil {
		return 9
	}
	name := os.Getenv("QUARTET_JOB") + "-" + os.Getenv("QUARTET_RANK")
	if device := os.Getenv(visibleDevices); device != "" {
		part := occupy(filepath.Join(ledger, "device-"+device))
		if part == nil {
			note(ledger, "violations", name+" has no room on device "+device)
		}
		defer part.Close()
	}
	for _, lock := range []string{"rank-" + name} {
		f, err := os.OpenFile(filepath.Join(ledger, lock), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return 9
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			note(ledger, "violations", name+" wants "+lock)
		}
		defer f.Close()
	}
	if kind == "deaf" {
		ignoreTermination()
	}
	note(ledger, "begun", name)
	switch kind {
	case "fail once":
		if err := os.Mkdir(filepath.Join(ledger, "failed-"+name), 0o700); err == nil {
			return 3
		}
	case "listens": // to its agent, and not to signals
		return obey(ledger, name)
	case "fork", "fork openly": // a child that leaves the group and the session, and the environment too unless openly
		c := exec.Command("/proc/self/exe", "work", ledger, "deaf", "60000")
		c.Env = []string{"QUARTET_JOB=child", "QUARTET_RANK=" + name, visibleDevices + "=child-" + name}
		if kind == "fork openly" {
			c.Env = append(c.Env, agent.RendezvousVariable+"="+os.Getenv(agent.RendezvousVariable))
		}
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if c.Start() != nil {
			return 9
		}
	}
	if kind == "train" {
		return train(ledger, name, millis)
	}
	time.Sleep(time.Duration(millis) * time.Millisecond)
	note(ledger, "done", name)
	return 0
}

// obey makes checkpoints when it is asked for them, and one more when it is to stop, for which it takes its time.
func obey(ledger, name string) int {
	e, err := agent.ReadEnvironment(os.LookupEnv)
	if err != nil {
		return 9
	}
	c := agent.Dial(e)
	defer c.Close()
	if c.Report(agent.Report{Replicas: e.Replicas, Nodes: e.Nodes}) != nil {
		return 9
	}
	for range c.Received() {
		told := c.Poll()
		if told.Checkpoint != nil {
			note(ledger, "asked", name)
		}
		if told.Stop != nil {
			time.Sleep(50 * time.Millisecond)
			note(ledger, "kept", name)
			return 75
		}
	}
	return 9
}

// note appends a line.
func note(ledger, file, text string) {
	f, err := os.OpenFile(filepath.Join(ledger, file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintln(f, text)
}
