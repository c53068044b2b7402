package metrics

import "github.com/quartet-sched/quartet/core"

// Finish-time fairness compares a job's JCT with the JCT it would have on a fair share of the cluster:
//
//	rho = JCT / (exclusive run time × max(1, contention))
//
// where contention is the devices requested by all jobs in the system over the devices there are, averaged over the
// job's life. rho above 1 means that the job got less than its share.

// unfairAbove is 1 with room for rounding, so that a job that was never held up is not called unfair.
const unfairAbove = 1 + 1e-9

// demand integrates the devices requested by the jobs in the system over time.
type demand struct {
	devices   int
	integral  float64 // device-seconds
	atSeconds float64
}

// add changes the demand at a moment and returns the integral up to it.
func (d *demand) add(devices int, atSeconds float64) float64 {
	if atSeconds > d.atSeconds {
		d.integral += float64(d.devices) * (atSeconds - d.atSeconds)
		d.atSeconds = atSeconds
	}
	d.devices += devices
	return d.integral
}

// ExclusiveSeconds is the time that the job takes on its requested replicas, alone. It is not known of a profiled
// job, whose TotalWork counts iterations: those come with step times.
func ExclusiveSeconds(s *core.JobSpec) (seconds float64, known bool) {
	return s.TotalWork, s.TotalWork > 0 && s.StepTimes == nil
}

// rho is the finish-time fairness of a completed job on a cluster of so many devices.
func (r *record) rho(devices int) (rho float64, ok bool) {
	exclusive, known := ExclusiveSeconds(r.spec)
	jct := r.jct()
	if !known || !(jct > 0) || devices == 0 {
		return 0, false
	}
	contention := r.contention / jct / float64(devices)
	return jct / (exclusive * max(1, contention)), true
}
