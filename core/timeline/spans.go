package timeline

import (
	"bufio"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

const timelineHeader = "job,start_s,end_s,accelerator,replicas,nodes,seats,batch_per_device,accumulation_steps,end\n"

// End is how a stay ended.
type End uint8

// The ends of a stay. Moved is to other devices, as many; Resized to more or fewer. Interrupted says that a node failed, was
// drained, or that something ended the processes of the job; Preempted that a policy took the devices. Unfinished is a stay
// that lasts when the run ends.
const (
	Finished End = iota
	Failed
	Cancelled
	Preempted
	Moved
	Resized
	Interrupted
	Unfinished
)

var endNames = [...]string{"finished", "failed", "cancelled", "preempted", "moved", "resized", "interrupted", "unfinished"}

// String returns the name of the end, such as "preempted".
func (e End) String() string {
	if int(e) < len(endNames) {
		return endNames[e]
	}
	return "unknown(" + strconv.Itoa(int(e)) + ")"
}

// endOf is how a stay ends when its job comes to a final state.
func endOf(s core.JobState) End {
	switch s {
	case core.Completed:
		return Finished
	case core.Cancelled:
		return Cancelled
	default:
		return Failed
	}
}

// stay is a span that is not written yet.
type stay struct {
	job        core.JobID
	start, end float64
	seats      []core.Seat
	perDevice  int
	passes     int
	how        End
}

// spanWriter writes spans in order of their end, then of their job.
type spanWriter struct {
	out     *bufio.Writer
	cluster *core.Cluster
	closed  []stay // that others may still come before
}

func (w *spanWriter) add(h *holding, end End, at float64) {
	w.closed = append(w.closed, stay{
		job: h.spec.ID, start: h.since, end: at, seats: h.seats, perDevice: h.tuning.BatchPerDevice, passes: h.tuning.AccumulationSteps, how: end,
	})
}

// flush writes the spans that ended before a moment: another one of that moment may come in the next round.
func (w *spanWriter) flush(before float64) error {
	if len(w.closed) == 0 {
		return nil
	}
	slices.SortFunc(w.closed, func(a, b stay) int {
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.job, b.job), cmp.Compare(a.start, b.start))
	})
	n := 0
	for ; n < len(w.closed) && w.closed[n].end < before; n++ {
		if err := w.write(&w.closed[n]); err != nil {
			return err
		}
	}
	w.closed = slices.Delete(w.closed, 0, n)
	return nil
}

func (w *spanWriter) write(s *stay) error {
	b := w.out.AvailableBuffer()
	b = strconv.AppendInt(b, int64(s.job), 10)
	b = append(b, ',')
	b = metrics.AppendNumber(b, s.start)
	b = append(b, ',')
	b = metrics.AppendNumber(b, s.end)
	b = append(b, ',')
	b = metrics.AppendCell(b, accelerators(w.cluster, s.seats))
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(core.Replicas(s.seats)), 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(len(s.seats)), 10)
	b = append(b, ',')
	b = appendSeats(b, w.cluster, s.seats)
	b = append(b, ',')
	if s.perDevice > 0 {
		b = strconv.AppendInt(b, int64(s.perDevice), 10)
	}
	b = append(b, ',')
	if s.perDevice > 0 {
		b = strconv.AppendInt(b, int64(s.passes), 10)
	}
	b = append(b, ',')
	b = append(b, s.how.String()...)
	_, err := w.out.Write(append(b, '\n'))
	return err
}

// accelerators names the types of seats, in the order of the seats, joined by plus signs.
func accelerators(c *core.Cluster, seats []core.Seat) string {
	named := make([]core.AcceleratorID, 0, 4)
	text := ""
	for _, s := range seats {
		t := c.Nodes[s.Node].Accelerator
		if slices.Contains(named, t) {
			continue
		}
		if len(named) > 0 {
			text += "+"
		}
		text += c.Accelerators[t]
		named = append(named, t)
	}
	return text
}

// appendSeats appends seats as NODE:MASK, joined by plus signs. The mask is hexadecimal, its lowest bit device 0.
func appendSeats(b []byte, c *core.Cluster, seats []core.Seat) []byte {
	for _, s := range seats {
		if !strings.ContainsAny(c.Nodes[s.Node].Name, "\",\r\n") {
			continue
		}
		var plain []byte
		for i, s := range seats {
			plain = appendSeat(plain, i, c.Nodes[s.Node].Name, s.Devices)
		}
		return metrics.AppendCell(b, string(plain))
	}
	for i, s := range seats {
		b = appendSeat(b, i, c.Nodes[s.Node].Name, s.Devices)
	}
	return b
}

func appendSeat(b []byte, i int, node string, devices core.DeviceSet) []byte {
	if i > 0 {
		b = append(b, '+')
	}
	b = append(b, node...)
	b = append(b, ':')
	return strconv.AppendUint(b, uint64(devices), 16)
}
