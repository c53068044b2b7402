package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/timeline"
)

// CSV writes a row for each stay, with the name and the application of its job and its devices spelled out.
func CSV(w io.Writer, r *Run) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "job,name,application,submit_s,start_s,end_s,accelerator,replicas,nodes,devices,batch_per_device,accumulation_steps,end")
	for i := range r.Stays {
		s := &r.Stays[i]
		j := r.job(s.Job)
		b := strconv.AppendInt(out.AvailableBuffer(), int64(s.Job), 10)
		b = append(b, ',')
		b = metrics.AppendCell(b, j.Name)
		b = append(b, ',')
		b = metrics.AppendCell(b, j.Application)
		for _, x := range [...]float64{j.SubmitSeconds, s.Start, s.End} {
			b = append(b, ',')
			b = metrics.AppendNumber(b, x)
		}
		b = append(b, ',')
		b = metrics.AppendCell(b, s.Accelerator)
		for _, n := range [...]int{s.Replicas(), len(s.Seats)} {
			b = append(b, ',')
			b = strconv.AppendInt(b, int64(n), 10)
		}
		b = append(b, ',')
		b = metrics.AppendCell(b, devices(s, " "))
		for _, n := range [...]int{s.BatchPerDevice, s.AccumulationSteps} {
			b = append(b, ',')
			if s.BatchPerDevice > 0 {
				b = strconv.AppendInt(b, int64(n), 10)
			}
		}
		b = append(b, ',')
		b = append(b, s.How.String()...)
		if _, err := out.Write(append(b, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// devices spells out the seats of a stay: NODE:0,1,3.
func devices(s *timeline.Stay, separator string) string {
	parts := make([]string, len(s.Seats))
	for i, seat := range s.Seats {
		parts[i] = seat.Node + ":" + seat.Devices.String()
	}
	return strings.Join(parts, separator)
}

// The status of a job in SWF.
const (
	swfFailed    = 0
	swfCompleted = 1
	swfCancelled = 5
	swfUnknown   = -1
)

// SWF writes a line for each job in the Standard Workload Format, version 2.2. Times are rounded to whole seconds, as the format
// asks; a processor is a device, which two jobs may have at a time where devices are shared. The run time is the time with devices: what a job waited after it lost them is in neither the
// run time nor the wait. A job whose devices changed has the number that comes nearest to its mean. What a run does not know is -1.
//
// Source: Feitelson, Parallel Workloads Archive.
func SWF(w io.Writer, r *Run) error {
	out := bufio.NewWriter(w)
	nodes, devices := r.size()
	fmt.Fprintf(out, "; Version: 2.2\n; Computer: Quartet, run %s\n; MaxJobs: %d\n; MaxRecords: %d\n; UnixStartTime: 0\n; MaxNodes: %d\n; MaxProcs: %d\n",
		strings.Map(printable, r.Name), len(r.Jobs), len(r.Jobs), nodes, devices)
	fmt.Fprintln(out, "; Note: times are rounded to whole seconds; a processor is a device; the run time is the time with devices")
	held := r.heldByJob()
	for i := range r.Jobs {
		j := &r.Jobs[i]
		wait, run, allocated := int64(-1), int64(-1), int64(-1)
		if h, started := held[j.ID]; started {
			wait, run = seconds(h.first.Start-j.SubmitSeconds), seconds(h.seconds)
			allocated = int64(h.first.Replicas())
			if h.seconds > 0 {
				allocated = max(int64(math.Round(h.deviceSeconds/h.seconds)), 1)
			}
		}
		status := swfUnknown
		switch j.Outcome {
		case "completed":
			status = swfCompleted
		case "failed", "rejected":
			status = swfFailed
		case "cancelled":
			status = swfCancelled
		}
		// job submit wait run allocated cpu memory requested time memory status user group executable queue partition preceding think
		fmt.Fprintf(out, "%d %d %d %d %d -1 -1 -1 -1 -1 %d -1 -1 -1 -1 -1 -1 -1\n",
			int64(j.ID)+1, seconds(j.SubmitSeconds), wait, run, allocated, status)
	}
	return out.Flush()
}

func printable(c rune) rune {
	if c < ' ' || c == 0x7f {
		return '_'
	}
	return c
}

// seconds rounds to whole ones.
func seconds(x float64) int64 { return int64(math.Round(x)) }

// size counts the nodes and their devices.
func (r *Run) size() (nodes, devices int) {
	seen := map[string]bool{}
	for i := range r.Nodes {
		if n := &r.Nodes[i]; !seen[n.Node] {
			seen[n.Node] = true
			nodes++
			devices += n.Devices
		}
	}
	return nodes, devices
}

// batsimWorkload is a workload of Batsim.
type batsimWorkload struct {
	Description string                  `json:"description"`
	Resources   int                     `json:"nb_res"`
	Jobs        []batsimJob             `json:"jobs"`
	Profiles    map[string]batsimLength `json:"profiles"`
}

type batsimJob struct {
	ID        string  `json:"id"`
	Submit    float64 `json:"subtime"`
	Walltime  float64 `json:"walltime"` // -1 for none
	Resources int     `json:"res"`
	Profile   string  `json:"profile"`
}

type batsimLength struct {
	Type  string  `json:"type"`
	Delay float64 `json:"delay"`
}

// Batsim writes the run as a workload of Batsim: each job that ever had devices, rigid at those of its first stay, for as long as
// it had any. A resource is a device, whatever part of it the job had. Times are exact. Jobs that never started, of which nothing is known but their submission,
// are left out.
//
// Source: Batsim, JSSPP 2016, and its documentation of workloads.
func Batsim(w io.Writer, r *Run) error {
	_, devices := r.size()
	held := r.heldByJob()
	b := batsimWorkload{
		Description: "run " + r.Name + " of Quartet: jobs as they ran, a resource is a device", Resources: devices,
		Jobs: []batsimJob{}, Profiles: map[string]batsimLength{},
	}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		h, started := held[j.ID]
		if !started {
			continue
		}
		profile := "delay_" + strconv.Itoa(int(j.ID))
		b.Profiles[profile] = batsimLength{Type: "DelayProfile", Delay: h.seconds}
		b.Jobs = append(b.Jobs, batsimJob{ID: j.Name, Submit: j.SubmitSeconds, Walltime: -1, Resources: h.first.Replicas(), Profile: profile})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(b)
}
