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
	fieldEnded // and those that others are computed from
	fieldLimitMinutes
	fieldNodes
	fieldNamespace
	fieldCount

	fieldEnd = fieldEnded // number of columns of a trace
)

// fieldNames are the columns of a trace, and those that others are computed from.
var fieldNames = [fieldCount]string{
	"name", "submit_s", "duration_s", "replicas", "tenant", "application", "weight", "min_replicas", "max_replicas", "accelerators", "cpus", "memory_gb",
	"pinned", "deadline_s", "best_effort", "tier", "experiment", "limit_s", "estimate_s", "observed_start_s", "outcome", "end_s", "limit_minutes", "nodes", "namespace",
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
	free    []string // columns of free text, which may hold dividers
}

var layouts = map[string]*layout{
	Sacct: {
		divider: '|', steps: true, toNow: true, requeue: true,
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
	CSV: {
		quotes: true, own: true,
		columns: [fieldCount][]string{
			fieldStart: {"observedstarts", "firststarts"}, fieldEnded: {"ends", "finishs"}, fieldReplicas: {"replicas", "replicasmean"}, // finish_s without its line
		},
	},
}

// aliases are the names that a column may have in the table, for a field.
func (l *layout) aliases(f field) []string {
	if !l.own && f >= fieldDeadline && f <= fieldExperiment {
		return nil
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
	idAt   int               // column that tells steps of jobs; -1 for none

	nodesMapped bool // by Options.Map: a number of devices is that on each node
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
		ds = append(ds, core.Diagnostic{
			Position: at, Summary: "missing column " + strings.Join(names, " or "),
			Hint: fmt.Sprintf("name it with --map %s=COLUMN; columns of the file: %s", strings.Join(names, "=COLUMN or "), strings.Join(h.names, ", ")),
		})
	}
	needed(fieldSubmit)
	needed(fieldReplicas)
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
