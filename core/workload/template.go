package workload

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// Template is a job of which many are made that differ in their names and in what stands for "${NAME}" in their commands, environments and working folders.
type Template struct {
	entry jobEntry
}

// templateName stands for the name of a job that is yet to be made.
const templateName = "template"

// DecodeTemplate reads a template whose keys are those of a job in a job file, but for its name, its experiment, the moment of its submission and, where it is only simulated,
// its command. Problems have paths that begin with the one given.
func DecodeTemplate(path string, raw map[string]any) (*Template, core.Diagnostics) {
	keys := make(map[string]any, len(raw)+2)
	var found core.Diagnostics
	maps.Copy(keys, raw)
	for _, key := range [...]string{"name", "submit", "experiment"} {
		if _, given := raw[key]; given {
			found = append(found, core.Diagnostic{Path: core.JoinPath(path, key), Summary: "is set for each of the jobs", Hint: "leave it out"})
			delete(keys, key)
		}
	}
	keys["name"] = templateName
	t := &Template{}
	_, runs := raw["command"]
	if !runs { // it can only be simulated
		keys["command"] = []any{templateName}
	}
	for _, d := range t.entry.decode(keys) {
		d.Path = core.JoinPath(path, d.Path)
		found = append(found, d)
	}
	if !runs {
		t.entry.Command = nil
	}
	if len(found) > 0 {
		return nil, found
	}
	return t, nil
}

// reference is a place for a value; "$${NAME}" is the text "${NAME}".
var reference = regexp.MustCompile(`\$?\$\{[^}]*\}`)

// texts calls f with each text in which references are replaced, and where it lies.
func (e *jobEntry) texts(f func(path string, text *string)) {
	for i := range e.Command {
		f(fmt.Sprintf("command[%d]", i), &e.Command[i])
	}
	for i := range e.Environment {
		f(fmt.Sprintf("environment[%d].value", i), &e.Environment[i].Value)
	}
	f("dir", &e.Dir)
}

// Unknown finds references to other names than those given.
func (t *Template) Unknown(names []string) (found core.Diagnostics) {
	t.entry.texts(func(path string, text *string) {
		for _, place := range reference.FindAllString(*text, -1) {
			name, is := referenced(place)
			if is && !slices.Contains(names, name) {
				found = append(found, core.Diagnostic{
					Path: path, Summary: fmt.Sprintf("there is no hyper-parameter %q", name), Hint: core.SuggestHint(name, "names", names) + "; $${…} is the text itself",
				})
			}
		}
	})
	return found
}

// referenced is the name that a place refers to; false for a place that is text.
func referenced(place string) (name string, is bool) {
	if strings.HasPrefix(place, "$$") {
		return "", false
	}
	return place[len("${") : len(place)-1], true
}

// Job makes a job of a name. Values are looked up by their names; the text of an unknown one stays, and it is listed.
func (t *Template) Job(name string, value func(name string) (string, bool)) (job Job, unknown []string) {
	e := t.entry
	e.Name, e.Command, e.Environment = name, slices.Clone(e.Command), slices.Clone(e.Environment)
	e.texts(func(_ string, text *string) {
		*text = reference.ReplaceAllStringFunc(*text, func(place string) string {
			named, is := referenced(place)
			if !is {
				return place[1:]
			}
			if v, known := value(named); known {
				return v
			}
			unknown = append(unknown, named)
			return place
		})
	})
	return e.job(), unknown
}
