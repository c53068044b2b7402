// Package muri groups jobs that take turns on the same devices.
//
// Jobs come in an order of keys: [Remaining] for Muri-S, which knows how long jobs are, [Attained] for Muri-L, which does not. A job that can be seated
// takes the next jobs of its size with it; while they need more devices than there are, rounds of maximum-weight matching join groups
// that use the resources well together. A group that is slower than its jobs one after the other is taken apart.
//
// Source: Zhao et al., Muri (SIGCOMM 2022). Deviations: of matchings that weigh the same, others are chosen than in the authors' program. [Grouper.Exchange] and
// [Grouper.Steady] are ours. What a change of groups costs is a matter of the backend; the authors' simulator charges it between
// any two events, whether a group changed or not.
package muri

// Remaining is the key of Muri-S: the device-seconds that a job still needs, alone.
func Remaining(iterations, seconds float64, devices int) float64 {
	return iterations * seconds * float64(devices)
}

// Attained is what a job adds to the key of Muri-L while it runs for some seconds in a group of so many jobs: its part of the device-seconds.
func Attained(seconds float64, devices, jobs int) float64 {
	return seconds * float64(devices) / float64(jobs)
}
