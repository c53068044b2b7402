package local

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// Whatever the scheduler makes is for its user only, and nobody else may write to its folder.
func TestTheFolderIsPrivate(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "live")
	b := opened(t, dir, realClock{}, commands(command("j", "true")))
	seen(t, b)
	apply(t, b, on(0, 1))
	seen(t, b)
	kinds := map[fs.FileMode]int{}
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		kinds[info.Mode().Type()]++
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if kinds[fs.ModeDir] < 5 || kinds[fs.ModeSocket] != 1 || kinds[0] < 4 {
		t.Errorf("found %v, want folders, files and a socket", kinds)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // on purpose
		t.Fatal(err)
	}
	_, err := tryOpen(dir, "test", false, realClock{}, commands(command("j", "true")))
	if _, refused := errors.AsType[core.Diagnostics](err); !refused || !strings.Contains(err.Error(), "everybody may write to it") {
		t.Errorf("error %v, want a refusal of a folder that everybody may write to", err)
	}
}

func TestNoShellReadsACommand(t *testing.T) {
	dir, ledger := t.TempDir(), t.TempDir()
	arguments := []string{"$HOME", "`touch " + ledger + "/1`", "$(touch " + ledger + "/2)", "; touch " + ledger + "/3", "*", "a  b"}
	b := opened(t, dir, realClock{}, commands(command("j", append([]string{"printf", `%s\n`}, arguments...)...)))
	seen(t, b)
	apply(t, b, on(0, 1))
	seen(t, b)
	if got, want := logOf(t, dir, "j", "0.out"), strings.Join(arguments, "\n")+"\n"; got != want {
		t.Errorf("the job was given %q, want %q", got, want)
	}
	if made, err := os.ReadDir(ledger); err != nil || len(made) > 0 {
		t.Errorf("a shell made %v, %v", made, err)
	}
}

// What is submitted names no folder, no variable and no socket but its own.
func TestSubmissionsThatReachFurther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "live")
	b, w, _ := operated(t, dir, nil)
	cases := map[string]string{
		"parent":               `{name: .., command: [x]}`,
		"path":                 `{name: ../../up, command: [x]}`,
		"absolute":             `{name: /tmp/x, command: [x]}`,
		"folder in between":    `{name: a/b, command: [x]}`,
		"hidden":               `{name: .a, command: [x]}`,
		"empty":                `{name: "", command: [x]}`,
		"line":                 `{name: "a\nb", command: [x]}`,
		"NUL":                  `{name: "a\0b", command: [x]}`,
		"long":                 `{name: ` + strings.Repeat("a", 61) + `, command: [x]}`,
		"another's socket":     `{name: a, command: [x], environment: [{name: QUARTET_AGENT, value: /tmp/s}]}`,
		"another's job":        `{name: a, command: [x], environment: [{name: QUARTET_JOB, value: b}]}`,
		"another's folder":     `{name: a, command: [x], environment: [{name: QUARTET_CHECKPOINT, value: /tmp}]}`,
		"another's rendezvous": `{name: a, command: [x], environment: [{name: QUARTET_RENDEZVOUS, value: /tmp}]}`,
		"a keeper":             `{name: a, command: [x], environment: [{name: QUARTET_KEEPER, value: /tmp}]}`,
		"another's devices":    `{name: a, command: [x], environment: [{name: CUDA_VISIBLE_DEVICES, value: "7"}]}`,
		"a name that is none":  `{name: a, command: [x], environment: [{name: "A=B", value: ""}]}`,
	}
	for name, job := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := submit(b, "{version: 1, jobs: ["+job+"]}")
			if _, refused := errors.AsType[core.Diagnostics](err); !refused {
				t.Errorf("error %v, want diagnostics", err)
			}
		})
	}
	if _, err := submit(b, `{version: 1, jobs: [{name: a, command: [echo, hello]}]}`); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "job_finished a")
	if err := os.WriteFile(filepath.Join(dir, "0.out"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, log := range map[string]backend.Log{
		"path":           {Job: "../../live"},
		"path of a job":  {Job: "a/../a"},
		"nobody":         {Job: ""},
		"itself":         {Job: "."},
		"negative rank":  {Job: "a", Rank: -1},
		"rank of nobody": {Job: "a", Rank: 7},
	} {
		var text bytes.Buffer
		if err := b.ReadLog(context.Background(), log, &text); err == nil || text.Len() > 0 {
			t.Errorf("%s: read %q, error %v", name, text.String(), err)
		}
	}
	jobs, err := os.ReadDir(filepath.Join(dir, "jobs"))
	if err != nil || len(jobs) != 1 || jobs[0].Name() != "a" {
		t.Errorf("folders of jobs: %v, %v", jobs, err)
	}
}

// A fresh run removes the links that a job left, and not what they lead to.
func TestLinksAreNotFollowed(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	precious := filepath.Join(outside, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := func() *workload.Workload {
		return commands(shell("j", `ln -s `+outside+` "$QUARTET_CHECKPOINT/link"; rm -r "$QUARTET_RENDEZVOUS"; ln -s `+outside+` "$QUARTET_RENDEZVOUS"`))
	}
	b := opened(t, dir, realClock{}, w())
	seen(t, b)
	apply(t, b, on(0, 1))
	seen(t, b)
	if _, err := os.Stat(filepath.Join(dir, "jobs", "j", "checkpoint", "link", "precious")); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := tryOpen(dir, "test", true, realClock{}, w()); err != nil {
		t.Fatal(err)
	} else if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "jobs")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folders of jobs are left: %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// A job that puts pipes where files of its runs belong holds up neither the scheduler nor its own next run.
func TestPipesHoldNobodyUp(t *testing.T) {
	script := `cd "$QUARTET_CHECKPOINT/.." && [ -e again ] && exit
		touch again; mkdir run-2; mkfifo run-2/keeper.log run-2/orders.json run-2/exit.json run-1/exit.json logs/0.new
		mv logs/0.new logs/0.out; kill -KILL $PPID`
	b, w, _ := operated(t, t.TempDir(), nil)
	if _, err := submit(b, `{version: 1, jobs: [{name: a, command: [sh, -c, `+strconv.Quote(script)+`]}]}`); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "job_interrupted a", "job_finished a")
	var text bytes.Buffer
	if err := b.ReadLog(context.Background(), backend.Log{Job: "a"}, &text); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("read %q, error %v, want that the log is none", text.String(), err)
	}
}
