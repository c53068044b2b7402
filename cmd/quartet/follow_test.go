package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quartet-sched/quartet/internal/pythontest"
)

// followTools lets scripts build Go programs offline against the modules that are there, and run Python plugins.
func followTools(env *testscript.Env) error {
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	caches := strings.Fields(string(out))
	sdk, err := filepath.Abs("../../plugins/python")
	if err != nil {
		return err
	}
	env.Setenv("GOCACHE", caches[0])
	env.Setenv("GOMODCACHE", caches[1])
	env.Setenv("GOPROXY", "off")
	env.Setenv("GOFLAGS", "-mod=mod")
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
	env.Setenv("PYTHONPATH", sdk)
	env.Setenv("CHECKOUT", filepath.Dir(filepath.Dir(sdk)))
	if python := os.Getenv(pythontest.Variable); python != "" {
		env.Setenv("PATH", filepath.Dir(python)+string(filepath.ListSeparator)+env.Getenv("PATH"))
	}
	return nil
}

// followable reports whether the conditions [go] and [python] hold.
func followable(condition string) (bool, error) {
	switch condition {
	case "go":
		_, err := exec.LookPath("go")
		return err == nil, nil
	case "python":
		python, err := pythontest.Find()
		return python != "", err
	default:
		return false, fmt.Errorf("unknown condition %q", condition)
	}
}

// follow does what a section of a document of docs/ says, in the working directory: it writes each code block that
// names a file, runs each sh block, each from where the document began, and finds the lines of each text block in what
// the block before it wrote: follow DOCUMENT SECTION.
func follow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: follow DOCUMENT SECTION")
	}
	text, err := os.ReadFile(filepath.Join(documents, args[0]))
	ts.Check(err)
	_, section, found := strings.Cut(string(text), "\n## "+args[1]+"\n")
	if !found {
		ts.Fatalf("%s has no section %q", args[0], args[1])
	}
	section, _, _ = strings.Cut(section, "\n## ")
	said, steps := "", 0
	for _, b := range blocks(section) {
		switch {
		case b.file != "":
			ts.Check(os.WriteFile(ts.MkAbs(b.file), []byte(b.text), 0o755)) // a script stays executable
		case b.language == "sh":
			steps++
			ts.Logf("%s", b.text)
			ts.Check(ts.Exec("bash", "-euo", "pipefail", "-c", b.text))
			said = spaced(ts.ReadFile("stdout") + ts.ReadFile("stderr"))
		case b.language == "text":
			for line := range strings.Lines(b.text) {
				if !strings.Contains(said, spaced(line)) {
					ts.Fatalf("%s: the output lacks the line %q", args[0], strings.TrimSpace(line))
				}
			}
		}
	}
	if steps == 0 {
		ts.Fatalf("section %q of %s has no steps", args[1], args[0])
	}
}

const documents = "../../docs"

// spaced makes every gap one space wide.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

type block struct {
	language, file, text string
}

// blocks are the fenced code blocks of Markdown.
func blocks(markdown string) []block {
	var all []block
	for i, part := range strings.Split(markdown, "\n```") {
		if i%2 == 0 {
			continue
		}
		info, text, _ := strings.Cut(part, "\n")
		language, file, _ := strings.Cut(info, " ")
		if strings.HasPrefix(file, "no-run:") {
			continue
		}
		all = append(all, block{language: language, file: file, text: text + "\n"})
	}
	return all
}
