package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
)

// line runs this program in the present folder.
func line(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// smallRun runs a small composition in the present folder.
func smallRun(t *testing.T, name, allocation string) {
	t.Helper()
	args := []string{"simulate", "-q", "--set", "name=" + name, "--set", "pipeline.allocation.type=" + allocation, "--set", "workload.config={jobs: 30, span: 20m, applications: false, replicas: one}", "--set", "cluster.nodes=[{name: n, accelerator: t4, devices: 2}]"}
	if code, _, stderr := line(t, args...); code != 0 {
		t.Fatalf("simulate %s ends with %d: %s", name, code, stderr)
	}
}

// A manifest of an earlier version lacks settings that came later. They mean what they meant.
func TestCompareWithAnEarlierVersion(t *testing.T) {
	t.Chdir(t.TempDir())
	smallRun(t, "now", "pollux")
	if err := os.CopyFS("runs/then", os.DirFS("runs/now")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("runs", "then", quartet.ManifestFile)
	m, err := quartet.LoadManifest(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := len(strings.Split(m.Config, "\n"))
	m.Config = regexp.MustCompile(`(?m)^ +(efficiency_weight|silent_after|burst_factor|rack|spread): .*\n`).ReplaceAllString(m.Config, "")
	m.Config = strings.ReplaceAll(m.Config, `, rack: ""`, "")
	m.Commit = "earlier"
	if left := len(strings.Split(m.Config, "\n")); left > lines-4 {
		t.Fatalf("the config has %d lines of %d: nothing was taken from it\n%s", left, lines, m.Config)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := line(t, "compare", "runs/then", "runs/now")
	if code != 0 || !strings.Contains(stdout, "the same inputs, the same composition") || !strings.Contains(stdout, "commit earlier") {
		t.Errorf("ends with %d\n%s%s", code, stdout, stderr)
	}
}

// columns is a terminal of a width.
type columns struct {
	bytes.Buffer
	width int
}

func (c *columns) Columns() int { return c.width }

func TestComparisonFitsTheTerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	smallRun(t, "fifo", "fifo")
	smallRun(t, "srtf", "srtf")
	for width, want := range map[int]string{70: "change", 90: "other"} {
		out := &columns{width: width}
		if code := run(t.Context(), []string{"compare", "runs/fifo", "runs/srtf"}, out, &bytes.Buffer{}); code != 0 {
			t.Fatalf("ends with %d", code)
		}
		_, table, _ := strings.Cut(out.String(), "\nmetric ")
		table, _, _ = strings.Cut("metric "+table, "\n\n")
		if first, _, _ := strings.Cut(table, "\n"); !strings.Contains(first, want) {
			t.Errorf("%d columns leave out %q:\n%s", width, want, table)
		}
		for shown := range strings.Lines(table) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(shown, "\n")); n > width {
				t.Errorf("a line has %d characters, the terminal %d:\n%s", n, width, shown)
			}
		}
	}
}

// What a name holds reaches no terminal as it is.
func TestCompareNamesThatAreHostile(t *testing.T) {
	t.Chdir(t.TempDir())
	smallRun(t, "fifo", "fifo")
	smallRun(t, "srtf", "srtf")
	name := "runs/\x1b[31mred\x07|<b>\n"
	if err := os.Rename("runs/srtf", name); err != nil {
		t.Fatal(err)
	}
	for _, format := range render.Formats {
		code, stdout, stderr := line(t, "compare", "runs/fifo", name, "-o", format, "--fail-above", "jct_seconds.mean=1000%")
		if code != 0 || strings.ContainsAny(stdout+stderr, "\x1b\x07") || !strings.Contains(stdout, "<b>") {
			t.Errorf("%s: ends with %d\n%q%q", format, code, stdout, stderr)
		}
	}
	code, _, stderr := line(t, "compare", "runs/fifo", name+"x", "--fail-above", "\x1b[31mred=1%")
	if code != cli.ExitUsage || strings.ContainsAny(stderr, "\x1b\x07") {
		t.Errorf("ends with %d: %q", code, stderr)
	}
	code, _, stderr = line(t, "compare", "runs/fifo", name+"x")
	if code != cli.ExitUsage || strings.ContainsAny(stderr, "\x1b\x07") {
		t.Errorf("ends with %d: %q", code, stderr)
	}
}
