// Package backendtest is the conformance suite of backends: what core.Backend and backend.Operated say, as tests.
package backendtest

import (
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// Job is a job that a harness makes for the backend under test. It is rigid.
type Job struct {
	Name          string  // unique among the jobs of a test
	SubmitSeconds float64 // moment of the run at which it is submitted, in seconds
	Replicas      int     // how many it has, each on a device of its own or on a share
	Seconds       float64 // for which it runs on its replicas; Endless when no test waits for its end
	ShareMilli    int     // of a device, for each replica; 0 for whole devices. Only a backend with core.CapabilityShares is given any
	Fails         bool    // at its end
}

// Endless is how long a job runs that no test sees ending.
const Endless = 1e6

// World is what a backend is opened on.
type World struct {
	Cluster *core.Cluster // nodes that the backend starts with
	Jobs    []Job         // in order of submission
	Open    bool          // more jobs are submitted later, and the run does not end by itself
}

// Harness makes the backend under test.
type Harness struct {
	// Open opens a backend, which the harness closes when the test ends.
	Open func(t testing.TB, w World) core.Backend
	// UnitSeconds is how long the tests' unit of time takes: 1 on a virtual clock, less where the tests have to wait for it,
	// but more than it takes to start a job and to report it.
	UnitSeconds float64
	// Exact says that rounds are held on the dot and jobs end to the second, as on a virtual clock.
	Exact bool
	// NeverFails says that the jobs of the backend do not fail.
	NeverFails bool
	// Restart puts another scheduler of the same composition in the place of one that ends as if it were killed, and returns the
	// backend as that one sees it. Without it, no scheduler takes over.
	Restart func(t testing.TB, b core.Backend) core.Backend
	// File writes jobs as Submit reads them. Without it, or when the backend is not backend.Operated, no orders are tested.
	File func(t testing.TB, jobs []Job) backend.JobFile
	// OpenPools opens a backend, which is core.Scaling, with nodes that come and go as said; their times are seconds of its clock.
	// Without it, no pools are tested.
	OpenPools func(t testing.TB, w World, pools []backend.Pool) core.Backend
}

// check is one test of the suite.
type check struct {
	name string
	run  func(t testing.TB, h *Harness)
}

// Run tests a backend. Several are open at once.
func Run(t *testing.T, h Harness) {
	for _, c := range slices.Concat(checks, orderChecks, poolChecks, shareChecks) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // where time is real, it is mostly waited for
			c.run(t, &h)
		})
	}
}

// cluster is two nodes with two devices each.
func cluster() *core.Cluster {
	return &core.Cluster{Accelerators: []string{"gpu"}, Nodes: []core.Node{
		{ID: 0, Name: "a", Devices: 2}, {ID: 1, Name: "b", Devices: 2},
	}}
}

// Share is what the specification of the job says of its part of devices.
func (j *Job) Share() *core.Share {
	if j.ShareMilli == 0 {
		return nil
	}
	return &core.Share{Milli: j.ShareMilli}
}

// Seats on that cluster.
var (
	firstOfA  = []core.Seat{{Node: 0, Devices: 0b01}}
	bothOfA   = []core.Seat{{Node: 0, Devices: 0b11}}
	firstOfB  = []core.Seat{{Node: 1, Devices: 0b01}}
	secondOfB = []core.Seat{{Node: 1, Devices: 0b10}}
)

func start(id core.JobID, seats []core.Seat) core.Change {
	return core.Change{Action: core.Start, Job: id, Seats: seats}
}

func move(id core.JobID, seats []core.Seat) core.Change {
	return core.Change{Action: core.Move, Job: id, Seats: seats}
}

func stop(id core.JobID) core.Change { return core.Change{Action: core.Stop, Job: id} }
