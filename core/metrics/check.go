package metrics

import (
	"fmt"
	"math"
)

// Changed says what is wrong with an output of a run that has another digest than its manifest records; nothing when they agree.
func Changed(digest, recorded string) string {
	if digest == recorded {
		return ""
	}
	return "is not the file that the run wrote: its digest is not that in manifest.json"
}

// Contradiction says in what a summary is not that of the jobs of its run, as far as these show: its other numbers have no second
// source. It is empty when there is none, and for a summary of a part of the jobs.
func (s *Summary) Contradiction(jobs []Job) string {
	if s.Measured != nil {
		return ""
	}
	var jcts, queueing []float64
	devices, restarts := 0.0, 0
	for i := range jobs {
		j := &jobs[i]
		devices += j.GPUSeconds
		restarts += j.Restarts
		if j.JCTSeconds.Known() {
			jcts = append(jcts, float64(j.JCTSeconds))
		}
		if j.QueueingSeconds.Known() {
			queueing = append(queueing, float64(j.QueueingSeconds))
		}
	}
	jct, wait := Describe(jcts), Describe(queueing)
	for _, of := range [...]struct {
		metric    string
		got, want float64
	}{
		{"jobs.completed", float64(s.Jobs.Completed), float64(len(jcts))},
		{"restarts.total", float64(s.Restarts.Total), float64(restarts)},
		{"jct_seconds.mean", float64(s.JCTSeconds.Mean), float64(jct.Mean)},
		{"jct_seconds.p50", float64(s.JCTSeconds.P50), float64(jct.P50)},
		{"jct_seconds.p90", float64(s.JCTSeconds.P90), float64(jct.P90)},
		{"jct_seconds.p99", float64(s.JCTSeconds.P99), float64(jct.P99)},
		{"jct_seconds.max", float64(s.JCTSeconds.Max), float64(jct.Max)},
		{"queueing_seconds.mean", float64(s.QueueingSeconds.Mean), float64(wait.Mean)},
		{"queueing_seconds.p99", float64(s.QueueingSeconds.P99), float64(wait.P99)},
		{"gpu_hours", float64(s.GPUHours), devices / 3600},
	} {
		const rounding = 1e-9
		if !math.IsNaN(of.got) && !(math.Abs(of.got-of.want) <= rounding*math.Abs(of.want)) {
			return fmt.Sprintf("is not that of jobs.csv: %s is %v, and the jobs come to %v", of.metric, of.got, of.want)
		}
	}
	return ""
}
