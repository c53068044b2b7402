package journal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// A run knows the jobs that it began with by what their owners wrote. A field that is at its default is left out, so that neither a field
// that a later version adds nor a default that is written out makes another job of it.

// Written is a job as its owner wrote it.
type Written struct {
	Name   string                     // of the job
	Fields map[string]json.RawMessage `json:",omitempty"` // by path in core.JobSpec and workload.Process, such as Batch.Max
}

// WrittenBy is what the owners of jobs wrote, in the order of the jobs.
func WrittenBy(jobs []workload.Job) []Written {
	list := make([]Written, len(jobs))
	unwritten := map[[2]int]map[string]json.RawMessage{}
	for i := range jobs {
		j := &jobs[i]
		key := [2]int{j.Spec.Requested, j.Spec.Batch.Requested}
		defaults := unwritten[key]
		if defaults == nil {
			defaults = fieldsOf(workload.Unwritten(key[0], key[1]))
			unwritten[key] = defaults
		}
		fields := fieldsOf(j)
		for path, value := range defaults {
			switch other, there := fields[path]; {
			case !there:
				fields[path] = json.RawMessage("null") // nothing, where a default is something
			case bytes.Equal(other, value) && path != "Requested" && path != "Batch.Requested":
				delete(fields, path)
			}
		}
		if j.Spec.Requested == 1 {
			delete(fields, "Requested")
		}
		list[i] = Written{j.Spec.Name, fields}
	}
	return list
}

// fieldsOf are the fields of a job that are not zero, by path. What its application brings along is not its owner's.
func fieldsOf(j *workload.Job) map[string]json.RawMessage {
	into := map[string]json.RawMessage{}
	spec, process := j.Spec, j.Process
	spec.ID, spec.Name = 0, ""
	spec.StepTimes, spec.Pairs, spec.Truth, spec.Sensitivity = nil, nil, nil, nil
	process.Environment = nil
	flatten(into, "", reflect.ValueOf(spec))
	flatten(into, "", reflect.ValueOf(process))
	if len(j.Process.Environment) > 0 { // may hold what nobody else is to read
		text, _ := json.Marshal(j.Process.Environment) // strings always can be
		into["Environment"] = json.RawMessage(fmt.Sprintf("\"%x\"", sha256.Sum256(text)))
	}
	return into
}

func flatten(into map[string]json.RawMessage, path string, v reflect.Value) {
	if v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct {
		into[path] = json.RawMessage("{}") // there, whatever is in it
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				flatten(into, strings.TrimPrefix(path+"."+f.Name, "."), v.Field(i))
			}
		}
		return
	}
	if v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return
	}
	text, err := json.Marshal(v.Interface())
	if err != nil { // a number that is not finite
		text = fmt.Appendf(nil, "%q", fmt.Sprint(v.Interface()))
	}
	into[path] = text
}

// Differences says how the jobs of a run differ from those that it began with: which jobs, and in which fields.
func Differences(began []Written, jobs []workload.Job) (found core.Diagnostics) {
	now := WrittenBy(jobs)
	place := make(map[string]int, len(now))
	for i := range now {
		place[now[i].Name] = i
	}
	known := make(map[string]bool, len(began))
	for i := range began {
		before := &began[i]
		known[before.Name] = true
		at, there := place[before.Name]
		if !there {
			found = append(found, core.Diagnostic{
				Summary: fmt.Sprintf("job %q is missing, with which the run began", before.Name),
				Hint:    fmt.Sprintf("put it back; once the run is resumed, \"quartet cancel %s\" ends it", before.Name),
			})
			continue
		}
		if differing := differing(before, &now[at]); len(differing) > 0 {
			found = append(found, core.Diagnostic{
				Position: jobs[at].At, Summary: fmt.Sprintf("job %q is not as when the run began: %s", before.Name, strings.Join(differing, "; ")),
				Hint: fmt.Sprintf("write it as it was; once the run is resumed, \"quartet cancel %s\" ends it, and \"quartet submit\" takes it in anew under another name", before.Name),
			})
		}
	}
	for i := range now {
		if !known[now[i].Name] {
			found = append(found, core.Diagnostic{
				Position: jobs[i].At, Summary: fmt.Sprintf("job %q is new, and the run began without it", now[i].Name),
				Hint: "take it out; once the run is resumed, \"quartet submit\" takes it in",
			})
		}
	}
	if len(found) > 0 {
		return found
	}
	for i := range began {
		if began[i].Name != now[i].Name {
			return core.Diagnostics{{
				Position: jobs[i].At,
				Summary:  fmt.Sprintf("job %q is where the run began with job %q: the jobs are the same, in another order", now[i].Name, began[i].Name),
				Hint:     "put them in the order of before: ties are broken by it",
			}}
		}
	}
	return nil
}

// differing says in which fields a job is not as it was written before.
func differing(before, now *Written) (list []string) {
	paths := maps.Clone(before.Fields)
	if paths == nil {
		paths = map[string]json.RawMessage{}
	}
	maps.Copy(paths, now.Fields)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		was, is := before.Fields[path], now.Fields[path]
		switch {
		case bytes.Equal(was, is):
		case path == "Environment":
			list = append(list, "environment has other variables or values")
		default:
			list = append(list, fmt.Sprintf("%s is %s, and was %s", keyOf(path, now), cmp.Or(string(is), "left out"), cmp.Or(string(was), "left out")))
		}
	}
	return list
}

// keysInFiles are the keys of a job file that are not called like their field.
var keysInFiles = map[string]string{
	"Requested": "replicas", "SubmitSeconds": "submit (seconds)", "DeadlineSeconds": "deadline (seconds)", "Checkpoints": "checkpoint",
	"TotalWork": "seconds", "Share": "share_milli", "Share.Milli": "share_milli",
}

// keyOf is the key of a field in a job file.
func keyOf(path string, of *Written) string {
	if path == "TotalWork" && of.Fields["Reports"] != nil {
		return "iterations"
	}
	if key := keysInFiles[path]; key != "" {
		return key
	}
	var b strings.Builder
	lower := false
	for _, r := range path {
		if unicode.IsUpper(r) && lower {
			b.WriteByte('_')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
