package timeline

import (
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// Stay is a job on the same devices: a row of timeline.csv. Times are in seconds since the start of the run.
type Stay struct {
	Job               core.JobID // id of the job
	Start, End        float64    // moments between which it held the seats, in seconds of the run
	Accelerator       string     // of several types their names, joined by plus signs
	Seats             []Seat     // devices it held
	BatchPerDevice    int        // at the start; 0 where it is left to the job
	AccumulationSteps int        // gradient accumulation steps at the start
	How               End        // how the stay ended
}

// Seat is the devices of a stay on one node.
type Seat struct {
	Node    string         // name of the node
	Devices core.DeviceSet // devices of the node
}

// Replicas counts the devices.
func (s *Stay) Replicas() int {
	n := 0
	for _, seat := range s.Seats {
		n += seat.Devices.Count()
	}
	return n
}

// DeviceSeconds is what the stay adds to the attained service of its job, where that has whole devices.
func (s *Stay) DeviceSeconds() float64 { return (s.End - s.Start) * float64(s.Replicas()) }

// NodeHealth is a node in one health: a row of nodes.csv.
type NodeHealth struct {
	Node, Accelerator string      // names of the node and of its accelerator type
	Devices           int         // devices of the node
	Start, End        float64     // moments between which the node had this health, in seconds of the run
	Health            core.Health // its health in that time
}

// Usage is the use of the cluster from a moment to the next one: a row of usage.csv.
type Usage struct {
	At                                float64        // moment, in seconds of the run
	DevicesReady, DevicesUsed         int            // devices of ready nodes, and devices that jobs hold
	Running, Waiting, Pending, Demand int            // jobs that hold devices, jobs that wait after they ran, jobs that never ran, and devices that all of them ask for
	Efficiency, Goodput               metrics.Number // NaN while no job trains at a batch
}

// JobTraining is how a job trained over its life: a row of training.csv.
type JobTraining struct {
	Job                                             core.JobID // id of the job
	InitialBatch                                    int        // total batch it was submitted with, in samples
	Seconds, BatchMean, EfficiencyMean, GoodputMean float64    // seconds of training; means over them of the total batch (samples), of the statistical efficiency (0 to 1) and of the goodput (samples/s)
}

// Pace is how a job trains from a moment to its next one: a row of efficiency.csv. From its last one on it trains no more.
type Pace struct {
	Job                 core.JobID     // id of the job
	At                  float64        // moment from which it holds, in seconds of the run
	Batch               int            // samples of an optimizer step over all replicas; 0 while it does not train
	Efficiency, Goodput metrics.Number // NaN while it does not train
}

// ReadTimeline reads a timeline.csv; file is its name in errors. All problems with it are returned together, as
// core.Diagnostics.
func ReadTimeline(r io.Reader, file string) ([]Stay, error) {
	t := openTable(r, file, timelineHeader)
	var stays []Stay
	for t.next() {
		s := Stay{
			Job: core.JobID(t.count(0, 0, math.MaxInt32)), Start: t.number(1), End: t.number(2), Accelerator: strings.Clone(t.text(3)),
			BatchPerDevice: t.optionalCount(7), AccumulationSteps: t.optionalCount(8), How: End(max(t.name(9, endNames[:]), 0)),
		}
		seats, ok := parseSeats(t.text(6))
		s.Seats = seats
		switch {
		case !ok:
			t.reject(6, "NODE:MASK joined by plus signs, the mask hexadecimal and not 0, no node twice")
		case t.count(4, 1, math.MaxInt32) != s.Replicas():
			t.reject(4, "as many as there are devices in seats")
		case t.count(5, 1, math.MaxInt32) != len(seats):
			t.reject(5, "as many as there are nodes in seats")
		}
		if s.End < s.Start {
			t.reject(2, "a moment not before start_s")
		}
		stays = append(stays, s)
	}
	return stays, t.problems.Err()
}

// parseSeats reads NODE:MASK+NODE:MASK. Names may hold either sign: a mask ends at a plus sign or at the end.
func parseSeats(text string) (seats []Seat, ok bool) {
	from := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] != '+' {
			continue
		}
		colon := strings.LastIndexByte(text[from:i], ':')
		if colon < 0 {
			continue // of the name
		}
		mask, err := strconv.ParseUint(text[from+colon+1:i], 16, 64)
		if err != nil {
			continue
		}
		seat := Seat{Node: strings.Clone(text[from : from+colon]), Devices: core.DeviceSet(mask)}
		if mask == 0 || seat.Node == "" || slices.ContainsFunc(seats, func(s Seat) bool { return s.Node == seat.Node }) {
			return nil, false
		}
		seats = append(seats, seat)
		from = i + 1
	}
	return seats, from == len(text)+1
}

