package exchange

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/quartet-sched/quartet/core"
)

// field is what a column of a table may become.
type field int

const (
	fieldName field = iota
	fieldSubmit
	fieldDuration
	fieldReplicas
	fieldTenant
	fieldApplication
	fieldWeight
	fieldMinReplicas
	fieldMaxReplicas
	fieldAccelerators
	fieldCPUs
	fieldMemory
	fieldPinned
	fieldDeadline
	fieldBestEffort
	fieldTier
	fieldExperiment
	fieldLimit
	fieldEstimate
	fieldStart
	fieldOutcome
	fieldShare
	fieldEnded // and those that others are computed from
	fieldLimitMinutes
	fieldNodes
	fieldNamespace
	fieldMeanReplicas
	fieldTotalCPUs
	fieldNodeCPUs
	fieldTotalMemory
	fieldNodeMemory
	fieldCount

	fieldEnd = fieldEnded // number of columns of a trace
)

// fieldNames are the columns of a trace, and those that others are computed from.
var fieldNames = [fieldCount]string{
	"name", "submit_s", "duration_s", "replicas", "tenant", "application", "weight", "min_replicas", "max_replicas", "accelerators", "cpus", "memory_gb",
	"pinned", "deadline_s", "best_effort", "tier", "experiment", "limit_s", "estimate_s", "observed_start_s", "outcome", "share_milli",
	"end_s", "limit_minutes", "nodes", "namespace", "replicas_mean", "total_cpus", "node_cpus", "total_memory_gb", "node_memory_gb",
}

// layout says which columns of a table become what where nobody maps them.
type layout struct {
	divider byte // 0 for the one that the header is divided by
	quotes  bool
	steps   bool // names may be those of steps and arrays of Slurm
	toNow   bool // the duration of a job without an end is that up to now
	requeue bool
	own     bool // Quartet's: what others call so may be something else
	// columns are names in lower case without signs, by field; the first that the table has is taken, and those after it where
	// its cell is empty.
	columns [fieldCount][]string
	free    []string                 // columns of free text, which may hold dividers
	units   [fieldCount]float64      // what a number of a field is multiplied by; 0 for 1
	perNode bool                     // a number of devices is that on each node
	words   map[string]string        // words of its own for outcomes and flags, in lower case, by what Quartet calls so
	header  []string                 // columns of a file without a header
	job     func(name string) string // the job that a row of a name is a part of; nil where each row is a job
}

