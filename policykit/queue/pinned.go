package queue

import "github.com/quartet-sched/quartet/core"

// Stays reports whether a candidate is pinned to the devices that it holds: it is to be granted just these, before anybody else.
func Stays(v *core.View, c *core.Candidate) bool {
	return !v.NonePinned() && c.State == core.Running && c.Pinned && c.MustStay(v.Cluster, c.Response)
}

// Pinned is how many devices the candidates hold that stay, a shared one once.
func Pinned(v *core.View, candidates []core.Candidate) int {
	if v.NonePinned() {
		return 0
	}
	var held core.Once
	held.Reset(v.Cluster)
	devices := 0
	for i := range candidates {
		if c := &candidates[i]; Stays(v, c) {
			for _, s := range c.Seats {
				devices += held.Count(s)
			}
		}
	}
	return devices
}

// MayStay reports whether a candidate is pinned, is yet to be seated, and may then be on devices that others have: Pinned may count fewer devices for it than it
// was granted, and who counts on that is to be asked again.
func MayStay(v *core.View, c *core.Candidate) bool {
	return v.Cluster.Sharing != core.Exclusive && c.Pinned && !Stays(v, c)
}
