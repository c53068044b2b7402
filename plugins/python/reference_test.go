package python_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the reference of README.md anew")

const (
	referenceBegins = "<!-- The reference begins: written from the sources by `go test ./plugins/python -run Reference -update`. -->\n"
	referenceEnds   = "<!-- The reference ends. -->\n"
)

// referenced lists the modules of which the reference consists.
var referenced = []struct{ module, title string }{
	{"decisions", "### What a policy answers with, and sees of other answers"},
	{"view", "### What a policy sees"},
	{"job", "### Jobs"},
	{"cluster", "### The cluster"},
}

// TestReference holds the fields, constructors and methods in README.md to the sources.
func TestReference(t *testing.T) {
	old, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(old), referenceBegins)
	_, after, ends := strings.Cut(rest, referenceEnds)
	if !begins || !ends {
		t.Fatal("README.md lacks the marks of the reference")
	}
	want := before + referenceBegins + reference(t) + referenceEnds + after
	if *update {
		if err := os.WriteFile("README.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(old)); diff != "" {
		t.Errorf("README.md is old; -update writes it (-sources +README.md):\n%s", diff)
	}
}

func reference(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, m := range referenced {
		source, err := os.ReadFile(filepath.Join("quartet_plugin", m.module+".py"))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n" + m.title + "\n\n```python\n" + outline(string(source)) + "```\n")
	}
	return b.String() + "\n"
}

var (
	classLine = regexp.MustCompile(`^class [A-Z]`)
	fieldLine = regexp.MustCompile(`^    [a-zA-Z]\w*(: | = )`)
	publicDef = regexp.MustCompile(`^(    )?def ([a-z]|__init__)`)
)

// outline is a module without its code: classes, fields, and the signatures of what is public, each with what is said
// of it.
func outline(source string) string {
	var out []string
	lines := strings.Split(source, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case classLine.MatchString(line):
			if len(out) > 0 {
				out = append(out, "")
			}
			out = append(out, line)
			for open := true; open; { // its docstring
				i++
				out = append(out, lines[i])
				open = !strings.HasSuffix(lines[i], `"""`)
			}
		case fieldLine.MatchString(line) && !strings.HasPrefix(line, "    __slots__"):
			out = append(out, line)
		case publicDef.MatchString(line):
			if line[0] == 'd' {
				out = append(out, "")
			}
			for ; !strings.HasSuffix(lines[i], ":"); i++ {
				out = append(out, lines[i])
			}
			told := ""
			if text := strings.TrimSpace(lines[i+1]); strings.HasPrefix(text, `"""`) {
				told = "  # " + strings.Trim(text, `"`)
			}
			out = append(out, lines[i]+" ..."+told)
		}
	}
	return strings.Join(out, "\n") + "\n"
}
