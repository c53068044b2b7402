package doctest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

var fenced = regexp.MustCompile("(?s)\n```(\\w+)\n(.*?)\n```\n")

// blocks lists the code blocks of a page in one language.
func blocks(t *testing.T, page, language string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range fenced.FindAllStringSubmatch(string(text), -1) {
		if match[1] == language {
			list = append(list, match[2]+"\n")
		}
	}
	return list
}

// The guide adds a policy by one file, one line and its tests. All of it is laid over the tree: the tests pass, and the
// policy is in the program. Nothing else changes.
func TestTheGuideToPoliciesIsTrue(t *testing.T) {
	code := blocks(t, "docs/write-a-policy.md", "go")
	line := blocks(t, "docs/write-a-policy.md", "diff")
	if len(code) != 3 || len(line) != 1 {
		t.Fatalf("the guide has %d blocks of Go and %d differences, want 3 and 1", len(code), len(line))
	}
	parts := strings.Split(strings.TrimRight(line[0], "\n"), "\n+")
	before, after := strings.TrimPrefix(parts[0], " ")+"\n", strings.TrimPrefix(parts[0], " ")+"\n"+parts[1]+"\n"
	components, err := os.ReadFile(filepath.Join(root, "components.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(components), before) {
		t.Fatalf("components.go does not hold %q", before)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	lay := func(path, content string) {
		from, err := filepath.Abs(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		replace[from] = filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(replace[from], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lay("allocation/largest_first.go", code[0])
	lay("allocation/largest_first_test.go", code[1]+code[2])
	lay("components.go", strings.Replace(string(components), before, after, 1))
	lay("largest_first_builtin_test.go", `package quartet

import "testing"

func TestLargestFirstIsBuiltIn(t *testing.T) {
	for _, f := range Builtins().Allocation {
		if f.Type == "largest_first" {
			return
		}
	}
	t.Error("largest_first is not among the built-ins")
}
`)
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "test", "-count=1", "-v", "-overlay", path, "-run", "LargestFirst", ".", "./allocation")
	command.Dir = root
	text, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, test := range []string{"TestLargestFirstIsBuiltIn", "TestLargestFirst ", "TestLargestFirstConforms"} {
		if !strings.Contains(string(text), "--- PASS: "+test) {
			t.Errorf("%s was not run:\n%s", test, text)
		}
	}
}