// ReadNodes reads a nodes.csv, as ReadTimeline does a timeline.csv.
func ReadNodes(r io.Reader, file string) ([]NodeHealth, error) {
	t := openTable(r, file, nodesHeader)
	var list []NodeHealth
	healths := []string{core.Ready.String(), core.Draining.String(), core.Down.String(), core.Provisioning.String()}
	for t.next() {
		list = append(list, NodeHealth{
			Node: strings.Clone(t.text(0)), Accelerator: strings.Clone(t.text(1)), Devices: t.count(2, 1, core.MaxDevicesPerNode),
			Start: t.number(3), End: t.number(4), Health: core.Health(max(t.name(5, healths), 0)),
		})
	}
	return list, t.problems.Err()
}

// ReadUsage reads a usage.csv, as ReadTimeline does a timeline.csv.
func ReadUsage(r io.Reader, file string) ([]Usage, error) {
	t := openTable(r, file, usageHeader)
	var list []Usage
	last := math.Inf(-1)
	for t.next() {
		u := Usage{At: t.number(0), Efficiency: t.optional(7), Goodput: t.optional(8)}
		for i, to := range [...]*int{&u.DevicesReady, &u.DevicesUsed, &u.Running, &u.Waiting, &u.Pending, &u.Demand} {
			*to = t.count(i+1, 0, math.MaxInt32)
		}
		if u.At <= last {
			t.reject(0, "a moment after that of the row before")
		}
		last = u.At
		list = append(list, u)
	}
	return list, t.problems.Err()
}

// ReadTraining reads a training.csv, as ReadTimeline does a timeline.csv.
func ReadTraining(r io.Reader, file string) ([]JobTraining, error) {
	t := openTable(r, file, trainingHeader)
	var list []JobTraining
	for t.next() {
		list = append(list, JobTraining{
			Job: core.JobID(t.count(0, 0, math.MaxInt32)), InitialBatch: t.optionalCount(1), Seconds: t.number(2), BatchMean: t.number(3),
			EfficiencyMean: t.number(4), GoodputMean: t.number(5),
		})
	}
	return list, t.problems.Err()
}

// ReadEfficiency reads an efficiency.csv, as ReadTimeline does a timeline.csv.
func ReadEfficiency(r io.Reader, file string) ([]Pace, error) {
	t := openTable(r, file, efficiencyHeader)
	var list []Pace
	for t.next() {
		list = append(list, Pace{
			Job: core.JobID(t.count(0, 0, math.MaxInt32)), At: t.number(1), Batch: t.optionalCount(2), Efficiency: t.optional(3), Goodput: t.optional(4),
		})
	}
	return list, t.problems.Err()
}

const jobsHeader = "job,name,application,submit_s,first_start_s,finish_s,jct_s,queueing_s,replicas_mean,restarts,gpu_seconds,outcome"

// ReadJobs reads a jobs.csv, as ReadTimeline does a timeline.csv.
func ReadJobs(r io.Reader, file string) ([]metrics.Job, error) {
	t := openTable(r, file, jobsHeader)
	var jobs []metrics.Job
	for t.next() {
		jobs = append(jobs, metrics.Job{
			ID: core.JobID(t.count(0, 0, math.MaxInt32)), Name: strings.Clone(t.text(1)), Application: strings.Clone(t.text(2)),
			SubmitSeconds: t.number(3), FirstStartSeconds: t.optional(4), FinishSeconds: t.optional(5), JCTSeconds: t.optional(6),
			QueueingSeconds: t.optional(7), ReplicasMean: t.optional(8), Restarts: t.count(9, 0, math.MaxInt32),
			GPUSeconds: t.number(10), Outcome: strings.Clone(t.text(11)),
		})
	}
	return jobs, t.problems.Err()
}
