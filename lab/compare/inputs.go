package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core/metrics"
)

// inputSections are the parts of a config that say which jobs there are, for which machines, and which of them are measured. The
// others compose the scheduler and what it runs on.
var inputSections = []string{"cluster.", "workload.", "sample.", "measure."}

// A Difference is one in which runs differ from those of the base that they are compared with.
type Difference struct {
	What        string // path in the config, or what it is about
	Base, Other string // empty where there is none
	Pairs       int    // of runs that differ in it
}

// isInput reports whether a path of a config belongs to the inputs.
func isInput(path string) bool {
	return slices.ContainsFunc(inputSections, func(section string) bool { return strings.HasPrefix(path, section) })
}

// differences lists in what the inputs and the compositions of two runs differ.
func differences(base, other *Run) (inputs, composition []Difference) {
	for _, d := range configs.Differences(base.leaves, other.leaves) {
		switch {
		case d.Path == "name" || d.Path == "seed" || d.Path == "version":
		case base.reads(d.Here) && other.reads(d.There): // files are known by their content
		case isInput(d.Path):
			inputs = append(inputs, Difference{What: d.Path, Base: d.Here, Other: d.There})
		default:
			composition = append(composition, Difference{What: d.Path, Base: d.Here, Other: d.There})
		}
	}
	files := differentFiles(base, other)
	for _, d := range files {
		if base.partOfPolicy(d.What) || other.partOfPolicy(d.What) {
			composition = append(composition, d)
		} else {
			inputs = append(inputs, d)
		}
	}
	inputs = append(inputs, differentJobs(base, other)...)
	if base.Seed != other.Seed {
		d := Difference{What: "seed", Base: strconv.FormatUint(base.Seed, 10), Other: strconv.FormatUint(other.Seed, 10)}
		if len(inputs) == 0 && base.fromFiles() {
			composition = append(composition, d) // the jobs are the same: only what else is random differs
		} else {
			inputs = append(inputs, d)
		}
	}
	return inputs, append(composition, differentPlugins(base, other)...)
}

// reads reports whether a value of the config is the path of a file that the run read.
func (r *Run) reads(value string) bool {
	value = unquote(value)
	return slices.ContainsFunc(r.Inputs, func(d quartet.Digest) bool { return d.File == value })
}

// unquote is the text of a YAML scalar on one line.
func unquote(value string) string {
	if text, err := strconv.Unquote(value); err == nil {
		return text
	}
	return strings.Trim(value, "'")
}

// partOfPolicy reports whether a file belongs to the composition: its path stands in no section of inputs, but in another.
func (r *Run) partOfPolicy(path string) bool {
	elsewhere := false
	for _, leaf := range r.leaves {
		if unquote(leaf.Value) != path {
			continue
		}
		if isInput(leaf.Path) {
			return false
		}
		elsewhere = true
	}
	return elsewhere
}

// fromFiles reports whether the jobs come from files, and not from the seed.
func (r *Run) fromFiles() bool {
	return slices.ContainsFunc(r.Inputs, func(d quartet.Digest) bool { return !r.partOfPolicy(d.File) })
}

// differentFiles lists the files whose content only one of two runs read, those of one name together.
func differentFiles(base, other *Run) (list []Difference) {
	only := func(a, b *Run) (files []quartet.Digest) {
		for _, d := range a.Inputs {
			if !slices.ContainsFunc(b.Inputs, func(o quartet.Digest) bool { return o.SHA256 == d.SHA256 }) {
				files = append(files, d)
			}
		}
		return files
	}
	there := only(other, base)
	for _, d := range only(base, other) {
		difference := Difference{What: d.File, Base: digestText(d)}
		if at := slices.IndexFunc(there, func(o quartet.Digest) bool { return o.File == d.File }); at >= 0 {
			difference.Other = digestText(there[at])
			there = slices.Delete(there, at, at+1)
		}
		list = append(list, difference)
	}
	for _, d := range there {
		list = append(list, Difference{What: d.File, Other: digestText(d)})
	}
	return list
}

func digestText(d quartet.Digest) string { return "sha256 " + short(d.SHA256) }

func short(digest string) string { return digest[:min(len(digest), 12)] }

func differentPlugins(base, other *Run) (list []Difference) {
	text := func(p quartet.Plugin) string { return strings.TrimSpace(p.Version + " sha256 " + short(p.SHA256)) }
	at := map[string]int{}
	for _, p := range base.Plugins {
		if !slices.Contains(other.Plugins, p) {
			at[p.Name] = len(list)
			list = append(list, Difference{What: "plugin " + p.Name, Base: text(p)})
		}
	}
	for _, p := range other.Plugins {
		if slices.Contains(base.Plugins, p) {
			continue
		}
		if i, known := at[p.Name]; known {
			list[i].Other = text(p)
		} else {
			list = append(list, Difference{What: "plugin " + p.Name, Other: text(p)})
		}
	}
	return list
}

// differentJobs tells of the first job that differs.
func differentJobs(base, other *Run) []Difference {
	if base.Jobs == nil || other.Jobs == nil || base.jobsKey == other.jobsKey {
		return nil
	}
	if n, m := len(base.Jobs), len(other.Jobs); n != m {
		return []Difference{{What: "jobs submitted", Base: strconv.Itoa(n), Other: strconv.Itoa(m)}}
	}
	text := func(j *metrics.Job) string {
		return fmt.Sprintf("%s %s submitted at %s s", j.Name, j.Application, metrics.AppendNumber(nil, j.SubmitSeconds))
	}
	for i := range base.Jobs {
		a, b := text(&base.Jobs[i]), text(&other.Jobs[i])
		if a != b {
			return []Difference{{What: fmt.Sprintf("job %d", base.Jobs[i].ID), Base: a, Other: b}}
		}
	}
	return nil
}

// sameJobs reports whether two runs had the same jobs, each in the same row.
func sameJobs(base, other *Run) bool {
	return base.Jobs != nil && other.Jobs != nil && base.jobsKey == other.jobsKey
}

// gathered adds up the differences of several pairs, in the order in which they were found.
type gathered struct {
	list []Difference
	at   map[Difference]int
}

func (g *gathered) add(list []Difference) {
	if g.at == nil {
		g.at = map[Difference]int{}
	}
	for _, d := range list {
		i, known := g.at[d]
		if !known {
			i = len(g.list)
			g.at[d] = i
			g.list = append(g.list, d)
		}
		g.list[i].Pairs++
	}
}

// key identifies what a run was about: runs of one key are compared. A seed is part of it unless all jobs come from files.
func (r *Run) key() string {
	var b strings.Builder
	for _, leaf := range r.leaves {
		if isInput(leaf.Path) && !r.reads(leaf.Value) {
			fmt.Fprintf(&b, "%s=%q\n", leaf.Path, leaf.Value)
		}
	}
	var digests []string
	for _, d := range r.Inputs {
		if !r.partOfPolicy(d.File) {
			digests = append(digests, d.SHA256)
		}
	}
	slices.Sort(digests)
	fmt.Fprintf(&b, "%q\n%s\n", slices.Compact(digests), r.jobsKey)
	if !r.fromFiles() {
		fmt.Fprintf(&b, "%d\n", r.Seed)
	}
	return b.String()
}
