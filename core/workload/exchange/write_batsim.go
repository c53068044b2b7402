package exchange

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// WriteBatsim writes a trace as a JSON workload of Batsim for a machine of so many devices; 0 for as many as the largest
// job has. Jobs of equal duration share a profile. What Batsim has no field for stands in fields that it passes on.
func WriteBatsim(w io.Writer, t *Trace, devices int) ([]Loss, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	var delays []float64
	known := map[float64]bool{}
	details := 0
	for i := range t.count {
		r := t.At(i)
		if !known[r.Duration] {
			known[r.Duration] = true
			delays = append(delays, r.Duration)
		}
		if r.more != nil {
			details++
		}
		devices = max(devices, int(r.Replicas))
	}
	fmt.Fprintf(out, "{\"nb_res\": %d,\n\"jobs\": [", devices)
	for k, i := range t.order() {
		r := t.At(int(i))
		replicas := float64(r.Replicas)
		job, err := json.Marshal(batsimJob{
			ID: text(r.Name), Submit: &r.Submit, Limit: knownOrNil(r.Limit), Devices: &replicas, Profile: profileOf(r.Duration),
			Tenant: r.Tenant, Application: r.Application, Accelerators: r.Accelerators, Outcome: r.Outcome, Start: knownOrNil(r.Start), Estimate: knownOrNil(r.Estimate),
		})
		if err != nil {
			return nil, fmt.Errorf("write job %q: %w", r.Name, err)
		}
		if k > 0 {
			_ = out.WriteByte(',') // Flush tells
		}
		_ = out.WriteByte('\n')
		if _, err := out.Write(job); err != nil {
			return nil, fmt.Errorf("write job %q: %w", r.Name, err)
		}
	}
	fmt.Fprint(out, "\n],\n\"profiles\": {")
	slices.Sort(delays)
	for k, delay := range delays {
		if k > 0 {
			_ = out.WriteByte(',')
		}
		fmt.Fprintf(out, "\n%q: {\"type\": \"delay\", \"delay\": %s}", profileOf(delay), appendNumber(nil, delay))
	}
	fmt.Fprint(out, "\n}}\n")
	return lossesOf(Loss{"weights, bounds, CPUs and memory left out", details}), out.Flush()
}

// profileOf names the profile of a duration.
func profileOf(seconds float64) text {
	return text("delay_" + strconv.FormatFloat(seconds, 'f', -1, 64))
}

func knownOrNil(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}
