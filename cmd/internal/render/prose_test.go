package render

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestProse(t *testing.T) {
	const long = "note: the trace has 60 jobs from job 0 on: 1 window of 30 jobs to choose on and as many kept back"
	cases := map[string]struct {
		to         io.Writer
		text, want string
	}{
		"what fits":            {&terminal{columns: 20}, "note: it fits,   whole", "note: it fits, whole"},
		"what fits exactly":    {&terminal{columns: 20}, "note:  it fits, all .", "note: it fits, all ."},
		"a wide terminal":      {&terminal{columns: 200}, long, long},
		"no terminal":          {&bytes.Buffer{}, long, long},
		"several sentences":    {&terminal{columns: 12}, "one\n  two and three and\nfour", "one\n  two and\n    three\n    and\nfour"},
		"a command is whole":   {&terminal{columns: 12}, `submit it with "kubectl apply -f x" now`, "submit it\n  with\n  \"kubectl apply -f x\"\n  now"},
		"a path is whole":      {&terminal{columns: 12}, "wrote runs/a/very/long/path", "wrote\n  runs/a/very/long/path"},
		"a quote without end":  {&terminal{columns: 12}, `a 19" rack is open to the end`, "a\n  19\" rack is open to the end"},
		"letters, not bytes":   {&terminal{columns: 6}, "ééé éé", "ééé éé"},
		"nothing":              {&terminal{columns: 6}, "", ""},
		"blanks beyond a line": {&terminal{columns: 3}, "     ", ""},
	}
	t.Setenv("COLUMNS", "")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Prose(tc.to, tc.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestProseAsWideAsTheEnvironmentSays(t *testing.T) {
	for columns, want := range map[string]string{
		"":     "one two three",
		"9":    "one two\n  three",
		"-1":   "one two three",
		"many": "one two three",
	} {
		t.Setenv("COLUMNS", columns)
		if got := Prose(&bytes.Buffer{}, "one two three"); got != want {
			t.Errorf("with COLUMNS=%s: %q, want %q", columns, got, want)
		}
	}
	t.Setenv("COLUMNS", "9")
	if got := Prose(&terminal{columns: 40}, "one two three"); got != "one two three" {
		t.Errorf("the terminal knows better: %q", got)
	}
}

func TestProseKeepsEveryWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z" \n]{0,200}`).Draw(t, "text")
		columns := rapid.IntRange(1, 60).Draw(t, "columns")
		got := Prose(&terminal{columns: columns}, text)
		if diff := cmp.Diff(strings.Fields(text), strings.Fields(got)); diff != "" {
			t.Fatalf("words (-want +got):\n%s", diff)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if utf8.RuneCountInString(line) > columns && len(wholes(line)) > 1 {
				t.Fatalf("%q is wider than %d columns", line, columns)
			}
		}
	})
}
