package timeline

import (
	"bufio"
	"strconv"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

const reportsHeader = "job,at_s,metric,step,value\n"

// writeReported writes a value of a metric that a job told, in the order in which it was told. An error comes back from the next flush.
func writeReported(w *bufio.Writer, e *core.Event) {
	row := strconv.AppendInt(w.AvailableBuffer(), int64(e.Job), 10)
	row = append(row, ',')
	row = metrics.AppendNumber(row, e.AtSeconds)
	row = append(row, ',')
	row = metrics.AppendCell(row, e.Metric)
	for _, x := range [...]float64{e.Step, e.Value} {
		row = append(row, ',')
		row = metrics.AppendNumber(row, x)
	}
	_, _ = w.Write(append(row, '\n'))
}
