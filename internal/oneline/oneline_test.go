package oneline_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/internal/oneline"
)

func TestText(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"plain text stays":              {"no devices left", 100, "no devices left"},
		"umlauts stay":                  {"größer", 100, "größer"},
		"colours go":                    {"\x1b[1;31mred\x1b[0m alert", 100, "red alert"},
		"a title of the terminal goes":  {"\x1b]0;owned\x07text", 100, "text"},
		"an unfinished sequence goes":   {"text\x1b]0;owned", 100, "text"},
		"NUL and bell become blanks":    {"a\x00b\ac", 100, "a b c"},
		"lines are joined":              {"Traceback:\n  here\r\n", 100, "Traceback:   here"},
		"text is not turned around":     {"abc\u202edef", 100, "abc def"},
		"invalid UTF-8 is replaced":     {"a\xff\xfeb", 100, "a\uFFFDb"},
		"a long text is cut":            {"abcdefghij", 8, "abcde…"},
		"a rune is not cut in two":      {"abcdöfghij", 8, "abcd…"},
		"a limit too small for a rune":  {"abc", 2, "…"},
		"nothing":                       {"", 0, ""},
		"the cut does not make a blank": {strings.Repeat("\x1b[0m", 100) + "end", 10, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := oneline.Text(tc.text, tc.limit); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTextIsCleanAndBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "text"))
		limit := rapid.IntRange(3, 100).Draw(t, "limit")
		got := oneline.Text(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q, of at most %d bytes, came out as %q", text, limit, got)
		}
		if again := oneline.Text(got, limit); again != got {
			t.Errorf("%q cleaned again is %q", got, again)
		}
	})
}

func TestTextOfFortyMegabytesIsQuick(t *testing.T) {
	text := strings.Repeat("\x1b[31mx", 8<<20)
	if n := testing.AllocsPerRun(3, func() { _ = oneline.Text(text, 1000) }); n > 100*looseAllocations {
		t.Errorf("%v allocations", n)
	}
}
