package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/internal/doctest"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// Every block of shell commands of a page is run as it stands, those of one page in order and in one folder, which begins
// with the files of testdata/docs. A block that cannot run in a test says why in its info string:
//
//	```sh no-run: it waits for devices
//
// One that reads published data begins with "```sh data", and is left out where QUARTET_DATA names none.

// pages are those whose blocks are run here.
func pages(t *testing.T) []string {
	t.Helper()
	list, err := doctest.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// aPage bounds the commands of a page.
const aPage = 4 * time.Minute

func TestEveryBlockOfEveryPageRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the commands of the pages take a while")
	}
	quartet, err := exec.LookPath("quartet")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pages(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("testdata/docs")); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), aPage)
			defer cancel()
			run, left := 0, 0
			for _, b := range doctest.Blocks(string(text)) {
				shell, reason := shellBlock(t, b)
				switch {
				case !shell:
					continue
				case reason != "":
					left++
					t.Logf("line %d is not run: %s", b.Line, reason)
					continue
				}
				run++
				if out, err := runBlock(ctx, dir, quartet, b.Text); err != nil {
					t.Errorf("line %d: %v\n%s%s", b.Line, err, b.Text, out)
				}
			}
			if run+left > 0 {
				t.Logf("%d blocks run, %d do not", run, left)
			}
		})
	}
}

// shellBlock reports whether a block holds shell commands, and why they cannot be run here.
func shellBlock(t *testing.T, b doctest.Block) (shell bool, reason string) {
	t.Helper()
	language, how, _ := strings.Cut(b.Info, " ")
	if language != "sh" {
		return false, ""
	}
	if why, marked := strings.CutPrefix(how, "no-run:"); marked {
		if strings.TrimSpace(why) == "" {
			t.Errorf("line %d: no-run without a reason", b.Line)
		}
		return true, strings.TrimSpace(why)
	}
	if how == "data" {
		if os.Getenv(refdata.Variable) == "" {
			return true, "no published data"
		}
		return true, ""
	}
	if how != "" {
		t.Errorf("line %d: %q is no way to run a block; valid: data, no-run: REASON", b.Line, how)
	}
	return true, ""
}

// runBlock runs commands with this program as quartet; "go run ./cmd/quartet" is the same program.
func runBlock(ctx context.Context, dir, quartet, text string) (string, error) {
	text = strings.ReplaceAll(text, "go run ./cmd/quartet", "quartet")
	c := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", text)
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(quartet)+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+dir)
	c.WaitDelay = time.Second
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("the page takes longer than %v", aPage)
	}
	if n := out.Len(); n > 4000 {
		out.Next(n - 4000)
	}
	return out.String(), err
}

// A block that could be run, of whatever page of the repository, is run by a test or says why it is not.
func TestEveryBlockIsRunOrSaysWhyNot(t *testing.T) {
	run := map[string][]string{ // languages of the blocks that tests run, by page
		"docs/write-a-plugin.md":   {"sh", "go", "python", "yaml"}, // followed by plugin_document.txtar
		"docs/write-a-policy.md":   {"go", "diff"},                 // laid over the tree by internal/doctest
		"plugins/python/README.md": {"python"},                     // held to the sources by its reference test
	}
	for _, path := range pages(t) {
		run[filepath.ToSlash(strings.TrimPrefix(path, "../../"))] = []string{"sh", "yaml"}
	}
	run["docs/train-with-pytorch.md"] = []string{"sh", "yaml", "diff"}    // applied by plugins/python/tests/test_torch_examples.py
	run["docs/search-with-quartet.md"] = []string{"sh", "yaml", "python"} // run by core/search
	code := []string{"bash", "console", "diff", "go", "javascript", "python", "sh", "yaml"}
	found := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", ".bin", "node_modules", "testdata", "templates"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		page := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
		for _, b := range doctest.Blocks(string(text)) {
			language, how, _ := strings.Cut(b.Info, " ")
			if !slices.Contains(code, language) {
				continue
			}
			found++
			why, marked := strings.CutPrefix(how, "no-run:")
			switch {
			case marked && strings.TrimSpace(why) == "":
				t.Errorf("%s:%d: no-run without a reason", page, b.Line)
			case !marked && !slices.Contains(run[page], language):
				t.Errorf("%s:%d: no test runs this block of %s; run it, or write no-run: and the reason", page, b.Line, language)
			}
		}
		return err
	})
	if err != nil || found < 50 {
		t.Errorf("%d blocks found, %v", found, err)
	}
}
