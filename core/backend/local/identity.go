package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/workload"
)

// sameJobs refuses a run that began with other jobs, or another search, than those at hand.
func (o *Opener) sameJobs(m *journal.Meta, w *workload.Workload, path string) error {
	if w.React != nil {
		return o.sameSearch(m, w, path)
	}
	identity := identityOf(w)
	switch {
	case m.Workload == identity, m.Began == nil && (m.Workload == "" || slices.Contains(identitiesBefore(w), m.Workload)):
		return nil
	case m.Began == nil && m.Workload != identityOf(&workload.Workload{}):
		return refuseAt(path, "holds a run that began with other jobs, or with one of them written otherwise; the version that began it did not record which",
			"run it with the jobs as they were: they are processes that may still run; what is new is for \"quartet submit\"; or begin another run with --name")
	}
	found := journal.Differences(m.Began, w.Jobs)
	for i := range found {
		if found[i].Position.File == "" {
			found[i].Position.File = path
		}
	}
	return found.Err()
}

// sameSearch refuses a run whose search began with other settings, as this program reads both.
func (o *Opener) sameSearch(m *journal.Meta, w *workload.Workload, path string) error {
	if slices.Contains(append(identitiesBefore(w), identityOf(w)), m.Workload) {
		return nil
	}
	why := "other settings, or another seed"
	if o.differs != nil && m.Config != "" {
		differing, err := o.differs(m.Config)
		if err == nil {
			differing = slices.DeleteFunc(differing, func(d string) bool {
				return !strings.HasPrefix(d, "workload.") && !strings.HasPrefix(d, "seed:")
			})
			if len(differing) == 0 {
				return nil
			}
			why = strings.Join(differing, "; ")
		}
	}
	return refuseAt(path, "holds a run whose search began otherwise: "+why, "run it again with the settings of before, or begin another run with --name")
}

// identityOf is the same for workloads of the same jobs, to the letter, as earlier versions compare them: a store that this program leaves can be
// resumed by those. A field that core.JobSpec gains is left out where it is zero (omitzero).
func identityOf(w *workload.Workload) string { return digest(identityText(w)) }

// identitiesBefore are the identities that earlier versions gave to a workload whose empty lists were left out, the latest first. They had fewer
// fields in core.JobSpec.
func identitiesBefore(w *workload.Workload) (list []string) {
	text := bytes.ReplaceAll(bytes.ReplaceAll(identityText(w), []byte(`"Accelerators":[]`), []byte(`"Accelerators":null`)), []byte(`"Environment":[]`), []byte(`"Environment":null`))
	list = []string{digest(text)}
	for _, fields := range fieldsSince {
		for _, field := range fields {
			text = bytes.ReplaceAll(text, []byte(field), nil) // in a string its quotes would be escaped
		}
		list = append(list, digest(text))
	}
	return list
}

// fieldsSince are the fields that core.JobSpec had gained, the latest first, as they are written in a job that does not use them.
var fieldsSince = [][]string{
	{`"Experiment":"",`},
	{`"Pairs":null,`},
	{`,"Measured":0`},
	{`"Sensitivity":null,`},
	{`"Iteration":{"Load":0,"Compute":0,"Sync":0},`},
	{`"Share":null,"Utilisation":0,"DeviceMemoryGB":0,"SlowdownTolerance":0,`},
	{`"Tier":"",`},
	{`"DeadlineSeconds":0,"BestEffort":false,`},
	{`"Suspended":false,`},
}

func identityText(w *workload.Workload) []byte {
	var b bytes.Buffer
	text := json.NewEncoder(&b)
	for i := range w.Jobs {
		spec := w.Jobs[i].Spec
		spec.StepTimes, spec.Truth = nil, nil               // the application brings them along
		_ = text.Encode(submitted{spec, w.Jobs[i].Process}) // numbers and strings always can be
	}
	if w.React != nil {
		_ = text.Encode(w.Identity)
	}
	return b.Bytes()
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

type submitted struct {
	Spec    core.JobSpec
	Process workload.Process
}

// plausible refuses a store that did not record which jobs its run began with, where what it knows of them is not so: the names of those that ran, how
// many there are, and when they were submitted.
func (b *Backend) plausible(runs map[string]run, jobs int) error {
	other := func(what string, args ...any) error {
		return refuseAt(b.store.path, "holds a run that began with other jobs: "+fmt.Sprintf(what, args...), "run it with the jobs as they were, or begin another run with --name")
	}
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		if _, known := b.byName[name]; !known {
			return other("job %q ran, and is missing", name)
		}
	}
	for i, round := range b.journal.History() {
		for _, e := range round.Events {
			if e.Kind == core.JobSubmitted && int(e.Job) < jobs && e.AtSeconds < b.jobs[e.Job].Spec.SubmitSeconds {
				j := &b.jobs[e.Job].Spec
				return other("round %d saw the submission of job %q at %v s, and it comes at %v s", i+1, j.Name, e.AtSeconds, j.SubmitSeconds)
			}
		}
	}
	b.log.Warn("the version that began the run did not record its jobs: their names and submissions are as they were, the rest is taken as it is written now")
	return nil
}
