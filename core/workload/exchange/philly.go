package exchange

import (
	"encoding/json"
	"io"
	"strings"
)

// phillyJob is a job of Philly's cluster_job_log (Jeon et al., ATC 2019). Times are dates without a zone, and empty or None where they
// are not known.
type phillyJob struct {
	Status    string `json:"status"`
	Cluster   string `json:"vc"`
	ID        string `json:"jobid"`
	Submitted string `json:"submitted_time"`
	Attempts  []struct {
		Start  string          `json:"start_time"`
		End    string          `json:"end_time"`
		Detail []phillyMachine `json:"detail"`
	} `json:"attempts"`
}

// phillyMachine is what an attempt has of a machine.
type phillyMachine struct {
	GPUs []string `json:"gpus"`
}

// philly reads the job log of Philly as a stream. The virtual cluster is the tenant.
func (in *importer) philly(content io.Reader) error {
	if err := in.checkFixed(); err != nil {
		return err
	}
	d := json.NewDecoder(content)
	var job phillyJob
	err := in.elements(d, &job, func() { job = phillyJob{} }, func() { in.phillyJob(&job) }, "job is not of the form of Philly")
	if err == nil {
		err = ended(d, "jobs")
	}
	if err != nil {
		return in.notJSON(d, err, "job log of Philly", `expected [{"jobid": …, "attempts": […], …}, …]`)
	}
	return nil
}

// phillyJob keeps a job, or drops it.
func (in *importer) phillyJob(job *phillyJob) {
	r := Record{Name: job.ID, line: int32(in.tally.rows), Limit: nan, Estimate: nan, Start: nan}
	reason := ""
	if r.Outcome, _, _ = outcomeOf(job.Status); r.Name == "" || !printable([]byte(r.Name)) {
		reason = reasonName
	} else if !printable([]byte(job.Cluster)) {
		reason = "tenant cannot be read"
	}
	for _, k := range in.Keep {
		if reason == "" && !in.keeps(r.Outcome) {
			reason = reasonKeep(k)
		}
	}
	if reason == "" {
		reason = in.phillyAttempts(&r, job)
	}
	if reason != "" {
		in.tally.drop(reason, in.tally.rows, job.ID)
		return
	}
	r.Tenant = in.label([]byte(job.Cluster))
	in.keep(&r)
}

// phillyAttempts takes the times and the devices of a job: it starts with its first attempt, has the devices of that one, and runs for as
// long as all of them together. It returns why the job is dropped, or nothing.
func (in *importer) phillyAttempts(r *Record, job *phillyJob) (reason string) {
	submitted, ok := in.instantIf(job.Submitted)
	switch {
	case !ok:
		return "submit_s cannot be read"
	case submitted.first != submitted.first:
		return "submit_s is not known"
	}
	r.Submit = submitted.first
	for i, attempt := range job.Attempts {
		start, startOK := in.instantIf(attempt.Start)
		end, endOK := in.instantIf(attempt.End)
		if !startOK || !endOK {
			return "start or end of an attempt cannot be read"
		}
		at := times{submit: submitted, start: start, end: end}
		submit, begin, finish := at.settle(nan)
		switch {
		case finish != finish && i == len(job.Attempts)-1:
			return reasonNotEnded
		case begin != begin || finish != finish:
			continue // was not logged
		case finish < begin:
			return reasonBackwards
		}
		if r.Start != r.Start {
			r.Submit, r.Start, r.Replicas = submit, begin, phillyDevices(attempt.Detail)
		}
		r.Duration += finish - begin
	}
	switch {
	case r.Start != r.Start:
		return reasonNeverRan
	case r.Replicas == 0:
		return reasonNoGPU
	case r.Replicas > maxCount:
		return "replicas cannot be read"
	}
	return r.fault()
}

// phillyDevices counts the GPUs of an attempt.
func phillyDevices(machines []phillyMachine) (devices int32) {
	for _, machine := range machines {
		devices += int32(len(machine.GPUs))
	}
	return devices
}

// instantIf is instantOf a text, and NaN where it says that it is not known.
func (in *importer) instantIf(text string) (instant, bool) {
	cell := []byte(strings.TrimSpace(text))
	if unknown(cell) {
		return instant{nan, nan}, true
	}
	return instantOf(cell, in.Zone)
}
