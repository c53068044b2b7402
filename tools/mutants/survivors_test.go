package main

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every survivor that is listed names a change of the code as it is.
func TestListedSurvivorsNameChanges(t *testing.T) {
	t.Parallel()
	known, err := readKnown("survivors.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for k := range known {
		place, _, _ := strings.Cut(k, ": ")
		listed[path.Dir(place)] = true
	}
	packages, err := load(slices.Sorted(maps.Keys(listed)))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		delete(listed, p.path)
		mutants, err := p.instrument(t.TempDir(), regexp.MustCompile(""))
		if err != nil {
			t.Fatal(err)
		}
		number(mutants)
		if err := known.check(p.path, mutants, regexp.MustCompile("")); err != nil {
			t.Error(err)
		}
	}
	if len(listed) > 0 {
		t.Errorf("no such packages: %v", slices.Sorted(maps.Keys(listed)))
	}
}
