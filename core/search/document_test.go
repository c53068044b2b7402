package search_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core/search"
)

const page = "../../docs/search-with-quartet.md"

// blocks are those of a language on the page.
func blocks(t *testing.T, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		found = append(found, block+"\n")
	}
	if len(found) == 0 {
		t.Fatalf("%s has no block of %s", page, language)
	}
	return found
}

// The session on the page is what Quartet says, word for word, to a program that answers so.
func TestSessionOfThePage(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "said")
	var said strings.Builder
	command := []any{os.Args[0], "external", "script"}
	for line := range strings.Lines(blocks(t, "session")[0]) {
		line = strings.TrimSuffix(line, "\n")
		if text, ours := strings.CutPrefix(line, "> "); ours {
			said.WriteString(text + "\n")
		} else {
			command = append(command, "!copy "+copied+";;"+strings.TrimPrefix(line, "< "))
		}
	}
	space := search.Space{
		{Name: "lr", Scale: search.LogUniform, Low: 1e-5, High: 0.1},
		{Name: "optimizer", Scale: search.Choice, Choices: []search.Value{search.Word("sgd"), search.Word("adam")}},
	}
	s := made(t, "external", map[string]any{"command": command}, space, 7)
	ask := func(n int, want ...string) {
		t.Helper()
		trials, err := s.Ask(t.Context(), n)
		var got []string
		for _, trial := range trials {
			got = append(got, trial.Params.String())
		}
		if err != nil || strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
	}
	tell := func(wantStop int, results ...search.Result) {
		t.Helper()
		if stop, err := s.Tell(t.Context(), results); err != nil || len(stop) != wantStop {
			t.Fatalf("stop %v, %v, want %d", stop, err, wantStop)
		}
	}
	ask(2, "lr=0.01 optimizer=sgd", "lr=0.1 optimizer=adam")
	tell(1, search.Result{Trial: 0, AtSeconds: 60, Step: 1, Value: 0.7}, search.Result{Trial: 1, AtSeconds: 61.5, Step: 1, Value: nan})
	tell(0, search.Result{Trial: 1, Kind: search.Stopped, AtSeconds: 90, Step: 1, Value: nan})
	ask(1, "lr=0.003 optimizer=sgd")
	tell(0, search.Result{Trial: 0, Kind: search.Finished, AtSeconds: 120, Step: 2, Value: 0.5}, search.Result{Trial: 2, Kind: search.Failed, AtSeconds: 120, Step: nan, Value: nan})
	ask(1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(copied)
	if err != nil || string(got) != said.String() {
		t.Errorf("Quartet says\n%s\nthe page\n%s\n%v", got, said.String(), err)
	}
}

// The program on the page is a search: better than chance, on record, and itself again after a restart.
func TestProgramOfThePage(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 in PATH; install it: the test runs the program of the page")
	}
	sources, err := filepath.Abs("../../plugins/python")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", sources)
	folder := t.TempDir()
	program := filepath.Join(folder, "around_the_best.py")
	if err := os.WriteFile(program, []byte(blocks(t, "python")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	config := map[string]any{"command": []any{python, program}}
	sphere := functions()[1]
	ours, chance := best(t, "external", config, sphere, 1, 60, 3), best(t, "random", nil, sphere, 1, 60, 3)
	if ours >= chance {
		t.Errorf("its best is %v, that of random search %v", ours, chance)
	}
	path := filepath.Join(folder, "record")
	next := 0
	for range 3 {
		r, err := chosen(t, "external", config, everyScale()).Record(path, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Skip(t.Context()); err != nil {
			t.Fatal(err)
		}
		trials, err := r.Ask(t.Context(), 2)
		if err != nil || len(trials) != 2 || trials[0].ID != next {
			t.Fatalf("got %v, %v, want trials from %d on", trials, err, next)
		}
		next += 2
		if _, err := r.Tell(t.Context(), []search.Result{{Trial: trials[0].ID, Kind: search.Finished, AtSeconds: float64(next), Step: 1, Value: 1}}); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Every space and search on the page can be read.
func TestConfigsOfThePage(t *testing.T) {
	spaces, searches := 0, 0
	for _, block := range blocks(t, "yaml") {
		var document struct {
			Space  []map[string]any
			Search struct {
				Type   string
				Config map[string]any
			}
		}
		if err := yaml.Unmarshal([]byte(block), &document); err != nil {
			t.Errorf("%s: %v", block, err)
			continue
		}
		space, problems := search.DecodeSpace("space", document.Space)
		if err := problems.Err(); err != nil {
			t.Errorf("%s: %v", block, err)
		}
		spaces += min(len(space), 1)
		if document.Search.Type == "" {
			continue
		}
		searches++
		if len(space) == 0 && document.Search.Type != "list" { // which stands by itself on the page
			space = smallSpace()
		}
		if _, problems := (search.Setting{Type: document.Search.Type, Config: document.Search.Config}).Decode("search", "space", search.Problem{Space: space}); len(problems) > 0 {
			t.Errorf("%s: %v", block, problems)
		}
	}
	if spaces < 2 || searches < 5 {
		t.Errorf("%d spaces and %d searches, want more", spaces, searches)
	}
}

// The page names every search and every setting.
func TestThePageNamesEverything(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range search.Factories() {
		if !strings.Contains(string(text), "| `"+f.Type+"` |") {
			t.Errorf("%s does not tell of the search %q", page, f.Type)
		}
		for _, field := range f.Fields() {
			if !strings.Contains(string(text), "`"+field.Name+"`") {
				t.Errorf("%s does not tell of %q of the search %q", page, field.Name, f.Type)
			}
		}
	}
}
