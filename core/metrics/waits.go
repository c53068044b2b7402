package metrics

// MostRestarted is the job that restarted most often, the first submitted of several; false where no job restarted.
func (c *Collector) MostRestarted() (name string, restarts int, any bool) {
	for i := range c.records {
		if r := &c.records[i]; r.spec != nil && int(r.restarts) > restarts {
			name, restarts = r.spec.Name, int(r.restarts)
		}
	}
	return name, restarts, restarts > 0
}

// LongestWait is the job that waited longest for its first devices of those that got some, in seconds, and how many jobs that were submitted after it
// started before it; false where no job started.
func (c *Collector) LongestWait() (name string, waitSeconds float64, overtaken int, any bool) {
	var longest *record
	for i := range c.records {
		if r := &c.records[i]; r.spec != nil && r.started() && (longest == nil || r.queueing() > longest.queueing()) {
			longest = r
		}
	}
	if longest == nil {
		return "", 0, 0, false
	}
	for i := range c.records {
		if r := &c.records[i]; r.spec != nil && r.spec.SubmitSeconds > longest.spec.SubmitSeconds && r.firstStart < longest.firstStart {
			overtaken++
		}
	}
	return longest.spec.Name, longest.queueing(), overtaken, true
}
