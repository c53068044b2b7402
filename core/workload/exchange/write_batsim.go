package exchange

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// WriteBatsim writes a trace as a JSON workload of Batsim for a machine of so many devices; 0 for as many as the largest
// job has. Jobs of equal duration share a profile. What Batsim has no field for stands in extra_data, which it passes on.
func WriteBatsim(w io.Writer, t *Trace, devices int) ([]Loss, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	var delays []float64
	known := map[float64]bool{}
	details, shares := 0, 0
	for i := range t.count {
		r := t.At(i)
		if !known[r.Duration] {
			known[r.Duration] = true
			delays = append(delays, r.Duration)
		}
		if r.more.besides() {
			details++
		}
		if r.shares() {
			shares++
		}
		devices = max(devices, int(r.Replicas))
	}
	row := make([]byte, 0, 256)
	fmt.Fprintf(out, "{\"nb_res\": %d,\n\"jobs\": [", devices)
	for k, i := range t.order() {
		r := t.At(int(i))
		if row = row[:0]; k > 0 {
			row = append(row, ',')
		}
		row = appendJSON(append(row, "\n{\"id\":"...), r.Name)
		row = appendNumber(append(row, ",\"subtime\":"...), r.Submit)
		row = strconv.AppendInt(append(row, ",\"res\":"...), int64(r.Replicas), 10)
		row = appendJSON(append(row, ",\"profile\":"...), profileOf(r.Duration))
		if !math.IsNaN(r.Limit) {
			row = appendNumber(append(row, ",\"walltime\":"...), r.Limit)
		}
		row = appendExtra(row, r)
		if _, err := out.Write(append(row, '}')); err != nil {
			return nil, fmt.Errorf("write job %q: %w", r.Name, err)
		}
	}
	fmt.Fprint(out, "\n],\n\"profiles\": {")
	slices.Sort(delays)
	for k, delay := range delays {
		if k > 0 {
			_ = out.WriteByte(',')
		}
		fmt.Fprintf(out, "\n%q: {\"type\": %q, \"delay\": %s}", profileOf(delay), batsimDelay, appendNumber(nil, delay))
	}
	fmt.Fprint(out, "\n}}\n")
	return lossesOf(Loss{"weights, bounds, CPUs, memory, deadlines and tiers left out", details}, Loss{lostShares, shares}), out.Flush()
}

// appendExtra appends what Batsim has no field for: a text that holds an object, as Batsim 5 asks for.
func appendExtra(row []byte, r *Record) []byte {
	var inner []byte
	for _, n := range [...]struct{ name, value string }{
		{"tenant", r.Tenant}, {"application", r.Application}, {"accelerators", r.Accelerators}, {"outcome", r.Outcome},
	} {
		if n.value != "" {
			inner = appendJSON(append(append(append(inner, ",\""...), n.name...), "\":"...), n.value)
		}
	}
	for _, n := range [...]struct {
		name  string
		value float64
	}{{"observed_start", r.Start}, {"estimate", r.Estimate}} {
		if !math.IsNaN(n.value) {
			inner = appendNumber(append(append(append(inner, ",\""...), n.name...), "\":"...), n.value)
		}
	}
	if len(inner) == 0 {
		return row
	}
	inner[0] = '{'
	return appendJSON(append(row, ",\"extra_data\":"...), string(append(inner, '}')))
}

// profileOf names the profile of a duration.
func profileOf(seconds float64) string {
	return "delay_" + strconv.FormatFloat(seconds, 'f', -1, 64)
}

// appendJSON is a text in the quotes of JSON.
func appendJSON(b []byte, s string) []byte {
	if !strings.ContainsAny(s, "\"\\") && printable([]byte(s)) {
		return append(append(append(b, '"'), s...), '"')
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // a text can always be written
	}
	return append(b, quoted...)
}
