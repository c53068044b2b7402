package metrics

import (
	"bufio"
	"math"
	"strconv"

	"github.com/quartet-sched/quartet/core"
)

const roundsHeader = "round,time_s,active,waiting,running,devices_used,devices_usable,started,stopped,moved,finished,gap_ratio\n"

// writeRound writes the row of one round.
func writeRound(w *bufio.Writer, r *core.Report) error {
	var byAction [core.Pause + 1]int
	for i := range r.Changes {
		byAction[r.Changes[i].Action]++
	}
	finished := 0
	for _, j := range r.Ended {
		if j.State == core.Completed {
			finished++
		}
	}
	v := r.View
	active := len(v.Active)

	b := w.AvailableBuffer()
	b = strconv.AppendInt(b, int64(v.Round), 10)
	b = append(b, ',')
	b = AppendNumber(b, v.NowSeconds)
	for _, n := range [...]int{
		active, v.Waiting, active - v.Waiting, r.DevicesUsed, v.Devices,
		byAction[core.Start], byAction[core.Stop] + byAction[core.Pause], byAction[core.Move], finished,
	} {
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(n), 10)
	}
	b = append(b, ',')
	if !math.IsNaN(r.GapRatio) {
		b = AppendNumber(b, r.GapRatio)
	}
	_, err := w.Write(append(b, '\n'))
	return err
}
