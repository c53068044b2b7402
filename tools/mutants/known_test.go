package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachChangeHasAKeyOfItsOwn(t *testing.T) {
	breaks := func(function string) *mutant {
		return &mutant{file: "a.go", function: function, line: "break", from: "break", to: "nothing"}
	}
	mutants := []*mutant{breaks("f"), breaks("f"), breaks("T.g")}
	number(mutants)
	var got []string
	for _, m := range mutants {
		got = append(got, m.key())
	}
	want := []string{"a.go: f: break: break -> nothing #1", "a.go: f: break: break -> nothing #2", "a.go: T.g: break: break -> nothing"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys -want +got:\n%s", diff)
	}
}

func TestKnownSurvivorsNameOneChangeEach(t *testing.T) {
	mutants := []*mutant{
		{file: "a.go", function: "f", line: "break", from: "break", to: "nothing"},
		{file: "a.go", function: "f", line: "break", from: "break", to: "nothing"},
		{file: "b.go", function: "f", line: "break", from: "break", to: "nothing"},
	}
	number(mutants)
	for name, tc := range map[string]struct{ list, files, want string }{
		"one of two":          {list: "m/p/a.go: f: break: break -> nothing #2"},
		"the only one":        {list: "m/p/b.go: f: break: break -> nothing"},
		"both of two":         {list: "m/p/a.go: f: break: break -> nothing", want: "names 2 changes"},
		"a third of two":      {list: "m/p/a.go: f: break: break -> nothing #3", want: "names no change"},
		"the first of one":    {list: "m/p/b.go: f: break: break -> nothing #1", want: "names no change"},
		"another function":    {list: "m/p/b.go: g: break: break -> nothing", want: "names no change"},
		"of a file left out":  {list: "m/p/b.go: g: break: break -> nothing", files: "^a"},
		"of another package":  {list: "m/p/q/b.go: g: break: break -> nothing"},
		"of a package around": {list: "m/b.go: g: break: break -> nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			known, err := parseKnown(tc.list + "\n\tsaves work")
			if err != nil {
				t.Fatal(err)
			}
			err = known.check("m/p", mutants, regexp.MustCompile(tc.files))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestAListOfSurvivorsGivesReasons(t *testing.T) {
	for name, tc := range map[string]struct{ list, want string }{
		"with a reason":           {"# core\na\n\tsaves work\n", ""},
		"without":                 {"a\nb\n\tsaves work\n", `no reason for "a"`},
		"a reason for nothing":    {"\tsaves work\n", "line 1: a reason without a change"},
		"the same survivor twice": {"a\n\tx\na\n\ty\n", `line 3: "a" is listed twice`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseKnown(tc.list)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
