package timeline

import (
	"bufio"
	"cmp"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

const efficiencyHeader = "job,at_s,batch,efficiency,goodput\n"

// moment is how a job trains from then on.
type moment struct {
	at  float64
	job core.JobID
	pace
}

// pace is how a job trains, the zero value where it does not.
type pace struct {
	batch               int
	efficiency, goodput float64
}

// efficiencyWriter writes how each job trains as that changes, in order of time, then of job.
type efficiencyWriter struct {
	out     *bufio.Writer
	moments []moment // that others may still come before
	written []pace   // by JobID, in its last row
}

func (w *efficiencyWriter) add(h *holding, at float64) {
	m := moment{at: at, job: h.spec.ID}
	if t := h.training; t.known {
		m.pace = pace{t.batch, t.efficiency, t.goodput}
	}
	w.moments = append(w.moments, m)
}

// flush writes what was so before a moment, to which the next round may add. Of several changes at one moment the last counts.
func (w *efficiencyWriter) flush(before float64) error {
	slices.SortStableFunc(w.moments, func(a, b moment) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.job, b.job)) })
	n := 0
	for ; n < len(w.moments) && w.moments[n].at < before; n++ {
		m := &w.moments[n]
		if n+1 < len(w.moments) && w.moments[n+1].at == m.at && w.moments[n+1].job == m.job {
			continue
		}
		if int(m.job) >= len(w.written) {
			w.written = append(w.written, make([]pace, int(m.job)+1-len(w.written))...)
		}
		if w.written[m.job] == m.pace {
			continue
		}
		w.written[m.job] = m.pace
		if err := w.write(m); err != nil {
			return err
		}
	}
	w.moments = slices.Delete(w.moments, 0, n)
	return nil
}

func (w *efficiencyWriter) write(m *moment) error {
	row := strconv.AppendInt(w.out.AvailableBuffer(), int64(m.job), 10)
	row = append(row, ',')
	row = metrics.AppendNumber(row, m.at)
	if m.batch == 0 {
		row = append(row, ",,,"...)
	} else {
		row = append(row, ',')
		row = strconv.AppendInt(row, int64(m.batch), 10)
		for _, x := range [...]float64{m.efficiency, m.goodput} {
			row = append(row, ',')
			row = metrics.AppendNumber(row, x)
		}
	}
	_, err := w.out.Write(append(row, '\n'))
	return err
}
