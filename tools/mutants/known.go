package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// survivors are the changes that were looked at and that no test can notice, by package and key.
type survivors map[string]bool

// readKnown reads a list of survivors: lines "package/file: function: line: from -> to", with " #2" at the end for the second of
// several, and under each, indented, why it makes no difference that a test could see.
func readKnown(file string) (survivors, error) {
	if file == "" {
		return survivors{}, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s, err := parseKnown(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func parseKnown(text string) (survivors, error) {
	known := survivors{} // whether there is a reason
	var problems []error
	last := ""
	for i, line := range strings.Split(text, "\n") {
		problem := func(what string) { problems = append(problems, fmt.Errorf("line %d: %s", i+1, what)) }
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, "\t"):
			if _, twice := known[line]; twice {
				problem(fmt.Sprintf("%q is listed twice", line))
			}
			last = line
			known[last] = false
		case last == "":
			problem("a reason without a change")
		default:
			known[last] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if !known[k] {
			problems = append(problems, fmt.Errorf("no reason for %q", k))
		}
	}
	return known, errors.Join(problems...)
}

// check holds that every survivor that is listed of the package names exactly one of its changes. Files that do not match are
// not looked at.
func (s survivors) check(pack string, mutants []*mutant, files *regexp.Regexp) error {
	keys, names := map[string]bool{}, map[string]int{}
	for _, m := range mutants {
		keys[m.key()] = true
		names[m.name()]++
	}
	var problems []error
	for _, k := range slices.Sorted(maps.Keys(s)) {
		place, _, _ := strings.Cut(k, ": ")
		if path.Dir(place) != pack || !files.MatchString(path.Base(place)) {
			continue
		}
		key := strings.TrimPrefix(k, pack+"/")
		switch n := names[key]; {
		case keys[key]:
		case n > 1:
			problems = append(problems, fmt.Errorf("the listed survivor %q names %d changes: add #1 to #%d", k, n, n))
		default:
			problems = append(problems, fmt.Errorf("the listed survivor %q names no change", k))
		}
	}
	return errors.Join(problems...)
}