var layouts = map[string]*layout{
	Sacct: {
		divider: '|', steps: true, toNow: true, requeue: true, job: hetJob,
		columns: [fieldCount][]string{
			fieldName:         {"jobid", "jobidraw"},
			fieldSubmit:       {"submit"},
			fieldStart:        {"start"},
			fieldEnded:        {"end"},
			fieldDuration:     {"elapsedraw", "elapsed"},
			fieldReplicas:     {"alloctres", "reqtres", "allocgres", "reqgres"},
			fieldNodes:        {"nnodes", "allocnodes"},
			fieldTenant:       {"account", "user"},
			fieldLimit:        {"timelimit"},
			fieldLimitMinutes: {"timelimitraw"},
			fieldOutcome:      {"state"},
		},
		free: []string{"jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "reason", "container", "extra", "stdout", "stderr", "stdin"},
	},
	Kueue: {
		quotes: true,
		columns: [fieldCount][]string{
			fieldName:         {"name", "workload", "workloadname", "metadataname", "job", "jobname"},
			fieldNamespace:    {"namespace", "metadatanamespace"},
			fieldSubmit:       {"submit", "submits", "created", "createdat", "creationtimestamp", "creationtime", "metadatacreationtimestamp", "queued", "queuedat"},
			fieldStart:        {"admitted", "admittedat", "admissiontime", "admissiontimestamp", "quotareserved", "quotareservedat", "started", "startedat", "starttime"},
			fieldEnded:        {"finished", "finishedat", "finishtime", "finishtimestamp", "completed", "completedat", "completiontime", "ended", "end"},
			fieldDuration:     {"duration", "durations", "durationseconds", "runtime"},
			fieldReplicas:     {"gpus", "gpu", "nvidiacomgpu", "requestsnvidiacomgpu", "gpurequests", "replicas", "devices"},
			fieldTenant:       {"localqueue", "queue", "queuename", "specqueuename", "clusterqueue", "user", "tenant"},
			fieldAccelerators: {"flavor", "flavors", "resourceflavor", "accelerator", "accelerators", "gputype"},
			fieldLimit:        {"maximumexecutiontimeseconds", "maxexecutiontime", "activedeadlineseconds", "limit", "limits"},
			fieldOutcome:      {"state", "status", "reason", "finishedreason", "result", "outcome", "phase"},
		},
	},
	Acme: slurmTable, Helios: slurmTable,
	OpenB: {
		divider: ',', quotes: true, perNode: true, words: map[string]string{"spot": "true", "hp": "false"},
		columns: [fieldCount][]string{
			fieldName:         {"name", "instancesn", "jobname"},
			fieldSubmit:       {"creationtime", "submittime"},
			fieldStart:        {"scheduledtime"},
			fieldEnded:        {"deletiontime"},
			fieldDuration:     {"duration"},
			fieldReplicas:     {"numgpu", "gpurequest"},
			fieldShare:        {"gpumilli"},
			fieldNodes:        {"workernum"},
			fieldTenant:       {"qos", "organization"},
			fieldApplication:  {"appname"},
			fieldAccelerators: {"gpuspec", "gpumodel"},
			fieldBestEffort:   {"jobtype"},
			fieldTotalCPUs:    {"cpumilli"},
			fieldNodeCPUs:     {"cpurequest"},
			fieldTotalMemory:  {"memorymib"},
			fieldNodeMemory:   {"memoryrequest"},
		},
		units: [fieldCount]float64{fieldTotalCPUs: 1e-3, fieldTotalMemory: 1. / 1024},
	},
	PAI: {
		divider: ',', quotes: true, perNode: true, words: map[string]string{"terminated": "completed"}, job: taskJob,
		header: []string{"job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu", "gpu_type"},
		columns: [fieldCount][]string{
			fieldName:         {"taskname"},
			fieldNamespace:    {"jobname"},
			fieldSubmit:       {"starttime"}, // the table has no other
			fieldEnded:        {"endtime"},
			fieldStart:        {"starttime"},
			fieldReplicas:     {"plangpu"},
			fieldNodes:        {"instnum"},
			fieldAccelerators: {"gputype"},
			fieldNodeCPUs:     {"plancpu"},
			fieldNodeMemory:   {"planmem"},
			fieldOutcome:      {"status"},
		},
		units: [fieldCount]float64{fieldReplicas: 0.01, fieldNodeCPUs: 0.01},
	},
	CSV: {
		quotes: true, own: true,
		columns: [fieldCount][]string{
			fieldStart: {"observedstarts", "firststarts"}, fieldEnded: {"ends", "finishs"}, // finish_s without its line
		},
	},
}

// slurmTable is the tables of Slurm's jobs that were published of Acme and of Helios. Their durations are not read: those of Kalos, a
// cluster of Acme, count from the submission.
var slurmTable = &layout{
	divider: ',', quotes: true,
	columns: [fieldCount][]string{
		fieldName:        {"jobid"},
		fieldSubmit:      {"submittime"},
		fieldStart:       {"starttime"},
		fieldEnded:       {"endtime"},
		fieldReplicas:    {"gpunum"},
		fieldNodes:       {"nodenum"},
		fieldTenant:      {"vc", "user"},
		fieldApplication: {"type"},
		fieldTotalCPUs:   {"cpunum"},
		fieldNodeMemory:  {"memperpodgb"},
		fieldOutcome:     {"state"},
	},
}

// hetJob is the job that a component of a heterogeneous job of Slurm belongs to: 13 of 13+1.
func hetJob(name string) string {
	job, component, is := strings.Cut(name, "+")
	if !is {
		return name
	}
	if _, whole := count([]byte(component)); !whole {
		return name
	}
	return job
}

// taskJob is the job of PAI that a task belongs to.
func taskJob(name string) string {
	job, _, _ := strings.Cut(name, "/")
	return job
}

// aliases are the names that a column may have in the table, for a field.
func (l *layout) aliases(f field) []string {
	if !l.own && f >= fieldDeadline && f <= fieldExperiment {
		return l.columns[f]
	}
	return append(slices.Clone(l.columns[f]), plainName(fieldNames[f]))
}

// plainName is the name of a column in lower case, without signs.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// heading is where the cells of a row are.
type heading struct {
	names  []string
	fields [fieldCount][]int // columns by field, in the order in which they are asked
	keepBy []int             // column of each of Options.Keep
	texts  []int             // columns of free text
	idAt   int               // column that says which rows are steps of jobs; -1 for none

	nodesMapped bool // a number of devices is that on each node, as the layout or Options.Map says
}

// find is the column of a name: exactly, or else in lower case and without signs; -1 for none.
func (h *heading) find(name string) int {
	if at := slices.Index(h.names, name); at >= 0 {
		return at
	}
	return slices.IndexFunc(h.names, func(n string) bool { return plainName(n) == plainName(name) && plainName(name) != "" })
}

// heading reads the header of a table and reports all that is wrong with it and with what was asked of it.
func (in *importer) heading(cells [][]byte, line int, l *layout) (*heading, error) {
	h := &heading{idAt: -1}
	for _, cell := range cells {
		h.names = append(h.names, strings.TrimSpace(string(cell)))
	}
	at := core.Position{File: in.file, Line: line}
	ds := h.mapColumns(in.Map, at)
	h.nodesMapped = len(h.fields[fieldNodes]) > 0
	h.findColumns(l)
	h.nodesMapped = h.nodesMapped || l.perNode && len(h.fields[fieldNodes]) > 0
	ds = slices.Concat(ds, h.checkColumns(at), h.findKept(in.Keep, at))
	for _, name := range l.free {
		if k := h.find(name); k >= 0 {
			h.texts = append(h.texts, k)
		}
	}
	if l.steps {
		h.idAt = max(h.find("jobid"), h.find("jobidraw"))
	}
	return h, ds.Err()
}

// mapColumns takes the columns that the user maps to fields.
func (h *heading) mapColumns(mapped map[string]string, at core.Position) (ds core.Diagnostics) {
	for _, target := range slices.Sorted(maps.Keys(mapped)) {
		column, f := mapped[target], field(slices.Index(fieldNames[:], target))
		if f < 0 {
			ds = append(ds, core.Diagnostic{Summary: fmt.Sprintf("nothing is made of columns mapped to %q", target), Hint: core.SuggestHint(target, "names", fieldNames[:])})
			continue
		}
		k := h.find(column)
		if k < 0 {
			ds = append(ds, core.Diagnostic{Position: at, Summary: fmt.Sprintf("there is no column %q to be %s", column, target), Hint: core.SuggestHint(column, "columns", h.names)})
			k = 0 // reported once
		}
		h.fields[f] = []int{k}
	}
	return ds
}

// findColumns finds the columns of the fields that nobody mapped, by the names that a layout has for them.
func (h *heading) findColumns(l *layout) {
	for f := range fieldCount {
		if len(h.fields[f]) > 0 {
			continue
		}
		for _, alias := range l.aliases(f) {
			for k, name := range h.names {
				if plainName(name) == alias && !slices.Contains(h.fields[f], k) {
					h.fields[f] = append(h.fields[f], k)
				}
			}
		}
	}
}

// checkColumns reports the columns that are missing: those of the submission, of the devices, and of two of start, end and duration.
func (h *heading) checkColumns(at core.Position) (ds core.Diagnostics) {
	missing := func(f field) bool { return len(h.fields[f]) == 0 }
	needed := func(f field, or ...field) {
		if !missing(f) {
			return
		}
		names := []string{fieldNames[f]}
		for _, other := range or {
			names = append(names, fieldNames[other])
		}
		how := strings.Join(names, "=COLUMN or ") + "=COLUMN"
		start, end := h.likely(fieldStart), h.likely(fieldEnded)
		if likely := h.likely(f); likely != "" {
			how += fmt.Sprintf(", perhaps --map %s=%s", fieldNames[f], likely)
		} else if f == fieldDuration && start != "" && end != "" {
			how += fmt.Sprintf(", perhaps --map %s=%s,%s=%s", fieldNames[fieldStart], start, fieldNames[fieldEnded], end)
		}
		ds = append(ds, core.Diagnostic{
			Position: at, Summary: "missing column " + strings.Join(names, " or "),
			Hint: fmt.Sprintf("name it with --map %s; columns of the file: %s", how, strings.Join(h.names, ", ")),
		})
	}
	needed(fieldSubmit)
	if missing(fieldMeanReplicas) {
		needed(fieldReplicas)
	}
	switch starts, ends := !missing(fieldStart), !missing(fieldEnded); {
	case !starts && ends:
		needed(fieldDuration, fieldStart)
	case starts && !ends:
		needed(fieldDuration, fieldEnded)
	case !starts:
		needed(fieldDuration)
	}
	return ds
}

// likelyWords are parts of the names that columns often have in other tables, the likeliest first.
var likelyWords = [fieldCount][]string{
	fieldSubmit:   {"submit", "submission", "queued", "enqueue", "created", "creation", "arriv"},
	fieldDuration: {"duration", "runtime", "elapsed"},
	fieldReplicas: {"replica", "gpu", "device", "worker"},
	fieldStart:    {"start", "begin", "scheduled"},
	fieldEnded:    {"end", "finish", "complet", "deletion"},
}

// likely is the column whose name says that it is a field; empty where none does. Of several it is the one with the shortest name.
func (h *heading) likely(f field) (found string) {
	for _, word := range likelyWords[f] {
		for _, name := range h.names {
			if strings.ContainsAny(name, ",=") {
				continue // --map cannot name it
			}
			if strings.Contains(plainName(name), word) && (found == "" || len(name) < len(found)) {
				found = name
			}
		}
		if found != "" {
			break
		}
	}
	return found
}

// findKept finds the columns that jobs are kept by.
func (h *heading) findKept(keep []Keep, at core.Position) (ds core.Diagnostics) {
	for _, k := range keep {
		column := h.find(k.Column)
		if f := field(slices.Index(fieldNames[:], k.Column)); column < 0 && f >= 0 && len(h.fields[f]) > 0 {
			column = h.fields[f][0]
		}
		if column < 0 {
			ds = append(ds, core.Diagnostic{Position: at, Summary: fmt.Sprintf("there is no column %q to keep by", k.Column), Hint: core.SuggestHint(k.Column, "columns", h.names)})
		}
		h.keepBy = append(h.keepBy, column)
	}
	return ds
}
