package twin

import (
	"maps"

	"github.com/quartet-sched/quartet/core"
)

// restarts are what is known of whether jobs keep what they did when they are stopped or moved: that they do, where the backend knows of a checkpoint; or else what a
// restart showed, or else that they do not, as the backend tells, or else what restarts of the application showed. One of which nothing is known is taken to keep it.
type restarts struct {
	seen, told map[core.JobID]core.Checkpointing
	of         map[string]core.Checkpointing // by application, of its latest restart
}

func (r *restarts) clone() restarts {
	return restarts{maps.Clone(r.seen), maps.Clone(r.told), maps.Clone(r.of)}
}

// keptPart is the part of what a job had done that it has at least when it goes on. Its first report may come late, and a checkpoint be a little old.
const keptPart = 0.5

// note notes what the backend tells.
func (r *restarts) note(id core.JobID, c core.Checkpointing) {
	if c == core.CheckpointingUnknown {
		return
	}
	if r.told == nil {
		r.told = map[core.JobID]core.Checkpointing{}
	}
	r.told[id] = c
}

// see notes with which progress a job goes on that had done some when it was stopped or moved.
func (r *restarts) see(j *core.JobSpec, progress, had float64) {
	c := core.KeepsProgress
	if progress < had*keptPart {
		c = core.BeginsAnew
	}
	if r.seen == nil {
		r.seen, r.of = map[core.JobID]core.Checkpointing{}, map[string]core.Checkpointing{}
	}
	r.seen[j.ID] = c
	if _, known := r.of[j.Application]; j.Application != "" && (known || len(r.of) < mostApplications) {
		r.of[j.Application] = c
	}
}

// anew reports whether a job begins anew.
func (r *restarts) anew(j *core.JobSpec) bool {
	told := r.told[j.ID]
	if told == core.KeepsProgress {
		return false
	}
	for _, c := range [...]core.Checkpointing{r.seen[j.ID], told, r.of[j.Application]} {
		if c != core.CheckpointingUnknown {
			return c == core.BeginsAnew
		}
	}
	return false
}

// forget drops jobs that ended, unless those that come may be like them, when these are many.
func (r *restarts) forget(v *core.View, s *submissions) {
	if len(r.seen)+len(r.told) <= 4*(len(v.Active)+len(s.list)) {
		return
	}
	latest := make(map[core.JobID]bool, len(s.list))
	for _, spec := range s.list {
		latest[spec.ID] = true
	}
	gone := func(id core.JobID, _ core.Checkpointing) bool { return v.Job(id) == nil && !latest[id] }
	maps.DeleteFunc(r.seen, gone)
	maps.DeleteFunc(r.told, gone)
}
